"""Opened records sorted by what they claim. Nothing gets here whose signature was not checked first.

Two lines may be the same record: a key can sign a payload twice, and anyone can wrap somebody's signature into
another certificate of the same key. So lines that differ are all kept, and a record counts if any of its lines
does; whoever dropped "the duplicate" here could be made to drop the good one.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING

from gitledger.dataclass import dataclass, replace
from gitledger.errors import DecodeError
from gitledger.records.decode import Reader, fail, load_json
from gitledger.records.envelope import decode_line
from gitledger.records.ids import CommitId, KeyFingerprint, RecordId, TreeId
from gitledger.records.limits import MAX_PAYLOAD_BYTES
from gitledger.records.merged import MergedReceipt
from gitledger.records.outcomes import Outcome
from gitledger.records.receipt import ShardReceipt
from gitledger.records.revocation import Revocation
from gitledger.records.statement import CAPABILITY, IMPORTED, MERGED_RECEIPT, REVOCATION, SHARD_RECEIPT, Subject
from gitledger.trust.keys import PublicKey
from gitledger.trust.verified import Rejected, Unsigned, Verified

__all__ = [
    "Evidence",
    "Held",
    "HeldMerged",
    "HeldReport",
    "HeldRevocation",
    "Opened",
    "Undecodable",
    "sort_records",
]

if TYPE_CHECKING:
    from gitledger.records.capability import CapabilityReport

Opened = Verified | Unsigned


class _About:
    """What every opened record has: a subject, as its signed statement names it."""

    __slots__ = ()
    opened: Opened

    @property
    def subject(self) -> Subject:
        """What it is about."""
        return self.opened.statement.subject


@dataclass(frozen=True, slots=True)
class Held(_About):
    """One shard receipt, with the signature that it came under."""

    opened: Opened
    receipt: ShardReceipt
    id: RecordId
    key: KeyFingerprint | None

    @property
    def commit(self) -> CommitId:
        """The commit that it was recorded on."""
        return self.receipt.repo.commit

    @property
    def started_at(self) -> datetime:
        """When the run started, by its signer's clock."""
        return self.receipt.session.started_at

    @property
    def ended_at(self) -> datetime:
        """When the run ended, by its signer's clock."""
        return self.receipt.session.ended_at

    @property
    def is_green(self) -> bool:
        """Tell whether the run passed."""
        return self.receipt.outcome is Outcome.PASSED

    @property
    def has_bad_tests(self) -> bool:
        """Tell whether a test of it failed or erred."""
        return self.receipt.counts.failed + self.receipt.counts.error > 0


@dataclass(frozen=True, slots=True)
class HeldMerged(_About):
    """One merged receipt, with the signature that it came under."""

    opened: Opened
    receipt: MergedReceipt
    id: RecordId
    key: KeyFingerprint | None


@dataclass(frozen=True, slots=True)
class HeldRevocation(_About):
    """One revocation, with the signature that it came under."""

    opened: Opened
    revocation: Revocation
    id: RecordId
    key: KeyFingerprint | None


@dataclass(frozen=True, slots=True)
class HeldReport(_About):
    """One capability report, with the signature that it came under."""

    opened: Opened
    report: CapabilityReport
    id: RecordId
    key: KeyFingerprint | None


@dataclass(frozen=True, slots=True)
class Undecodable:
    """A record whose signature is good and whose payload can't be read: what a trusted key signed so blocks.

    `key` is None for an unsigned one, which blocks nobody. `commit` is what it seems to be about, as far as that
    can be read; what is about another commit than the one it stands on was pasted there.
    """

    id: RecordId
    key: PublicKey | None
    detail: str
    commit: CommitId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Records by kind. `rejected`, `foreign` and `misplaced` never count; they are only reported."""

    shards: tuple[Held, ...] = ()
    merged: tuple[HeldMerged, ...] = ()
    revocations: tuple[HeldRevocation, ...] = ()
    reports: tuple[HeldReport, ...] = ()
    undecodable: tuple[Undecodable, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    foreign: tuple[RecordId, ...] = ()
    misplaced: tuple[RecordId, ...] = ()
    home: tuple[CommitId, TreeId] | None = field(default=None, compare=False, repr=False)
    """Where it was placed: all of it is about this commit and tree. `placed` says so, and nobody else."""

    def placed(self, commit: CommitId, tree: TreeId) -> Evidence:
        """Return the same evidence with whatever is not about this very commit and tree set apart.

        Place proves nothing (DESIGN section 2, law 4).
        """
        if self.home == (commit, tree):
            return self
        subject = Subject(commit=commit, tree=tree)
        strays = [item.id for item in self.shards if item.subject != subject]
        strays += [item.id for item in self.merged if item.subject != subject]
        strays += [item.id for item in self.revocations if item.subject != subject]
        strays += [item.id for item in self.reports if item.subject != subject]
        strays += [item.id for item in self.undecodable if item.commit not in (None, commit)]
        if not strays:
            return replace(self, home=(commit, tree))
        return replace(
            self,
            home=(commit, tree),
            shards=tuple(item for item in self.shards if item.subject == subject),
            merged=tuple(item for item in self.merged if item.subject == subject),
            revocations=tuple(item for item in self.revocations if item.subject == subject),
            reports=tuple(item for item in self.reports if item.subject == subject),
            undecodable=tuple(item for item in self.undecodable if item.commit in (None, commit)),
            misplaced=(*self.misplaced, *strays),
        )


@dataclass(slots=True)
class _Piles:
    shards: list[Held] = field(default_factory=list)
    merged: list[HeldMerged] = field(default_factory=list)
    revocations: list[HeldRevocation] = field(default_factory=list)
    reports: list[HeldReport] = field(default_factory=list)
    undecodable: list[Undecodable] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    foreign: list[RecordId] = field(default_factory=list)

    def freeze(self) -> Evidence:
        return Evidence(
            shards=tuple(self.shards),
            merged=tuple(self.merged),
            revocations=tuple(self.revocations),
            reports=tuple(self.reports),
            undecodable=tuple(self.undecodable),
            rejected=tuple(self.rejected),
            foreign=tuple(self.foreign),
        )


def sort_records(opened: Iterable[Opened | Rejected], *, repository: str) -> Evidence:
    """Return the records of `repository` by kind; those of another repository are set apart as foreign.

    A line that is read from two refs is one; see the module's docstring for lines that differ.
    """
    piles = _Piles()
    for item in {item.line: item for item in opened}.values():
        if isinstance(item, Rejected):
            _reject(item, piles, repository)
        else:
            _place(item, piles, repository)
    return piles.freeze()


def _reject(item: Rejected, piles: _Piles, repository: str) -> None:
    """File a rejected line; one that a key really signed and nobody can read is undecodable."""
    if item.reason != "undecodable" or item.key is None or item.record is None:
        piles.rejected.append(item)
        return
    claimed, commit = _peek(decode_line(item.line).payload)
    if claimed not in (None, repository):
        piles.foreign.append(item.record)
        return
    piles.undecodable.append(Undecodable(item.record, item.key, item.detail, commit))


def _place(item: Opened, piles: _Piles, repository: str) -> None:
    record = item.envelope.id
    key = item.key.fingerprint if isinstance(item, Verified) else None
    kind = item.statement.predicate_type
    if kind == IMPORTED:
        return  # history of another tool is no evidence
    if _text(item.statement.predicate, "repository") not in (None, repository):
        piles.foreign.append(record)
        return
    try:
        if kind == SHARD_RECEIPT:
            piles.shards.append(Held(item, ShardReceipt.decode(item.statement), record, key))
        elif kind == MERGED_RECEIPT:
            piles.merged.append(HeldMerged(item, MergedReceipt.decode(item.statement), record, key))
        elif kind == REVOCATION:
            piles.revocations.append(HeldRevocation(item, Revocation.decode(item.statement), record, key))
        elif kind == CAPABILITY:
            from gitledger.records.capability_record import (
                CapabilityRecord,  # lanes alone need it, and it is large
            )

            piles.reports.append(HeldReport(item, CapabilityRecord.decode(item.statement).report, record, key))
        else:
            fail("$.predicateType", f"{kind} is not known here")
    except DecodeError as error:
        signed_by = item.key if isinstance(item, Verified) else None
        commit = item.statement.subject.commit
        piles.undecodable.append(Undecodable(record, signed_by, error.message, commit))


def _peek(payload: bytes) -> tuple[str | None, CommitId | None]:
    """Return the repository and commit that a signed payload names, each None where it can't be told.

    It may be anything at all; but whoever pastes a record elsewhere can't change what its key signed.
    """
    try:
        reader = Reader(load_json(payload, limit=MAX_PAYLOAD_BYTES))
    except DecodeError:
        return None, None
    repository = commit = None
    with suppress(DecodeError):
        repository = _text(reader.child("predicate"), "repository")
    with suppress(DecodeError):
        for subject in reader.children("subject", limit=1):
            commit = _text(subject.child("digest"), "gitCommit")
    return repository, None if commit is None else CommitId(commit)


def _text(reader: Reader, name: str) -> str | None:
    try:
        return reader.text(name)
    except DecodeError:
        return None
