"""Fsck: every record, body and ref of the ledger looked at, and each kind of damage named (DESIGN section 10).

Nothing is repaired: each problem names what mends it. What is no damage (a body without its record, as a killed
process leaves it; a record that is not published yet) is reported and leaves the verdict clean.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError, StoreError
from gitledger.records.bodies import BodyRef, check_body, decode_log, decode_results
from gitledger.records.capability_record import CapabilityRecord
from gitledger.records.ids import BlobId, CommitId
from gitledger.records.imported import ImportedReceipt
from gitledger.records.merged import MergedReceipt
from gitledger.records.receipt import ShardReceipt
from gitledger.records.revocation import Revocation
from gitledger.records.statement import CAPABILITY, IMPORTED, MERGED_RECEIPT, REVOCATION, SHARD_RECEIPT, Statement
from gitledger.store.refs import BODIES_REF, INBOX_PREFIX, RECORDS_REF, TRACKING_PREFIX, Tips, all_tips
from gitledger.store.remote import remote_names
from gitledger.store.survey import garbage_refs, lock_files, once_noted, states_of
from gitledger.store.union import split_lines
from gitledger.store.view import LedgerView
from gitledger.trust.verified import Rejected, open_record
from gitledger.wording import counted, shell_word
from gitledger.workflows.session import Session
from gitledger.workflows.unpublished import unpublished

__all__ = ["DAMAGE", "NOTES", "Checked", "Problem", "fsck"]

DAMAGE = frozenset(
    {
        "body-corrupt",
        "body-missing",
        "dropped",
        "forged",
        "limit-exceeded",
        "misplaced",
        "ref-garbage",
        "undecodable",
        "unreadable",
    }
)
"""What makes `fsck` exit with 1."""
NOTES = frozenset(
    {"body-orphaned", "foreign-ref", "inbox", "lock", "record-orphaned", "repeats", "unfinished", "unpublished"}
)
"""What it only reports."""
_REASONS = {"bad-signature": "forged", "key-mismatch": "forged", "wrong-namespace": "forged"}
_DECODERS: Mapping[str, Callable[[Statement], object]] = {
    SHARD_RECEIPT: ShardReceipt.decode,
    MERGED_RECEIPT: MergedReceipt.decode,
    REVOCATION: Revocation.decode,
    CAPABILITY: CapabilityRecord.decode,
    IMPORTED: ImportedReceipt.decode,
}
_CONTENTS: Mapping[str, Callable[[bytes], object]] = {"tests": decode_results, "log": decode_log}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is not as it should be: its kind, what it is about, what was found, and what mends it."""

    kind: str
    subject: str
    detail: str
    remedy: str = ""

    @property
    def is_damage(self) -> bool:
        """Tell whether it makes `fsck` fail."""
        return self.kind in DAMAGE

    def encode(self) -> dict[str, Any]:
        """Return the JSON object of `fsck --json`."""
        return {
            "damage": self.is_damage,
            "detail": self.detail,
            "kind": self.kind,
            "remedy": self.remedy,
            "subject": self.subject,
        }


@dataclass(slots=True, kw_only=True)
class Checked:
    """What was looked at and what was wrong with it."""

    commits: int = 0
    records: int = 0
    bodies: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Tell whether there is no damage."""
        return not any(problem.is_damage for problem in self.problems)

    def encode(self) -> dict[str, Any]:
        """Return the document of `fsck --json`."""
        return {
            "checked": {"bodies": self.bodies, "commits": self.commits, "records": self.records},
            "problems": [problem.encode() for problem in self.problems],
            "verdict": "clean" if self.is_clean else "damaged",
        }


def fsck(session: Session) -> Checked:
    """Return what was checked; raises only where the repository can't be asked at all."""
    checked = Checked()
    for look in (_records, _dropped, _refs, _unpublished):
        try:
            checked.problems += look(session, checked)
        except StoreError as error:
            checked.problems.append(
                Problem(kind="unreadable", subject=error.code, detail=error.message, remedy=error.hint)
            )
    return checked


# --- what is there ---------------------------------------------------------------------------------------------


def _records(session: Session, checked: Checked) -> Iterator[Problem]:
    view = session.ledger.view()
    named: set[BlobId] = set()
    for commit in sorted(view.commits()):
        checked.commits += 1
        try:
            yield from _note(session, view, commit, named, checked)
        except StoreError as error:
            remedy = "git ledger sync brings it back if a remote has it"
            yield Problem(kind="unreadable", subject=f"note of {commit}", detail=error.message, remedy=remedy)
    yield from _bodies(view, named, checked)


def _note(
    session: Session, view: LedgerView, commit: CommitId, named: set[BlobId], checked: Checked
) -> Iterator[Problem]:
    for fault in view.faults(commit):
        yield Problem(kind="limit-exceeded", subject=commit, detail=fault.text, remedy=f"git ledger show {commit}")
    info = session.repo.objects.read_commit(commit)
    if info is None:
        detail = "its commit is not in this clone: amended and collected, or not fetched"
        yield Problem(kind="record-orphaned", subject=commit, detail=detail, remedy="git fetch")
    for line in view.lines(commit):
        checked.records += 1
        opened = open_record(line, commit=commit)
        subject = f"{commit[:12]} {(opened.record if isinstance(opened, Rejected) else opened.id) or '?'}"
        if isinstance(opened, Rejected):
            kind = "misplaced" if opened.reason == "misplaced" else _REASONS.get(opened.reason, "undecodable")
            yield Problem(kind=kind, subject=subject, detail=opened.detail, remedy=_IGNORED)
            continue
        statement = opened.statement
        if info is not None and statement.subject.tree != info.tree:
            detail = f"it is about tree {statement.subject.tree}, its commit has {info.tree}"
            yield Problem(kind="misplaced", subject=subject, detail=detail, remedy=_IGNORED)
        try:
            claim = _claim(statement)
        except DecodeError as error:
            yield Problem(kind="undecodable", subject=subject, detail=error.message, remedy=_IGNORED)
            continue
        if isinstance(claim, ShardReceipt | ImportedReceipt):
            named |= {ref.oid for ref in claim.bodies.values()}
            for name, ref in claim.bodies.items():
                yield from _body(view, subject, name, ref)


def _claim(statement: Statement) -> object:
    decode = _DECODERS.get(statement.predicate_type)
    return None if decode is None else decode(statement)


_IGNORED = "it never counts; nothing has to be done"


def _body(view: LedgerView, subject: str, name: str, ref: BodyRef) -> Iterator[Problem]:
    remedy = "git ledger sync with a remote or clone that has it, or record again"
    about = f"{subject} {name}"
    try:
        blob = view.body(ref.oid)
        if blob is None:
            detail = f"body {ref.oid} is not here"
            yield Problem(kind="body-missing", subject=about, detail=detail, remedy=remedy)
            return
        check_body(ref, blob)
        _CONTENTS.get(name, len)(blob)
    except (StoreError, DecodeError) as error:
        yield Problem(kind="body-corrupt", subject=about, detail=error.message, remedy=remedy)


def _bodies(view: LedgerView, named: set[BlobId], checked: Checked) -> Iterator[Problem]:
    for oid in sorted(view.false_bodies()):
        detail = "another blob than the one that the path spells; no reader takes it"
        yield Problem(kind="misplaced", subject=f"{BODIES_REF} {oid}", detail=detail, remedy=_IGNORED)
    for oid in sorted(view.bodies()):
        checked.bodies += 1
        if oid in named:
            continue
        try:
            there = view.body(oid) is not None
        except StoreError as error:
            yield Problem(kind="body-corrupt", subject=oid, detail=error.message, remedy="git fsck")
            continue
        if there:
            detail = "no record names it: its process was killed, or its record was dropped"
            yield Problem(kind="body-orphaned", subject=oid, detail=detail)
        else:
            yield Problem(kind="body-missing", subject=oid, detail="its blob is not here", remedy="git fsck")


# --- what was there --------------------------------------------------------------------------------------------


def _dropped(session: Session, _: Checked) -> Iterator[Problem]:
    """Yield what an earlier state of a ref held and the present one lacks.

    The local refs are held against themselves, what was fetched against everything that this clone has. What only
    the reflog's word of a killed process tells of was never there, so that it is no damage.
    """
    ledger, repo = session.ledger, session.repo
    local, everything = ledger.view_of(ledger.local_tips()), ledger.view()
    looks = [(RECORDS_REF, _lost_records, local), (BODIES_REF, _lost_bodies, local)]
    for ref in sorted(repo.objects.list_refs(TRACKING_PREFIX)):
        if ref.endswith("/records"):
            looks.append((ref, _lost_records, everything))
        elif ref.endswith("/bodies"):
            looks.append((ref, _lost_bodies, everything))
    for ref, lost_from, view in looks:
        states = states_of(repo, ref)
        lost = lost_from(session, states.had, view)
        for subject, oid in sorted(lost.items()):
            detail = f"an earlier state of {ref} held it, the present one does not"
            yield Problem(kind="dropped", subject=subject, detail=detail, remedy=_restored(ref, oid))
        for subject in sorted(lost_from(session, states.unfinished, view).keys() - lost.keys()):
            detail = f"written, but {ref} was not seen to hold it: its process was killed"
            yield Problem(kind="unfinished", subject=subject, detail=detail, remedy=_UNFINISHED)


_UNFINISHED = "nothing has to be done; if its command had ended well, git was told not to log that ref"


def _lost_records(session: Session, states: Collection[CommitId], view: LedgerView) -> dict[str, str]:
    """Return the records of some states that the view lacks, each with the object that it stood on."""
    found: dict[str, str] = {}
    for oid, blobs in once_noted(session.repo, states).items():
        commit = CommitId(oid)
        old = blobs - view.notes(commit)
        contents = [content for content in map(session.repo.objects.read_blob, old) if content is not None]
        lost = set(split_lines(contents)) - set(view.lines(commit)) if contents else set()
        for line in lost:
            opened = open_record(line)
            record = opened.record if isinstance(opened, Rejected) else opened.id
            found[f"{commit[:12]} {record or '?'}"] = oid
    return found


def _lost_bodies(session: Session, states: Collection[CommitId], view: LedgerView) -> dict[str, str]:
    """Return the bodies of some states that the view lacks."""
    once = {oid for oid, blobs in once_noted(session.repo, states).items() if oid in blobs}
    return {oid: oid for oid in once - view.bodies()}


def _restored(ref: str, oid: str) -> str:
    return f"git ledger sync, if a remote has it; else it is in: git log -p {ref} -- '*{oid[4:]}'"


# --- refs, locks, remotes --------------------------------------------------------------------------------------


def _refs(session: Session, _: Checked) -> Iterator[Problem]:
    repo = session.repo
    garbage = garbage_refs(repo)
    for name in garbage:
        detail = "it holds no part of a ledger; readers pass over it"
        kind = "ref-garbage" if name in (RECORDS_REF, BODIES_REF) else "foreign-ref"
        yield Problem(kind=kind, subject=name, detail=detail, remedy=f"git update-ref -d {name}")
    yield from _repeating(session)
    inbox = {*repo.objects.list_refs(INBOX_PREFIX)} | {
        name for name in repo.objects.list_refs(TRACKING_PREFIX) if "/inbox/" in name
    }
    for name in sorted(inbox - set(garbage)):
        detail = "it landed beside the notes, which could not be moved; it counts, and the next sync folds it in"
        yield Problem(kind="inbox", subject=name, detail=detail, remedy="git ledger sync")
    for lock in lock_files(repo):
        detail = "a lock file: some process is writing, or was killed"
        remedy = f"rm {shell_word(lock)} (once no git is running)"
        yield Problem(kind="lock", subject=str(lock), detail=detail, remedy=remedy)


def _repeating(session: Session) -> Iterator[Problem]:
    """Yield the refs whose tree nobody could list, asked one by one only where all of them together are such."""
    ledger, objects = session.ledger, session.repo.objects
    if not ledger.repeating(all_tips(objects)):
        return
    refs = dict(objects.list_refs(TRACKING_PREFIX)) | dict(objects.list_refs(INBOX_PREFIX))
    for name in (RECORDS_REF, BODIES_REF, *sorted(refs)):
        tip = refs.get(name) or objects.read_ref(name)
        if tip is None or not ledger.repeating(_tips_of(name, tip)):
            continue
        detail = (
            "its tree names itself over and over, as no ledger does; readers take only what knows its own place"
        )
        remedy = "nothing has to be done; whoever may push there can delete it, after `git ledger sync`"
        yield Problem(kind="repeats", subject=name, detail=detail, remedy=remedy)


def _tips_of(name: str, tip: CommitId) -> Tips:
    tips = frozenset({tip})
    if "/inbox/" in name:
        return Tips(inbox=tips)
    return Tips(records=tips) if name.endswith("/records") else Tips(bodies=tips)


def _unpublished(session: Session, _: Checked) -> Iterator[Problem]:
    known = set(remote_names(session.repo))
    for remote, count in unpublished(session).items():
        if count and remote in known:
            detail = f"{counted(count, 'record')} that {remote} was not seen to have"
            remedy = f"git ledger sync {remote}"
            yield Problem(kind="unpublished", subject=remote, detail=detail, remedy=remedy)
