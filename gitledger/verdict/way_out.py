"""What to do about a shard that is not green: to record it again is a circle where that is not the fault."""

from __future__ import annotations

from gitledger.manifest.leavings import mend_dirt
from gitledger.verdict.select import Choice

__all__ = ["record_again", "way_out"]

_HOW = {
    "coverage-missing": "with a command that measures, pytest --cov; or write `coverage: none` for it",
    "other-command": "without words of your own, and with PYTEST_ADDOPTS unset",
    "untrusted": "with a key that policy lists: git ledger explain untrusted",
}
"""How it has to be recorded for that to mend it."""


def record_again(choice: Choice) -> str:
    """Return the command that records the shard."""
    return f"git ledger record --shard {choice.shard.key}"


def way_out(choice: Choice) -> str:
    """Return what to do: look at tests that failed, where some did, else mend what is at fault, or run again."""
    record = record_again(choice)
    if choice.shard.fault:
        return "mend the shard in .gitledger/config.yaml"
    if choice.reason == "history-cut":
        return "git fetch --unshallow"
    if choice.reason == "dirty" and choice.about is not None:
        return f"{mend_dirt(choice.about.held.receipt.repo.dirty_paths)}; then {record}"
    if how := _HOW.get(choice.reason):
        return f"{record} ({how})"
    about = choice.result or choice.about
    if about is None:
        return record
    if choice.reason == "not-green" and about.held.has_bad_tests:
        return f"git ledger show --tests --failed {about.held.id[:12]} (mend what failed, then {record})"
    if choice.reason == "incomplete" and "no-tests" in about.held.receipt.reasons:
        return f"write a test that its command runs, or let that find those there are; then {record}"
    return record
