"""Outcomes of tests and shards, and the worst-of rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.records.decode import Reader
from gitledger.records.outcomes import Counts, Outcome, TestOutcome, worst

NAMES = ("collected", "passed", "failed", "error", "skipped", "xfailed", "xpassed", "deselected")
COUNTS = st.builds(Counts, **dict.fromkeys(NAMES, st.integers(0, 1000)))


@given(st.lists(st.sampled_from(Outcome), min_size=1))
def test_the_worst_outcome_is_failed_then_error_then_incomplete(outcomes):
    for bad in (Outcome.FAILED, Outcome.ERROR, Outcome.INCOMPLETE):
        if bad in outcomes:
            assert worst(outcomes) is bad
            return
    assert worst(outcomes) is Outcome.PASSED


def test_the_worst_of_nothing_is_not_a_pass():
    assert worst([]) is Outcome.INCOMPLETE


def test_only_failures_and_errors_keep_a_shard_from_passing():
    assert {outcome for outcome in TestOutcome if outcome.is_bad} == {TestOutcome.FAILED, TestOutcome.ERROR}


@given(st.lists(st.sampled_from(TestOutcome)), st.integers(0, 5), st.integers(0, 5))
def test_counts_are_those_of_the_outcomes(outcomes, unended, deselected):
    counts = Counts.of(outcomes, collected=len(outcomes) + unended, deselected=deselected)
    assert counts.ended == len(outcomes)
    assert counts.collected - counts.ended == unended
    assert counts.deselected == deselected
    assert all(getattr(counts, outcome.value) == outcomes.count(outcome) for outcome in TestOutcome)


@given(COUNTS, COUNTS)
def test_counts_add_up_field_by_field(one, other):
    total = one + other
    assert all(getattr(total, name) == getattr(one, name) + getattr(other, name) for name in NAMES)


@given(COUNTS)
def test_counts_are_read_back_unless_more_ended_than_were_collected(result_of, counts):
    read = result_of(Counts.decode, Reader(counts.encode(), "$.counts"))
    if counts.ended <= counts.collected:
        assert read == counts
    else:
        assert read.message.startswith("$.counts: ")


@pytest.mark.parametrize("name", NAMES)
def test_a_count_is_no_negative_number(refused, name):
    broken = Counts(collected=9).encode() | {name: -1}
    assert refused(Counts.decode, Reader(broken, "$.counts")).message.startswith(f"$.counts.{name}: ")
