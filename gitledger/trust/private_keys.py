"""Private key files: OpenSSH and PEM, encrypted ones too, and what may be known of one without its passphrase."""

from __future__ import annotations

import base64
import binascii
import warnings
from collections.abc import Callable
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError, TrustError
from gitledger.trust.certificates import parse_key_line
from gitledger.trust.keys import ED25519, PublicKey, decode_plain_key
from gitledger.trust.wire import WireReader, put_mpint, put_string

__all__ = ["Passphrase", "PrivateKey", "is_private_key_text", "load_private_key", "peek_private_key"]

Passphrase = Callable[[str], bytes | None]
"""Asked with the name of what is locked; returns the passphrase, or None where nobody can be asked."""

MAX_KEY_FILE_BYTES = 64 << 10
_BEGIN = b"-----BEGIN OPENSSH PRIVATE KEY-----"
_END = b"-----END OPENSSH PRIVATE KEY-----"
_MAGIC = b"openssh-key-v1\x00"


def is_private_key_text(text: str) -> bool:
    """Tell whether a text is a private key itself, rather than the path of one."""
    return text.lstrip().startswith("-----BEGIN ") and "PRIVATE KEY-----" in text


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateKey:
    """A private key held in memory; its representation shows the public half only."""

    public: PublicKey
    algorithm: str
    _material: Any

    def __repr__(self) -> str:
        return f"PrivateKey({self.public.fingerprint})"

    def sign(self, message: bytes) -> bytes:
        """Return the wire blob of a signature over `message`."""
        return put_string(self.algorithm) + put_string(_raw_signature(self.public, self._material, message))


@dataclass(frozen=True, slots=True, kw_only=True)
class Peek:
    """What an OpenSSH private key file says of itself without a passphrase."""

    public: PublicKey
    is_encrypted: bool


def peek_private_key(data: bytes) -> Peek | None:
    """Return the public half of an OpenSSH private key file, or None where the file is of another format.

    Raises `DecodeError` where its key is one that may not sign (`weak-key`) or the file is damaged.
    """
    body = _openssh_body(data)
    if body is None:
        return None
    reader = WireReader(body, "private key")
    if reader.take(len(_MAGIC)) != _MAGIC:
        return None
    cipher = reader.string()
    reader.string()
    reader.string()
    if reader.uint32() != 1:
        return None
    return Peek(public=decode_plain_key(reader.string()), is_encrypted=cipher != b"none")


def _openssh_body(data: bytes) -> bytes | None:
    _, begin, rest = data.partition(_BEGIN)
    text, end, _ = rest.partition(_END)
    if not begin or not end:
        return None
    try:
        return base64.b64decode(text)
    except binascii.Error as error:
        raise DecodeError("malformed", "private key: not base64") from error


def load_private_key(data: bytes, *, where: str, passphrase: Passphrase | None = None) -> PrivateKey:
    """Return the key that a private key file holds; `where` names the file in errors.

    The passphrase is asked for once, and only if there is one. Raises `TrustError`: `key-unreadable`,
    `key-refused`, `passphrase-needed`, `passphrase-wrong`.
    """
    data = data.replace(b"\r\n", b"\n").strip() + b"\n"  # a secret that went through a web form
    usual = _usual(data)
    if usual is not None:
        return usual
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of deprecated kinds of key, which are refused here anyhow
        return _wrap(_unlock(data, where, passphrase), where)


def _usual(data: bytes) -> PrivateKey | None:
    """Return the Ed25519 key of an OpenSSH file without a passphrase; None for any other, damaged ones as well.

    Nearly everyone signs with such a key, and the library that reads the others loads all that it knows of keys
    first, 8 ms. The layout is that of OpenSSH's PROTOCOL.key. What it says is not believed: the public half is
    made anew from the private one.
    """
    try:
        body = _openssh_body(data)
        if body is None or not body.startswith(_MAGIC):
            return None
        file = WireReader(body[len(_MAGIC) :], "private key")
        lock = (file.string(), file.string(), file.string(), file.uint32())
        blob, secret = file.string(), file.string()
        file.done()
        halves = WireReader(secret, "private key")
        checks = halves.uint32(), halves.uint32()
        kind, public, private, _ = (halves.string() for _ in range(4))
        padding = halves.take(len(secret) - halves.position)
        if lock != (b"none", b"none", b"", 1) or checks[0] != checks[1] or kind != ED25519.encode():
            return None
        if len(private) != 64 or padding != bytes(range(1, 1 + len(padding))) or len(secret) % 8:
            return None
        key = decode_plain_key(blob)
    except DecodeError:
        return None

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    material = Ed25519PrivateKey.from_private_bytes(private[:32])
    made = material.public_key().public_bytes_raw()
    if not made == public == private[32:] or key.blob != put_string(ED25519) + put_string(made):
        return None
    return PrivateKey(public=key, algorithm=ED25519, _material=material)


def _unlock(data: bytes, where: str, passphrase: Passphrase | None) -> Any:
    material = _load(data, where, None)
    if material is None:
        secret = passphrase(where) if passphrase else None
        if secret is None:
            raise TrustError(
                "passphrase-needed",
                f"{where} is locked by a passphrase",
                "hand over a key without one, or load it into an agent",
            )
        material = _load(data, where, secret)
        if material is None:
            raise TrustError("passphrase-wrong", f"the passphrase does not unlock {where}", f"ssh-add {where}")
    return material


def _load(data: bytes, where: str, secret: bytes | None) -> Any:
    """Return the loaded key, or None where it is locked and `secret` does not open it."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    is_openssh = _BEGIN in data
    load = serialization.load_ssh_private_key if is_openssh else serialization.load_pem_private_key
    try:
        return load(data, secret)
    except TypeError:  # "Password was not given but private key is encrypted"
        return None
    except UnsupportedAlgorithm as error:
        raise TrustError("key-refused", f"{where}: {error}", _USE_ED25519) from error
    except (
        Exception
    ) as error:  # on damaged files the parser fails with NotImplementedError, AssertionError and more
        if secret is not None or _says_locked(data):
            return None
        raise TrustError(
            "key-unreadable", f"{where} is not a private key that can be read: {error}", _CHECK.format(where)
        ) from error


_USE_ED25519 = "make one with `ssh-keygen -t ed25519`"
_CHECK = "ssh-keygen -y -f {}"


def _says_locked(data: bytes) -> bool:
    return b"ENCRYPTED" in data.partition(b"\n\n")[0]


def _wrap(material: Any, where: str) -> PrivateKey:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    try:
        line = material.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii")
        public = parse_key_line(line)
    except (DecodeError, ValueError, AttributeError) as error:
        text = error.message if isinstance(error, DecodeError) else "a kind of key that can't sign records"
        raise TrustError("key-refused", f"{where}: {text}", _USE_ED25519) from error
    algorithm = "rsa-sha2-512" if public.algorithm == "ssh-rsa" else public.algorithm
    return PrivateKey(public=public, algorithm=algorithm, _material=material)


def _raw_signature(public: PublicKey, material: Any, message: bytes) -> bytes:
    if public.algorithm == "ssh-ed25519":
        return bytes(material.sign(message))
    from cryptography.hazmat.primitives import hashes

    if public.algorithm == "ssh-rsa":
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

        return bytes(material.sign(message, PKCS1v15(), hashes.SHA512()))
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    by_size: dict[int, Any] = {256: hashes.SHA256, 384: hashes.SHA384, 521: hashes.SHA512}
    r, s = decode_dss_signature(material.sign(message, ECDSA(by_size[material.key_size]())))
    return put_mpint(r) + put_mpint(s)
