"""Shards whose child's status is their one test's outcome: lint, type checks, builds."""

from __future__ import annotations

from gitledger.machine.child import ChildExit
from gitledger.records.bodies import TestResult
from gitledger.records.ids import NodeId, ShardKey
from gitledger.records.outcomes import TestOutcome
from gitledger.suites.result import SuiteResult, child_reasons, conclude, outcome_reasons

__all__ = ["summarise_exit_status"]


def summarise_exit_status(shard: ShardKey, end: ChildExit) -> SuiteResult:
    """Return the result of one test, named after the shard, that passed exactly when the status was 0.

    A signal, a time-out and their kin are a failure of that test, and named as reasons as well. One that was told
    to stop has no end of its own: its status, whatever it is, says nothing of the test.
    """
    reasons = child_reasons(end, finished=False)
    ids = [shard.name]
    if end.interrupted:
        reasons |= {"missing-results"}
        return conclude(reasons=reasons, results=[], full_ids=ids, selected_ids=ids, missing=ids)
    passed = end.status == 0 and not reasons
    result = TestResult(
        node_id=NodeId(shard.name),
        outcome=TestOutcome.PASSED if passed else TestOutcome.FAILED,
        phase=None if passed else "call",
        duration_ns=max(0, end.duration_ns),
    )
    return conclude(
        reasons=outcome_reasons([result]) | reasons,
        results=[result],
        full_ids=ids,
        selected_ids=ids,
        finished=not reasons,
    )
