"""Receive: what a fork or a bundle holds, taken record by record, and only what verifies.

A pull request's author can't publish to the repository that judges it; so its evidence is fetched, and each record
is held against the signers of the policy before it is added. Nothing else comes along: no other line, no body that
no such record names, no ref.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError, StoreError, UsageError
from gitledger.records.bodies import BodyRef, check_body
from gitledger.records.ids import CommitId, RecordId
from gitledger.records.receipt import ShardReceipt
from gitledger.records.tree import CommitInfo
from gitledger.store.foreign import foreign_ledger
from gitledger.store.sync import NETWORK_TIMEOUT_S
from gitledger.store.view import LedgerView
from gitledger.trust.verified import open_record
from gitledger.verdict.acceptance import Signatories, signatories
from gitledger.verdict.evidence import Evidence, sort_records
from gitledger.verdict.lane_signers import signatories_by_lane
from gitledger.workflows.notes_author import notes_identity, notes_message
from gitledger.workflows.session import Session
from gitledger.workflows.target import head_of
from gitledger.workflows.trusted import load_trusted

__all__ = ["Received", "Refused", "receive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A record that was left where it is, and why."""

    commit: CommitId
    record: RecordId | None
    reason: str


@dataclass(slots=True, kw_only=True)
class Received:
    """What was taken from where, by which policy; `known` counts records that were here already."""

    source: str
    policy: CommitId
    taken: list[RecordId] = field(default_factory=list)
    known: int = 0
    refused: list[Refused] = field(default_factory=list)

    def encode(self) -> dict[str, Any]:
        """Return the document of `sync --from --json`."""
        return {
            "from": self.source,
            "known": self.known,
            "policy": {"commit": self.policy},
            "refused": [
                {"commit": item.commit, "reason": item.reason, "record": item.record} for item in self.refused
            ],
            "taken": self.taken,
        }


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One record that reads well; `reason` is why it does not count, empty where it does."""

    line: bytes
    record: RecordId
    bodies: tuple[BodyRef, ...]
    reason: str


def receive(
    session: Session,
    source: str,
    *,
    commits: str | None = None,
    policy_from: str | None = None,
    timeout_s: float = NETWORK_TIMEOUT_S,
) -> Received:
    """Return what was taken from a fork's URL or a bundle.

    `commits` is a range (`A..B`); without it every commit that this clone has counts. Signers are those of
    `policy_from`, else of HEAD. Raises `UsageError`, `ConfigError`, and `StoreError` where the source can't be
    read or the ledger not be written; what was taken before stays.
    """
    trusted = load_trusted(session.repo, head_of(session), policy_from)
    config = trusted.config
    identity = notes_identity(session, config.notes)
    wanted = None if commits is None else _range(session, commits)
    received = Received(source=source, policy=trusted.commit)
    own = session.ledger.view()
    with foreign_ledger(session.repo, source, timeout_s=timeout_s) as view:
        places = [info for info in _places(session, view) if wanted is None or info.id in wanted]
        theirs = {info.id: _evidence(view, info, config.repository) for info in places}
        ours = {info.id: _evidence(own, info, config.repository) for info in places}
        piles = [*theirs.values(), *ours.values()]
        judges = signatories(config.policy, trusted.signers, session.now(), piles)
        by_lane = signatories_by_lane(config, trusted.signers, session.now(), piles)
        for commit, evidence in theirs.items():
            _report_unread(received, commit, evidence)
            here = set(own.lines(commit))
            candidates = list(_candidates(evidence, judges, by_lane))
            received.known += sum(item.line in here for item in candidates)
            fresh = [item for item in candidates if item.line not in here]
            lines, bodies = _take(received, commit, fresh, view, own)
            session.ledger.append(
                {commit: lines}, bodies, identity=identity, message=notes_message(config.notes, len(lines))
            )
    return received


def _range(session: Session, commits: str) -> frozenset[CommitId]:
    done = None
    if not commits.startswith("-"):
        done = session.repo.git.run("rev-list", commits, "--", statuses=frozenset({0, 128}))
    if done is None or done.status:
        raise UsageError("unknown-commit", f"{commits!a} is no range of commits here", "--commits main..topic")
    return frozenset(map(CommitId, done.text.split()))


def _places(session: Session, view: LedgerView) -> Iterator[CommitInfo]:
    """Yield the commits with notes that this clone has: what is about another can't be held against its tree."""
    for commit in sorted(view.commits()):
        info = session.repo.objects.read_commit(commit)
        if info is not None:
            yield info


def _evidence(view: LedgerView, info: CommitInfo, repository: str) -> Evidence:
    opened = [open_record(line, commit=info.id) for line in view.lines(info.id)]
    return sort_records(opened, repository=repository).placed(info.id, info.tree)


def _report_unread(received: Received, commit: CommitId, evidence: Evidence) -> None:
    unread = [(item.record, item.reason) for item in evidence.rejected]
    unread += [(item.id, "undecodable") for item in evidence.undecodable]
    unread += [(record, "foreign") for record in evidence.foreign]
    unread += [(record, "misplaced") for record in evidence.misplaced]
    received.refused += [Refused(commit=commit, record=record, reason=reason) for record, reason in unread]


def _candidates(
    evidence: Evidence, judges: Signatories, by_lane: Mapping[str, Signatories]
) -> Iterator[_Candidate]:
    for held in evidence.shards:
        acceptance = judges.judge(held.opened, held.ended_at)
        yield _Candidate(held.opened.line, held.id, _bodies(held.receipt), acceptance.reason)
    for merged in evidence.merged:
        acceptance = judges.judge(merged.opened, merged.receipt.merged_at)
        yield _Candidate(merged.opened.line, merged.id, (), acceptance.reason)
    for reported in evidence.reports:
        keys = by_lane.get(reported.report.lane.id or "", judges)
        acceptance = keys.judge(reported.opened, reported.report.timing.finished_at)
        yield _Candidate(reported.opened.line, reported.id, (), acceptance.reason)
    for revoking in evidence.revocations:
        at = revoking.revocation.revoked_at
        acceptance = judges.judge(revoking.opened, at)
        reason = "" if judges.is_revoker(revoking.opened, at) else acceptance.reason
        yield _Candidate(revoking.opened.line, revoking.id, (), reason)


def _bodies(receipt: ShardReceipt) -> tuple[BodyRef, ...]:
    return tuple(receipt.bodies.values())


def _take(
    received: Received, commit: CommitId, fresh: list[_Candidate], view: LedgerView, own: LedgerView
) -> tuple[list[bytes], list[bytes]]:
    """Return the lines and bodies to add; a record whose bodies are neither there nor here is refused."""
    lines: list[bytes] = []
    bodies: dict[str, bytes] = {}
    for item in fresh:
        reason = item.reason
        if not reason:
            try:
                bodies |= {ref.oid: _body(ref, view, own) for ref in item.bodies}
            except (DecodeError, StoreError) as error:
                reason = error.code
        if reason:
            received.refused.append(Refused(commit=commit, record=item.record, reason=reason))
        else:
            lines.append(item.line)
            received.taken.append(item.record)
    return lines, list(bodies.values())


def _body(ref: BodyRef, view: LedgerView, own: LedgerView) -> bytes:
    blob = view.body(ref.oid)
    if blob is None:
        blob = own.body(ref.oid)
    if blob is None:
        raise DecodeError("body-missing", f"body {ref.oid} is not there", "git ledger sync (at the source)")
    check_body(ref, blob)
    return blob
