"""All receipts of one shard, each judged by itself: what the choice is made from (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from gitledger.dataclass import dataclass
from gitledger.records.ids import CommitId, KeyFingerprint, RecordId
from gitledger.verdict.acceptance import Acceptance
from gitledger.verdict.bars import Bar, displaces, find_bars
from gitledger.verdict.evidence import Held
from gitledger.verdict.situation import Situation, Station, TargetShard

__all__ = [
    "Candidate",
    "Field",
    "Reading",
    "attempts_at",
    "covers",
    "is_beaten",
    "is_lasting",
    "newest_first",
    "read_field",
    "seen_as",
]


_FAR = 1 << 62
Reading = tuple[Held, TargetShard, bool, bool, tuple[Bar, ...], tuple[Bar, ...]]
"""A receipt and a shard; whether definition and inputs are the shard's; what bars it, and from being carried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One trusted receipt of a shard, seen from the target.

    `fresh`: it speaks of the target itself (the commit, or under `same-manifest` its tree). `matches`: its
    definition and manifest are the target's. `bars` hold on its own commit, `carry_bars` for carrying it. How far
    away it lies is no part of it: many commits see it alike.
    """

    held: Held
    commit: CommitId
    is_ancestor: bool
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
    """All receipts of one shard: candidates nearest and newest first, and what policy's signers rule out.

    `beyond` are those that `carry.from` doesn't reach: nothing is carried from there.
    """

    shard: TargetShard
    candidates: tuple[Candidate, ...]
    untrusted: tuple[tuple[Held, str], ...]
    beyond: tuple[Candidate, ...]
    history_cut: bool = False

    @property
    def doubtful_reds(self) -> tuple[Candidate, ...]:
        """Failures of the same inputs on commits that may be ancestors: a shallow clone can't tell.

        Nothing is carried past them. A green of the target itself is not held against them.
        """
        doubtful = (item for item in self.beyond if not item.is_ancestor) if self.history_cut else ()
        return tuple(item for item in doubtful if item.stands_against)

    @property
    def fresh(self) -> tuple[Candidate, ...]:
        """Receipts of the target itself with its definition and manifest: the attempts."""
        return tuple(item for item in self.candidates if item.fresh and item.matches)

    @property
    def reds(self) -> tuple[Candidate, ...]:
        """Failures that displace greens of the same inputs.

        `carry.from` says where a green may come from; a failure on any ancestor counts wherever greens come from,
        else a change could shake its own failure off by one more commit.
        """
        ancestors = (item for item in self.beyond if item.is_ancestor)
        return tuple(item for item in (*self.candidates, *ancestors) if item.stands_against)


def newest_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates by (`ended_at`, non-green last, id), the newest first: a red beats a green of one time."""
    found = list(candidates)
    if len(found) < 2:  # as nearly always
        return found
    return sorted(found, key=lambda item: (item.held.ended_at, not item.held.is_green, item.held.id), reverse=True)


def is_beaten(green: Candidate, reds: Iterable[Candidate]) -> bool:
    """Tell whether a failure of the same inputs stands against `green`: it did not start after it ended.

    Attempts on the target are held against each other whatever extra inputs they had; elsewhere the same manifest
    means the same extra inputs too.
    """
    return any(
        green.held.started_at <= red.held.ended_at
        for red in reds
        if (green.fresh and red.fresh) or red.held.receipt.manifest.digest == green.held.receipt.manifest.digest
    )


def read_field(shard: TargetShard, situation: Situation, receipts: Iterable[tuple[Station, Held]]) -> Field:
    """Return every receipt of `shard` among `receipts`, which stand in the stations' order, judged one by one."""
    near: dict[_Identity, _Far] = {}
    beyond: dict[_Identity, _Far] = {}
    untrusted: dict[_Identity, tuple[Held, str]] = {}
    for station, held in receipts:
        if held.receipt.key != shard.key:
            continue
        reached = _is_reached(station, situation)
        identity = (held.id, held.key)
        acceptance = situation.signatories.judge(held.opened, held.ended_at)
        if acceptance.accepted:
            candidate = _candidate(held, station, shard, situation, acceptance)
            (near if reached else beyond).setdefault(identity, (candidate, station.distance))
        elif reached:
            untrusted.setdefault(identity, (held, acceptance.reason))
    return Field(
        shard=shard,
        candidates=tuple(_outwards(near.values())),
        untrusted=tuple(pair for identity, pair in untrusted.items() if identity not in near),
        beyond=tuple(_outwards(beyond.values())),
        history_cut=situation.history_cut,
    )


def attempts_at(item: Candidate, one: Field) -> tuple[Candidate, ...]:
    """Return all runs of the shard on the commit of a receipt: what `max_attempts` counts there."""
    runs = (other for other in one.candidates if other.commit == item.commit and other.matches)
    return tuple(newest_first(runs))


def seen_as(station: Station, situation: Situation) -> int:
    """Return how a commit's receipts are seen from the target, as far as a field tells, distances aside."""
    seen = 4 * (station.distance is not None)
    return seen + 2 * _is_reached(station, situation) + _is_fresh(station, situation)


def is_lasting(receipts: Iterable[tuple[Station, Held]], situation: Situation) -> bool:
    """Tell whether the signatures of these receipts count, or don't, whatever merged receipts say."""
    return all(situation.signatories.is_settled(held.opened, held.ended_at) for _, held in receipts)


_Identity = tuple[RecordId, KeyFingerprint | None]
_Far = tuple[Candidate, int | None]


def _is_fresh(station: Station, situation: Situation) -> bool:
    """Tell whether a commit's receipts speak of the target itself."""
    same_tree = station.tree == situation.tree and situation.config.carry.from_ == "same-manifest"
    return station.commit == situation.commit or same_tree


def _is_reached(station: Station, situation: Situation) -> bool:
    """Tell whether `carry.from` reaches the commit; the target itself always counts."""
    if station.commit == situation.commit:
        return True
    match situation.config.carry.from_:
        case "policy-ref":
            return station.from_ref and station.distance is not None
        case "ancestors":
            return station.distance is not None
        case "same-manifest":
            return station.present


def _outwards(found: Collection[_Far]) -> Sequence[Candidate]:
    """Return candidates nearest first, the newest first among equals; commits off ancestry come last."""
    if len(found) < 2:
        return tuple(candidate for candidate, _ in found)
    away = {id(candidate): _FAR if distance is None else distance for candidate, distance in found}
    return sorted(newest_first(candidate for candidate, _ in found), key=lambda item: away[id(item)])


def covers(held: Held, shard: TargetShard) -> bool:
    """Tell whether a receipt speaks of the shard as it is defined, and of its very inputs."""
    return _agreement(held, shard)[1]


def _agreement(held: Held, shard: TargetShard) -> tuple[bool, bool]:
    """Return whether a receipt's definition is the shard's, and whether definition and inputs are."""
    same_definition = held.receipt.shard.definition_digest == shard.definition
    matches = same_definition and _same_inputs(held, shard)
    return same_definition, matches


def _candidate(
    held: Held,
    station: Station,
    shard: TargetShard,
    situation: Situation,
    acceptance: Acceptance,
) -> Candidate:
    _, _, same_definition, matches, bars, carry_bars = _reading(held, station, shard, situation)
    return Candidate(
        held=held,
        commit=station.commit,
        is_ancestor=station.distance is not None,
        fresh=_is_fresh(station, situation),
        same_definition=same_definition,
        matches=matches,
        bars=bars,
        carry_bars=carry_bars,
        acceptance=acceptance,
    )


def _reading(held: Held, station: Station, shard: TargetShard, situation: Situation) -> Reading:
    """Return what a receipt comes to for a shard, wherever it is seen from; found once for all that ask."""
    readings, identity = situation.memory.readings, (id(held), id(shard))
    known = readings.get(identity)
    if known is not None and known[0] is held and known[1] is shard:
        return known
    same_definition, matches = _agreement(held, shard)
    lacks = _coverage_bars(held, shard, situation)
    bars, carry_bars = _bars(held, station, situation)
    found = (held, shard, same_definition, matches, (*bars, *lacks), (*carry_bars, *lacks))
    readings[identity] = found
    return found


def _bars(held: Held, station: Station, situation: Situation) -> tuple[tuple[Bar, ...], tuple[Bar, ...]]:
    """Return what bars a receipt on its own commit, and from being carried; found once for all that ask."""
    known = situation.memory.bars.get((held.id, held.key))
    if known is None:
        committed_at = station.committed_at
        known = (
            find_bars(held, situation, carried=False, committed_at=committed_at),
            find_bars(held, situation, carried=True, committed_at=committed_at),
        )
        situation.memory.bars[held.id, held.key] = known
    return known


def _coverage_bars(held: Held, shard: TargetShard, situation: Situation) -> tuple[Bar, ...]:
    """Return `coverage-missing` for a green receipt without the fragment that a threshold asks for."""
    if situation.coverage.threshold is None or not shard.measured or not held.is_green:
        return ()
    if "coverage" in held.receipt.bodies:
        return ()
    return (Bar("coverage-missing", "the receipt has no coverage fragment"),)


def _same_inputs(held: Held, shard: TargetShard) -> bool:
    """Tell whether the receipt's manifest is the target's, given the extra inputs that the receipt names."""
    claim = held.receipt.manifest
    if shard.fault or bool(claim.extra) != shard.has_extra or held.receipt.shard.split != shard.split:
        return False
    return claim.digest == shard.digest_with(claim.extra)
