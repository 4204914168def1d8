"""Verify: the union as it stands now, judged by policy; every finding at once (DESIGN sections 7 and 11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gitledger.records.ids import RecordId
from gitledger.verdict.evidence import HeldMerged
from gitledger.verdict.finding import Finding, Verdict, blocking, note
from gitledger.verdict.situation import Situation
from gitledger.verdict.tests_policy import TestLists, judge_tests
from gitledger.verdict.union import Union

__all__ = ["Ignored", "ignored_records", "judge"]


@dataclass(frozen=True, slots=True)
class Ignored:
    """A record on the judged commit that counts for nothing, and why. Nothing is ignored in silence."""

    record: RecordId | None
    reason: str

    def encode(self) -> dict[str, str | None]:
        """Return the JSON object of `verify --json`."""
        return {"reason": self.reason, "record": self.record}


def judge(union: Union, situation: Situation, lists: TestLists, pins: Iterable[Finding]) -> Verdict:
    """Return the verdict on the union. It fails closed: no shards, no tests, no receipts are never a pass."""
    findings = [
        *_nothing(union),
        *union.faults,
        *_outcomes(union),
        *pins,
        *judge_tests(union.results, lists),
        *_attempts(union, situation),
        *_undecodable(union, situation),
        *_merged(union, situation),
        *union.notes,
    ]
    return Verdict.over(len(union.results), findings)


def _nothing(union: Union) -> Iterator[Finding]:
    if not union.choices:
        yield blocking(
            "no-shards",
            "7",
            "configuration",
            expected="at least one declared shard",
            found="none",
            remedy="declare shards in .gitledger/config.yaml",
        )
    elif not any(choice.results for choice in union.results):
        yield blocking("no-tests", "7", "union", expected="at least one test", found="none")


def _outcomes(union: Union) -> Iterator[Finding]:
    """Yield the shards whose standing receipt is not green."""
    for choice in union.choices:
        if choice.result is None or choice.result.held.is_green:
            continue
        counts = choice.result.held.receipt.counts
        bad = [item.node_id for item in choice.results if item.outcome.is_bad]
        names = ", ".join(ascii(item)[1:-1] for item in bad[:3])
        why = ", ".join(choice.result.held.receipt.reasons)
        found = f"{choice.result.held.receipt.outcome.value}: {counts.failed} failed, {counts.error} errors"
        yield blocking(
            choice.reason,
            "7",
            choice.shard.key,
            expected="passed",
            found="; ".join(filter(None, [found, why, names])),
            remedy=f"git ledger record --shard {choice.shard.key}",
        )


def _attempts(union: Union, situation: Situation) -> Iterator[Finding]:
    limit = situation.config.policy.max_attempts
    for choice in union.choices:
        if limit is not None and len(choice.attempts) > limit:
            yield blocking(
                "too-many-attempts",
                "11",
                choice.shard.key,
                expected=f"at most {limit} attempts (policy.max_attempts)",
                found=f"{len(choice.attempts)} attempts",
            )


def _undecodable(union: Union, situation: Situation) -> Iterator[Finding]:
    """Yield what a trusted key signed and we can't read: it may be a failure, so it blocks.

    On an older commit it blocks only where something is carried, since only then does that history count.
    """
    carries = any(choice.verdict == "carryable" for choice in union.choices)
    for station in situation.stations:
        if station.commit != situation.commit and not (carries and station.distance is not None):
            continue
        for held in station.evidence.undecodable:
            if situation.signatories.judge(held.opened, situation.now).accepted:
                yield blocking(
                    "undecodable",
                    "2",
                    held.id[:12],
                    expected="a record that this version can read",
                    found=held.detail,
                    remedy="upgrade git-ledger, or git ledger revoke the record",
                )


def trusted_snapshots(situation: Situation) -> list[HeldMerged]:
    """Return the merged receipts of the target whose signers count, the newest first."""
    found = [
        held
        for held in situation.here.merged
        if situation.signatories.judge(held.opened, held.receipt.merged_at).accepted
    ]
    return sorted(found, key=lambda held: (held.receipt.merged_at, held.id), reverse=True)


def _merged(union: Union, situation: Situation) -> Iterator[Finding]:
    """Yield where signed snapshots disagree with what stands now; `require_merged` demands one that agrees."""
    required = situation.config.policy.require_merged
    snapshots = trusted_snapshots(situation)
    remedy = "git ledger merge"
    if not snapshots:
        if required:
            yield blocking(
                "merged-missing", "7", "union", expected="a merged receipt", found="none", remedy=remedy
            )
        return
    faults = [_snapshot_fault(held, union) for held in snapshots]
    if not faults[0]:
        return
    agreeing = any(not fault for fault in faults)
    make = blocking if required and not agreeing else note
    yield make(
        "snapshot-outdated",
        "7",
        snapshots[0].id[:12],
        expected="the merged receipt to name what stands now",
        found=faults[0],
        remedy=remedy,
    )


def _snapshot_fault(held: HeldMerged, union: Union) -> str:
    named = {shard.key: shard.record for shard in held.receipt.shards}
    stands = {choice.shard.key: choice.result.held.id for choice in union.results if choice.result}
    if held.id in union.revoked:
        return "it was revoked"
    revoked = sorted(str(key) for key, record in named.items() if record in union.revoked)
    if revoked:
        return f"it names a revoked record for {', '.join(revoked)}"
    differing = sorted(str(key) for key in set(named) | set(stands) if named.get(key) != stands.get(key))
    return f"it differs in {', '.join(differing[:5])}" if differing else ""


def ignored_records(union: Union, situation: Situation) -> tuple[Ignored, ...]:
    """Return the records of the judged commit that count for nothing, each with its reason."""
    here = situation.here
    found = [Ignored(item.record, f"{item.reason}: {item.detail}") for item in here.rejected]
    found += [Ignored(record, "other-repository") for record in here.foreign]
    for field in union.fields:
        found += [Ignored(held.id, reason) for held, reason in field.untrusted if held.commit == situation.commit]
    for merged in here.merged:
        acceptance = situation.signatories.judge(merged.opened, merged.receipt.merged_at)
        if not acceptance.accepted:
            found.append(Ignored(merged.id, acceptance.reason))
    for held in here.undecodable:
        if not situation.signatories.judge(held.opened, situation.now).accepted:
            found.append(Ignored(held.id, f"malformed: {held.detail}"))
    return tuple(found)
