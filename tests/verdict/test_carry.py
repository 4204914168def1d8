"""Carrying an older green receipt forward (DESIGN section 6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gitledger.config.load import ENVIRONMENT_KEYS as CONFIGURABLE
from gitledger.records.environment import Platform
from gitledger.verdict.environments import ENVIRONMENT_KEYS
from gitledger.verdict.select import REASONS, Choice


def test_an_unchanged_shard_is_carried(world):
    record = world.record(on="parent")
    assert world.stands() == ("carryable", "unchanged")
    assert world.standing() == record
    assert world.judge().passed


def test_the_nearest_is_taken_and_among_equals_the_newest(world):
    world.record(on="grandparent", started=50)
    world.record(on="parent", started=0)
    newest = world.record(on="parent", started=10)
    assert world.standing() == newest


def test_carrying_is_refused_unless_policy_or_the_caller_allows_it(world):
    world.record(on="parent")
    world.policy = {"allow_carried": False}
    assert world.stands() == ("stale", "carry-forbidden")
    world.carry = True
    assert world.stands() == ("carryable", "unchanged")
    world.policy, world.carry = {"allow_carried": True}, False
    assert world.stands() == ("stale", "carry-forbidden")


@pytest.mark.parametrize(
    ("receipt", "reason"),
    [
        ({"inputs": "others"}, "inputs-changed"),
        ({"definition": "another"}, "definition-changed"),
        ({"outcome": "failed"}, "not-green"),
        ({"outcome": "incomplete"}, "incomplete"),
        ({"outcome": "incomplete", "reasons": ("other-command",)}, "other-command"),
        ({"dirty": True}, "dirty"),
        ({"witnessed": False}, "unwitnessed"),
        ({"key": "mallory"}, "untrusted"),
        ({"started": 10**5}, "future"),
        ({"started": -60 * 24 * 40}, "too-old"),
        ({"mode": "ci"}, "policy"),
    ],
)
def test_each_condition_of_carrying_has_its_reason(world, receipt, reason):
    world.policy = {"require_mode": "local"}
    world.commits["parent"].inputs = receipt.get("inputs", "same")
    world.record(on="parent", **receipt)
    assert world.stands() == ("stale", reason)
    assert not world.judge().passed


def test_a_dirty_or_unwitnessed_receipt_is_never_carried_even_where_it_counts_freshly(world):
    world.policy = {"allow_dirty": True, "allow_unwitnessed": True}
    world.record(on="parent", dirty=True)
    assert world.stands() == ("stale", "dirty")
    world.record(on="parent", witnessed=False, started=10)
    assert world.stands() == ("stale", "unwitnessed")
    world.record(on="head", dirty=True, witnessed=False, started=20)
    assert world.stands() == ("fresh", "recorded")


def test_changed_inputs_are_named(world):
    world.commits["parent"].inputs = "others"
    world.record(on="parent")
    assert world.choice().changed_paths == ("src/l1.py",)


def test_f03_a_green_on_another_platform_or_python_is_carried_by_carry_environment(world):
    world.declare("l2")
    world.record("l1", on="parent", environment={"python": "3.13.0"})
    world.record("l2", on="head", started=5)
    assert world.stands("l1") == ("stale", "environment-changed")
    assert "3.13.0 against 3.12.4" in world.choice("l1").detail
    world.carry_environment = ("platform",)
    assert world.stands("l1") == ("carryable", "unchanged")
    world.record(
        "l1",
        on="parent",
        started=9,
        environment={"platform": Platform(system="Darwin", machine="arm64", libc=None)},
    )
    assert world.choice("l1").result.held.receipt.environment.platform.system == "Linux"
    world.carry_environment = ()
    assert world.choice("l1").result.held.receipt.environment.platform.system == "Darwin"


def test_f03_carried_receipts_agree_with_each_other_the_newest_leading(world):
    world.declare("l2")
    world.record("l1", on="parent", started=0, environment={"python": "3.13.0"})
    world.record("l2", on="parent", started=5)
    assert world.stands("l2") == ("carryable", "unchanged")
    assert world.stands("l1") == ("stale", "environment-changed")
    world.record("l1", on="grandparent", started=1)
    assert world.stands("l1") == ("carryable", "unchanged")


def test_an_environment_is_held_against_every_one_that_stands_and_not_only_the_first(world):
    """A linter's receipt knows no pytest: agreeing with it must not be enough."""
    world.carry_environment = ("pytest",)
    world.declare("l2", "l3")
    world.record("l2", on="head", environment={"pytest": None})
    world.record("l3", on="head", started=2, environment={"pytest": "8.3.0"})
    world.record("l1", on="parent", environment={"pytest": "7.0.0"})
    assert world.stands("l1") == ("stale", "environment-changed")


def test_what_took_no_part_in_a_run_differs_from_nothing(world):
    world.carry_environment = ("python", "pytest", "coverage")
    world.declare("lint")
    world.record("lint", on="head", environment={"python": None, "pytest": None, "coverage": None})
    world.record("l1", on="parent")
    assert world.stands("l1") == ("carryable", "unchanged")


def test_no_gpu_is_an_environment_of_its_own(world, gpu):
    world.carry_environment = ("gpu",)
    world.declare("l2")
    world.record("l2", on="head", environment={"gpu": gpu("H200")})
    world.record("l1", on="parent")
    assert world.stands("l1") == ("stale", "environment-changed")


def test_variants_have_environments_of_their_own_unless_strict(world):
    world.shards.clear()
    world.declare("unit@py312", "unit@py313")
    world.record("unit@py312", on="head")
    world.record("unit@py313", on="parent", environment={"python": "3.13.0"})
    assert world.stands("unit@py313") == ("carryable", "unchanged")
    world.merge_environment = "strict"
    assert world.stands("unit@py313") == ("stale", "environment-changed")


def test_a_receipt_that_cannot_be_carried_settles_no_environment(world):
    world.declare("l2")
    world.record("l1", on="parent", started=9, environment={"python": "3.13.0"}, selected=["x", "y"])
    world.record("l2", on="parent", started=0)
    assert world.stands("l1")[0] == "stale"
    assert world.stands("l2") == ("carryable", "unchanged")


def test_configuration_and_judgement_know_the_same_keys_of_an_environment():
    assert set(CONFIGURABLE) == set(ENVIRONMENT_KEYS)


@pytest.mark.parametrize(
    ("key", "one", "other"),
    [
        ("python", {"python": "3.12.4"}, {"python": "3.12.5"}),
        ("platform", {}, {"platform": Platform(system="Linux", machine="x86_64", libc="musl 1.2")}),
        ("platform.libc", {}, {"platform": Platform(system="Linux", machine="x86_64", libc=None)}),
        ("platform.machine", {}, {"platform": Platform(system="Linux", machine="arm64", libc="glibc 2.36")}),
        ("platform.system", {}, {"platform": Platform(system="Darwin", machine="x86_64", libc="glibc 2.36")}),
        ("pytest", {}, {"pytest": "9.0.0"}),
        ("gitledger", {}, {"gitledger": "0.2.0"}),
        ("coverage", {"coverage": "7.4"}, {"coverage": "7.5"}),
        ("gpu", {"gpu": ("H200",)}, {"gpu": ("H100",)}),
        ("gpu.names", {"gpu": ("H200",)}, {"gpu": ("H200", "H200")}),
        ("gpu.vendor", {"gpu": ("H200",)}, {"gpu": None}),
        ("gpu.driver", {"gpu": None}, {"gpu": ("H200",)}),
        ("gpu.runtime", {"gpu": None}, {"gpu": ("H200",)}),
        ("gpu.uuids", {"gpu": None}, {"gpu": ("H200",)}),
        ("gpu.memory_bytes", {"gpu": None}, {"gpu": ("H200",)}),
    ],
)
def test_every_key_of_an_environment_bars_a_carry_that_differs_in_it(world, gpu, key, one, other):
    one, other = ({**facts, "gpu": gpu(*facts["gpu"]) if facts.get("gpu") else None} for facts in (one, other))
    world.declare("l2")
    world.record("l2", on="head", environment=one)
    world.record("l1", on="parent", environment=other)
    world.carry_environment = ()
    assert world.stands("l1") == ("carryable", "unchanged")
    world.carry_environment = (key,)
    assert world.stands("l1") == ("stale", "environment-changed")


# carry.from


def test_f04_a_squash_merge_is_found_by_same_manifest_and_named_by_ancestors(world):
    record = world.record(on="branch")
    assert world.stands() == ("stale", "never-recorded")
    assert "same-manifest" in world.choice().detail
    world.carry_from = "same-manifest"
    assert world.stands() == ("carryable", "unchanged")
    assert world.standing() == record
    assert "beyond-ancestry" in world.codes(blocking=False)


def test_f04_the_option_is_named_beside_what_changed_too(world):
    world.commits["parent"].inputs = "others"
    world.record(on="parent")
    world.record(on="branch")
    assert world.stands() == ("stale", "inputs-changed")
    assert "same-manifest" in world.choice().detail


def test_s15_an_amended_message_is_recognised_by_its_tree_under_same_manifest_alone(world):
    world.commit("amended", distance=None, tree="head")
    record = world.record(on="amended")
    assert world.stands() == ("stale", "never-recorded")
    world.carry_from, world.policy = "same-manifest", {"allow_carried": False}
    assert world.stands() == ("fresh", "recorded")
    assert world.standing() == record
    assert "beyond-ancestry" in world.codes(blocking=False)


def test_s15_the_same_tree_on_an_ancestor_is_carried_and_not_fresh_unless_same_manifest_says_so(world):
    world.commit("parent", distance=1, tree="head")
    world.record(on="parent")
    world.carry = False
    assert world.stands() == ("stale", "carry-forbidden")
    world.carry_from = "same-manifest"
    assert world.stands() == ("fresh", "recorded")


def test_s15_an_amended_content_never_counts_as_fresh(world):
    world.commit("amended", distance=None, inputs="others")
    world.record(on="amended")
    world.carry_from = "same-manifest"
    assert world.stands() == ("stale", "inputs-changed")


def test_policy_ref_carries_only_from_commits_reachable_from_the_ref(world):
    world.carry_from = "policy-ref"
    world.commits["parent"].from_ref = False
    world.record(on="parent", started=10)
    assert world.stands() == ("stale", "never-recorded")
    older = world.record(on="grandparent", started=0)
    assert world.standing() == older


def test_policy_ref_takes_no_commit_that_is_no_ancestor(world):
    world.carry_from = "policy-ref"
    world.commits["branch"].from_ref = True
    world.record(on="branch")
    assert world.stands() == ("stale", "never-recorded")


def test_a_change_cannot_shake_its_own_failure_off_by_one_more_commit_under_policy_ref(world):
    """carry.from says where greens come from; a failure on an ancestor counts all the same."""
    world.carry_from = "policy-ref"
    world.commits["parent"].from_ref = False
    world.record(on="grandparent", started=0)
    red = world.record(on="parent", outcome="failed", started=10)
    assert world.stands() == ("stale", "not-green")
    assert world.choice().about.held.id == red


def test_a_failure_beside_the_ancestry_counts_under_same_manifest_alone(world):
    world.record(on="parent", started=0)
    world.record(on="branch", outcome="failed", started=10)
    assert world.stands() == ("carryable", "unchanged")
    world.carry_from = "same-manifest"
    assert world.stands() == ("stale", "not-green")


def test_a_cut_history_says_so(world):
    world.history_cut = True
    assert world.stands() == ("stale", "history-cut")


# Failures between


@pytest.mark.parametrize(
    ("green", "red"), [("grandparent", "parent"), ("parent", "grandparent"), ("parent", "parent")]
)
def test_f05_a_newer_failure_with_the_same_manifest_makes_it_stale(world, green, red):
    world.record(on=green, started=0)
    world.record(on=red, outcome="failed", started=10)
    assert world.stands() == ("stale", "not-green")


def test_f05_an_older_failure_does_not(world):
    world.record(on="parent", outcome="failed", started=0)
    world.record(on="grandparent", started=10)
    assert world.stands() == ("carryable", "unchanged")


def test_f05_a_failure_of_other_inputs_does_not(world):
    world.record(on="grandparent", started=0)
    world.commits["parent"].inputs = "others"
    world.record(on="parent", outcome="failed", started=10)
    assert world.stands() == ("carryable", "unchanged")


def test_f06_the_clean_green_further_back_is_taken_behind_a_dirty_one(world):
    clean = world.record(on="grandparent", started=0)
    world.record(on="parent", started=10, dirty=True)
    assert world.standing() == clean


def test_f06_but_not_with_another_manifest(world):
    world.commits["grandparent"].inputs = "others"
    world.record(on="grandparent", started=0)
    world.record(on="parent", started=10, dirty=True)
    assert world.stands() == ("stale", "dirty")


def test_f09_a_receipt_made_under_a_weakened_conftest_is_no_carry_once_it_is_restored(world):
    """The configuration chain belongs to the manifest, so the two commits' manifests differ."""
    world.commits["parent"].inputs = "weak conftest.py"
    world.record(on="parent")
    assert world.stands() == ("stale", "inputs-changed")


def test_f09_not_even_if_the_receipt_claims_the_manifest_of_the_restored_one(world):
    world.commits["parent"].inputs = "weak conftest.py"
    world.record(on="parent", inputs="same")
    assert world.stands() == ("stale", "malformed")


def test_a_manifest_that_cannot_be_resolved_where_it_was_recorded_is_not_carried(world):
    world.record(on="parent")
    situation = world.situation()
    blind = replace(situation, facts=replace(situation.facts, digest_at=lambda *_: None))
    from gitledger.verdict.union import form_union

    assert form_union(blind).choices[0].reason == "malformed"


def test_a_redefined_shard_is_never_carried(world):
    world.record(on="parent")
    world.shards["l1"].redefined = True
    assert world.stands() == ("stale", "carry-forbidden")


def test_results_are_checked_before_a_receipt_is_carried_and_the_next_is_asked(world):
    sound = world.record(on="grandparent", started=0)
    broken = world.record(on="parent", started=10, selected=["x", "y"])
    assert world.standing() == sound
    world.lines["grandparent"].clear()
    assert world.stands() == ("stale", "malformed")
    assert world.choice().about.held.id == broken


def test_ids_that_ran_freshly_in_another_shard_of_the_variant_are_not_carried(world):
    world.declare("l2")
    world.record("l2", on="head", tests={"tests/shared.py::test": "passed"})
    world.record("l1", on="parent", tests={"tests/shared.py::test": "passed"})
    assert world.stands("l1") == ("stale", "duplicate-tests")
    world.declare("l1@a100")
    world.record("l1@a100", on="parent", tests={"tests/shared.py::test": "passed"})
    assert world.stands("l1@a100") == ("carryable", "unchanged")


# Extra inputs


def test_extra_inputs_that_differ_are_changed_inputs(world):
    world.shards["l1"].has_extra = True
    world.shards["l1"].extra_now = (world.extra("new"),)
    world.record(on="parent", extra=(world.extra("old"),))
    assert world.stands() == ("stale", "inputs-changed")
    assert world.choice().changed_paths == ("generated/l1.cuh",)
    world.record(on="parent", extra=(world.extra("new"),), started=5)
    assert world.stands() == ("carryable", "unchanged")


def test_the_order_in_which_extra_inputs_are_listed_is_no_difference(world):
    one, two = world.extra("1", "a"), world.extra("2", "b")
    world.shards["l1"].has_extra = True
    world.shards["l1"].extra_now = (one, two)
    world.record(on="parent", extra=(two, one))
    assert world.stands() == ("carryable", "unchanged")


def test_a_failure_with_other_extra_inputs_displaces_no_carry(world):
    world.shards["l1"].has_extra = True
    world.shards["l1"].extra_now = (world.extra("new"),)
    world.record(on="grandparent", extra=(world.extra("new"),), started=0)
    world.record(on="parent", extra=(world.extra("old"),), started=10, outcome="failed")
    assert world.stands() == ("carryable", "unchanged")
    world.record(on="parent", extra=(world.extra("new"),), started=20, outcome="failed")
    assert world.stands() == ("stale", "not-green")


def test_where_extra_inputs_are_not_here_only_a_trusted_merged_receipt_carries_them(world):
    world.shards["l1"].has_extra = True
    record = world.record(on="parent", extra=(world.extra("new"),))
    world.shards["l1"].extra_now = None
    assert world.stands() == ("stale", "extra-unavailable")
    world.merged(record, key="mallory")
    world.merged(record, key="bob", on="parent")
    world.merged(record, key="bob", at=10**5)
    assert world.stands() == ("stale", "extra-unavailable")
    merged = world.merged(record, key="bob")
    assert world.stands() == ("carryable", "unchanged")
    world.revoke(merged, key="bob")
    assert world.stands() == ("stale", "extra-unavailable")


def test_a_merged_receipt_that_named_the_record_freshly_is_no_word_for_a_carry(world):
    world.shards["l1"].has_extra = True
    record = world.record(on="parent", extra=(world.extra("new"),))
    world.shards["l1"].extra_now = None
    entry = world._entry(record, world.commits["parent"])
    world.merged(record, shards=(entry,))
    assert world.stands() == ("stale", "extra-unavailable")


# Attempts


def test_max_attempts_cannot_be_escaped_by_carrying_from_the_commit_of_many(world):
    world.policy = {"max_attempts": 2}
    world.record(on="parent", outcome="failed", started=0)
    world.record(on="parent", started=10)
    assert world.stands() == ("carryable", "unchanged")
    world.record(on="parent", outcome="failed", started=3)
    assert world.stands() == ("stale", "policy")
    assert "max_attempts: 3" in world.choice().detail


def test_every_reason_is_of_the_closed_list(world):
    shard = world.situation().shards[0]
    with pytest.raises(ValueError, match="no-such-reason"):
        Choice(shard=shard, verdict="stale", reason="no-such-reason")
    assert len(REASONS) == 23
