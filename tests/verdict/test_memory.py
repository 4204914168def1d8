"""What many judgements share (`verdict.standing`): found once, and never taken for what another commit sees.

Each case is one ledger seen in two ways that differ in a single thing that a choice rests on. With one memory for
both, in either order, each must come out as it does alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gitledger.verdict.acceptance import signatories
from gitledger.verdict.memory import Memory
from gitledger.verdict.plan import describe_choice
from gitledger.verdict.situation import Situation
from gitledger.verdict.tests_policy import TestLists
from gitledger.verdict.union import form_union
from gitledger.verdict.verify import judge


def seen(base: Situation, memory: Memory, **changes: Any) -> Situation:
    """Return the situation with another memory and, where given, other stations and flags."""
    found = replace(base, memory=memory, **changes)
    evidence = [one.evidence for one in found.stations]
    policy, signers = base.config.policy, base.signatories.signers
    keys = signatories(policy, signers, base.now, evidence, settled=memory.settled)
    return replace(found, signatories=keys)


def said(situation: Situation) -> tuple[Any, ...]:
    union = form_union(situation)
    found = judge(union, situation, TestLists(), ())
    rows = [describe_choice(choice) for choice in union.choices]
    return found.passed, [finding.encode() for finding in found.findings], rows


def moved(base: Situation, world: Any, **distances: int | None) -> dict[str, Any]:
    """Return the stations at other distances, by the names of their commits."""
    by_id = {world.commits[name].id: distance for name, distance in distances.items()}
    return {"stations": tuple(replace(one, distance=by_id.get(one.commit, one.distance)) for one in base.stations)}


def without(base: Situation, world: Any, name: str) -> dict[str, Any]:
    gone = world.commits[name].id
    return {"stations": tuple(one for one in base.stations if one.commit != gone)}


Way = Callable[[Situation, Any], dict[str, Any]]


def two_greens(world: Any) -> tuple[Way, Way]:
    """The nearest is taken, whichever of two that is."""
    world.record("l1", on="parent", started=1)
    world.record("l1", on="grandparent", started=5)
    return (lambda base, world: {}), (lambda base, world: moved(base, world, parent=3))


def two_greens_of_one_distance(world: Any) -> tuple[Way, Way]:
    """Among equals the newest is taken."""
    world.record("l1", on="parent", started=1)
    world.record("l1", on="grandparent", started=5)
    return (lambda base, world: {}), (lambda base, world: moved(base, world, grandparent=1))


def a_red_that_may_be_an_ancestor(world: Any) -> tuple[Way, Way]:
    """In a shallow clone nothing is carried past a failure on a commit that may be an ancestor."""
    world.record("l1", on="parent", started=1)
    world.record("l1", on="branch", outcome="failed", started=5)
    return (lambda base, world: {"history_cut": False}), (lambda base, world: {"history_cut": True})


def an_ancestor_or_none(world: Any) -> tuple[Way, Way]:
    """What is accepted beyond ancestry is marked."""
    world.carry_from = "same-manifest"
    world.record("l1", on="parent")
    return (lambda base, world: {}), (lambda base, world: moved(base, world, parent=None))


def a_red_on_an_ancestor_or_beside(world: Any) -> tuple[Way, Way]:
    """Only an ancestor's failure stands against what is carried."""
    world.record("l1", on="grandparent", started=1)
    world.record("l1", on="parent", outcome="failed", started=5)
    return (lambda base, world: {}), (lambda base, world: moved(base, world, parent=None))


def within_reach_of_the_policys_ref(world: Any) -> tuple[Way, Way]:
    """Under `policy-ref` nothing is carried from a commit that the ref doesn't reach."""
    world.carry_from = "policy-ref"
    world.record("l1", on="parent")

    def out_of_reach(base: Situation, world: Any) -> dict[str, Any]:
        return {"stations": tuple(replace(one, from_ref=False) for one in base.stations)}

    return (lambda base, world: {}), out_of_reach


def the_targets_own(world: Any) -> tuple[Way, Way]:
    """A receipt of the target is fresh, the same one of its parent is carried."""
    world.record("l1", on="parent")
    parent = world.commits["parent"]

    def from_the_parent(base: Situation, world: Any) -> dict[str, Any]:
        changes = moved(base, world, head=None, parent=0, grandparent=1)
        return {"commit": parent.id, "tree": parent.tree_id, **changes}

    return (lambda base, world: {}), from_the_parent


def carried_or_not(world: Any) -> tuple[Way, Way]:
    """`--no-carry` forbids what policy allows."""
    world.record("l1", on="parent")
    return (lambda base, world: {}), (lambda base, world: {"carry": False})


def another_receipt_in_sight(world: Any) -> tuple[Way, Way]:
    """A failure that ended later counts wherever it is in sight."""
    world.record("l1", on="parent", started=1)
    world.record("l1", on="grandparent", outcome="failed", started=5)
    return (lambda base, world: {}), (lambda base, world: without(base, world, "grandparent"))


def a_key_that_others_vouch_for(world: Any) -> tuple[Way, Way]:
    """A retired key counts where a merged receipt that is in sight vouches for it."""
    world.allowed["retired"] = 'valid-before="20260614121500Z"'
    record = world.record("l1", on="parent", key="retired")
    world.merged(record, on="grandparent")
    return (lambda base, world: {}), (lambda base, world: without(base, world, "grandparent"))


def a_snapshot_that_vouches_for_extra_inputs(world: Any) -> tuple[Way, Way]:
    """Where extra inputs are not here, a merged receipt of the target that carried the record speaks for them."""
    world.declare("l1", has_extra=True, extra_now=(world.extra("now"),))
    record = world.record("l1", on="parent")
    world.shards["l1"].extra_now = None
    world.merged(record)

    def unsaid(base: Situation, world: Any) -> dict[str, Any]:
        return {
            "stations": tuple(
                replace(one, evidence=replace(one.evidence, merged=(), home=None)) for one in base.stations
            )
        }

    return (lambda base, world: {}), unsaid


def other_inputs(world: Any) -> tuple[Way, Way]:
    """The shard as it stands at the target is part of the question."""
    world.record("l1", on="parent")

    def changed(base: Situation, world: Any) -> dict[str, Any]:
        (shard,) = base.shards
        return {"shards": (replace(shard, digest_with=lambda extra: "f" * 64),)}

    return (lambda base, world: {}), changed


CASES = (
    two_greens,
    two_greens_of_one_distance,
    a_red_that_may_be_an_ancestor,
    an_ancestor_or_none,
    a_red_on_an_ancestor_or_beside,
    within_reach_of_the_policys_ref,
    the_targets_own,
    carried_or_not,
    another_receipt_in_sight,
    a_key_that_others_vouch_for,
    a_snapshot_that_vouches_for_extra_inputs,
    other_inputs,
)


@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_what_is_shared_is_never_what_another_commit_sees(world, case, turned):
    ways = case(world)
    base = world.situation()
    changes = [way(base, world) for way in (reversed(ways) if turned else ways)]
    alone = [said(seen(base, Memory(), **one)) for one in changes]
    assert alone[0] != alone[1], "the case makes no difference"
    memory = Memory()
    assert [said(seen(base, memory, **one)) for one in (*changes, *changes)] == [*alone, *alone]


def test_commits_that_see_the_same_receipts_in_the_same_order_share_the_choice(world):
    """Or nothing is gained, and nothing of the above tried."""
    world.record("l1", on="parent", started=1)
    world.record("l1", on="grandparent", started=5)
    base, memory = world.situation(), Memory()
    near = form_union(seen(base, memory))
    further = form_union(seen(base, memory, **moved(base, world, parent=7, grandparent=9)))
    assert further.choices[0].result is near.choices[0].result
    assert (near.choices[0].distance, further.choices[0].distance) == (1, 7)
    assert form_union(seen(base, Memory())).choices[0].result is not near.choices[0].result
