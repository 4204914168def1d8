"""Which attempts `policy.max_attempts` counts: one rule for verify, carry and run.

All runs of a shard on a commit are attempts, and all are kept. An attempt is used up by an outcome of the tests'
own: one that was interrupted (Ctrl-C, a driver that was killed, a job that was cancelled) before any test of it
had failed says nothing of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gitledger.records.outcomes import Outcome

if TYPE_CHECKING:
    from gitledger.records.receipt import ShardReceipt
    from gitledger.verdict.field import Candidate

__all__ = ["attempts_used", "is_counted"]


def is_counted(receipt: ShardReceipt) -> bool:
    """Tell whether a run used an attempt up."""
    is_cut_short = receipt.outcome is Outcome.INCOMPLETE and "interrupted" in receipt.reasons
    return not is_cut_short or receipt.counts.failed + receipt.counts.error > 0


def attempts_used(attempts: Iterable[Candidate]) -> int:
    """Return how many of a shard's attempts on one commit count against `policy.max_attempts`."""
    return sum(is_counted(item.held.receipt) for item in attempts)
