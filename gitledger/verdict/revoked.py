"""Which records are revoked. Revocation only ever turns green into red (DESIGN section 4)."""

from __future__ import annotations

from collections.abc import Iterable

from gitledger.records.ids import CommitId, KeyFingerprint, RecordId
from gitledger.trust.verify import Verified
from gitledger.verdict.acceptance import Signatories
from gitledger.verdict.evidence import Evidence, HeldRevocation

__all__ = ["revoked_records"]


def revoked_records(evidence: Iterable[Evidence], signatories: Signatories) -> frozenset[RecordId]:
    """Return the ids of records that a revocation on the same commit names.

    A revocation counts when made by the record's own key or by one of policy's `revokers`; its own time is not
    asked, since it can only take away.
    """
    found: set[RecordId] = set()
    for pile in evidence:
        if not pile.revocations:
            continue
        owners = _owners(pile)
        for held in pile.revocations:
            if held.key is None:
                continue
            record = (held.revocation.record, held.revocation.subject.commit)
            if held.key in owners.get(record, set()) or _is_revoker(held, signatories):
                found.add(held.revocation.record)
    return frozenset(found)


def _owners(pile: Evidence) -> dict[tuple[RecordId, CommitId], set[KeyFingerprint | None]]:
    owners: dict[tuple[RecordId, CommitId], set[KeyFingerprint | None]] = {}
    for shard in pile.shards:
        owners.setdefault((shard.id, shard.receipt.repo.commit), set()).add(shard.key)
    for merged in pile.merged:
        owners.setdefault((merged.id, merged.receipt.repo.commit), set()).add(merged.key)
    return owners


def _is_revoker(held: HeldRevocation, signatories: Signatories) -> bool:
    if not isinstance(held.opened, Verified) or signatories.signers.is_revoked(held.opened.key):
        return False
    names = signatories.signers.principals(held.opened.key, signatories.now)
    return bool(names & frozenset(signatories.policy.revokers))
