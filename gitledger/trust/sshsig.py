"""The SSHSIG signature blob, its armour, and what it signs (openssh-portable, PROTOCOL.sshsig)."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Collection
from functools import lru_cache

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.records.envelope import SIGNATURE_NAMESPACE
from gitledger.records.limits import MAX_SIGNATURE_BYTES
from gitledger.trust.wire import WireReader, malformed, put_string, put_uint32

__all__ = ["SshSig", "armor", "dearmor", "signed_data"]

_MAGIC = b"SSHSIG"
_VERSION = 1
_BEGIN = "-----BEGIN SSH SIGNATURE-----"
_END = "-----END SSH SIGNATURE-----"
_HASHES = {"sha256": hashlib.sha256, "sha512": hashlib.sha512}


def signed_data(message: bytes, *, namespace: str = SIGNATURE_NAMESPACE, hash_name: str = "sha512") -> bytes:
    """Return the bytes that the key itself signs: the message enters as a hash, bound to its namespace."""
    hashed = _HASHES[hash_name](message).digest()
    return _signed_head(namespace, hash_name) + put_string(hashed)


@lru_cache(maxsize=64)
def _signed_head(namespace: str, hash_name: str) -> bytes:
    return _MAGIC + put_string(namespace) + put_string(b"") + put_string(hash_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSig:
    """One signature: the public key's (or certificate's) wire blob, and the signature's own wire blob."""

    public_key: bytes
    namespace: str
    hash_name: str
    signature: bytes

    def encode(self) -> bytes:
        """Return the blob."""
        return (
            _MAGIC
            + put_uint32(_VERSION)
            + put_string(self.public_key)
            + put_string(self.namespace)
            + put_string(b"")
            + put_string(self.hash_name)
            + put_string(self.signature)
        )

    @classmethod
    def decode(cls, blob: bytes, *, hashes: Collection[str] = ("sha512",)) -> SshSig:
        """Return the signature that `blob` spells; raises `DecodeError`.

        `hashes` are the message hashes that the caller accepts. The reserved field must be empty: the
        specification lets readers ignore it, but then a blob would have many spellings.
        """
        if len(blob) > MAX_SIGNATURE_BYTES:
            malformed("signature", f"{len(blob)} bytes, more than the limit of {MAX_SIGNATURE_BYTES}")
        reader = WireReader(blob, "signature")
        if reader.take(len(_MAGIC)) != _MAGIC:
            malformed("signature", "not an SSHSIG blob")
        if reader.uint32() != _VERSION:
            malformed("signature", "an unknown SSHSIG version")
        public_key = reader.string()
        namespace = reader.name()
        if not namespace:
            malformed("signature", "an empty namespace")
        if reader.string():
            malformed("signature", "the reserved field is not empty")
        hash_name = reader.name()
        if hash_name not in _HASHES or hash_name not in hashes:
            raise DecodeError("weak-key", f"signature: message hash {hash_name[:40]!r} is not accepted")
        signature = reader.string()
        reader.done()
        return cls(public_key=public_key, namespace=namespace, hash_name=hash_name, signature=signature)


def armor(blob: bytes) -> str:
    """Return the armoured text of a blob as `ssh-keygen -Y verify` reads it, 70 columns wide."""
    text = base64.b64encode(blob).decode("ascii")
    rows = [text[i : i + 70] for i in range(0, len(text), 70)]
    return "\n".join([_BEGIN, *rows, _END, ""])


def dearmor(text: str) -> bytes:
    """Return the blob inside armoured text; raises `DecodeError`."""
    rows = text.strip().splitlines()
    if len(rows) < 3 or rows[0].strip() != _BEGIN or rows[-1].strip() != _END:
        malformed("signature", "not an armoured SSH signature")
    try:
        return base64.b64decode("".join(row.strip() for row in rows[1:-1]).encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise DecodeError("malformed", "signature: the armour holds other than base64") from error
