"""Shards that are any command: its status is the one test's outcome."""

from __future__ import annotations

import pytest

from gitledger.records.ids import ShardKey
from gitledger.suites.exit_status import summarise_exit_status


def test_status_0_passes(end):
    result = summarise_exit_status(ShardKey("lint"), end(status=0))
    assert (result.outcome, result.reasons, result.finished) == ("passed", (), True)
    assert [item.node_id for item in result.results] == ["lint"]
    assert result.counts.collected == result.counts.passed == result.full_count == 1
    assert result.results[0].duration_ns == 2_000_000_000


@pytest.mark.parametrize(
    ("seen", "reasons"),
    [
        ({"status": 1}, ("test-failed",)),
        ({"status": 5}, ("test-failed",)),
        ({"status": None}, ("test-failed",)),
        ({"status": None, "signal": 9}, ("test-failed", "signal")),
        ({"status": 0, "timed_out": True}, ("test-failed", "timeout")),
        ({"status": 0, "stalled": True}, ("test-failed", "stalled")),
        ({"status": 0, "signal": 11}, ("test-failed", "signal")),
    ],
)
def test_anything_else_fails(end, seen, reasons):
    result = summarise_exit_status(ShardKey("lint", "py312"), end(**seen))
    assert (result.outcome, result.reasons) == ("failed", reasons)
    assert result.counts.failed == 1


@pytest.mark.parametrize("seen", [{"status": 1}, {"status": 0}, {"status": None, "signal": 15}])
def test_what_was_told_to_stop_did_not_fail_and_did_not_pass(end, seen):
    result = summarise_exit_status(ShardKey("lint"), end(interrupted=True, **seen))
    assert (result.outcome, result.reasons) == ("incomplete", ("missing-results", "interrupted"))
    assert (result.results, result.missing, result.counts.collected, result.counts.failed) == ((), ("lint",), 1, 0)
    assert not result.finished
