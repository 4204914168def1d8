"""What `open_record` makes of a line, reason by reason."""

from __future__ import annotations

import base64
import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitledger.errors import InternalError, LedgerError, TrustError
from gitledger.records.envelope import Envelope, Signature, pae
from gitledger.records.ids import CommitId
from gitledger.trust.sign import sign_payload
from gitledger.trust.sshsig import SshSig, armor, dearmor, signed_data
from gitledger.trust.verified import REASONS, Rejected, Unsigned, Verified, open_record

KINDS = ["ed25519", "ecdsa256", "ecdsa384", "ecdsa521", "rsa"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_signed_record_opens_as_verified_with_its_key(kind, signers_by_kind, make_line, commit_id):
    signer = signers_by_kind[kind]
    opened = open_record(make_line(signer), commit=commit_id)
    assert isinstance(opened, Verified)
    assert opened.key.fingerprint == signer.fingerprint == opened.statement.signer.key_fingerprint
    assert opened.touched is None


@pytest.mark.parametrize("kind", KINDS)
def test_every_record_checks_out_with_ssh_keygen_alone(kind, signers_by_kind, make_line, ssh):
    """The text between the armour lines is `sig` as it stands in the note (DESIGN section 3)."""
    signer = signers_by_kind[kind]
    document = json.loads(make_line(signer))
    sig = document["signatures"][0]["sig"]
    rows = [sig[i : i + 70] for i in range(0, len(sig), 70)]
    text = "\n".join(["-----BEGIN SSH SIGNATURE-----", *rows, "-----END SSH SIGNATURE-----", ""])
    assert armor(base64.b64decode(sig)) == text
    message = pae(document["payloadType"], base64.b64decode(document["payload"]))
    allowed = f"alice {signer.key.line}\n"
    assert ssh.verify(dearmor(text), message, allowed=allowed).returncode == 0
    assert ssh.verify(dearmor(text), message + b"x", allowed=allowed).returncode != 0


def test_an_unsigned_record_says_so_twice(make_line, make_payload, signers_by_kind):
    assert isinstance(open_record(make_line(None)), Unsigned)
    signer = signers_by_kind["ed25519"]
    stripped = Envelope(payload=make_payload(signer), signature=None).encode()
    assert _reason(stripped) == "malformed"
    claimed_unsigned = sign_payload(make_payload(None), signer).encode()
    assert _reason(claimed_unsigned) == "malformed"


def test_a_second_signature_is_malformed(make_line, signers_by_kind):
    document = json.loads(make_line(signers_by_kind["ed25519"]))
    document["signatures"] *= 2
    assert _reason(_spell(document)) == "malformed"


def test_a_keyid_that_names_another_key_is_malformed(make_line, signers_by_kind):
    document = json.loads(make_line(signers_by_kind["ed25519"]))
    document["signatures"][0]["keyid"] = signers_by_kind["rsa"].fingerprint
    assert _reason(_spell(document)) == "malformed"


def test_a_payload_signed_again_by_another_key_is_a_key_mismatch(make_payload, signers_by_kind):
    payload = make_payload(signers_by_kind["ed25519"])
    opened = open_record(sign_payload(payload, signers_by_kind["rsa"]).encode())
    assert isinstance(opened, Rejected)
    assert opened.reason == "key-mismatch"
    assert opened.key.fingerprint == signers_by_kind["rsa"].fingerprint


def test_a_signature_for_another_namespace_is_refused(make_payload, signers_by_kind):
    """A person's commit signatures (namespace `git`) must never pass for records, nor the other way round."""
    signer = signers_by_kind["ed25519"]
    payload = make_payload(signer)
    message = pae("application/vnd.in-toto+json", payload)
    blob = SshSig(
        public_key=signer.key.blob,
        namespace="git",
        hash_name="sha512",
        signature=signer._private.sign(signed_data(message, namespace="git")),
    ).encode()
    assert _reason(_line(payload, blob, signer)) == "wrong-namespace"


def test_a_message_hash_weaker_than_ours_is_refused(make_payload, signers_by_kind):
    signer = signers_by_kind["ed25519"]
    payload = make_payload(signer)
    message = pae("application/vnd.in-toto+json", payload)
    signature = signer._private.sign(signed_data(message, hash_name="sha256"))
    blob = SshSig(public_key=signer.key.blob, namespace="gitledger", hash_name="sha256", signature=signature)
    assert _reason(_line(payload, blob.encode(), signer)) == "weak-key"


def test_a_record_that_is_signed_but_no_statement_says_who_signed_it(signers_by_kind):
    """The caller lets it block where the key is trusted (DESIGN section 2, law 7)."""
    signer = signers_by_kind["ed25519"]
    for payload in (b"", b"[]", b"\xff", b'{"_type": "https://in-toto.io/Statement/v2"}'):
        opened = open_record(sign_payload(payload, signer).encode())
        assert isinstance(opened, Rejected)
        assert opened.reason == "undecodable"
        assert opened.key.fingerprint == signer.fingerprint


def test_t04_s05_a_record_on_another_commit_is_misplaced(make_line, signers_by_kind, commit_id):
    elsewhere = CommitId("9" * 40)
    for signer in (signers_by_kind["ed25519"], None):
        line = make_line(signer)
        assert not isinstance(open_record(line, commit=commit_id), Rejected)
        assert _reason(line, commit=elsewhere) == "misplaced"


def test_verified_is_made_here_and_nowhere_else(make_line, signers_by_kind):
    opened = open_record(make_line(signers_by_kind["ed25519"]))
    fields = {f.name: getattr(opened, f.name) for f in dataclasses.fields(opened)}
    with pytest.raises(InternalError):
        Verified(**fields, seal=object())
    with pytest.raises((TypeError, ValueError)):
        Verified(**fields)
    with pytest.raises((TypeError, ValueError)):
        dataclasses.replace(opened, line=b"")


def test_a_broken_signer_writes_nothing(make_payload, signers_by_kind):
    good = signers_by_kind["ed25519"]

    class Broken:
        key, fingerprint, algorithm, backend = good.key, good.fingerprint, good.algorithm, "agent"

        def sign(self, message: bytes) -> bytes:
            return good.sign(message + b"!")

    with pytest.raises(TrustError, match="fresh signature") as caught:
        sign_payload(make_payload(good), Broken())
    assert caught.value.code == "signing-failed"


def test_an_agent_that_signs_with_another_key_than_asked_for_is_found_out(make_payload, signers_by_kind):
    good, other = signers_by_kind["ed25519"], signers_by_kind["ecdsa256"]

    class Confused:
        key, fingerprint, algorithm, backend = good.key, good.fingerprint, good.algorithm, "agent"
        sign = other.sign

    with pytest.raises(TrustError, match="another key") as caught:
        sign_payload(make_payload(good), Confused())
    assert caught.value.code == "signing-failed"


def test_every_reason_is_on_the_closed_list():
    assert len(REASONS) == 7


@settings(max_examples=150, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_t05_any_changed_byte_is_refused_and_never_a_traceback(kind, envelopes, data):
    changed = bytearray(envelopes[kind].encode())
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    opened = open_record(bytes(changed))
    assert isinstance(opened, Rejected)
    assert opened.reason in REASONS


@settings(max_examples=150, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_t05_any_changed_byte_of_the_signature_blob_is_refused(kind, signers_by_kind, envelopes, data):
    """Inside a canonical envelope, so that the signature itself is what refuses it."""
    blob = bytearray(envelopes[kind].signature.blob)
    blob[data.draw(st.integers(0, len(blob) - 1))] ^= data.draw(st.integers(1, 255))
    assert isinstance(open_record(_line(envelopes[kind].payload, bytes(blob), signers_by_kind[kind])), Rejected)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_t05_any_changed_byte_of_the_payload_is_a_bad_signature(signers_by_kind, envelopes, data):
    signed = envelopes["ed25519"]
    changed = bytearray(signed.payload)
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    line = _line(bytes(changed), signed.signature.blob, signers_by_kind["ed25519"])
    assert _reason(line) == "bad-signature"


@settings(max_examples=300, deadline=None)
@given(line=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_a_line_of_anything_is_rejected(line):
    assert isinstance(open_record(line), Rejected)


@pytest.fixture(scope="module")
def envelopes(signers_by_kind, make_payload):
    """One signed envelope by a key of each kind."""
    return {kind: sign_payload(make_payload(signer), signer) for kind, signer in signers_by_kind.items()}


def _reason(line: bytes, **options) -> str:
    opened = open_record(line, **options)
    assert isinstance(opened, Rejected)
    assert opened.reason in REASONS
    assert opened.detail
    return opened.reason


def _line(payload: bytes, blob: bytes, signer) -> bytes:
    try:
        return Envelope(payload=payload, signature=Signature(keyid=signer.fingerprint, blob=blob)).encode()
    except LedgerError as error:  # pragma: no cover - a test that builds too large a line
        raise AssertionError(error) from error


def _spell(document: dict) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
