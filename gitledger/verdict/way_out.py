"""What to do about a shard that is not green: to record a failed test again without a look at it is a circle."""

from __future__ import annotations

from gitledger.verdict.select import Choice

__all__ = ["way_out"]


def way_out(choice: Choice) -> str:
    """Return the command: a look at the tests that failed, where some did, else another run."""
    record = f"git ledger record --shard {choice.shard.key}"
    about = choice.result or choice.about
    if choice.reason == "not-green" and about is not None and about.held.has_bad_tests:
        return f"git ledger show --tests --failed {about.held.id[:12]} (mend what failed, then {record})"
    return record
