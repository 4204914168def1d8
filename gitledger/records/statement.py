"""The in-toto statement inside an envelope: raw bytes, and a parsed view beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.records.decode import Reader, fail, load_json
from gitledger.records.envelope import record_id
from gitledger.records.ids import CommitId, KeyFingerprint, RecordId, TreeId, key_fingerprint, object_id
from gitledger.records.limits import MAX_PAYLOAD_BYTES

__all__ = [
    "CAPABILITY",
    "IMPORTED",
    "MERGED_RECEIPT",
    "REVOCATION",
    "SHARD_RECEIPT",
    "STATEMENT_TYPE",
    "SignerClaim",
    "Statement",
    "Subject",
    "encode_statement",
    "readable",
]

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
SHARD_RECEIPT = "urn:gitledger:receipt:shard:v1"
MERGED_RECEIPT = "urn:gitledger:receipt:merged:v1"
CAPABILITY = "urn:gitledger:capability:v1"
REVOCATION = "urn:gitledger:revocation:v1"
IMPORTED = "urn:gitledger:imported:v1"
PREDICATE_TYPES = frozenset({SHARD_RECEIPT, MERGED_RECEIPT, CAPABILITY, REVOCATION, IMPORTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The commit that a record is about, by both of its digests."""

    commit: CommitId
    tree: TreeId


@dataclass(frozen=True, slots=True, kw_only=True)
class SignerClaim:
    """Who the payload says signed it; only a verified signature makes it more than a claim."""

    user: str
    key_fingerprint: KeyFingerprint
    algorithm: str
    backend: str

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "algorithm": self.algorithm,
            "backend": self.backend,
            "key_fingerprint": self.key_fingerprint,
            "user": self.user,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement as it was signed (`raw`), its subject, type, and claimed signer.

    `predicate` is a strict reader over the parsed view; the room that knows the type decodes it further.
    """

    raw: bytes
    subject: Subject
    predicate_type: str
    predicate: Reader
    signer: SignerClaim | None

    @property
    def id(self) -> RecordId:
        """The record's id: SHA-256 of the raw bytes."""
        return record_id(self.raw)

    @classmethod
    def decode(cls, raw: bytes) -> Statement:
        """Return the statement that payload bytes spell; raises `DecodeError` naming the field's path."""
        reader = Reader(load_json(raw, limit=MAX_PAYLOAD_BYTES))
        if reader.text("_type") != STATEMENT_TYPE:
            fail("$._type", f"expected {STATEMENT_TYPE}")
        subjects = reader.children("subject", limit=1)
        if len(subjects) != 1:
            fail("$.subject", "expected exactly one subject")
        digests = subjects[0].child("digest")
        subject = Subject(
            commit=CommitId(digests.parsed("gitCommit", object_id)),
            tree=TreeId(digests.parsed("gitTree", object_id)),
        )
        if len(subject.commit) != len(subject.tree):
            fail(digests.path, "commit and tree are of different object formats")
        predicate_type = reader.text("predicateType")
        if predicate_type not in PREDICATE_TYPES:
            fail("$.predicateType", "unknown type or major version; a newer git-ledger may read it")
        predicate = reader.child("predicate")
        return cls(
            raw=raw,
            subject=subject,
            predicate_type=predicate_type,
            predicate=predicate,
            signer=_signer(predicate),
        )


def _signer(predicate: Reader) -> SignerClaim | None:
    predicate.raw("signer")
    claim = predicate.opt_child("signer")
    if claim is None:
        return None
    return SignerClaim(
        user=claim.text("user"),
        key_fingerprint=claim.parsed("key_fingerprint", key_fingerprint),
        algorithm=claim.text("algorithm"),
        backend=claim.text("backend"),
    )


def encode_statement(*, subject: Subject, predicate_type: str, predicate: dict[str, Any]) -> bytes:
    """Return payload bytes: sorted keys, no white space, ASCII; signed and stored as they are, never redone.

    Raises `DecodeError` `record-too-large` where readers would refuse the size.
    """
    document = {
        "_type": STATEMENT_TYPE,
        "predicate": predicate,
        "predicateType": predicate_type,
        "subject": [{"digest": {"gitCommit": subject.commit, "gitTree": subject.tree}, "name": "commit"}],
    }
    raw = json.dumps(document, separators=(",", ":"), sort_keys=True, allow_nan=False).encode("ascii")
    if len(raw) > MAX_PAYLOAD_BYTES:
        raise DecodeError(
            "record-too-large",
            f"a payload of {len(raw)} bytes exceeds the limit of {MAX_PAYLOAD_BYTES}",
            "declare fewer paths, or split the shard",
        )
    return raw


def readable(raw: bytes, decode: Callable[[Statement], object]) -> bytes:
    """Return a payload that its own decoder accepts: what we sign, every reader can read.

    A record that a trusted key signed and nobody can decode would block its commit for good, so it is refused
    before it is signed, by `DecodeError` `record-unreadable` with the field's path.
    """
    try:
        decode(Statement.decode(raw))
    except DecodeError as error:
        raise DecodeError("record-unreadable", f"no reader would accept this record: {error.message}") from error
    return raw
