"""Which receipt stands for a shard: fresh before carried, a failure before an older green (DESIGN section 6).

`plan`, `merge` and `verify` all ask these functions and no others, so that a dry run can't differ from the real
thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gitledger.records.bodies import TestResult
from gitledger.records.ids import CommitId, RecordId
from gitledger.verdict.acceptance import Acceptance
from gitledger.verdict.bars import Bar, displaces, find_bars
from gitledger.verdict.evidence import Held
from gitledger.verdict.situation import Situation, Station, TargetShard

__all__ = ["Candidate", "Choice", "Field", "choose_fresh", "newest_first", "read_field", "why_stale"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One trusted receipt of a shard, seen from the target.

    `fresh`: it speaks of the target itself (the commit, or under `same-manifest` its tree). `matches`: its
    definition and manifest are the target's. `bars` hold on its own commit, `carry_bars` for carrying it.
    """

    held: Held
    commit: CommitId
    distance: int | None
    fresh: bool
    same_definition: bool
    matches: bool
    bars: tuple[Bar, ...]
    carry_bars: tuple[Bar, ...]
    acceptance: Acceptance

    @property
    def stands_against(self) -> bool:
        """Tell whether it is a failure that displaces greens of the same inputs."""
        return self.matches and displaces(self.held, self.bars)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """All receipts of one shard: candidates nearest and newest first, and what policy's signers rule out."""

    shard: TargetShard
    candidates: tuple[Candidate, ...]
    untrusted: tuple[tuple[Held, str], ...]
    off_ancestry: tuple[Candidate, ...]

    @property
    def fresh(self) -> tuple[Candidate, ...]:
        """Receipts of the target itself with its definition and manifest: the attempts."""
        return tuple(item for item in self.candidates if item.fresh and item.matches)

    @property
    def reds(self) -> tuple[Candidate, ...]:
        """Failures that displace greens of the same inputs, wherever they lie."""
        return tuple(item for item in self.candidates if item.stands_against)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What stands for a shard, and why (reasons: the closed list of section 6).

    `verdict` is `fresh`, `carryable` or `stale`. `result` is the receipt that a union takes: also a fresh failure,
    whose verdict is `stale`; None where nothing stands.
    """

    shard: TargetShard
    verdict: str
    reason: str
    detail: str = ""
    result: Candidate | None = None
    results: tuple[TestResult, ...] = ()
    changed_paths: tuple[str, ...] = ()
    attempts: tuple[Candidate, ...] = ()
    about: Candidate | None = None
    """The receipt that the reason speaks of, where one does."""


def newest_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates by (`ended_at`, non-green last, id), the newest first: a red beats a green of one time."""
    return sorted(
        candidates, key=lambda item: (item.held.ended_at, not item.held.is_green, item.held.id), reverse=True
    )


def read_field(shard: TargetShard, situation: Situation, revoked: frozenset[RecordId]) -> Field:
    """Return every receipt of `shard` in the evidence, judged one by one."""
    near: list[Candidate] = []
    off: list[Candidate] = []
    untrusted: list[tuple[Held, str]] = []
    for station in situation.stations:
        for held in station.evidence.shards:
            if held.receipt.key != shard.key:
                continue
            acceptance = situation.signatories.judge(held.opened, held.ended_at)
            if not acceptance.accepted:
                untrusted.append((held, acceptance.reason))
                continue
            candidate = _candidate(held, station, shard, situation, revoked, acceptance)
            (near if _eligible(station, situation) else off).append(candidate)
    return Field(
        shard=shard,
        candidates=tuple(_outwards(near)),
        untrusted=tuple(untrusted),
        off_ancestry=tuple(_outwards(off)),
    )


def _eligible(station: Station, situation: Situation) -> bool:
    """Tell whether `carry.from` reaches the commit; the target itself always counts."""
    if station.commit == situation.commit:
        return True
    match situation.config.carry.from_:
        case "policy-ref":
            return station.from_ref and station.distance is not None
        case "ancestors":
            return station.distance is not None
        case "same-manifest":
            return True


def _outwards(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates nearest first, the newest first among equals; commits off ancestry come last."""
    far = 1 << 62
    return sorted(newest_first(candidates), key=lambda item: far if item.distance is None else item.distance)


def _candidate(
    held: Held,
    station: Station,
    shard: TargetShard,
    situation: Situation,
    revoked: frozenset[RecordId],
    acceptance: Acceptance,
) -> Candidate:
    at_target = station.commit == situation.commit
    same_tree = station.tree == situation.tree and situation.config.carry.from_ == "same-manifest"
    same_definition = held.receipt.shard.definition_digest == shard.definition
    bars = find_bars(held, situation, carried=False, committed_at=station.committed_at, revoked=revoked)
    carry_bars = find_bars(held, situation, carried=True, committed_at=station.committed_at, revoked=revoked)
    return Candidate(
        held=held,
        commit=station.commit,
        distance=station.distance,
        fresh=at_target or same_tree,
        same_definition=same_definition,
        matches=same_definition and _same_inputs(held, shard),
        bars=bars,
        carry_bars=carry_bars,
        acceptance=acceptance,
    )


def _same_inputs(held: Held, shard: TargetShard) -> bool:
    """Tell whether the receipt's manifest is the target's, given the extra inputs that the receipt names."""
    claim = held.receipt.manifest
    if shard.fault or bool(claim.extra) != shard.has_extra or held.receipt.shard.split != shard.split:
        return False
    return claim.digest == shard.digest_with(claim.extra)


def choose_fresh(field: Field) -> Choice | None:
    """Return what the target's own receipts decide, or None where none of them does.

    A failure stands unless a green started after it ended; the newest such green stands. Receipts that policy
    bars neither stand nor displace, except as `bars.displaces` says.
    """
    attempts = tuple(newest_first(field.fresh))
    reds = [item for item in attempts if item.stands_against]
    greens = [item for item in attempts if item.held.is_green and not item.bars and not _beaten(item, reds)]
    if greens:
        return Choice(shard=field.shard, verdict="fresh", reason="recorded", result=greens[0], attempts=attempts)
    if not reds:
        return None
    red = reds[0]
    return Choice(
        shard=field.shard,
        verdict="stale",
        reason=red_reason(red),
        detail=", ".join(red.held.receipt.reasons),
        result=red,
        attempts=attempts,
        about=red,
    )


def _beaten(green: Candidate, reds: Iterable[Candidate]) -> bool:
    """Tell whether a failure with the same inputs stands against `green`: it did not start after it ended."""
    return any(green.held.started_at <= red.held.ended_at for red in reds)


def red_reason(candidate: Candidate) -> str:
    """Return `incomplete` for a run that never reached its end without a failing test, else `not-green`."""
    receipt = candidate.held.receipt
    if receipt.outcome == "incomplete" and not candidate.held.has_bad_tests:
        return "other-command" if "other-command" in receipt.reasons else "incomplete"
    return "not-green"


def carry_candidates(field: Field, situation: Situation) -> list[Candidate]:
    """Return the older greens that could stand, nearest first; what the union adds (environment, ids) is open."""
    shard = field.shard
    if shard.redefined or shard.fault or not situation.may_carry:
        return []
    reds = field.reds
    return [
        item
        for item in field.candidates
        if not item.fresh
        and item.matches
        and item.held.is_green
        and not item.carry_bars
        and not _beaten(item, reds)
        and _extra_agrees(item, shard, situation)
    ]


def _extra_agrees(item: Candidate, shard: TargetShard, situation: Situation) -> bool:
    """Tell whether a carried receipt's extra inputs are the present ones.

    A clone that lacks them takes the word of a trusted merged receipt of the target that carried the very record.
    """
    if not shard.has_extra:
        return True
    if shard.extra_now is not None:
        return shard.extra_now == item.held.receipt.manifest.extra
    return any(
        entry.record == item.held.id and entry.carried is not None
        for merged in situation.here.merged
        if situation.signatories.judge(merged.opened, merged.receipt.merged_at).accepted
        for entry in merged.receipt.shards
    )


def why_stale(field: Field, situation: Situation) -> Choice:
    """Return the stale choice with the reason that helps most, for a shard for which nothing stands.

    The reason is that of the nearest receipt with the target's inputs, else of the nearest receipt at all.
    """
    shard = field.shard
    stale = Choice(shard=shard, verdict="stale", reason="never-recorded", attempts=tuple(field.fresh))
    if shard.fault:
        return replace(stale, reason="malformed", detail=shard.fault)
    matching = [item for item in field.candidates if item.matches]
    if matching:
        return _why_not_matching(stale, matching, field, situation)
    if field.candidates:
        nearest = field.candidates[0]
        if not nearest.same_definition:
            return replace(stale, reason="definition-changed", about=nearest)
        changed = situation.facts.changed(nearest.commit, shard.key)
        return replace(stale, reason="inputs-changed", about=nearest, changed_paths=changed)
    if field.untrusted:
        held, why = field.untrusted[0]
        return replace(stale, reason="untrusted", detail=f"{why}: record {held.id[:12]}")
    if any(item.matches and item.held.is_green for item in field.off_ancestry):
        where = next(item for item in field.off_ancestry if item.matches and item.held.is_green)
        option = situation.config.carry.from_
        return replace(
            stale,
            detail=f"{where.commit[:12]} has a receipt with the same inputs, outside carry.from: {option}; "
            "`carry: {from: same-manifest}` would find it",
        )
    return replace(stale, reason="history-cut") if situation.history_cut else stale


def _why_not_matching(stale: Choice, matching: list[Candidate], field: Field, situation: Situation) -> Choice:
    """Return why none of the receipts with the very inputs of the target stands."""
    shard = field.shard
    reds = field.reds
    if reds:
        red = newest_first(reds)[0]
        reasons = ", ".join(red.held.receipt.reasons)
        return replace(stale, reason=red_reason(red), detail=reasons, about=red)
    nearest = matching[0]
    bars = nearest.bars if nearest.fresh else nearest.carry_bars
    if bars:
        return replace(stale, reason=bars[0].reason, detail=bars[0].detail, about=nearest)
    if not nearest.held.is_green:  # barred by nothing, displacing nothing: can't be, but never green
        return replace(stale, reason=red_reason(nearest), about=nearest)
    if shard.redefined:
        return replace(stale, reason="carry-forbidden", detail="redefined against the policy's ref", about=nearest)
    if not situation.may_carry:
        detail = "--no-carry" if situation.carry is False else "policy.allow_carried is false"
        return replace(stale, reason="carry-forbidden", detail=detail, about=nearest)
    if shard.has_extra and shard.extra_now is None:
        return replace(stale, reason="extra-unavailable", about=nearest)
    if shard.has_extra and not _extra_agrees(nearest, shard, situation):
        changed = tuple(sorted(_extra_changes(nearest, shard)))
        return replace(stale, reason="inputs-changed", changed_paths=changed, about=nearest)
    return replace(stale, reason="malformed", detail="its results can't be believed", about=nearest)


def _extra_changes(item: Candidate, shard: TargetShard) -> set[str]:
    now = {(claim.path, claim.mode, claim.sha256) for claim in shard.extra_now or ()}
    then = {(claim.path, claim.mode, claim.sha256) for claim in item.held.receipt.manifest.extra}
    return {path for path, _, _ in now ^ then}
