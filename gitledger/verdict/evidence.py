"""Opened records sorted by what they claim. Nothing gets here whose signature was not checked first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from gitledger.errors import DecodeError
from gitledger.records.ids import CommitId, KeyFingerprint, RecordId
from gitledger.records.merged import MergedReceipt
from gitledger.records.outcomes import Outcome
from gitledger.records.receipt import ShardReceipt
from gitledger.records.revocation import Revocation
from gitledger.records.statement import CAPABILITY, MERGED_RECEIPT, REVOCATION, SHARD_RECEIPT
from gitledger.trust.verify import Rejected, Unsigned, Verified

__all__ = ["Evidence", "Held", "HeldMerged", "HeldRevocation", "Opened", "Undecodable", "sort_records"]

Opened = Verified | Unsigned


def _key(opened: Opened) -> KeyFingerprint | None:
    return opened.key.fingerprint if isinstance(opened, Verified) else None


@dataclass(frozen=True, slots=True)
class Held:
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
class HeldMerged:
    """One merged receipt, with the signature that it came under."""

    opened: Opened
    receipt: MergedReceipt
    id: RecordId
    key: KeyFingerprint | None


@dataclass(frozen=True, slots=True)
class HeldRevocation:
    """One revocation, with the signature that it came under."""

    opened: Opened
    revocation: Revocation
    id: RecordId
    key: KeyFingerprint | None


@dataclass(frozen=True, slots=True)
class Undecodable:
    """A record whose signature is good and whose predicate can't be read: what a trusted key signed so blocks."""

    opened: Opened
    detail: str
    id: RecordId
    key: KeyFingerprint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Records by kind. `rejected` and `foreign` never count; they are only reported."""

    shards: tuple[Held, ...] = ()
    merged: tuple[HeldMerged, ...] = ()
    revocations: tuple[HeldRevocation, ...] = ()
    undecodable: tuple[Undecodable, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    foreign: tuple[RecordId, ...] = ()


@dataclass(slots=True)
class _Piles:
    shards: list[Held] = field(default_factory=list)
    merged: list[HeldMerged] = field(default_factory=list)
    revocations: list[HeldRevocation] = field(default_factory=list)
    undecodable: list[Undecodable] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    foreign: list[RecordId] = field(default_factory=list)


def sort_records(opened: Iterable[Opened | Rejected], *, repository: str) -> Evidence:
    """Return the records of `repository` by kind; those of another repository are set apart as foreign.

    A record is told apart by (id, key): the same payload signed by two keys is two records, a line read from two
    refs is one.
    """
    piles = _Piles()
    seen: set[tuple[RecordId, KeyFingerprint | None]] = set()
    for item in opened:
        if isinstance(item, Rejected):
            piles.rejected.append(item)
            continue
        identity = (item.envelope.id, _key(item))
        if identity not in seen:
            seen.add(identity)
            _place(item, piles, repository)
    return Evidence(
        shards=tuple(piles.shards),
        merged=tuple(piles.merged),
        revocations=tuple(piles.revocations),
        undecodable=tuple(piles.undecodable),
        rejected=tuple(piles.rejected),
        foreign=tuple(piles.foreign),
    )


def _place(item: Opened, piles: _Piles, repository: str) -> None:
    record, key = item.envelope.id, _key(item)
    try:
        if item.statement.predicate_type == SHARD_RECEIPT:
            receipt = ShardReceipt.decode(item.statement)
            if receipt.repository == repository:
                piles.shards.append(Held(item, receipt, record, key))
                return
        elif item.statement.predicate_type == MERGED_RECEIPT:
            merged = MergedReceipt.decode(item.statement)
            if merged.repository == repository:
                piles.merged.append(HeldMerged(item, merged, record, key))
                return
        elif item.statement.predicate_type == REVOCATION:
            revocation = Revocation.decode(item.statement)
            if revocation.repository == repository:
                piles.revocations.append(HeldRevocation(item, revocation, record, key))
                return
        elif item.statement.predicate_type == CAPABILITY:
            return  # judged by the lanes' release check, not here
        piles.foreign.append(record)
    except DecodeError as error:
        piles.undecodable.append(Undecodable(item, error.message, record, key))
