"""What stands where, and what is the same record (DESIGN sections 2, 3 and 4)."""

from __future__ import annotations

import itertools

import pytest

from gitledger.records.envelope import decode_line


def test_t04_a_receipt_pasted_onto_another_commit_is_ignored_and_reported(world):
    record = world.record(on="parent")
    line = world.lines["parent"].pop()
    world.put(line, "head")
    assert world.stands() == ("stale", "never-recorded")
    assert any(one == record and why.startswith("misplaced") for one, why in world.ignored())


def test_t04_a_subject_whose_tree_is_not_the_commits_is_ignored_and_reported(world):
    record = world.record(tree="a" * 40)
    assert world.stands() == ("stale", "never-recorded")
    assert (record, "misplaced") in world.ignored()


def test_t04_a_station_trusts_no_caller_to_have_looked_where_a_record_belongs(world):
    """The rooms above reject such lines as they open them; this is the second lock."""
    from dataclasses import replace

    world.record(on="parent")
    head, parent, *_ = world.stations()
    moved = replace(head, evidence=parent.evidence)
    assert moved.evidence.shards == ()
    assert moved.evidence.misplaced == (parent.evidence.shards[0].id,)


def test_t04_a_misplaced_merged_receipt_and_revocation_count_for_nothing(world):
    from dataclasses import replace

    record = world.record()
    world.merged(record)
    world.revoke(record)
    head, parent, *_ = world.stations()
    moved = replace(parent, evidence=head.evidence)
    assert (moved.evidence.merged, moved.evidence.revocations) == ((), ())
    assert len(moved.evidence.misplaced) == 3


def test_t04_a_receipt_of_another_repository_is_ignored_and_reported(world):
    record = world.record(repository="another")
    assert world.stands() == ("stale", "never-recorded")
    assert (record, "other-repository") in world.ignored()


def test_a_bad_signature_is_ignored_and_reported(world):
    line = world.sign(world.receipt(), "alice")
    other = world.sign(world.receipt(started=7), "alice")
    envelope = decode_line(line)
    world.put(type(envelope)(payload=envelope.payload, signature=decode_line(other).signature).encode())
    assert world.stands() == ("stale", "never-recorded")
    assert any(why.startswith("bad-signature") for _, why in world.ignored())


def test_a_line_read_twice_is_one_attempt(world):
    world.record()
    world.lines["head"] *= 3
    assert len(world.choice().attempts) == 1


def test_a_record_that_stands_under_two_good_signatures_is_one_attempt(world, wrap, signer_of):
    """The plain key and a certificate of it are both allowed: still one run, by one key."""
    world.allowed_text = (
        f"alice {signer_of('alice').key.line}\n*@example.org cert-authority {signer_of('authority').key.line}"
    )
    line = world.sign(world.receipt(), "alice")
    world.put(line)
    world.put(wrap(line, owner="alice", authority="authority", principal="alice@example.org"))
    assert world.stands() == ("fresh", "recorded")
    assert len(world.choice().attempts) == 1


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_nobody_hides_a_failure_by_wrapping_it_into_a_certificate(world, wrap, order):
    """The wrapped line is the same record by the same key and is untrusted; the plain line must still count."""
    failure = world.sign(world.receipt(outcome="failed", started=20), "alice")
    lines = [
        failure,
        wrap(failure, owner="alice", authority="mallory", principal="alice"),
        world.sign(world.receipt(started=0), "alice"),
    ]
    world.lines["head"] = [lines[place] for place in order]
    assert world.stands() == ("stale", "not-green")
    assert len(world.choice().attempts) == 2
    assert not any(why == "unknown-signer" for _, why in world.ignored())


# What can't be read


def test_what_a_trusted_key_signed_and_nobody_can_read_blocks(world):
    world.record()
    world.garbage()
    assert world.codes() == {"undecodable"}
    with pytest.raises(ValueError, match="faults"):
        world.merge()


def test_a_receipt_that_contradicts_itself_blocks_when_a_trusted_key_signed_it(world):
    world.record()
    world.garbage(type_="urn:gitledger:receipt:shard:v1", record_version=1, outcome="passed")
    assert "undecodable" in world.codes()


def test_what_strangers_or_nobody_signed_blocks_nobody(world):
    world.record()
    stranger = world.garbage(key="mallory")
    world.garbage(key=None)
    world.garbage(key=None, type_="urn:gitledger:receipt:shard:v1")
    assert world.judge().passed
    assert any(record == stranger for record, _ in world.ignored())


def test_an_unsigned_unreadable_record_blocks_nobody_even_where_unsigned_ones_count(world):
    world.policy = {"signer_mode": "open", "allow_unsigned": True}
    world.record()
    world.garbage(key=None, type_="urn:gitledger:receipt:shard:v1")
    assert world.judge().passed


def test_a_revoked_key_can_block_nobody_with_garbage(world):
    world.record(key="bob")
    world.garbage(key="alice")
    world.revoked_keys = ("alice",)
    assert world.judge().passed


def test_an_unreadable_record_pasted_here_or_from_another_repository_blocks_nobody(world):
    world.record()
    world.garbage(about="parent")
    world.garbage(repository="another")
    world.garbage(repository="another", type_="urn:gitledger:receipt:shard:v1")
    assert world.judge().passed


def test_revoking_an_unreadable_record_does_not_free_its_commit(world):
    world.record()
    world.revoke(world.garbage())
    assert world.codes() == {"undecodable"}


def test_an_unreadable_record_of_history_blocks_only_what_is_taken_from_there(world):
    world.garbage(on="parent")
    world.record(on="grandparent")
    assert world.codes() == {"undecodable"}
    world.record(on="head", started=9)
    assert world.judge().passed


def test_an_unreadable_record_beside_the_ancestry_blocks_only_same_manifest(world):
    world.garbage(on="branch")
    world.record(on="parent")
    assert world.judge().passed
    world.carry_from = "same-manifest"
    assert world.codes() == {"undecodable"}


def test_a_retired_keys_unreadable_record_blocks_where_it_was_vouched_for(world):
    world.allowed["alice"] = 'valid-before="20260614130000Z"'
    kept = world.record(key="bob")
    record = world.garbage(key="alice")
    assert world.judge().passed
    world.receipts[record] = world.receipts[kept]
    world.merged(record, key="bob")
    assert "undecodable" in world.codes()
