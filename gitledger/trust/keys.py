"""Public keys and their signatures, verified in process (RFC 4253, 5656, 8332, 8709; PROTOCOL.u2f).

Ed25519, ECDSA on the three NIST curves, RSA of 2048 bits and more, and both FIDO kinds. DSA, SHA-1 and shorter RSA
keys are refused as `weak-key`; so are, as malformed, the `webauthn-` signatures that OpenSSH also takes from
browsers, since no tool that signs records makes them.

`cryptography` is imported where a key is first loaded: 34 ms that no command without signatures should pay.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Collection
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.records.ids import KeyFingerprint
from gitledger.trust.wire import WireReader, malformed, put_string

if TYPE_CHECKING:
    from gitledger.trust.certificates import Certificate

__all__ = [
    "ED25519",
    "KEY_TYPES",
    "PublicKey",
    "SignatureFacts",
    "check_signature",
    "decode_plain_key",
    "fingerprint_of",
    "take_key_fields",
    "weak",
]

ED25519 = "ssh-ed25519"
_ED25519_BLOB_BYTES = len(put_string(ED25519)) + len(put_string(bytes(32)))
RSA = "ssh-rsa"
SK_ED25519 = "sk-ssh-ed25519@openssh.com"
SK_ECDSA = "sk-ecdsa-sha2-nistp256@openssh.com"
_CURVES = {
    # key type: (curve name in the blob, bytes of one coordinate, hash)
    "ecdsa-sha2-nistp256": ("nistp256", 32, "SHA256"),
    "ecdsa-sha2-nistp384": ("nistp384", 48, "SHA384"),
    "ecdsa-sha2-nistp521": ("nistp521", 66, "SHA512"),
}
KEY_TYPES = frozenset({ED25519, RSA, SK_ED25519, SK_ECDSA, *_CURVES})
"""The key types that may sign a record."""
_WEAK_TYPES = frozenset({"ssh-dss", "ssh-dsa"})
MIN_RSA_BITS = 2048
MAX_RSA_BITS = 16384
MAX_RSA_EXPONENT_BITS = 64
_USER_PRESENT = 0x01
_USER_VERIFIED = 0x04


def weak(text: str) -> DecodeError:
    """Return the refusal of a key or algorithm that is no longer safe."""
    return DecodeError("weak-key", text, "use Ed25519: `ssh-keygen -t ed25519`")


@lru_cache(maxsize=1024)
def fingerprint_of(blob: bytes) -> KeyFingerprint:
    """Return the `SHA256:` fingerprint of a plain key's wire blob, as `ssh-keygen -l` prints it."""
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode("ascii")
    return KeyFingerprint("SHA256:" + digest.rstrip("="))


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKey:
    """A key that may sign records.

    `blob` is the plain key's wire encoding, also where the key came inside a certificate; so a key has one
    fingerprint, with a certificate or without.
    """

    blob: bytes
    algorithm: str
    certificate: Certificate | None = None

    @property
    def fingerprint(self) -> KeyFingerprint:
        """Return `SHA256:…` of the plain key."""
        return fingerprint_of(self.blob)

    @property
    def is_fido(self) -> bool:
        """Tell whether a security key holds it, whose signatures say if it was touched."""
        return self.algorithm in (SK_ED25519, SK_ECDSA)

    @property
    def line(self) -> str:
        """Return `TYPE BASE64` of the plain key, as a `.pub` file has it."""
        return f"{self.algorithm} {base64.b64encode(self.blob).decode('ascii')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureFacts:
    """What a good signature says beside that it is good; the last three are None unless the key is a FIDO key."""

    algorithm: str
    touched: bool | None = None
    user_verified: bool | None = None
    counter: int | None = None


@lru_cache(maxsize=1024)
def decode_plain_key(blob: bytes) -> PublicKey:
    """Return the key that a wire blob spells; raises `DecodeError` (`malformed` or `weak-key`).

    The result is usable: lengths, points and moduli have been checked.
    """
    reader = WireReader(blob, "public key")
    algorithm = reader.name()
    take_key_fields(reader, algorithm)
    reader.done()
    if algorithm != ED25519 or len(blob) != _ED25519_BLOB_BYTES:
        _material(blob)  # of Ed25519 any 32 bytes are a key, and what loads one is loaded once it is used
    return PublicKey(blob=blob, algorithm=algorithm)


def take_key_fields(reader: WireReader, algorithm: str) -> bytes:
    """Read the fields of a key, which stand alike in a certificate, and return the plain key's blob."""
    if algorithm in _WEAK_TYPES:
        raise weak("public key: DSA keys are refused")
    if algorithm not in KEY_TYPES:
        malformed("public key", f"unknown key type {algorithm[:60]!r}")
    fields = [reader.string()]
    if algorithm in _CURVES or algorithm in (RSA, SK_ED25519):
        fields.append(reader.string())
    if algorithm == SK_ECDSA:
        fields += [reader.string(), reader.string()]
    return put_string(algorithm) + b"".join(put_string(field) for field in fields)


@lru_cache(maxsize=1024)
def _material(blob: bytes) -> tuple[Any, bytes]:
    """Return the loaded key and, for FIDO keys, the application string."""
    reader = WireReader(blob, "public key")
    algorithm = reader.name()
    try:
        if algorithm in (ED25519, SK_ED25519):
            key: Any = _load_ed25519(reader)
        elif algorithm == RSA:
            key = _load_rsa(reader)
        else:
            key = _load_ecdsa(reader, "ecdsa-sha2-nistp256" if algorithm == SK_ECDSA else algorithm)
    except ValueError as error:
        raise DecodeError("malformed", f"public key: {error}", "git ledger fsck") from error
    application = reader.string() if algorithm in (SK_ED25519, SK_ECDSA) else b""
    reader.done()
    return key, application


def _load_ed25519(reader: WireReader) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    raw = reader.string()
    if len(raw) != 32:
        malformed("public key", f"an Ed25519 key has 32 bytes, not {len(raw)}")
    return Ed25519PublicKey.from_public_bytes(raw)


def _load_rsa(reader: WireReader) -> Any:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

    exponent, modulus = reader.mpint(), reader.mpint()
    if modulus.bit_length() < MIN_RSA_BITS:
        raise weak(f"public key: an RSA key of {modulus.bit_length()} bits is refused, {MIN_RSA_BITS} are needed")
    if modulus.bit_length() > MAX_RSA_BITS or exponent.bit_length() > MAX_RSA_EXPONENT_BITS:
        malformed("public key", "an RSA key out of range")
    return RSAPublicNumbers(exponent, modulus).public_key()


def _load_ecdsa(reader: WireReader, algorithm: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec

    name, size, _ = _CURVES[algorithm]
    curves: dict[str, Any] = {"nistp256": ec.SECP256R1, "nistp384": ec.SECP384R1, "nistp521": ec.SECP521R1}
    if reader.string() != name.encode():
        malformed("public key", "the curve is not the one that the key type names")
    point = reader.string()
    # Compressed points are refused as OpenSSH refuses them: a key has one spelling and one fingerprint.
    if len(point) != 1 + 2 * size or point[0] != 4:
        malformed("public key", "expected an uncompressed point")
    return ec.EllipticCurvePublicKey.from_encoded_point(curves[name](), point)


def check_signature(
    key: PublicKey, message: bytes, signature: bytes, *, rsa_algorithms: Collection[str] = ("rsa-sha2-512",)
) -> SignatureFacts:
    """Return the facts of a good signature by `key` over `message`; raises `DecodeError` for any other.

    The code is `bad-signature` where the mathematics fail, `weak-key` for a refused algorithm, and `malformed`
    where the blob is no signature of such a key. Whether a FIDO key had to be touched is the caller's decision.
    """
    reader = WireReader(signature, "signature")
    algorithm = reader.name()
    expected = tuple(rsa_algorithms) if key.algorithm == RSA else (key.algorithm,)
    if algorithm not in expected:
        if algorithm in ("ssh-rsa", "rsa-sha2-256", "ssh-dss"):
            raise weak(f"signature: {algorithm} is not accepted")
        malformed("signature", f"of type {algorithm[:60]!r} by a key of type {key.algorithm}")
    body = reader.string()
    facts = SignatureFacts(algorithm=algorithm)
    if key.is_fido:
        facts, message = _fido_message(reader, key, message, algorithm)
    reader.done()
    try:
        _verify(key, message, body, algorithm)
    except _invalid_signature():
        raise DecodeError("bad-signature", "the signature does not match the signed bytes") from None
    return facts


@cache
def _invalid_signature() -> type[Exception]:
    from cryptography.exceptions import InvalidSignature

    return InvalidSignature


def _fido_message(
    reader: WireReader, key: PublicKey, message: bytes, algorithm: str
) -> tuple[SignatureFacts, bytes]:
    flags, counter = reader.byte(), reader.take(4)
    facts = SignatureFacts(
        algorithm=algorithm,
        touched=bool(flags & _USER_PRESENT),
        user_verified=bool(flags & _USER_VERIFIED),
        counter=int.from_bytes(counter, "big"),
    )
    application = _material(key.blob)[1]
    signed = hashlib.sha256(application).digest() + bytes([flags]) + counter + hashlib.sha256(message).digest()
    return facts, signed


def _verify(key: PublicKey, message: bytes, body: bytes, algorithm: str) -> None:
    material = _material(key.blob)[0]
    if key.algorithm in (ED25519, SK_ED25519):
        if len(body) != 64:
            malformed("signature", f"an Ed25519 signature has 64 bytes, not {len(body)}")
        material.verify(body, message)
    elif key.algorithm == RSA:
        _verify_rsa(material, message, body, algorithm)
    else:
        _verify_ecdsa(material, message, body, key.algorithm)


def _verify_rsa(material: Any, message: bytes, body: bytes, algorithm: str) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

    size = (material.key_size + 7) // 8
    if len(body) > size:
        malformed("signature", f"an RSA signature of {len(body)} bytes by a key of {size} bytes")
    # Signers that drop leading zeroes exist; OpenSSH puts them back too (ssh-rsa.c).
    hash_type = {"rsa-sha2-512": hashes.SHA512, "rsa-sha2-256": hashes.SHA256}[algorithm]
    material.verify(body.rjust(size, b"\x00"), message, PKCS1v15(), hash_type())


def _verify_ecdsa(material: Any, message: bytes, body: bytes, algorithm: str) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    reader = WireReader(body, "signature")
    r, s = reader.mpint(), reader.mpint()
    reader.done()
    hash_name = _CURVES.get(algorithm, _CURVES["ecdsa-sha2-nistp256"])[2]
    material.verify(encode_dss_signature(r, s), message, ECDSA(getattr(hashes, hash_name)()))


def decode_key_text(algorithm: str, text: str) -> bytes:
    """Return the wire blob in `TYPE BASE64`; raises `DecodeError` where the two disagree."""
    try:
        blob = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise DecodeError("malformed", "public key: not base64") from error
    if WireReader(blob, "public key").name() != algorithm:
        malformed("public key", f"the key is not of the type {algorithm[:60]!r} that stands before it")
    return blob
