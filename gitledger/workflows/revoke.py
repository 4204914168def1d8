"""Revoke: a signed record that takes another one's green away, for good (DESIGN section 4)."""

from __future__ import annotations

from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import TrustError, UsageError
from gitledger.records.decode import byte_length
from gitledger.records.ids import CommitId, RecordId
from gitledger.records.limits import MAX_TEXT_BYTES
from gitledger.records.revocation import Revocation
from gitledger.records.statement import Subject
from gitledger.records.tree import CommitInfo
from gitledger.trust.sign import claim_of, sign_payload
from gitledger.trust.signer import Signer
from gitledger.trust.verified import open_record
from gitledger.verdict.acceptance import signatories
from gitledger.verdict.evidence import Evidence, sort_records
from gitledger.workflows.browse import RecordEntry, find_record
from gitledger.workflows.forge_users import ask_forges
from gitledger.workflows.notes_author import notes_identity, notes_message
from gitledger.workflows.session import Session
from gitledger.workflows.trusted import Trusted, load_trusted

__all__ = ["Revoked", "revoke"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked:
    """What was revoked, and by which `record`: an older one where not `is_new`."""

    commit: CommitId
    revokes: RecordId
    record: RecordId
    reason: str
    is_new: bool

    def encode(self) -> dict[str, Any]:
        """Return the document of `revoke --json`."""
        return {
            "commit": self.commit,
            "new": self.is_new,
            "reason": self.reason,
            "record": self.record,
            "revokes": self.revokes,
        }


def revoke(
    session: Session, prefix: str, signer: Signer, *, reason: str, user: str, policy_from: str | None = None
) -> Revoked:
    """Return the revocation of the record whose id begins with `prefix`, stored on the record's commit.

    Its signer must be the record's own or one of the revokers of policy (that of `policy_from`, else of HEAD): a
    revocation that would count for nothing is refused. A second one by the same key is the first. Raises
    `UsageError`, `ConfigError`, `TrustError` `not-a-revoker`, and `StoreError` where it could not be stored.
    """
    text = _reason(reason)
    info, entry, target = _wanted(session, prefix)
    trusted = load_trusted(session.repo, session.repo.head() or info.id, policy_from)
    pile = _evidence(session, info, trusted.config.repository, ())
    before = [
        held for held in pile.revocations if (held.revocation.record, held.key) == (target, signer.fingerprint)
    ]
    if before:
        first = before[0]
        return Revoked(
            commit=info.id, revokes=target, record=first.id, reason=first.revocation.reason, is_new=False
        )
    revocation = Revocation(
        repository=trusted.config.repository,
        record=target,
        reason=text,
        revoked_at=session.now(),
        subject=Subject(commit=info.id, tree=info.tree),
        signer=claim_of(signer, user=user),
    )
    envelope = sign_payload(revocation.encode(), signer)
    line = envelope.encode()
    if entry.key != signer.fingerprint:
        _require_revoker(session, trusted, _evidence(session, info, trusted.config.repository, (line,)), signer)
    session.ledger.append(
        {info.id: [line]},
        [],
        identity=notes_identity(session, trusted.config.notes),
        message=notes_message(trusted.config.notes, 1),
    )
    return Revoked(commit=info.id, revokes=target, record=envelope.id, reason=text, is_new=True)


def _wanted(session: Session, prefix: str) -> tuple[CommitInfo, RecordEntry, RecordId]:
    found = find_record(session, prefix)
    if found is None or found[1].id is None:
        raise UsageError(
            "unknown-record", f"no record begins with {prefix!a} (give 8 hex digits or more)", "git ledger log"
        )
    info, entry = found
    if isinstance(entry.claim, Revocation):
        raise UsageError(
            "not-revocable",
            f"{prefix} is a revocation itself, and those are for good",
            "record the shard again: a new receipt stands by itself",
        )
    return info, entry, RecordId(found[1].id)


def _evidence(session: Session, info: CommitInfo, repository: str, lines: tuple[bytes, ...]) -> Evidence:
    """Return what hangs on a commit, and `lines` beside it."""
    there = session.ledger.lines(info.id)
    opened = [open_record(line, commit=info.id) for line in (*there, *lines)]
    return sort_records(opened, repository=repository).placed(info.id, info.tree)


def _require_revoker(session: Session, trusted: Trusted, pile: Evidence, signer: Signer) -> None:
    policy, now = trusted.config.policy, session.now()
    keys = ask_forges(session, trusted.config, trusted.signers, now, [pile])
    rules = signatories(policy, trusted.signers, now, [pile], forges=keys.answers)
    ours = [held for held in pile.revocations if held.key == signer.fingerprint]
    if not any(rules.is_revoker(held.opened, held.revocation.revoked_at) for held in ours):
        who = ", ".join(policy.revokers) or "nobody"
        raise TrustError(
            "not-a-revoker",
            f"{signer.fingerprint} made neither that record, nor is it a key of policy.revokers ({who})",
            "give the record's own key, or a revoker's: --key PATH",
        )


def _reason(text: str) -> str:
    words = text.strip()
    if not words:
        raise UsageError("no-reason", "a revocation needs a reason: it stays for ever", "--reason 'wrong driver'")
    if byte_length(words) > MAX_TEXT_BYTES:
        raise UsageError("no-reason", f"a reason has at most {MAX_TEXT_BYTES} bytes", "--reason 'wrong driver'")
    return words
