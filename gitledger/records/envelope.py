"""The DSSE envelope of one record, as one line of JSON (DESIGN section 3).

The signature covers the pre-authentication encoding of the very payload bytes that are stored; nothing is ever
re-encoded. `sig` holds the base64 of an SSHSIG blob, that is, the text between the armour lines that
`ssh-keygen -Y verify` reads.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import NoReturn

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.records.decode import Reader, decode_base64, fail, load_json
from gitledger.records.ids import KeyFingerprint, RecordId, key_fingerprint
from gitledger.records.limits import MAX_LINE_BYTES, MAX_PAYLOAD_BYTES, MAX_SIGNATURE_BYTES

__all__ = ["PAYLOAD_TYPE", "SIGNATURE_NAMESPACE", "Envelope", "Signature", "decode_line", "pae", "record_id"]

PAYLOAD_TYPE = "application/vnd.in-toto+json"
SIGNATURE_NAMESPACE = "gitledger"
"""The SSHSIG namespace of every record."""


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding: what is signed (DSSE 1.0.2, protocol.md).

    Lengths count bytes, not characters.
    """
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def record_id(payload: bytes) -> RecordId:
    """Return the id of the record that `payload` is: its SHA-256."""
    return RecordId(hashlib.sha256(payload).hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One signature: an SSHSIG blob and, as a hint only, the fingerprint of the key that made it."""

    keyid: KeyFingerprint
    blob: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A payload and its one signature, or none (an unsigned record)."""

    payload: bytes
    signature: Signature | None

    @property
    def id(self) -> RecordId:
        """The record's id."""
        return record_id(self.payload)

    def signed_bytes(self) -> bytes:
        """Return what the signature covers."""
        return pae(PAYLOAD_TYPE, self.payload)

    def encode(self) -> bytes:
        """Return the record's line, without newline: one spelling per envelope.

        Raises `DecodeError` where the result would exceed the limits that readers enforce.
        """
        entries = []
        if self.signature is not None:
            sig = base64.b64encode(self.signature.blob).decode("ascii")
            entries.append({"keyid": self.signature.keyid, "sig": sig})
        document = {
            "payload": base64.b64encode(self.payload).decode("ascii"),
            "payloadType": PAYLOAD_TYPE,
            "signatures": entries,
        }
        line = json.dumps(document, separators=(",", ":"), sort_keys=True).encode("ascii")
        sig_bytes = len(self.signature.blob) if self.signature else 0
        if len(self.payload) > MAX_PAYLOAD_BYTES or len(line) > MAX_LINE_BYTES or sig_bytes > MAX_SIGNATURE_BYTES:
            raise DecodeError(
                "record-too-large",
                f"a record of {len(line)} bytes exceeds the limit of {MAX_LINE_BYTES}",
                "declare fewer paths, or split the shard",
            )
        return line


_LINE = re.compile(
    rb'\A\{"payload":"([^"]*)","payloadType":"%s","signatures":\['
    rb'(?:\{"keyid":"([^"]*)","sig":"([^"]*)"\})?\]\}\Z' % re.escape(PAYLOAD_TYPE.encode("ascii"))
)
"""What `Envelope.encode` writes, to the byte, but for what stands between the quotes."""


def decode_line(line: bytes) -> Envelope:
    """Return the envelope that one line of a note spells; raises `DecodeError`.

    Only the spelling that `Envelope.encode` writes is accepted, so that one envelope has one line and the union
    of two ledgers can compare bytes. Unknown fields and more than one signature are refused: an envelope is
    unsigned around its payload, so whatever else it held could be altered by anyone.
    """
    if len(line) > MAX_LINE_BYTES:
        fail("$", f"{len(line)} bytes, more than the limit of {MAX_LINE_BYTES}")
    match = _LINE.match(line)
    if match is None:
        _fail_spelling(line)
    encoded, keyid, sig = match.groups()
    payload = decode_base64(encoded, "$.payload")
    if len(payload) > MAX_PAYLOAD_BYTES:
        fail("$.payload", f"{len(payload)} bytes, more than the limit of {MAX_PAYLOAD_BYTES}")
    if keyid is None:
        return Envelope(payload=payload, signature=None)
    blob = decode_base64(sig, "$.signatures[0].sig")
    if len(blob) > MAX_SIGNATURE_BYTES:
        fail("$.signatures[0].sig", f"{len(blob)} bytes, more than the limit of {MAX_SIGNATURE_BYTES}")
    try:
        fingerprint = key_fingerprint(keyid.decode("ascii"))
    except ValueError as error:
        raise DecodeError("malformed", f"$.signatures[0].keyid: {error}", "git ledger fsck") from error
    return Envelope(payload=payload, signature=Signature(keyid=fingerprint, blob=blob))


def _fail_spelling(line: bytes) -> NoReturn:
    """Raise what is wrong with a line that is not spelled as we spell envelopes."""
    reader = Reader(load_json(line, limit=MAX_LINE_BYTES))
    if reader.text("payloadType") != PAYLOAD_TYPE:
        fail("$.payloadType", f"expected {PAYLOAD_TYPE}")
    reader.text("payload", limit=MAX_LINE_BYTES)
    for entry in reader.children("signatures", limit=1):
        entry.text("keyid")
        entry.text("sig", limit=MAX_LINE_BYTES)
    fail("$", "the envelope is not in its canonical spelling")
