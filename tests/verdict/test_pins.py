"""The judged commit's shards held against those of a trusted ref (DESIGN section 4)."""

from __future__ import annotations

from gitledger.records.ids import Digest, ShardKey
from gitledger.verdict.pins import judge_pins, redefined

L1, L2 = ShardKey("l1"), ShardKey("l2", "a100")
ONE, TWO = Digest("1" * 64), Digest("2" * 64)


def _pins(judged, trusted, *, pinned=True, accepted=False):
    return [
        (item.code, item.subject, item.blocks)
        for item in judge_pins(judged, trusted, pinned=pinned, accepted=accepted, source="origin/main")
    ]


def test_f10_a_shard_or_variant_that_vanished_blocks():
    assert _pins({L1: ONE}, {L1: ONE, L2: ONE}) == [("shard-removed", "l2@a100", True)]


def test_f10_a_shard_that_changed_blocks():
    assert _pins({L1: TWO}, {L1: ONE}) == [("shard-redefined", "l1", True)]
    assert redefined({L1: TWO, L2: ONE}, {L1: ONE}) == {L1}


def test_f10_deleting_every_shard_names_them_all():
    assert [code for code, _, _ in _pins({}, {L1: ONE, L2: ONE})] == ["shard-removed"] * 2


def test_f10_a_deleted_shard_blocks_a_verdict_that_else_passes(world):
    world.record()
    assert world.judge().passed
    assert not world.judge(
        *judge_pins({L1: ONE}, {L1: ONE, L2: ONE}, pinned=True, accepted=False, source="origin/main")
    ).passed


def test_t06_policy_of_the_trusted_ref_judges_whatever_the_change_says(world):
    """A situation holds one configuration, the trusted one; a change's own policy has no way in."""
    world.policy = {"allowed_signers": ("alice",)}
    world.allowed = {"alice": "", "bob": ""}
    world.record(key="bob")
    assert world.stands() == ("stale", "untrusted")


def test_new_shards_and_unchanged_ones_are_no_finding():
    assert _pins({L1: ONE, L2: ONE}, {L1: ONE}) == []


def test_what_a_maintainer_accepts_is_printed_and_blocks_nothing():
    found = list(judge_pins({L1: TWO}, {L1: ONE, L2: ONE}, pinned=True, accepted=True, source="origin/main"))
    assert [(item.blocks, item.found) for item in found] == [(False, "accepted by --accept-shards")] * 2


def test_without_pins_the_change_is_reported_and_blocks_nothing():
    assert _pins({L1: TWO}, {L1: ONE}, pinned=False) == [("shard-redefined", "l1", False)]
