"""The verdict: every finding at once, and nothing judged is never a pass (DESIGN sections 7 and 11)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gitledger.records.bodies import Check
from gitledger.records.ids import ShardKey
from gitledger.verdict.finding import Verdict, note
from gitledger.verdict.plan import describe_choice, summarise
from gitledger.verdict.tests_policy import TestLists

A, B = "tests/l1.py::test_a", "tests/l1.py::test_b"


# Nothing


def test_a_verdict_over_nothing_is_not_a_pass():
    assert not Verdict.over(0, []).passed
    assert not Verdict.over(0, [note("x", "7", "x", expected="", found="")]).passed


def test_a_verdict_over_no_shards_is_not_a_pass(world):
    world.record()
    world.shards.clear()
    assert world.codes() == {"no-shards"}
    assert not world.judge().passed


def test_a_verdict_over_no_receipts_is_not_a_pass(world):
    assert world.codes() == {"never-recorded"}


def test_a_verdict_over_tests_that_were_all_skipped_is_not_a_pass(world):
    world.record(tests={A: "skipped", B: "skipped"})
    lists = TestLists(allow_skipped=True, expected_skips=frozenset({A, B}))
    assert world.codes(lists=lists) == {"no-tests"}


# Outcomes


def test_every_finding_is_given_at_once_those_that_block_first(world):
    world.declare("l2", "l3")
    world.record("l1", outcome="failed")
    world.record("l2", started=2, tests={"x": "skipped", "y": "passed"})
    world.record("l9", started=4)
    findings = world.judge().findings
    assert [finding.code for finding in findings] == [
        "never-recorded",
        "not-green",
        "skipped-tests",
        "undeclared-shard",
    ]


def test_a_failed_shard_names_its_tests_escaped(world):
    world.record(outcome="failed", tests={"tests/x.py::test[\x1b[31m]": "failed"})
    finding = next(one for one in world.judge().findings if one.code == "not-green")
    assert "\\x1b" in finding.found
    assert "1 failed" in finding.found
    assert "\x1b" not in finding.found


# Attempts


@pytest.mark.parametrize(("limit", "passes"), [(None, True), (3, True), (2, False)])
def test_max_attempts_counts_every_run_of_the_shard_on_the_commit(world, limit, passes):
    world.policy = {"max_attempts": limit}
    world.record(outcome="failed", started=0)
    world.record(started=5, dirty=True)
    world.record(started=10)
    world.record(started=20, key="mallory")
    assert world.judge().passed is passes
    assert world.codes() == (set() if passes else {"too-many-attempts"})


def test_what_was_interrupted_before_a_test_of_it_failed_uses_no_attempt_up(world):
    """A driver that was killed, or a job that was cancelled, says nothing of the tests; a failure that was seen
    does."""
    world.policy = {"max_attempts": 1}
    cut = {"outcome": "incomplete", "reasons": ("interrupted", "missing-results")}
    world.record(started=0, tests={A: "passed"}, selected=[A, B], full=[A, B], **cut)
    world.record(started=10)
    assert world.judge().passed
    seen = {"outcome": "failed", "reasons": ("test-failed", *cut["reasons"])}
    world.record(started=5, tests={A: "failed"}, selected=[A, B], full=[A, B], **seen)
    assert world.codes() == {"too-many-attempts"}


# Single tests


def test_skipped_tests_block_unless_expected_or_allowed(world):
    world.record(tests={A: "passed", B: "skipped"})
    assert world.codes() == {"skipped-tests"}
    assert world.codes(lists=TestLists(expected_skips=frozenset({B}))) == set()
    assert world.codes(lists=TestLists(allow_skipped=True)) == set()
    assert "skipped-tests" in world.codes(blocking=False, lists=TestLists(allow_skipped=True))


def test_expected_skips_are_exact(world):
    world.record(tests={A: "passed", B: "skipped"})
    assert world.codes(lists=TestLists(expected_skips=frozenset())) == {"skipped-tests"}
    assert world.codes(lists=TestLists(expected_skips=frozenset({A, B}))) == {"expected-skip-stale"}
    assert world.codes(lists=TestLists(expected_skips=frozenset({"gone", B}))) == {"expected-skip-stale"}


def test_a_skip_expected_of_one_variant_is_not_stale_because_another_ran_it(world):
    world.shards.clear()
    world.declare("l1@a100", "l1@mi300")
    world.record("l1@a100", tests={A: "passed", B: "skipped"})
    world.record("l1@mi300", tests={A: "passed", B: "passed"}, started=2)
    assert world.codes(lists=TestLists(expected_skips=frozenset({B}))) == set()


@pytest.mark.parametrize(
    ("tests", "required", "codes"),
    [
        ({A: "passed", B: "passed"}, {A, B}, set()),
        ({A: "passed", B: "passed"}, {A}, {"required-tests-stale"}),
        ({A: "passed"}, {A, B}, {"required-tests"}),
        ({A: "passed", B: "xfailed"}, {A, B}, {"required-tests"}),
        ({A: "passed", B: "xfailed"}, {A}, set()),
        ({A: "passed", B: "xpassed"}, {A, B}, set()),
        ({A: "passed", B: "skipped"}, {A, B}, {"required-tests"}),
        ({A: "passed", B: "skipped"}, {A}, set()),
        ({A: "passed"}, set(), {"required-tests", "required-tests-stale"}),
    ],
)
def test_required_tests_are_exact_and_must_really_have_passed(world, tests, required, codes):
    world.record(tests=tests)
    lists = TestLists(required_tests=frozenset(required), allow_skipped=True)
    assert world.codes(lists=lists) == codes


def test_a_required_test_counts_only_from_shards_of_the_policys_ref(world):
    world.declare("added")
    world.record("l1", tests={A: "passed"})
    world.record("added", tests={B: "passed"})
    both = frozenset({A, B})
    pinned = TestLists(required_tests=both, pinned=frozenset({ShardKey("l1")}))
    (finding,) = world.judge(lists=pinned).findings
    assert (finding.code, finding.blocks) == ("required-tests", True)
    assert "added" in finding.found
    assert "--accept-shards" in finding.remedy
    assert world.codes(lists=replace(pinned, pinned=None)) == set()


def test_a_failed_comparison_check_blocks_a_test_that_passed(world):
    world.record(checks=(Check(name="atol", passed=True),))
    assert world.judge().passed
    world.record(checks=(Check(name="atol", passed=True), Check(name="rtol", passed=False)), started=5)
    assert world.codes() == {"check-failed"}


# Merged receipts


def test_no_merged_receipt_is_needed_unless_policy_requires_one(world):
    world.record()
    assert world.judge().findings == ()
    world.policy = {"require_merged": True}
    assert world.codes() == {"merged-missing"}
    world.merge()
    assert world.judge().findings == ()


@pytest.mark.parametrize("key", ["mallory", None])
def test_a_merged_receipt_counts_only_by_a_key_that_counts(world, key):
    world.policy = {"require_merged": True}
    record = world.merged(world.record(), key=key)
    assert world.codes() == {"merged-missing"}
    assert any(one == record for one, _ in world.ignored())


def test_a_merged_receipt_of_the_future_counts_for_nothing_yet(world):
    world.policy = {"require_merged": True}
    record = world.merged(world.record(), at=10**5)
    assert world.codes() == {"merged-missing"}
    assert (record, "future") in world.ignored()


def test_a_merged_receipt_that_disagrees_is_reported_and_blocks_only_where_one_is_required(world):
    world.record()
    world.merge(at=5)
    world.record(started=10)
    assert world.judge().passed
    assert world.codes(blocking=False) == {"snapshot-outdated"}
    world.policy = {"require_merged": True}
    assert world.codes() == {"snapshot-outdated"}
    world.merge(at=30)
    assert world.judge().findings == ()


def test_an_older_merged_receipt_that_agrees_satisfies_the_demand(world):
    world.policy = {"require_merged": True}
    older = world.record(started=0)
    newer = world.record(started=10)
    world.merged(newer, at=20)
    world.merged(older, at=30)
    assert world.judge().passed
    assert world.codes(blocking=False) == {"snapshot-outdated"}


def test_a_merged_receipt_that_calls_a_failure_green_does_not_agree(world):
    from dataclasses import replace

    from gitledger.records.outcomes import Counts, Outcome

    world.policy = {"require_merged": True}
    red = world.record(outcome="failed")
    entry = replace(
        world._entry(red, world.commits["head"]), outcome=Outcome.PASSED, counts=Counts(collected=2, passed=2)
    )
    world.merged(red, shards=(entry,), outcome=Outcome.PASSED, counts=entry.counts)
    assert world.codes() == {"not-green", "snapshot-outdated"}


def test_a_merged_receipt_that_names_more_or_fewer_shards_does_not_agree(world):
    world.policy = {"require_merged": True}
    world.declare("l2")
    one, two = world.record("l1"), world.record("l2", started=2)
    fewer = world.merged(one)
    assert world.codes() == {"snapshot-outdated"}
    world.lines["head"].pop()
    more = world.merged(one, two, at=55)
    assert world.judge().passed
    del world.shards["l2"]
    assert world.codes() == {"snapshot-outdated"}
    assert fewer != more


# Plan


def test_plan_says_what_merge_takes_and_a_fresh_failure_is_stale_there(world):
    world.declare("l2", "l3")
    world.record("l1", outcome="failed")
    carried = world.record("l2", on="parent", started=2)
    union = world.union()
    assert summarise(union) == {"fresh": 0, "carryable": 1, "stale": 2}
    rows = [describe_choice(choice) for choice in union.choices]
    assert [(row["verdict"], row["reason"], row["outcome"]) for row in rows] == [
        ("stale", "not-green", "failed"),
        ("carryable", "unchanged", "passed"),
        ("stale", "never-recorded", None),
    ]
    assert (rows[1]["record"], rows[1]["distance"], rows[1]["from_commit"]) == (
        carried,
        1,
        world.commits["parent"].id,
    )
    assert (rows[2]["record"], rows[2]["ended_at"], rows[2]["distance"]) == (None, None, None)
