"""What bars a receipt from being green, one policy key and one trick of time at a time (DESIGN sections 6, 11)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gitledger.config.schema import PolicyConfig

DAY = 24 * 60


@pytest.mark.parametrize(
    ("policy", "receipt", "reason"),
    [
        ({}, {"dirty": True}, "dirty"),
        ({}, {"witnessed": False}, "unwitnessed"),
        ({"require_gpu": True}, {}, "policy"),
        ({"require_observed_scope": True}, {"outside": ("data/x",)}, "leaky"),
        ({"require_observed_scope": True}, {"outside": None}, "leaky"),
        ({"min_record_version": 2}, {}, "policy"),
        ({"max_age_days": 1}, {"started": -2}, "too-old"),
    ],
)
def test_each_bar_makes_a_green_receipt_stale_and_names_itself(world, policy, receipt, reason):
    world.policy = policy
    world.record(**receipt)
    assert world.stands() == ("stale", reason)
    assert not world.judge().passed


@pytest.mark.parametrize(
    ("policy", "receipt"),
    [
        ({"allow_dirty": True}, {"dirty": True}),
        ({"allow_unwitnessed": True}, {"witnessed": False}),
        ({"require_observed_scope": True}, {"outside": ()}),
        ({}, {"outside": ("data/x",)}),
        ({"max_age_days": 1}, {"started": -1, "ended": 0}),
    ],
)
def test_what_policy_allows_bars_nothing(world, policy, receipt):
    world.policy = policy
    world.record(**receipt)
    assert world.stands() == ("fresh", "recorded")


def test_a_gpu_must_have_a_name_to_be_one(world, gpu):
    world.policy = {"require_gpu": True}
    world.record(environment={"gpu": gpu()})
    assert world.stands() == ("stale", "policy")
    world.record(environment={"gpu": gpu("H200")}, started=5)
    assert world.stands() == ("fresh", "recorded")


def test_f01_a_leak_is_refused_under_require_observed_scope_and_named(world):
    world.record(outside=("data/weights.bin",))
    assert world.stands() == ("fresh", "recorded")
    world.policy = {"require_observed_scope": True}
    assert world.stands() == ("stale", "leaky")
    assert "data/weights.bin" in world.choice().detail


def test_an_other_command_is_no_evidence_for_the_declared_one(world):
    world.record(outcome="incomplete", reasons=("other-command",))
    assert world.stands() == ("stale", "other-command")


def test_a_receipt_of_the_future_is_never_green_and_a_failure_of_the_future_still_blocks(world):
    world.record(started=DAY - 1, ended=DAY + 1)
    assert world.stands() == ("stale", "future")
    world.record(started=0)
    assert world.stands() == ("fresh", "recorded")
    world.record(outcome="failed", started=DAY, ended=DAY + 1)
    assert world.stands() == ("stale", "not-green")


def test_a_receipt_that_ends_this_very_moment_is_of_the_past(world):
    world.record(started=DAY - 1, ended=DAY)
    assert world.stands() == ("fresh", "recorded")


def test_at_an_earlier_moment_what_was_recorded_later_is_of_the_future(world):
    world.record(started=60)
    world.now = world.T0 + timedelta(minutes=60.5)
    assert world.stands() == ("stale", "future")


@pytest.mark.parametrize(("early", "verdict"), [(5, "fresh"), (5.1, "stale")])
def test_a_run_may_start_at_most_five_minutes_before_its_commit_existed(world, early, verdict):
    world.commits["head"].committed_at = world.T0
    world.record(started=-early)
    assert world.stands()[0] == verdict
    assert verdict == "fresh" or world.stands()[1] == "malformed"


def test_a_carried_receipt_must_be_younger_than_its_limit_and_a_fresh_one_not_older(world):
    world.policy = {"carried_max_age_days": 1, "max_age_days": 1}
    world.record(on="parent", started=-1, ended=0)
    assert world.stands() == ("stale", "too-old")
    world.record(on="head", started=-1, ended=0)
    assert world.stands() == ("fresh", "recorded")


@pytest.mark.parametrize(
    ("max_age", "carried", "limit"), [(30, None, 30), (90, None, 30), (7, None, 7), (7, 20, 20), (30, 0, 0)]
)
def test_carrying_is_limited_to_thirty_days_unless_policy_says_otherwise(max_age, carried, limit):
    assert PolicyConfig(max_age_days=max_age, carried_max_age_days=carried).carried_age_limit_days == limit
