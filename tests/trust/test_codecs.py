"""The binary formats: what parses re-encodes to the same bytes, and nothing else than `DecodeError` comes out."""

from __future__ import annotations

import base64
import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitledger.errors import ConfigError, DecodeError
from gitledger.trust.allowed_signers import parse_allowed_signers
from gitledger.trust.certificates import decode_key, parse_key_line
from gitledger.trust.keys import check_signature, decode_plain_key
from gitledger.trust.krl import parse_krl
from gitledger.trust.private_keys import peek_private_key
from gitledger.trust.revoked import parse_revoked_keys
from gitledger.trust.sshsig import SshSig, armor, dearmor
from gitledger.trust.wire import WireReader, put_mpint, put_string, put_uint32

NOW = datetime(2026, 6, 15, tzinfo=UTC)
NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
FIXTURES = [HealthCheck.function_scoped_fixture]


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (b"", WireReader.byte),
        (b"\x00\x00\x00", WireReader.uint32),
        (b"\x00\x00\x00\x05abcd", WireReader.string),
        (b"\xff\xff\xff\xffabcd", WireReader.string),
        (b"\x00\x00\x00\x02\x00\x01", WireReader.mpint),
        (b"\x00\x00\x00\x01\x80", WireReader.mpint),
        (b"\x00\x00\x00\x01\x00", WireReader.mpint),
        (put_string(b"\xff"), WireReader.text),
        (put_string(b"a\x00b"), WireReader.text),
        (put_string(b"a b"), WireReader.name),
        (put_string(b"\xc3\xa9"), WireReader.name),
    ],
)
def test_short_and_second_spellings_are_refused(data, read):
    with pytest.raises(DecodeError):
        read(WireReader(data, "test"))


def test_trailing_bytes_are_refused():
    reader = WireReader(b"\x00\x01", "test")
    reader.byte()
    with pytest.raises(DecodeError, match="1 trailing"):
        reader.done()


@given(st.integers(0, 1 << 600))
def test_numbers_round_trip(number):
    reader = WireReader(put_mpint(number), "test")
    assert reader.mpint() == number
    reader.done()


@given(st.binary(max_size=80), NAMES, st.sampled_from(["sha256", "sha512"]), st.binary(max_size=80))
def test_a_signature_blob_round_trips_and_so_does_its_armour(public_key, namespace, hash_name, signature):
    made = SshSig(public_key=public_key, namespace=namespace, hash_name=hash_name, signature=signature)
    blob = made.encode()
    assert SshSig.decode(blob, hashes=("sha256", "sha512")) == made
    assert dearmor(armor(blob)) == blob
    assert max(map(len, armor(blob).splitlines())) <= 70


@settings(max_examples=300, deadline=None, suppress_health_check=FIXTURES)
@given(data=st.data())
def test_a_signature_blob_that_parses_has_one_spelling(data, signers_by_kind):
    blob = bytearray(signers_by_kind["ed25519"].sign(b"message"))
    for _ in range(data.draw(st.integers(1, 3))):
        blob[data.draw(st.integers(0, len(blob) - 1))] = data.draw(st.integers(0, 255))
    try:
        parsed = SshSig.decode(bytes(blob))
    except DecodeError:
        return
    assert parsed.encode() == bytes(blob)


def test_sha256_is_read_only_where_it_is_asked_for():
    blob = SshSig(public_key=b"k", namespace="n", hash_name="sha256", signature=b"s").encode()
    with pytest.raises(DecodeError) as caught:
        SshSig.decode(blob)
    assert caught.value.code == "weak-key"


@pytest.mark.parametrize("text", ["", "-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----", "é"])
def test_broken_armour_is_refused(text):
    with pytest.raises(DecodeError):
        dearmor(text)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa256", "ecdsa384", "ecdsa521", "rsa"])
def test_fingerprints_are_those_of_ssh_keygen(kind, key_files, signers_by_kind, ssh):
    said = ssh.run("ssh-keygen", "-l", "-f", f"{key_files[kind]}.pub").stdout.split()[1].decode()
    assert signers_by_kind[kind].fingerprint == said


def _blob(*fields: bytes | str) -> bytes:
    return b"".join(put_string(field) for field in fields)


P256_POINT = bytes.fromhex(
    "04"
    "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
)
"""The base point of P-256 (FIPS 186-4, D.1.2.3): on its curve, so that only the curve's name is wrong."""
WEAK_AND_BROKEN = {
    "dsa": (_blob("ssh-dss", b"\1", b"\1", b"\1", b"\1"), "weak-key"),
    "rsa-1024": (_blob("ssh-rsa") + put_mpint(65537) + put_mpint((1 << 1023) | 1), "weak-key"),
    "rsa-huge": (_blob("ssh-rsa") + put_mpint(65537) + put_mpint((1 << 16390) | 1), "malformed"),
    "rsa-huge-exponent": (_blob("ssh-rsa") + put_mpint((1 << 70) | 1) + put_mpint((1 << 2047) | 1), "malformed"),
    "rsa-even": (_blob("ssh-rsa") + put_mpint(2) + put_mpint((1 << 2047) | 1), "malformed"),
    "ed25519-short": (_blob("ssh-ed25519", b"\0" * 31), "malformed"),
    "ed25519-trailing": (_blob("ssh-ed25519", b"\0" * 32) + b"\0", "malformed"),
    "ecdsa-not-on-curve": (_blob("ecdsa-sha2-nistp256", "nistp256", b"\4" + b"\1" * 64), "malformed"),
    "ecdsa-compressed": (_blob("ecdsa-sha2-nistp256", "nistp256", b"\2" + b"\1" * 32), "malformed"),
    "ecdsa-infinity": (_blob("ecdsa-sha2-nistp256", "nistp256", b"\0"), "malformed"),
    "ecdsa-other-curve": (_blob("ecdsa-sha2-nistp256", "nistp384", b"\4" + b"\1" * 96), "malformed"),
    "ecdsa-misnamed-curve": (_blob("ecdsa-sha2-nistp256", "nistp384", P256_POINT), "malformed"),
    "unknown": (_blob("ssh-quantum", b"x"), "malformed"),
    "empty": (b"", "malformed"),
}


@pytest.mark.parametrize("name", WEAK_AND_BROKEN)
def test_weak_and_broken_keys_are_refused(name):
    blob, code = WEAK_AND_BROKEN[name]
    with pytest.raises(DecodeError) as caught:
        decode_key(blob)
    assert caught.value.code == code


def test_a_key_has_one_spelling_so_a_compressed_point_is_refused(signers_by_kind):
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = signers_by_kind["ecdsa256"]._private._material.public_key()
    point = public.public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    with pytest.raises(DecodeError, match="uncompressed"):
        decode_key(_blob("ecdsa-sha2-nistp256", "nistp256", point))


def test_sha1_signatures_are_refused(signers_by_kind):
    key = signers_by_kind["rsa"].key
    for algorithm in ("ssh-rsa", "rsa-sha2-256"):
        with pytest.raises(DecodeError) as caught:
            check_signature(key, b"m", put_string(algorithm) + put_string(b"\0" * 256))
        assert caught.value.code == "weak-key"


def test_an_rsa_signature_without_its_leading_zeroes_is_still_good(signers_by_kind):
    """As in OpenSSH (ssh-rsa.c): some agents drop them."""
    signer = signers_by_kind["rsa"]
    for number in range(5000):
        message = put_uint32(number)
        reader = WireReader(signer._private.sign(message), "test")
        algorithm, body = reader.string(), reader.string()
        if body[0] == 0:
            short = put_string(algorithm) + put_string(body.lstrip(b"\0"))
            assert check_signature(signer.key, message, short).algorithm == "rsa-sha2-512"
            return
    raise AssertionError("no signature began with a zero")


@settings(max_examples=400, deadline=None)
@given(
    st.binary(max_size=400), st.sampled_from([b"", b"SSHSIG\0\0\0\1", b"SSHKRL\n\0\0\0\0\1", b"openssh-key-v1\0"])
)
def test_no_decoder_raises_anything_but_its_own_error(tail, head):
    data = head + tail
    text = (
        b"-----BEGIN OPENSSH PRIVATE KEY-----\n" + base64.b64encode(data) + b"\n-----END OPENSSH PRIVATE KEY-----"
    )
    for decode in (SshSig.decode, decode_key, decode_plain_key, parse_krl):
        with contextlib.suppress(DecodeError):
            decode(data)
    for decode in (peek_private_key, lambda raw: dearmor(raw.decode("latin-1"))):
        with contextlib.suppress(DecodeError):
            decode(text)
    for parse in (parse_allowed_signers, parse_revoked_keys):
        with contextlib.suppress(ConfigError):
            parse(data)


@settings(max_examples=300, deadline=None, suppress_health_check=FIXTURES)
@given(data=st.data())
def test_mutated_keys_certificates_and_lists_of_revoked_keys_are_read_or_refused(data, certified, krl):
    for original, decode in (
        (certified.certificate.blob, decode_key),
        (certified.blob, decode_key),
        (krl, parse_krl),
    ):
        raw = bytearray(original)
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, len(raw) - 1))
            kind = data.draw(st.sampled_from(["flip", "cut", "grow"]))
            if kind == "flip":
                raw[at] ^= data.draw(st.integers(1, 255))
            elif kind == "cut":
                del raw[at : at + data.draw(st.integers(1, 4))]
            else:
                raw[at:at] = data.draw(st.binary(min_size=1, max_size=4))
            if not raw:
                break
        try:
            decode(bytes(raw))
        except DecodeError:
            continue


@settings(max_examples=300, deadline=None, suppress_health_check=FIXTURES)
@given(data=st.data())
def test_a_certificate_with_any_byte_changed_is_refused(data, certified):
    """Its authority signs every byte of it before the signature, and the signature has one spelling."""
    raw = bytearray(certified.certificate.blob)
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(DecodeError):
        decode_key(bytes(raw))


@settings(max_examples=400, deadline=None, suppress_health_check=FIXTURES)
@given(
    words=st.lists(
        st.sampled_from(
            ["alice", "*", "!bob", '"', "cert-authority", 'namespaces="', 'valid-after="2026', 'Z"', ",", " ",
             "\t", "ssh-ed25519 ", "KEY", "\n", "\r\n", "#", "\x00", "é", "=", "\\", "a" * 70]
        ),
        max_size=14,
    )
)  # fmt: skip
def test_a_hostile_allowed_signers_is_read_or_named_by_line(words, signers_by_kind):
    line = signers_by_kind["ed25519"].key.line
    text = "".join(words).replace("KEY", line)
    refusal = None
    try:
        for entry in parse_allowed_signers(text.encode(), source="FILE").entries:
            entry.speaks_for(signers_by_kind["ed25519"].key, "alice")
    except ConfigError as error:
        refusal = error
    assert refusal is None or (refusal.message.startswith("FILE:") and refusal.hint)


@pytest.fixture(scope="module")
def certified(key_files, tmp_path_factory):
    """A key with a certificate."""
    import shutil
    import subprocess

    folder = tmp_path_factory.mktemp("certified")
    for suffix in ("", ".pub"):
        shutil.copy(f"{key_files['ecdsa256']}{suffix}", f"{folder}/user{suffix}")
    subprocess.run(
        ["ssh-keygen", "-q", "-s", key_files["ed25519"], "-I", "id", "-n", "alice", f"{folder}/user.pub"],
        check=True,
    )
    return parse_key_line((folder / "user-cert.pub").read_text())


@pytest.fixture(scope="module")
def krl(key_files, tmp_path_factory):
    """A KRL with every kind of section."""
    import subprocess

    folder = tmp_path_factory.mktemp("krl")
    key = (key_files["rsa"].with_suffix(".pub")).read_text().strip()
    serials = "".join(f"serial: {n}\n" for n in (1, 5, 9, 13, 14, 15, 21, 1000))
    spec = f"{serials}serial: 40-60\nid: someone\nkey: {key}\nsha1: {key}\nsha256: {key}\n"
    (folder / "spec").write_text(spec)
    authority = key_files["ed25519"].with_suffix(".pub")
    subprocess.run(["ssh-keygen", "-q", "-k", "-f", "krl", "-s", authority, "spec"], cwd=folder, check=True)
    return (folder / "krl").read_bytes()
