"""A receipt of another tool, taken over as history: shown, never carried, never part of a verdict.

What it claims is that tool's claim; the signature is that of whoever imported it, and says no more than that they
saw a file of this digest.
"""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.records.bodies import BodyRef
from gitledger.records.decode import fail, format_time
from gitledger.records.ids import Digest, digest
from gitledger.records.outcomes import Counts, Outcome
from gitledger.records.statement import (
    IMPORTED,
    SignerClaim,
    Statement,
    Subject,
    encode_statement,
    readable,
)

__all__ = ["ImportedReceipt", "Origin"]

_NAMES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The file that was taken over: which tool's, its SHA-256, and who it says signed it (nobody checked that)."""

    tool: str
    tool_version: str | None
    schema: str
    sha256: Digest
    size: int
    signed_by: str | None

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "schema": self.schema,
            "sha256": self.sha256,
            "signed_by": self.signed_by,
            "size": self.size,
            "tool": self.tool,
            "tool_version": self.tool_version,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedReceipt:
    """One run, or several merged ones, as another tool recorded it. `shards` are that tool's names."""

    repository: str
    origin: Origin
    shards: tuple[str, ...]
    outcome: Outcome
    counts: Counts
    dirty: bool
    mode: str
    started_at: datetime
    ended_at: datetime
    imported_at: datetime
    subject: Subject
    signer: SignerClaim | None
    bodies: dict[str, BodyRef] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the payload to be signed."""
        predicate = {
            "bodies": {name: ref.encode() for name, ref in self.bodies.items()},
            "counts": self.counts.encode(),
            "dirty": self.dirty,
            "imported_at": format_time(self.imported_at),
            "mode": self.mode,
            "origin": self.origin.encode(),
            "outcome": self.outcome.value,
            "record_version": 1,
            "repository": self.repository,
            "session": {"ended_at": format_time(self.ended_at), "started_at": format_time(self.started_at)},
            "shards": list(self.shards),
            "signer": self.signer.encode() if self.signer else None,
        }
        raw = encode_statement(subject=self.subject, predicate_type=IMPORTED, predicate=predicate)
        return readable(raw, ImportedReceipt.decode)

    @classmethod
    def decode(cls, statement: Statement) -> ImportedReceipt:
        """Return the imported receipt that a statement holds; raises `DecodeError` naming the field's path."""
        reader, origin = statement.predicate, statement.predicate.child("origin")
        if statement.predicate_type != IMPORTED:
            fail("$.predicateType", "not an imported receipt")
        reader.integer("record_version", low=1, high=1)
        session, bodies = reader.child("session"), reader.child("bodies")
        return cls(
            repository=reader.text("repository"),
            origin=Origin(
                tool=origin.text("tool"),
                tool_version=origin.opt_text("tool_version"),
                schema=origin.text("schema"),
                sha256=Digest(origin.parsed("sha256", digest)),
                size=origin.integer("size"),
                signed_by=origin.opt_text("signed_by"),
            ),
            shards=reader.texts("shards", limit=_NAMES),
            outcome=reader.choice("outcome", Outcome),
            counts=Counts.decode(reader.child("counts")),
            dirty=reader.boolean("dirty"),
            mode=reader.text("mode"),
            started_at=session.time("started_at"),
            ended_at=session.time("ended_at"),
            imported_at=reader.time("imported_at"),
            subject=statement.subject,
            signer=statement.signer,
            bodies={"tests": BodyRef.decode(bodies.child("tests"))} if bodies.has("tests") else {},
        )
