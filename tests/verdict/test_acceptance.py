"""Whose signature counts (DESIGN section 4)."""

from __future__ import annotations

import pytest

from gitledger.errors import ConfigError


def test_an_allowed_key_counts(world):
    world.record(key="alice")
    assert world.judge().passed


def test_a_key_that_nobody_allowed_counts_for_nothing(world):
    record = world.record(key="mallory")
    assert world.stands() == ("stale", "untrusted")
    assert (record, "unknown-signer") in world.ignored()
    assert not world.judge().passed


def test_a_listed_principal_alone_counts_once_policy_lists_signers(world):
    world.policy = {"allowed_signers": ("bob",)}
    world.record(key="alice")
    assert world.stands() == ("stale", "untrusted")
    world.record(key="bob", started=5)
    assert world.stands() == ("fresh", "recorded")


def test_a_listed_principal_may_be_matched_by_a_pattern_of_the_file(world, signer_of):
    world.allowed_text = f"*@example.org {signer_of('alice').key.line}"
    world.policy = {"allowed_signers": ("alice@example.org",)}
    world.record(key="alice")
    assert world.stands() == ("fresh", "recorded")
    world.policy = {"allowed_signers": ("alice@elsewhere.org",)}
    assert world.stands() == ("stale", "untrusted")


def test_a_certified_key_counts_where_policy_lists_nobody(world, signer_of, wrap):
    """`all principals of the file` holds the pattern of an authority, not the names that it will certify."""
    world.allowed_text = f"*@example.org cert-authority {signer_of('authority').key.line}"
    line = world.sign(world.receipt(), "alice")
    world.put(wrap(line, owner="alice", authority="authority", principal="alice@example.org"))
    assert world.stands() == ("fresh", "recorded")
    assert world.choice().result.acceptance.principal == "alice@example.org"


def test_no_signers_left_is_an_error_that_names_init(world):
    world.allowed = {}
    with pytest.raises(ConfigError) as caught:
        world.judge()
    assert (caught.value.code, caught.value.hint) == ("no-signers", "git ledger init")
    world.allowed, world.policy = {"alice": ""}, {"allowed_signers": ()}
    with pytest.raises(ConfigError):
        world.judge()


def test_fingerprints_restrict_further(world, signer_of):
    world.policy = {"allowed_key_fingerprints": (signer_of("bob").fingerprint,)}
    record = world.record(key="alice")
    assert (record, "key-not-allowed") in world.ignored()
    world.record(key="bob", started=5)
    assert world.stands() == ("fresh", "recorded")


def test_unsigned_records_never_count_in_restricted_mode(world):
    world.policy = {"allow_unsigned": True}
    record = world.record(key=None)
    assert (record, "unsigned") in world.ignored()
    assert not world.judge().passed


def test_unsigned_records_count_in_open_mode_only_where_allowed(world):
    world.record(key=None)
    world.policy = {"signer_mode": "open"}
    assert world.stands() == ("stale", "untrusted")
    world.policy = {"signer_mode": "open", "allow_unsigned": True}
    assert world.stands() == ("fresh", "recorded")


def test_a_forge_user_and_a_principal_of_that_spelling_are_two(world, signer_of):
    world.policy = {"allowed_signers": ("github:alice-h",)}
    world.allowed_text = f"github:alice-h {signer_of('mallory').key.line}"
    world.record(key="mallory")
    assert world.stands() == ("stale", "untrusted")
    world.forges = {"github:alice-h": ("alice",)}
    world.record(key="alice", started=5)
    assert world.stands() == ("fresh", "recorded")
    assert world.choice().result.acceptance.principal == "github:alice-h"


def test_a_bare_name_is_never_a_forge_user(world):
    world.policy = {"allowed_signers": ("alice-h",)}
    world.forges = {"alice-h": ("alice",), "github:alice-h": ("alice",)}
    world.record(key="alice")
    assert world.stands() == ("stale", "untrusted")


def test_open_mode_takes_the_forge_user_that_the_record_names_and_holds_it_to_its_keys(world):
    world.policy, world.forges = {"signer_mode": "open"}, {"github:carol": ("carol",), "github:dave": ("dave",)}
    world.record(key="carol", user="github:dave")
    assert world.stands() == ("stale", "untrusted")
    world.record(key="carol", user="github:carol", started=5)
    assert world.stands() == ("fresh", "recorded")
    world.policy = {}
    assert world.stands() == ("stale", "untrusted")


def test_open_mode_cannot_satisfy_the_ci_modes(world, signer_of):
    ci = {"require_mode": "ci", "ci_key_fingerprints": (signer_of("alice").fingerprint,)}
    world.record(mode="ci")
    world.policy = ci
    assert world.stands() == ("fresh", "recorded")
    world.policy = ci | {"signer_mode": "open"}
    assert world.stands() == ("stale", "policy")
    world.policy = {"signer_mode": "open", "ci_key_fingerprints": ci["ci_key_fingerprints"]}
    assert world.stands() == ("stale", "policy")  # not even unasked
    assert "signer_mode: open" in world.choice().detail


@pytest.mark.parametrize(
    ("policy", "mode", "verdict"),
    [
        ({}, "local", "fresh"),
        ({}, "ci", "stale"),
        ({}, "ci-gpu", "stale"),
        ({"require_mode": "ci"}, "ci", "stale"),
        ({"require_mode": "ci"}, "local", "stale"),
        ({"require_mode": "local"}, "local", "fresh"),
        ({"require_mode": "local"}, "ci", "stale"),
        ({"ci_key_fingerprints": "bob"}, "ci", "stale"),
        ({"ci_key_fingerprints": "bob"}, "local", "fresh"),
        ({"ci_key_fingerprints": "alice"}, "ci-gpu", "fresh"),
        ({"require_mode": "ci", "ci_key_fingerprints": "bob"}, "ci", "stale"),
        ({"require_mode": "ci", "ci_key_fingerprints": "alice"}, "ci", "fresh"),
        ({"require_mode": "ci", "ci_key_fingerprints": "alice"}, "local", "stale"),
        ({"require_mode": "ci-gpu", "ci_key_fingerprints": "alice"}, "ci", "stale"),
    ],
)
def test_the_ci_modes_count_only_by_the_keys_of_ci(world, signer_of, policy, mode, verdict):
    listed = policy.get("ci_key_fingerprints")
    world.policy = policy | ({"ci_key_fingerprints": (signer_of(listed).fingerprint,)} if listed else {})
    world.record(mode=mode)
    assert world.stands()[0] == verdict


def test_a_receipt_of_ci_says_which_key_to_list_and_where(world, signer_of):
    world.record(mode="ci")
    detail = world.choice().detail
    assert detail.startswith("ci_key_fingerprints: mode ci ")
    assert signer_of("alice").fingerprint in detail
    assert "policy.ci_key_fingerprints of .gitledger/config.yaml" in detail


def test_an_unsigned_receipt_is_no_runners(world, signer_of):
    world.policy = {
        "signer_mode": "open",
        "allow_unsigned": True,
        "ci_key_fingerprints": (signer_of("alice").fingerprint,),
    }
    world.record(key=None, mode="ci")
    assert world.stands() == ("stale", "policy")


def test_a_failure_that_says_ci_stands_whoever_signed_it(world):
    """What may not count as green may still be red."""
    world.record(mode="ci", outcome="failed", started=10)
    world.record(started=5)
    assert world.stands() == ("stale", "not-green")


def test_a_security_key_must_have_been_touched_unless_policy_says_otherwise(world):
    world.allowed = {"sk-touched": ""}
    record = world.record(key="sk-not")
    assert (record, "no-touch") in world.ignored()
    world.policy = {"allow_no_touch": True}
    assert world.stands() == ("fresh", "recorded")
    world.policy = {}
    world.record(key="sk-touched", started=5)
    assert world.stands() == ("fresh", "recorded")


# Time


def test_t01_a_retired_key_stands_only_where_a_merged_receipt_by_another_valid_key_names_it(world):
    world.allowed["alice"] = 'valid-before="20260614130000Z"'  # T0 + 60 minutes
    record = world.record(started=10)
    assert (record, "key-expired") in world.ignored()
    world.merged(record, key="alice", at=20)
    assert world.stands() == ("stale", "untrusted")
    world.merged(record, key="mallory", at=20)
    assert world.stands() == ("stale", "untrusted")
    world.merged(record, key="bob", at=20)
    assert world.stands() == ("fresh", "recorded")


def test_t01_a_retired_key_signs_nothing_new(world):
    world.allowed["alice"] = 'valid-before="20260614130000Z"'
    record = world.record(started=61)
    world.merged(record, key="bob", at=70)
    assert (record, "unknown-signer") in world.ignored()
    assert not world.judge().passed


def test_t01_a_backdated_receipt_of_a_retired_key_is_refused(world):
    """It asserts a time at which its key was valid; nobody who could vouch for it has seen it then."""
    world.allowed["alice"] = 'valid-before="20260614130000Z"'
    honest = world.record(started=10, outcome="failed")
    world.merged(honest, key="bob", at=20)
    world.record(started=30)  # signed today, dated before its key was retired
    assert world.stands() == ("stale", "not-green")
    assert world.standing() == honest


def test_t01_a_revoked_key_is_refused_whatever_the_date_and_whoever_vouches(world):
    world.revoked_keys = ("alice",)
    record = world.record(started=10)
    world.merged(record, key="bob", at=20)
    assert (record, "key-revoked") in world.ignored()
    assert not world.judge().passed


def test_a_key_that_was_not_yet_valid_is_refused(world):
    world.allowed["alice"] = 'valid-after="20260614130000Z"'
    record = world.record(started=10)
    assert (record, "key-not-valid-then") in world.ignored()


def test_a_voucher_of_the_future_vouches_for_nothing(world):
    world.allowed["alice"] = 'valid-before="20260614130000Z"'
    world.merged(world.record(started=10), key="bob", at=3000)
    assert world.stands() == ("stale", "untrusted")


def test_a_voucher_whose_own_key_is_retired_vouches_for_nothing(world):
    world.allowed = {
        "alice": 'valid-before="20260614130000Z"',
        "bob": 'valid-before="20260614130000Z"',
        "carol": "",
    }
    world.merged(world.record(started=10), key="bob", at=20)
    assert world.stands() == ("stale", "untrusted")


def test_a_revoked_voucher_vouches_for_no_green_and_still_for_a_failure(world):
    world.allowed["alice"] = 'valid-before="20260614130000Z"'
    green = world.merged(world.record(started=10), key="bob", at=20)
    assert world.stands() == ("fresh", "recorded")
    world.revoke(green, key="bob")
    assert world.stands() == ("stale", "revoked")
    failure = world.record(started=30, outcome="failed")
    world.revoke(world.merged(failure, key="bob", at=40), key="bob")
    world.record(started=12, key="bob")
    assert world.standing() == failure
