"""A capability report as it is signed and stored, on the commit that it ran on."""

from __future__ import annotations

from gitledger.dataclass import dataclass
from gitledger.records.capability import CapabilityReport
from gitledger.records.decode import fail
from gitledger.records.statement import (
    CAPABILITY,
    SignerClaim,
    Statement,
    Subject,
    encode_statement,
    readable,
)

__all__ = ["CapabilityRecord"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityRecord:
    """A report, in which repository, and who says so."""

    repository: str
    report: CapabilityReport
    signer: SignerClaim | None

    @property
    def subject(self) -> Subject:
        """The commit that it is about."""
        return Subject(commit=self.report.repo.commit, tree=self.report.repo.tree)

    def encode(self) -> bytes:
        """Return the payload to be signed; raises `DecodeError` where readers would refuse it."""
        predicate = {
            "record_version": 1,
            "report": self.report.fields(),
            "repository": self.repository,
            "signer": self.signer.encode() if self.signer else None,
        }
        raw = encode_statement(subject=self.subject, predicate_type=CAPABILITY, predicate=predicate)
        return readable(raw, CapabilityRecord.decode)

    @classmethod
    def decode(cls, statement: Statement) -> CapabilityRecord:
        """Return the record that a statement holds; raises `DecodeError` naming the field's path.

        The report must be about the statement's subject.
        """
        reader = statement.predicate
        if statement.predicate_type != CAPABILITY:
            fail("$.predicateType", "not a capability report")
        reader.integer("record_version", low=1, high=1)
        record = cls(
            repository=reader.text("repository"),
            report=CapabilityReport.decode(reader.raw("report"), f"{reader.path}.report"),
            signer=statement.signer,
        )
        if record.subject != statement.subject:
            fail(f"{reader.path}.report.repo", "commit and tree are not the subject's")
        return record
