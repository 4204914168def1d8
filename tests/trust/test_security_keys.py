"""Security keys (FIDO): application, flags and counter are part of what is signed (PROTOCOL.u2f)."""

from __future__ import annotations

import pytest

from gitledger.errors import DecodeError
from gitledger.records.envelope import PAYLOAD_TYPE, pae
from gitledger.trust.keys import PublicKey, check_signature
from gitledger.trust.sign import sign_payload
from gitledger.trust.verified import Verified, open_record
from gitledger.trust.wire import put_string

KINDS = ["ed25519", "ecdsa"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("flags", "touched", "user_verified"), [(0, False, False), (1, True, False), (5, True, True)]
)
def test_t02_flags_say_whether_a_person_was_there(
    kind, flags, touched, user_verified, make_security_key, make_payload, ssh
):
    """`ssh-keygen -Y verify` accepts flags 0, so policy decides whether that will do."""
    signer = make_security_key(kind, flags=flags)
    payload = make_payload(signer)
    envelope = sign_payload(payload, signer)
    opened = open_record(envelope.encode())
    assert isinstance(opened, Verified)
    assert (opened.touched, opened.user_verified) == (touched, user_verified)
    done = ssh.verify(envelope.signature.blob, pae(PAYLOAD_TYPE, payload), allowed=f"alice {signer.key.line}\n")
    assert done.returncode == 0


@pytest.mark.parametrize("kind", KINDS)
def test_t02_a_claimed_touch_is_a_bad_signature(kind, make_security_key):
    signer = make_security_key(kind, flags=0)
    raw = signer.sign_raw(b"data")
    assert check_signature(signer.key, b"data", raw).touched is False
    for forged in (raw[:-5] + b"\x01" + raw[-4:], raw[:-1] + b"\xff"):
        with pytest.raises(DecodeError) as caught:
            check_signature(signer.key, b"data", forged)
        assert caught.value.code == "bad-signature"


@pytest.mark.parametrize("kind", KINDS)
def test_t02_a_signature_made_for_another_application_is_bad(kind, make_security_key):
    """A web site that can get signatures for its own application gets none for `ssh:`."""
    signer = make_security_key(kind, application=b"https://example.org")
    as_ssh = signer.key.blob[: -len(put_string(signer.application))] + put_string(b"ssh:")
    with pytest.raises(DecodeError) as caught:
        check_signature(PublicKey(blob=as_ssh, algorithm=signer.algorithm), b"data", signer.sign_raw(b"data"))
    assert caught.value.code == "bad-signature"
    assert check_signature(signer.key, b"data", signer.sign_raw(b"data")).touched


@pytest.mark.parametrize("kind", KINDS)
def test_t02_a_plain_signature_of_the_same_curve_is_none_of_a_security_key(kind, make_security_key):
    signer = make_security_key(kind)
    raw = signer.sign_raw(b"data")
    for broken in (raw[:-5], raw[:-1], raw + b"\x00"):
        with pytest.raises(DecodeError) as caught:
            check_signature(signer.key, b"data", broken)
        assert caught.value.code == "malformed"
