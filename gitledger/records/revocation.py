"""The revocation of a record: a signed record on the same commit; it only ever turns green into red."""

from __future__ import annotations

from datetime import datetime

from gitledger.dataclass import dataclass
from gitledger.records.decode import fail, format_time
from gitledger.records.ids import RecordId, digest
from gitledger.records.statement import (
    REVOCATION,
    SignerClaim,
    Statement,
    Subject,
    encode_statement,
    readable,
)

__all__ = ["Revocation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """Which record is revoked, why, and when its signer says so."""

    repository: str
    record: RecordId
    reason: str
    revoked_at: datetime
    subject: Subject
    signer: SignerClaim | None

    def encode(self) -> bytes:
        """Return the payload to be signed."""
        predicate = {
            "reason": self.reason,
            "record": self.record,
            "record_version": 1,
            "repository": self.repository,
            "revoked_at": format_time(self.revoked_at),
            "signer": self.signer.encode() if self.signer else None,
        }
        raw = encode_statement(subject=self.subject, predicate_type=REVOCATION, predicate=predicate)
        return readable(raw, Revocation.decode)

    @classmethod
    def decode(cls, statement: Statement) -> Revocation:
        """Return the revocation that a statement holds; raises `DecodeError` naming the field's path."""
        reader = statement.predicate
        if statement.predicate_type != REVOCATION:
            fail("$.predicateType", "not a revocation")
        reader.integer("record_version", low=1, high=1)
        return cls(
            repository=reader.text("repository"),
            record=RecordId(reader.parsed("record", digest)),
            reason=reader.text("reason"),
            revoked_at=reader.time("revoked_at"),
            subject=statement.subject,
            signer=statement.signer,
        )
