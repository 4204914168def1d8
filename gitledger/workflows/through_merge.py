"""The receipts that a merged receipt names, wherever they lie: a commit may hold the merge and none of them."""

from __future__ import annotations

from gitledger.dataclass import dataclass
from gitledger.records.ids import CommitId, ShardKey
from gitledger.records.merged import MergedReceipt, MergedShard
from gitledger.workflows.browse import RecordEntry, show_commit
from gitledger.workflows.session import Session

__all__ = ["Input", "inputs_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One shard of a merge: its receipt, and the commit that it was recorded on.

    Where the receipt is not here, `entry.claim` is None and `entry.fault` says so.
    """

    key: ShardKey
    commit: CommitId
    entry: RecordEntry


def inputs_of(session: Session, entry: RecordEntry) -> tuple[Input, ...]:
    """Return what a merged receipt names, in its order; () for any other record."""
    if not isinstance(entry.claim, MergedReceipt):
        return ()
    known = {
        (commit, found.id, found.key): found
        for commit in dict.fromkeys(shard.commit for shard in entry.claim.shards)
        for found in show_commit(session, commit).records
    }
    return tuple(
        Input(
            key=shard.key,
            commit=shard.commit,
            entry=known.get((shard.commit, shard.record, shard.key_fingerprint)) or _gone(shard),
        )
        for shard in entry.claim.shards
    )


def _gone(shard: MergedShard) -> RecordEntry:
    fault = f"{shard.key} is not here; git ledger sync --fetch-only brings it"
    return RecordEntry(line=b"", id=shard.record, claim=None, key=None, signer=None, fault=fault)
