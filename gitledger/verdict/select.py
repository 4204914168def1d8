"""Which receipt stands for a shard: fresh before carried, a failure before an older green (DESIGN section 6).

`plan`, `merge` and `verify` all ask these functions and no others, so that a dry run can't differ from the real
thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gitledger.dataclass import dataclass, replace
from gitledger.records.bodies import NO_RESULTS, Results
from gitledger.records.ids import CommitId, RecordId
from gitledger.records.outcomes import Outcome
from gitledger.verdict.evidence import HeldMerged
from gitledger.verdict.field import Candidate, Field, is_beaten, newest_first
from gitledger.verdict.situation import Situation, TargetShard

__all__ = [
    "REASONS",
    "Choice",
    "at_distances",
    "carry_candidates",
    "choose_fresh",
    "extra_agrees",
    "red_reason",
    "withdraw",
]

REASONS = frozenset(
    {
        "recorded",
        "unchanged",
        "never-recorded",
        "inputs-changed",
        "definition-changed",
        "not-green",
        "incomplete",
        "other-command",
        "dirty",
        "too-old",
        "untrusted",
        "leaky",
        "environment-changed",
        "duplicate-tests",
        "extra-unavailable",
        "carry-forbidden",
        "history-cut",
        "revoked",
        "unwitnessed",
        "future",
        "coverage-missing",
        "policy",
        "malformed",
    }
)
"""The closed list of section 6: why a shard is fresh, carryable or stale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What stands for a shard, and why (reasons: the closed list of section 6).

    `verdict` is `fresh`, `carryable` or `stale`. `result` is the receipt that a union takes: also a fresh failure,
    whose verdict is `stale`; None where nothing stands. `attempts` are the runs on the commit that it speaks of.

    `detail` is the reason in full. Where that is long, `remark` is what a row has room for, and `gist` what shards
    of the same fate have in common, to be told once for all of them ("": the detail itself).
    """

    shard: TargetShard
    verdict: str
    reason: str
    detail: str = ""
    remark: str = ""
    gist: str = ""
    result: Candidate | None = None
    results: Results = NO_RESULTS
    changed_paths: tuple[str, ...] = ()
    attempts: tuple[Candidate, ...] = ()
    about: Candidate | None = None
    """The receipt that the reason speaks of, where one does."""
    distance: int | None = None
    """How many parent edges away the receipt lies that stands, else the one that the reason speaks of; None where
    it is of no ancestor, or there is none. `at_distances` says so, as the last thing of all."""

    def __post_init__(self) -> None:
        if self.reason not in REASONS:
            raise ValueError(f"{self.reason!r} is not a reason of DESIGN section 6")


_PARTS: tuple[str, ...] = Choice.__slots__


def at_distances(choice: Choice, away: Mapping[CommitId, int | None]) -> Choice:
    """Return a choice, which other commits may share, as it lies from this one."""
    about = choice.result or choice.about
    distance = None if about is None else away[about.commit]
    if distance == choice.distance:
        return choice
    found = object.__new__(Choice)
    for name in _PARTS:  # as `replace` does, in a fifth of the time
        object.__setattr__(found, name, getattr(choice, name))
    object.__setattr__(found, "distance", distance)
    return found


def choose_fresh(field: Field) -> Choice | None:
    """Return what the target's own receipts decide, or None where none of them does.

    A failure stands unless a green started after it ended; the newest such green stands. Receipts that policy
    bars neither stand nor displace, except as `bars.displaces` says.
    """
    attempts, reds = tuple(newest_first(field.fresh)), field.reds
    for item in _by_extra(attempts, field.shard):
        if item.held.is_green and not item.bars and not is_beaten(item, reds):
            return Choice(shard=field.shard, verdict="fresh", reason="recorded", result=item, attempts=attempts)
    red = next((item for item in attempts if item.stands_against), None)
    if red is None:
        return None
    return Choice(
        shard=field.shard,
        verdict="stale",
        reason=red_reason(red),
        detail=", ".join(red.held.receipt.reasons),
        result=red,
        attempts=attempts,
        about=red,
    )


def _by_extra(attempts: tuple[Candidate, ...], shard: TargetShard) -> list[Candidate]:
    """Return attempts with the present extra inputs before those with others, otherwise in their order."""
    return sorted(attempts, key=lambda item: not _same_extra(item, shard))


def red_reason(candidate: Candidate) -> str:
    """Return `incomplete` for a run that never reached its end without a failing test, else `not-green`."""
    receipt = candidate.held.receipt
    if receipt.outcome is Outcome.INCOMPLETE and not candidate.held.has_bad_tests:
        return "other-command" if "other-command" in receipt.reasons else "incomplete"
    return "not-green"


def carry_candidates(field: Field, situation: Situation) -> list[Candidate]:
    """Return the older greens that could stand, nearest first; what the union adds (environment, ids) is open."""
    shard = field.shard
    if shard.redefined or shard.fault or not situation.may_carry:
        return []
    reds = (*field.reds, *field.doubtful_reds)
    return [
        item
        for item in field.candidates
        if not item.fresh
        and item.matches
        and item.held.is_green
        and not item.carry_bars
        and not is_beaten(item, reds)
        and (not shard.has_extra or extra_agrees(item, shard, situation.snapshots))
    ]


def _same_extra(item: Candidate, shard: TargetShard) -> bool:
    return shard.extra_now is None or set(shard.extra_now) == set(item.held.receipt.manifest.extra)


def extra_agrees(item: Candidate, shard: TargetShard, snapshots: Iterable[HeldMerged]) -> bool:
    """Tell whether a carried receipt's extra inputs are the present ones.

    A clone that lacks them takes the word of a trusted merged receipt of the target that carried the very record.
    """
    if not shard.has_extra:
        return True
    if shard.extra_now is not None:
        return _same_extra(item, shard)
    return any(
        entry.record == item.held.id and entry.carried is not None
        for merged in snapshots
        for entry in merged.receipt.shards
    )


def withdraw(choice: Choice, situation: Situation, revoked: frozenset[RecordId]) -> Choice:
    """Return the choice, stale where the green that stands, or what it leans on, was revoked.

    The choice itself is made as if nothing had been revoked: a revocation only ever turns green into red, and
    never makes room for a receipt that would agree better with the rest. A failure stands, revoked or not.
    """
    result = choice.result
    if result is None or not result.held.is_green:
        return choice
    if result.held.id in revoked:
        reason, detail = "revoked", f"record {result.held.id[:12]} was revoked"
    elif result.acceptance.withdrawn:
        reason, detail = "revoked", "every merged receipt that vouched for its retired key was revoked"
    elif (choice.verdict == "carryable" and choice.shard.has_extra) and not extra_agrees(
        result, choice.shard, (held for held in situation.snapshots if held.id not in revoked)
    ):
        reason, detail = "extra-unavailable", "the merged receipt that carried it was revoked"
    else:
        return choice
    return replace(
        choice, verdict="stale", reason=reason, detail=detail, result=None, results=NO_RESULTS, about=result
    )
