"""The merged receipt: a snapshot of the union (DESIGN sections 3 and 7)."""

from __future__ import annotations

import pytest

from gitledger.records.merged import MergedReceipt
from gitledger.records.statement import Statement
from gitledger.trust.verified import open_record


def merged(world) -> MergedReceipt:
    world.merge()
    return MergedReceipt.decode(open_record(world.lines["head"][-1]).statement)


def test_it_names_what_stands_and_sums_up(world, gpu):
    world.declare("l2", "l3")
    one = world.record("l1", started=0)
    two = world.record("l2", started=10, environment={"gpu": gpu("first")}, key="bob")
    world.record("l3", started=20, environment={"gpu": gpu("second")})
    found = merged(world)
    assert [entry.record for entry in found.shards][:2] == [one, two]
    assert [entry.signer for entry in found.shards] == ["alice", "bob", "alice"]
    assert found.outcome == "passed"
    assert (found.counts.collected, found.counts.passed) == (6, 6)
    assert found.started_at == world.receipts[one].session.started_at
    assert (found.ended_at - found.started_at).total_seconds() == 21 * 60
    assert found.environment.gpu.names == ("first",)
    assert Statement.decode(found.encode()).subject == Statement.decode(found.encode()).subject


def test_a_failed_shard_is_merged_as_failed(world):
    world.declare("l2")
    world.record("l1")
    world.record("l2", outcome="failed", started=2)
    assert merged(world).outcome == "failed"


def test_dirt_of_one_input_is_dirt_of_the_union(world):
    world.policy = {"allow_dirty": True}
    world.declare("l2")
    world.record("l1")
    assert not _dirty(world)
    world.record("l2", dirty=True, started=2)
    assert merged(world).repo.dirty


def _dirty(world):
    return any(choice.result.held.receipt.repo.dirty for choice in world.union().results)


def test_a_carried_shard_names_its_original_never_a_chain(world):
    record = world.record(on="grandparent")
    world.merged(record, on="parent")
    entry = merged(world).shards[0]
    assert entry.record == record
    assert entry.commit == entry.carried.original_commit == world.commits["grandparent"].id
    assert (entry.carried.distance, entry.carried.original_signer, entry.carried.original_dirty) == (
        2,
        "alice",
        False,
    )
    assert entry.carried.original_ended_at == world.receipts[record].session.ended_at


def test_a_fresh_shard_is_not_called_carried(world):
    world.record()
    assert merged(world).shards[0].carried is None


def test_faults_and_nothing_at_all_are_never_merged(world):
    with pytest.raises(ValueError, match="can't be merged"):
        world.merge()
    world.shards.clear()
    with pytest.raises(ValueError, match="can't be merged"):
        world.merge()
