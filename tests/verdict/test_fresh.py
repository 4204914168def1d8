"""Attempts on the judged commit: which one counts (DESIGN sections 6 and 7)."""

from __future__ import annotations

import pytest


def test_u08_a_shard_that_ran_twice_has_two_attempts_of_which_the_newest_counts(world):
    world.record(started=0, outcome="failed")
    newest = world.record(started=10)
    assert world.standing() == newest
    assert world.choice().attempts[0].held.id == newest
    assert len(world.choice().attempts) == 2


def test_u08_a_shard_that_never_started_is_refused_by_name(world):
    world.declare("l2", "l3")
    world.record("l1")
    world.record("l2", started=2)
    faults = world.union().faults
    assert [(fault.code, fault.subject) for fault in faults] == [("never-recorded", "l3")]


def test_f07_a_failure_after_a_green_merged_receipt_is_red_at_once_and_the_snapshot_is_outdated(world):
    world.record()
    world.merge(at=5)
    assert world.judge().passed
    world.record(outcome="failed", started=10)
    assert world.codes() == {"not-green"}
    assert "snapshot-outdated" in world.codes(blocking=False)


def test_f08_a_failure_on_one_gpu_model_stands_beside_a_pass_on_another(world, gpu):
    world.shards.clear()
    world.declare("l1@a100", "l1@mi300")
    world.record("l1@a100", outcome="failed", environment={"gpu": gpu("A100")})
    world.record("l1@mi300", started=10, environment={"gpu": gpu("MI300")})
    assert world.stands("l1@a100") == ("stale", "not-green")
    assert world.stands("l1@mi300") == ("fresh", "recorded")
    assert world.codes() == {"not-green"}


@pytest.mark.parametrize(
    ("red", "green", "verdict"),
    [
        ((0, 10), (11, 12), "fresh"),  # started after it ended
        ((0, 10), (10, 12), "stale"),  # at the very moment
        ((0, 10), (5, 20), "stale"),  # while it ran
        ((5, 8), (0, 20), "stale"),  # around it
        ((0, 10), (0, 10), "stale"),  # both at once
        ((10, 10), (10, 10), "stale"),  # no time at all
        ((20, 30), (0, 10), "stale"),  # before it
        ((0, 10**6), (20, 30), "stale"),  # a failure of the future
    ],
)
def test_a_failure_stands_unless_a_green_started_after_it_ended(world, red, green, verdict):
    world.record(outcome="failed", started=red[0], ended=red[1])
    world.record(started=green[0], ended=green[1])
    assert world.stands()[0] == verdict


def test_every_failure_must_be_outrun_and_not_only_the_newest_to_end(world):
    world.record(outcome="failed", started=0, ended=5)
    world.record(started=6, ended=50)
    world.record(outcome="failed", started=20, ended=40)
    assert world.stands() == ("stale", "not-green")


@pytest.mark.parametrize("outcome", ["failed", "error", "incomplete"])
def test_whatever_is_not_green_displaces(world, outcome):
    world.record(started=0)
    red = world.record(outcome=outcome, started=10)
    assert world.standing() == red
    assert world.stands() == ("stale", "incomplete" if outcome == "incomplete" else "not-green")


WEAK = [{"dirty": True}, {"witnessed": False}, {"outcome": "incomplete", "reasons": ("other-command",)}]


@pytest.mark.parametrize("weak", WEAK)
def test_what_policy_bars_displaces_no_other(world, weak):
    green = world.record(started=0)
    world.record(**({"outcome": "incomplete", "started": 10} | weak))
    assert world.standing() == green


@pytest.mark.parametrize("weak", [{"witnessed": False}, {"reasons": ("other-command", "test-failed")}])
def test_a_clean_failing_test_displaces_even_where_policy_bars_its_run(world, weak):
    world.record(started=0)
    world.record(outcome="failed", started=10, **weak)
    assert world.stands() == ("stale", "not-green")


def test_a_dirty_failing_test_displaces_only_where_dirty_runs_count(world):
    green = world.record(started=0)
    red = world.record(outcome="failed", started=10, dirty=True)
    assert world.standing() == green
    world.policy = {"allow_dirty": True}
    assert world.standing() == red


@pytest.mark.parametrize(
    "policy",
    [
        {"require_mode": "ci"},
        {"require_gpu": True},
        {"require_observed_scope": True},
        {"min_record_version": 2},
        {"max_age_days": 0},
    ],
)
def test_no_other_bar_weakens_a_failure(world, policy):
    """Bars that say "this is no good pass" must not say "so it never failed"."""
    world.record(started=0)
    red = world.record(outcome="incomplete", started=10, outside=None)
    world.policy = policy
    assert world.standing() == red


def test_a_green_that_policy_bars_hides_no_older_green(world):
    clean = world.record(started=0)
    world.record(started=10, dirty=True)
    assert world.standing() == clean


def test_a_failure_with_another_definition_or_other_inputs_is_no_attempt(world):
    green = world.record(started=0)
    world.record(outcome="failed", started=10, definition="cut to one test")
    world.record(outcome="failed", started=20, inputs="others")
    assert world.standing() == green
    assert len(world.choice().attempts) == 1


def test_a_green_with_another_definition_or_other_inputs_stands_for_nothing(world):
    world.record(definition="cut to one test")
    assert world.stands() == ("stale", "definition-changed")
    world.record(inputs="others", started=5)
    assert world.stands() == ("stale", "malformed")


def test_a_later_failure_on_an_ancestor_with_the_same_inputs_beats_a_fresh_green(world):
    """The same inputs were seen to fail: which commit they hang on is no excuse."""
    world.record(on="head", started=0)
    red = world.record(on="parent", outcome="failed", started=10)
    choice = world.choice()
    assert (choice.verdict, choice.reason, choice.about.held.id) == ("stale", "not-green", red)
    world.record(on="head", started=20)
    assert world.stands() == ("fresh", "recorded")


def test_a_fresh_failure_wins_over_everything_carried(world):
    world.record(on="parent", started=20)
    red = world.record(on="head", outcome="failed", started=0, ended=30)
    assert world.standing() == red


def test_results_that_do_not_bear_the_receipt_out_make_it_malformed(world):
    world.record()
    world.bodies.clear()
    assert world.stands() == ("stale", "malformed")
    assert not world.judge().passed


def test_results_of_other_tests_than_the_selected_make_it_malformed(world):
    world.record(selected=["tests/other.py::test_a", "tests/other.py::test_b"])
    assert world.stands() == ("stale", "malformed")


def test_a_body_that_is_not_the_one_named_makes_it_malformed(world, failing_check):
    """Even one of the same tests and outcomes: here, one without the comparison that failed."""
    record = world.record(checks=(failing_check,))
    other = world.receipt()
    mine = world.receipts[record].bodies["tests"]
    world.bodies[mine.oid] = world.bodies[other.bodies["tests"].oid]
    assert world.stands() == ("stale", "malformed")


def test_counts_that_the_results_do_not_add_up_to_make_it_malformed(world):
    from dataclasses import replace

    from gitledger.records.outcomes import Counts

    receipt = replace(world.receipt(), counts=Counts(collected=2, passed=1, skipped=1))
    world.put(world.sign(receipt, "alice"))
    assert world.stands() == ("stale", "malformed")


def test_a_node_id_that_stands_twice_in_the_results_makes_it_malformed(world):
    from dataclasses import replace

    from gitledger.records.bodies import BodyRef, TestResult, collection_digest, encode_tests
    from gitledger.records.outcomes import TestOutcome

    receipt = world.receipt()
    blob = encode_tests([TestResult(node_id="a", outcome=TestOutcome.PASSED)] * 2)
    ref = BodyRef.of(blob)
    world.bodies[ref.oid] = blob
    digest = collection_digest(["a", "a"])
    claim = replace(receipt.collection, full_digest=digest, selected_digest=digest)
    world.put(world.sign(replace(receipt, bodies={"tests": ref}, collection=claim), "alice"))
    assert world.stands() == ("stale", "malformed")
    assert "duplicate-tests" in world.choice().detail


# Extra inputs


def test_a_fresh_receipt_whose_extra_inputs_changed_since_blocks(world):
    world.shards["l1"].has_extra = True
    world.shards["l1"].extra_now = (world.extra("new"),)
    world.record(extra=(world.extra("old"),))
    assert world.codes() == {"extra-changed"}


def test_among_attempts_the_one_with_the_present_extra_inputs_counts(world):
    world.shards["l1"].has_extra = True
    world.shards["l1"].extra_now = (world.extra("new"),)
    mine = world.record(extra=(world.extra("new"),), started=0)
    world.record(extra=(world.extra("old"),), started=10)
    assert world.standing() == mine
    assert world.judge().passed


def test_a_fresh_receipt_stands_on_its_signers_hashes_where_extra_inputs_are_not_here(world):
    world.shards["l1"].has_extra = True
    world.record(extra=(world.extra("new"),))
    world.shards["l1"].extra_now = None
    assert world.judge().passed
    assert world.codes(blocking=False) == {"extra-not-rechecked"}


def test_a_receipt_without_the_extra_inputs_that_are_declared_matches_nothing(world):
    world.record()
    world.shards["l1"].has_extra = True
    world.shards["l1"].extra_now = (world.extra("new"),)
    assert world.stands()[0] == "stale"


def test_a_scope_that_cannot_be_resolved_is_malformed_whatever_was_recorded(world):
    world.record()
    world.shards["l1"].fault = "src/gone matches nothing"
    assert world.stands() == ("stale", "malformed")
    assert "src/gone" in world.choice().detail


def test_a_part_of_another_split_is_no_receipt_of_this_one(world):
    from gitledger.records.receipt import Split

    world.record(split=Split(index=1, total=2))
    assert world.stands()[0] == "stale"
