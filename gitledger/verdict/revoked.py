"""Which records are revoked. Revocation only ever turns green into red (DESIGN section 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from gitledger.records.ids import KeyFingerprint, RecordId
from gitledger.verdict.evidence import Evidence, HeldRevocation, Opened

__all__ = ["revoked_records", "void_revocations"]

IsRevoker = Callable[[Opened, datetime], bool]
"""Tells whether one of policy's revokers signed a record, at the time that it claims."""


def revoked_records(evidence: Iterable[Evidence], is_revoker: IsRevoker) -> frozenset[RecordId]:
    """Return the ids of records that a revocation on the same commit names.

    A revocation counts when made by the record's own key or by one of policy's `revokers`, whenever it was made.
    A revoker's is in force before the record itself arrives.
    """
    found: set[RecordId] = set()
    piles = tuple(evidence)
    for pile in piles:
        owners = _owners(pile) if pile.revocations else {}
        found.update(held.revocation.record for held in pile.revocations if _counts(held, owners, is_revoker))
    return frozenset(found)


def void_revocations(pile: Evidence, is_revoker: IsRevoker) -> tuple[HeldRevocation, ...]:
    """Return the revocations of one commit that are neither by the record's own key nor by a revoker."""
    owners = _owners(pile) if pile.revocations else {}
    return tuple(held for held in pile.revocations if not _counts(held, owners, is_revoker))


_Owners = dict[RecordId, set[KeyFingerprint | None]]


def _counts(held: HeldRevocation, owners: _Owners, is_revoker: IsRevoker) -> bool:
    if held.key is None:
        return False
    own = held.key in owners.get(held.revocation.record, ())
    return own or is_revoker(held.opened, held.revocation.revoked_at)


def _owners(pile: Evidence) -> _Owners:
    owners: _Owners = {}
    for shard in pile.shards:
        owners.setdefault(shard.id, set()).add(shard.key)
    for merged in pile.merged:
        owners.setdefault(merged.id, set()).add(merged.key)
    for report in pile.reports:
        owners.setdefault(report.id, set()).add(report.key)
    return owners
