"""Takes receipts out of a spool: holds each against the repository, signs it, and stores it."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from gitledger.config.schema import Config
from gitledger.dataclass import dataclass, replace
from gitledger.errors import DecodeError, LedgerError
from gitledger.machine.sole import sole_driver
from gitledger.records.bodies import decode_log
from gitledger.records.envelope import Envelope
from gitledger.records.ids import CommitId, ShardKey
from gitledger.records.receipt import ShardReceipt
from gitledger.records.statement import SHARD_RECEIPT
from gitledger.trust.sign import claim_of, sign_payload
from gitledger.trust.signer import Signer
from gitledger.trust.verified import Rejected, open_record
from gitledger.verdict.verify import agreeing_snapshot
from gitledger.workflows.compose import earlier_attempts
from gitledger.workflows.judge import plan
from gitledger.workflows.notes_author import notes_identity, notes_message
from gitledger.workflows.run import RunRequest, merge_what_stands
from gitledger.workflows.run_result import Brought, RunResult
from gitledger.workflows.session import Session
from gitledger.workflows.spool import Collected, entries, read_entry, require_ours, require_private, take_entry
from gitledger.workflows.target import head_of
from gitledger.workflows.trusted import read_config

__all__ = ["Spoils", "collect", "collect_and_merge", "receipts_on"]

LOCK_S = 60.0


@dataclass(slots=True)
class Spoils:
    """What a spool held: receipts in the order in which they came, and why others were left lying there."""

    brought: list[Brought] = field(default_factory=list)
    refused: list[LedgerError] = field(default_factory=list)


def collect(
    session: Session, config: Config, commit: CommitId, spool: Path, signer: Signer | None, *, user: str
) -> Spoils:
    """Return what the spool held for a commit, signed and stored; each entry is taken once.

    Raises `UsageError` `spool-exposed`, `spool-missing`, and `StoreError` where the ledger can't be written: what
    is not stored stays in the spool.
    """
    require_private(spool)
    found, tree = Spoils(), session.repo.commit(commit).tree
    with sole_driver(spool / "collect.lock", wait_s=LOCK_S, patient=True):
        for path in entries(spool):
            try:
                entry = read_entry(path)
                require_ours(entry, config, commit, tree)
                found.brought.append(_store(session, config, entry, signer, user=user))
            except DecodeError as error:
                found.refused.append(error)
                continue
            take_entry(path)
    return found


def receipts_on(session: Session, commit: CommitId) -> list[Brought]:
    """Return the shard receipts that a commit has, whoever put them there, the oldest first; none is believed."""
    found = []
    for line in session.ledger.lines(commit):
        opened = open_record(line, commit=commit)
        if isinstance(opened, Rejected) or opened.statement.predicate_type != SHARD_RECEIPT:
            continue
        try:
            receipt = ShardReceipt.decode(opened.statement)
        except DecodeError:
            continue
        found.append(Brought(receipt=receipt, record=opened.id))
    return sorted(found, key=lambda item: (item.receipt.session.ended_at, item.record))


def collect_and_merge(
    session: Session, request: RunRequest, spool: Path, signer: Signer | None
) -> tuple[RunResult, list[LedgerError]]:
    """Return what a spool held for HEAD, merged where every shard is covered, and why entries were left there."""
    target = head_of(session)
    config = read_config(session.repo, target)
    spoils = collect(session, config, target, spool, signer, user=request.user)
    found = plan(session, target, policy_from=request.policy_from, carry=request.carry)
    results: dict[ShardKey, list[Brought]] = {}
    for item in spoils.brought:
        results.setdefault(item.receipt.key, []).append(item)
    asked = tuple(results) or config.shard_keys()
    result = RunResult(commit=target, asked=asked, union=found.union, results=results)
    if not agreeing_snapshot(found.union, found.case.situation):
        result = merge_what_stands(session, request, signer, result)
    return result, spoils.refused


def _store(session: Session, config: Config, entry: Collected, signer: Signer | None, *, user: str) -> Brought:
    commit = entry.receipt.repo.commit
    attempt = 1 + earlier_attempts(session, commit, entry.receipt.key)
    receipt = replace(
        entry.receipt,
        shard=replace(entry.receipt.shard, attempt=attempt),
        signer=None if signer is None else claim_of(signer, user=user),
    )
    payload = receipt.encode()
    envelope = Envelope(payload=payload, signature=None) if signer is None else sign_payload(payload, signer)
    session.ledger.append(
        {commit: [envelope.encode()]},
        entry.bodies,
        identity=notes_identity(session, config.notes),
        message=notes_message(config.notes, 1),
    )
    return Brought(receipt=receipt, record=envelope.id, log_text=_log(entry))


def _log(entry: Collected) -> str:
    """Return the log that a receipt keeps, to be shown; none where nobody could read it."""
    names = list(entry.receipt.bodies)
    try:
        return decode_log(entry.bodies[names.index("log")]) if "log" in names else ""
    except DecodeError:
        return ""
