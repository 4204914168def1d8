"""What refuses a merge and blocks a verdict: every fault at once (DESIGN section 7)."""

from __future__ import annotations

import pytest

from gitledger.records.environment import Platform
from gitledger.verdict.union import form_union


def faults(world):
    return [(fault.code, fault.subject) for fault in world.union().faults]


def ci_by_alice(signer_of):
    """The policy under which alice, who signs unless a test says otherwise, is a runner."""
    return {"ci_key_fingerprints": (signer_of("alice").fingerprint,)}


def test_a_whole_union_has_no_faults_and_keeps_configuration_order(world):
    world.declare("a2")
    world.record("a2")
    world.record("l1", started=2)
    union = world.union()
    assert union.faults == ()
    assert [str(choice.shard.key) for choice in union.choices] == ["l1", "a2"]


def test_every_fault_is_named_and_not_only_the_first(world, signer_of):
    world.policy = ci_by_alice(signer_of)
    world.declare("l2", "l3", "l4")
    world.record("l1", mode="ci")
    world.record("l2", started=2, tests={"tests/l1.py::test_a": "passed"})
    assert faults(world) == [
        ("never-recorded", "l3"),
        ("never-recorded", "l4"),
        ("inputs-disagree", "l2"),
        ("duplicate-tests", "l2"),
    ]


def test_a_failed_shard_is_no_fault_of_the_union(world):
    world.record(outcome="failed")
    assert faults(world) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"mode": "local"}, {"mode": "ci"}),
        ({}, {"environment": {"python": "3.13.0"}}),
        ({}, {"environment": {"pytest": "7.0.0"}}),
        ({}, {"environment": {"gitledger": "0.0.9"}}),
        ({}, {"environment": {"platform": Platform(system="Linux", machine="arm64", libc="glibc 2.36")}}),
    ],
)
def test_fresh_inputs_that_disagree_are_refused(world, signer_of, one, other):
    world.policy = ci_by_alice(signer_of)
    world.declare("l2")
    world.record("l1", **one)
    world.record("l2", started=2, **other)
    assert faults(world) == [("inputs-disagree", "l2")]


def test_fresh_inputs_of_other_record_versions_are_refused(world):
    """This version writes and reads one alone, so that the rule is tried on values."""
    from dataclasses import replace

    from gitledger.verdict.faults import find_faults

    world.declare("l2")
    world.record("l1")
    world.record("l2", started=2)
    situation = world.situation()
    one, two = form_union(situation).choices
    held = two.result.held
    newer = replace(two, result=replace(two.result, held=replace(held, receipt=replace(held.receipt, version=2))))
    assert [fault.code for fault in find_faults((one, newer), situation)] == ["inputs-disagree"]


def test_environments_are_compared_per_variant_across_them_or_not_at_all(world):
    world.shards.clear()
    world.declare("u@a", "u@b", "v@a")
    world.record("u@a")
    world.record("u@b", started=2, environment={"python": "3.13.0"})
    world.record("v@a", started=4)
    assert faults(world) == []
    world.merge_environment = "strict"
    assert faults(world) == [("inputs-disagree", "u@b")]
    world.record("v@a", started=6, environment={"pytest": "7.0.0"})
    world.merge_environment = "per-variant"
    assert faults(world) == [("inputs-disagree", "v@a")]
    world.merge_environment = "off"
    assert faults(world) == []


def test_modes_must_agree_even_where_environments_are_off(world, signer_of):
    world.policy = ci_by_alice(signer_of)
    world.merge_environment = "off"
    world.declare("l2")
    world.record("l1", mode="ci")
    world.record("l2", started=2)
    assert faults(world) == [("inputs-disagree", "l2")]


def test_a_carried_input_is_not_held_against_the_modes_of_fresh_ones(world, signer_of):
    world.policy = {"allow_carried": True} | ci_by_alice(signer_of)
    world.declare("l2")
    world.record("l1", on="parent", mode="ci")
    world.record("l2")
    assert faults(world) == []


def test_u08_two_shards_of_one_variant_with_the_same_node_id_are_refused(world):
    world.declare("l2")
    tests = {"tests/shared.py::test[\u202e\n]": "passed"}
    world.record("l1", tests=tests)
    world.record("l2", tests=tests, started=2)
    assert faults(world) == [("duplicate-tests", "l2")]
    assert "\\u202e\\n" in world.union().faults[0].found


def test_u08_even_if_one_of_them_failed_or_both_are_carried(world):
    world.declare("l2")
    tests = {"tests/shared.py::test": "passed"}
    world.record("l1", on="parent", tests=tests)
    world.record("l2", on="parent", tests=tests, started=2)
    assert faults(world) == [("duplicate-tests", "l2")]
    world.record("l1", tests={"tests/shared.py::test": "failed"}, outcome="failed", started=4)
    world.record("l2", tests=tests, started=6)
    assert faults(world) == [("duplicate-tests", "l2")]


def test_the_same_id_in_two_variants_is_none(world):
    world.shards.clear()
    world.declare("l1@a100", "l1@mi300")
    tests = {"tests/shared.py::test": "passed"}
    world.record("l1@a100", tests=tests)
    world.record("l1@mi300", tests=tests, started=2)
    assert faults(world) == []


# Splits


FULL = ["a", "b", "c", "d"]


def parts(world, *tests, on=("head", "head"), **more):
    """Record the parts of a split in two; each takes its share of `FULL`."""
    world.shards.clear()
    names = world.declare_split("backend", len(tests))
    for place, (name, ids) in enumerate(zip(names, tests, strict=True)):
        given = {"full": FULL} | {key: value[place] for key, value in more.items()}
        world.record(name, on=on[place % 2], tests=dict.fromkeys(ids, "passed"), started=place * 2, **given)


def test_the_parts_of_a_split_make_up_the_full_collection(world):
    parts(world, ["a", "b"], ["c", "d"])
    assert faults(world) == []


def test_parts_that_lose_a_test_are_refused(world):
    parts(world, ["a", "b"], ["c"])
    assert faults(world) == [("split-incomplete", "backend")]


def test_parts_that_overlap_are_refused(world):
    parts(world, ["a", "b"], ["b", "c", "d"])
    assert faults(world) == [("duplicate-tests", "backend-2-of-2"), ("split-incomplete", "backend")]


def test_parts_of_different_collections_are_refused(world):
    parts(world, ["a", "b"], ["c", "d"], full=(FULL, [*FULL, "e"]))
    assert faults(world) == [("split-disagrees", "backend")]


def test_carried_parts_are_held_to_the_collection_of_the_fresh_ones(world):
    parts(world, ["a", "b"], ["c", "d"], on=("head", "parent"))
    assert [choice.verdict for choice in world.union().choices] == ["fresh", "carryable"]
    assert faults(world) == []
    parts(world, ["a", "b"], ["c", "d"], on=("parent", "head"), full=([*FULL, "e"], FULL))
    world.lines["head"] = world.lines["head"][-1:]
    assert ("split-disagrees", "backend") in faults(world)


def test_a_missing_part_is_named_by_itself(world):
    parts(world, ["a", "b"], ["c", "d"])
    world.lines["head"].pop()
    assert faults(world) == [("never-recorded", "backend-2-of-2")]


def test_a_part_that_failed_stops_no_merge_and_one_that_broke_off_is_red_by_itself(world):
    parts(world, ["a", "b"], ["c", "d"])
    world.record("backend-2-of-2", tests={"c": "passed", "d": "failed"}, full=FULL, outcome="failed", started=9)
    assert faults(world) == []
    world.record("backend-2-of-2", tests={"c": "passed"}, collected=2, full=FULL, outcome="incomplete", started=19)
    assert faults(world) == []
    assert not world.judge().passed


def test_a_failed_part_that_lost_a_test_is_still_refused(world):
    parts(world, ["a", "b"], ["c", "d"])
    world.record("backend-2-of-2", tests={"c": "failed"}, full=FULL, outcome="failed", started=9)
    assert faults(world) == [("split-incomplete", "backend")]


def test_splits_of_two_variants_are_two(world):
    world.shards.clear()
    world.declare_split("b", 2)
    for name in list(world.shards):
        declared = world.shards.pop(name)
        world.declare(f"{name}@x", split=declared.split)
        world.declare(f"{name}@y", split=declared.split)
    for place, name in enumerate(world.shards):
        ids = FULL[:2] if "-1-of-" in name else FULL[2:]
        world.record(name, tests=dict.fromkeys(ids, "passed"), full=FULL, started=place * 2)
    assert faults(world) == []


# Who is not asked


def test_receipts_of_undeclared_shards_and_variants_are_ignored_and_reported(world):
    world.record("l1")
    world.record("l9", outcome="failed", started=2)
    world.record("l1@a100", outcome="failed", started=4)
    assert world.judge().passed
    found = {finding.subject for finding in world.union().notes if finding.code == "undeclared-shard"}
    assert found == {"l9", "l1@a100"}


def test_the_union_does_not_depend_on_the_order_of_stations(world):
    from dataclasses import replace

    world.declare("l2")
    world.record("l1", on="grandparent", started=0)
    world.record("l1", on="parent", started=1)
    world.record("l2", on="branch", started=2)
    world.carry_from = "same-manifest"
    situation = world.situation()
    turned = replace(situation, stations=situation.stations[::-1])
    ids = [[choice.result.held.id for choice in form_union(one).choices] for one in (situation, turned)]
    assert ids[0] == ids[1]
