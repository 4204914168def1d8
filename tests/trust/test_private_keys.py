"""The usual key file is read without the library that reads all others, and only where that one would say the same."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from hypothesis import given
from hypothesis import strategies as st

from gitledger.trust import private_keys
from gitledger.trust.private_keys import load_private_key
from gitledger.trust.wire import put_string, put_uint32

SEED = bytes(range(32))
PUBLIC = Ed25519PrivateKey.from_private_bytes(SEED).public_key().public_bytes_raw()
OTHER = Ed25519PrivateKey.from_private_bytes(SEED[::-1]).public_key().public_bytes_raw()


def armoured(body: bytes) -> bytes:
    text = base64.encodebytes(body).decode()
    return f"-----BEGIN OPENSSH PRIVATE KEY-----\n{text}-----END OPENSSH PRIVATE KEY-----\n".encode()


def spelt(
    *,
    cipher: str = "none",
    kdf: str = "none",
    options: bytes = b"",
    number: int = 1,
    outer: bytes = PUBLIC,
    checks: tuple[int, int] = (7, 7),
    kind: str = "ssh-ed25519",
    inner: bytes = PUBLIC,
    private: bytes = SEED + PUBLIC,
    comment: bytes = b"al",
    padding: bytes | None = None,
    trailing: bytes = b"",
) -> bytes:
    """Return a key file's body, right but for what is given."""
    secret = b"".join(map(put_uint32, checks)) + put_string(kind)
    secret += put_string(inner) + put_string(private) + put_string(comment)
    secret += bytes(range(1, 1 + -len(secret) % 8)) if padding is None else padding
    blob = put_string("ssh-ed25519") + put_string(outer)
    head = b"openssh-key-v1\0" + put_string(cipher) + put_string(kdf) + put_string(options) + put_uint32(number)
    return head + put_string(blob) + put_string(secret) + trailing


@pytest.mark.parametrize("comment", ["", "alice@example.org", "Ł", "x" * 300])
def test_a_key_that_ssh_keygen_made_is_read_and_signs_as_the_library_signs(ssh, comment):
    path = ssh.make_key("ed25519")
    ssh.run("ssh-keygen", "-q", "-c", "-C", comment, "-P", "", "-f", str(path))
    data = path.read_bytes()
    key = private_keys._usual(data)
    assert key is not None
    assert key.sign(b"message")[-64:] == load_ssh_private_key(data, None).sign(b"message")
    again = load_private_key(data.replace(b"\n", b"\r\n"), where="a form")
    assert (again.public, again.sign(b"m")) == (key.public, key.sign(b"m"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"cipher": "aes256-ctr"},
        {"kdf": "bcrypt"},
        {"options": b"x"},
        {"number": 2},
        {"checks": (7, 8)},
        {"kind": "ssh-rsa"},
        {"outer": OTHER},
        {"inner": OTHER},
        {"private": SEED + OTHER},
        {"private": SEED[::-1] + PUBLIC},
        {"private": SEED + PUBLIC + b"x"},
        {"private": SEED},
        {"private": SEED[:31]},
        {"outer": PUBLIC[:31]},
        {"padding": b"\1\3\2"},
        {"padding": b""},
        {"trailing": b"x"},
    ],
    ids=str,
)
def test_whatever_is_not_quite_right_is_left_to_the_library(wrong):
    assert private_keys._usual(armoured(spelt())) is not None
    assert private_keys._usual(armoured(spelt(**wrong))) is None


@given(st.integers(0, len(spelt()) - 1), st.integers(1, 255))
def test_a_damaged_file_is_read_only_as_the_library_reads_it(place, change):
    body = bytearray(spelt())
    body[place] ^= change
    key = private_keys._usual(armoured(bytes(body)))
    if key is not None:
        assert key.sign(b"m")[-64:] == load_ssh_private_key(armoured(bytes(body)), None).sign(b"m")


@pytest.mark.parametrize(
    "data", [b"", b"x", b"-----BEGIN OPENSSH PRIVATE KEY-----\n!\n", armoured(b""), armoured(b"x")]
)
def test_what_is_no_such_file_is_left_to_the_library(data):
    assert private_keys._usual(data) is None
