"""OpenSSH certificates as signing keys (openssh-portable, PROTOCOL.certkeys)."""

from __future__ import annotations

import base64
from datetime import datetime
from functools import lru_cache

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.trust.keys import (
    KEY_TYPES,
    PublicKey,
    SignatureFacts,
    check_signature,
    decode_key_text,
    decode_plain_key,
    take_key_fields,
    weak,
)
from gitledger.trust.wire import WireReader, malformed

__all__ = ["Certificate", "decode_key", "parse_key_line"]

_SUFFIX = "-cert-v01@openssh.com"
_USER = 1
_MAX_PRINCIPALS = 256  # sshkey.h, SSHKEY_CERT_MAX_PRINCIPALS
_CA_RSA_ALGORITHMS = ("rsa-sha2-256", "rsa-sha2-512")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What a certificate authority says of a key; its signature has been checked.

    `valid_after` and `valid_before` are seconds since 1970, the second exclusive, as the certificate has them.
    """

    blob: bytes
    serial: int
    is_user: bool
    key_id: str
    principals: tuple[str, ...]
    valid_after: int
    valid_before: int
    critical_options: tuple[str, ...]
    authority: PublicKey

    @property
    def line(self) -> str:
        """Return `TYPE BASE64`, as a `-cert.pub` file has it."""
        algorithm = WireReader(self.blob, "certificate").name()
        return f"{algorithm} {base64.b64encode(self.blob).decode('ascii')}"

    def vouches_at(self, at: datetime) -> bool:
        """Tell whether it is a user's certificate, in force at `at`, that names principals.

        A critical option ties a certificate to one use (a command, a source address) that is none of ours, and
        unknown ones must be refused; so any of them refuses it. OpenSSH's verifier does not look at them.
        """
        seconds = at.timestamp()
        in_force = self.valid_after <= seconds < self.valid_before
        return self.is_user and in_force and bool(self.principals) and not self.critical_options


def decode_key(blob: bytes) -> PublicKey:
    """Return the key that a wire blob spells, plain or inside a certificate; raises `DecodeError`.

    The certificate authority's signature is checked; whether anybody trusts that authority is not.
    """
    algorithm = WireReader(blob, "public key").name()
    return _decode_certificate(blob, algorithm) if algorithm.endswith(_SUFFIX) else decode_plain_key(blob)


def parse_key_line(line: str) -> PublicKey:
    """Return the key of a line `TYPE BASE64 [COMMENT]`, as a `.pub` file has it; raises `DecodeError`."""
    words = line.split(None, 2)
    if len(words) < 2:
        malformed("public key", "expected a type and base64")
    return decode_key(decode_key_text(words[0], words[1]))


def plain_algorithm(certificate_algorithm: str) -> str:
    """Return the key type that a certificate type wraps; raises `DecodeError` for one that may not sign."""
    stem = certificate_algorithm.removesuffix(_SUFFIX)
    plain = f"{stem}@openssh.com" if stem.startswith("sk-") else stem
    if plain == "ssh-dss":
        raise weak("certificate: DSA keys are refused")
    if plain not in KEY_TYPES:
        malformed("certificate", f"unknown type {certificate_algorithm[:60]!r}")
    return plain


@lru_cache(maxsize=256)
def _decode_certificate(blob: bytes, algorithm: str) -> PublicKey:
    reader = WireReader(blob, "certificate")
    reader.name()
    reader.string()  # the nonce
    plain = decode_plain_key(take_key_fields(reader, plain_algorithm(algorithm)))
    serial, kind, key_id = reader.uint64(), reader.uint32(), reader.text()
    principals = _principals(reader.string())
    valid_after, valid_before = reader.uint64(), reader.uint64()
    critical = _option_names(reader.string())
    _option_names(reader.string())
    if reader.string():
        malformed("certificate", "the reserved field is not empty")
    authority = decode_plain_key(reader.string())  # plain: a chain of certificates is not read
    signed = blob[: reader.position]
    signature = reader.string()
    reader.done()
    if kind not in (_USER, 2):
        malformed("certificate", "neither for a user nor for a host")
    _check_authority(authority, signed, signature)
    certificate = Certificate(
        blob=blob,
        serial=serial,
        is_user=kind == _USER,
        key_id=key_id,
        principals=principals,
        valid_after=valid_after,
        valid_before=valid_before,
        critical_options=critical,
        authority=authority,
    )
    return PublicKey(blob=plain.blob, algorithm=plain.algorithm, certificate=certificate)


def _check_authority(authority: PublicKey, signed: bytes, signature: bytes) -> SignatureFacts:
    try:
        return check_signature(authority, signed, signature, rsa_algorithms=_CA_RSA_ALGORITHMS)
    except DecodeError as error:
        raise DecodeError(error.code, f"certificate: its authority's {error.message}", error.hint) from error


def _principals(raw: bytes) -> tuple[str, ...]:
    reader = WireReader(raw, "certificate principals")
    names: list[str] = []
    while not reader.is_done:
        names.append(reader.text())
        if len(names) > _MAX_PRINCIPALS:
            malformed("certificate", f"more than {_MAX_PRINCIPALS} principals")
    return tuple(names)


def _option_names(raw: bytes) -> tuple[str, ...]:
    reader = WireReader(raw, "certificate options")
    names = []
    while not reader.is_done:
        names.append(reader.text())
        reader.string()
    return tuple(names)
