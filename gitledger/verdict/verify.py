"""Verify: the union as it stands now, judged by policy; every finding at once (DESIGN sections 7 and 11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gitledger.dataclass import dataclass
from gitledger.records.ids import RecordId
from gitledger.records.outcomes import TestOutcome
from gitledger.verdict.attempts import attempts_used
from gitledger.verdict.coverage import percent
from gitledger.verdict.evidence import HeldMerged
from gitledger.verdict.finding import Finding, Verdict, blocking, note
from gitledger.verdict.revoked import void_revocations
from gitledger.verdict.situation import Situation
from gitledger.verdict.tests_policy import TestLists, judge_tests
from gitledger.verdict.union import Union
from gitledger.verdict.way_out import way_out
from gitledger.wording import counted

__all__ = ["Ignored", "agreeing_snapshot", "ignored_records", "judge"]


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
        *_coverage(union),
        *_deselected(union),
        *pins,
        *judge_tests(union.results, lists, situation.memory),
        *_attempts(union, situation),
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
    elif union.results and all(
        len(choice.results.ended(TestOutcome.SKIPPED)) == len(choice.results) for choice in union.results
    ):
        words = {"expected": "at least one test that ran", "found": "none", "remedy": "git ledger show --tests"}
        yield blocking("no-tests", "7", "union", **words)


def _outcomes(union: Union) -> Iterator[Finding]:
    """Yield the shards whose standing receipt is not green."""
    for choice in union.choices:
        if choice.result is None or choice.result.held.is_green:
            continue
        counts = choice.result.held.receipt.counts
        bad = choice.results.ended(TestOutcome.FAILED, TestOutcome.ERROR)
        names = ", ".join(ascii(item)[1:-1] for item in bad[:3])
        why = ", ".join(choice.result.held.receipt.reasons)
        found = (
            f"{choice.result.held.receipt.outcome.value}: {counts.failed} failed, {counted(counts.error, 'error')}"
        )
        yield blocking(
            choice.reason,
            "7",
            choice.shard.key,
            expected="passed",
            found="; ".join(filter(None, [found, why, names])),
            remedy=way_out(choice),
        )


def _deselected(union: Union) -> Iterator[Finding]:
    """Yield what was collected and not selected to run: legitimate where declared, and never in silence."""
    for choice in union.results:
        number = 0 if choice.result is None or choice.shard.split else choice.result.held.receipt.counts.deselected
        if number:
            yield note(
                "deselected-tests",
                "8",
                choice.shard.key,
                expected="every collected test to be selected, or a declared reason",
                found=f"{counted(number, 'test')} deselected by the command or by pytest's configuration",
            )


def _coverage(union: Union) -> Iterator[Finding]:
    """Yield coverage under its threshold."""
    claim = union.coverage.claim
    if claim is not None and claim.passed is False:
        yield blocking(
            "coverage-under",
            "8",
            "coverage",
            expected=f"at least {claim.threshold}%",
            found=f"{claim.covered} of {claim.total}, {percent(claim)}%",
        )


def _attempts(union: Union, situation: Situation) -> Iterator[Finding]:
    limit = situation.config.policy.max_attempts
    if limit is None:
        return
    for choice in union.choices:
        used = attempts_used(choice.attempts)
        if used > limit:
            yield blocking(
                "too-many-attempts",
                "11",
                choice.shard.key,
                expected=f"at most {counted(limit, 'attempt')} (policy.max_attempts)",
                found=counted(used, "attempt"),
            )


def _merged(union: Union, situation: Situation) -> Iterator[Finding]:
    """Yield where signed snapshots disagree with what stands now; `require_merged` demands one that agrees."""
    required = situation.config.policy.require_merged
    snapshots = situation.snapshots
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


def agreeing_snapshot(union: Union, situation: Situation) -> HeldMerged | None:
    """Return the newest merged receipt that counts and names exactly what stands now, None where there is none."""
    return next((held for held in situation.snapshots if not _snapshot_fault(held, union)), None)


def _snapshot_fault(held: HeldMerged, union: Union) -> str:
    """Return why a snapshot is not what stands now, or ""; a revoked input fails it whatever stands."""
    named = {shard.key: (shard.record, shard.outcome, shard.carried is None) for shard in held.receipt.shards}
    stands = {
        choice.shard.key: (
            choice.result.held.id,
            choice.result.held.receipt.outcome,
            choice.verdict != "carryable",
        )
        for choice in union.results
        if choice.result
    }
    if held.id in union.revoked:
        return "it was revoked"
    revoked = sorted(str(shard.key) for shard in held.receipt.shards if shard.record in union.revoked)
    if revoked:
        return f"it names a revoked record for {', '.join(revoked)}"
    differing = sorted(str(key) for key in set(named) | set(stands) if named.get(key) != stands.get(key))
    if differing:
        return f"it differs in {', '.join(differing[:5])}"
    was, now = held.receipt.coverage, union.coverage.claim
    same = (was and (was.covered, was.total)) == (now and (now.covered, now.total))
    return "" if same else "it differs in coverage"


def ignored_records(union: Union, situation: Situation) -> tuple[Ignored, ...]:
    """Return the records of the judged commit that count for nothing, each with its reason."""
    here, signatories = situation.here, situation.signatories
    found = [Ignored(item.record, f"{item.reason}: {item.detail}") for item in here.rejected]
    found += [Ignored(record, "other-repository") for record in here.foreign]
    found += [Ignored(record, "misplaced") for record in here.misplaced]
    for field in union.fields:
        found += [Ignored(held.id, reason) for held, reason in field.untrusted if held.commit == situation.commit]
    for merged in here.merged:
        acceptance = signatories.judge(merged.opened, merged.receipt.merged_at)
        if not acceptance.accepted:
            found.append(Ignored(merged.id, acceptance.reason))
        elif merged.receipt.merged_at > situation.now:
            found.append(Ignored(merged.id, "future"))
    for item in here.undecodable:
        if not signatories.trusts(item):
            found.append(Ignored(item.id, f"malformed: {item.detail}"))
    found += [Ignored(held.id, "not-a-revoker") for held in void_revocations(here, signatories.is_revoker)]
    return tuple(found)
