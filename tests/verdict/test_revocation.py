"""Revocation only ever turns green into red (DESIGN section 4)."""

from __future__ import annotations

import itertools

import pytest


@pytest.mark.parametrize("order", list(itertools.permutations(range(2))))
def test_s29_a_revocation_is_in_force_whichever_of_the_two_arrived_first(world, order):
    world.revoke(world.record())
    world.lines["head"] = [world.lines["head"][place] for place in order]
    assert world.stands() == ("stale", "revoked")
    assert not world.judge().passed


def test_a_record_may_be_revoked_by_its_own_key_and_by_no_other(world):
    record = world.record(key="alice")
    void = world.revoke(record, key="bob")
    assert world.stands() == ("fresh", "recorded")
    assert (void, "not-a-revoker") in world.ignored()
    world.revoke(record, key="alice")
    assert world.stands() == ("stale", "revoked")


def test_a_record_may_be_revoked_by_policys_revokers(world):
    record = world.record(key="alice")
    world.revoke(record, key="bob")
    world.policy = {"revokers": ("bob",)}
    assert world.stands() == ("stale", "revoked")


def test_a_revoker_need_not_be_a_signer_of_receipts(world):
    world.allowed["carol"] = ""
    world.policy = {"revokers": ("carol",), "allowed_signers": ("alice",)}
    world.revoke(world.record(), key="carol")
    assert world.stands() == ("stale", "revoked")


def test_a_revoked_key_revokes_nothing_by_policy(world):
    world.policy, world.revoked_keys = {"revokers": ("bob",)}, ("bob",)
    world.revoke(world.record(), key="bob")
    assert world.stands() == ("fresh", "recorded")
    world.policy, world.forges = {"revokers": ("github:bob",)}, {"github:bob": ("bob",)}
    assert world.stands() == ("fresh", "recorded")
    world.revoked_keys = ()
    assert world.stands() == ("stale", "revoked")


def test_a_revocation_does_not_lapse_with_the_key_that_made_it(world):
    world.policy, world.allowed["bob"] = {"revokers": ("bob",)}, 'valid-before="20260614130000Z"'
    record = world.record()
    world.revoke(record, key="bob", at=50)
    assert world.stands() == ("stale", "revoked")


def test_an_unsigned_revocation_revokes_nothing(world):
    world.policy = {"signer_mode": "open", "allow_unsigned": True}
    void = world.revoke(world.record(key=None), key=None)
    assert world.stands() == ("fresh", "recorded")
    assert (void, "not-a-revoker") in world.ignored()


def test_a_revocation_on_another_commit_by_the_records_key_revokes_nothing(world):
    world.revoke(world.record(), on="parent")
    assert world.stands() == ("fresh", "recorded")


@pytest.mark.parametrize(("outcome", "reason"), [("failed", "not-green"), ("incomplete", "incomplete")])
def test_a_revoked_failure_still_blocks(world, outcome, reason):
    world.record(started=0)
    red = world.record(outcome=outcome, started=10)
    world.revoke(red)
    assert world.standing() == red
    assert world.stands() == ("stale", reason)


def test_a_revoked_failure_still_displaces_a_carry(world):
    world.record(on="grandparent", started=0)
    world.revoke(world.record(on="parent", outcome="failed", started=10), on="parent")
    assert world.stands() == ("stale", "not-green")


def test_a_revoked_green_is_not_carried(world):
    world.revoke(world.record(on="parent"), on="parent")
    assert world.stands() == ("stale", "revoked")


def test_a_revoked_merged_receipt_satisfies_no_demand_for_one(world):
    world.policy = {"require_merged": True}
    world.record()
    merged = world.merge()
    assert world.judge().passed
    world.revoke(merged, key="bob")
    assert world.codes() == {"snapshot-outdated"}


def test_a_merged_receipt_that_names_a_revoked_input_fails(world):
    world.policy = {"require_merged": True, "revokers": ("bob",)}
    record = world.record()
    world.merge()
    world.revoke(record, key="bob")
    assert world.codes() >= {"snapshot-outdated", "revoked"}


# What is revoked makes room for nothing: every case here was red before, and must stay so


def test_revoking_the_newest_attempt_brings_no_older_one_back(world):
    world.record(started=0)
    world.revoke(world.record(started=10))
    assert world.stands() == ("stale", "revoked")
    world.record(started=20)
    assert world.stands() == ("fresh", "recorded")


def test_revoking_the_attempt_that_disagrees_lets_no_other_agree(world, signer_of):
    world.policy = {"ci_key_fingerprints": (signer_of("alice").fingerprint,)}
    world.declare("l2")
    world.record("l2", started=0)
    world.record("l1", started=2)
    odd = world.record("l1", started=4, mode="ci")
    assert world.codes() == {"inputs-disagree"}
    world.revoke(odd)
    assert world.codes() == {"revoked"}


def test_revoking_the_receipt_that_settles_the_environment_lets_no_other_settle_it(world):
    world.declare("l2")
    world.record("l1", on="grandparent", started=0)
    world.record("l2", on="grandparent", started=2)
    leader = world.record("l1", on="parent", started=4, environment={"python": "3.13.0"})
    assert world.codes() == {"environment-changed"}
    world.revoke(leader, on="parent")
    assert world.codes() == {"revoked", "environment-changed"}


def test_revoking_a_voucher_brings_no_other_receipt_back(world, signer_of):
    world.policy = {"ci_key_fingerprints": (signer_of("alice").fingerprint,)}
    world.allowed["alice"] = 'valid-before="20260614130000Z"'
    world.declare("l2")
    world.record("l2", key="bob", started=0)
    world.record("l1", key="bob", started=2)
    voucher = world.merged(world.record("l1", key="alice", started=4, mode="ci"), key="bob")
    assert world.codes() == {"inputs-disagree"}
    world.revoke(voucher, key="bob")
    assert world.codes() == {"revoked"}
