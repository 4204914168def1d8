"""Record: run a shard's command and leave its signed receipt, whatever happens (DESIGN sections 8 and 10)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.errors import EXIT_NO, EXIT_NOT_STORED, EXIT_YES, ManifestError, StoreError
from gitledger.machine.child import shell_status
from gitledger.manifest.chain import CHAIN_FILES
from gitledger.manifest.definition import Definition
from gitledger.manifest.resolve import Manifest, resolve
from gitledger.records.envelope import Envelope
from gitledger.records.ids import RecordId
from gitledger.records.receipt import ShardReceipt
from gitledger.store.edits import Edits
from gitledger.store.extras import ExtraFiles
from gitledger.store.facts import CommitFacts
from gitledger.store.head_log import head_log
from gitledger.store.worktree import WorkTreeState, survey
from gitledger.suites.result import SuiteResult
from gitledger.trust.sign import sign_payload
from gitledger.trust.signer import Signer
from gitledger.workflows.compose import draft
from gitledger.workflows.execute import execute
from gitledger.workflows.flight import Flight
from gitledger.workflows.notes_author import notes_identity, notes_message
from gitledger.workflows.request import Before, RecordRequest
from gitledger.workflows.scene import Executed
from gitledger.workflows.session import Session
from gitledger.workflows.spool import write_entry
from gitledger.workflows.target import head_of, no_work_tree
from gitledger.workflows.uncommitted import found_beside

__all__ = ["Recorded", "keep", "look", "record", "shadows_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What came of it. `exit_status` is what the command line exits with; `error` says why it was not stored."""

    receipt: ShardReceipt
    record: RecordId
    stored: bool
    exit_status: int
    result: SuiteResult
    error: StoreError | None = None
    log_text: str = ""
    """The excerpt of its output that the receipt keeps."""


def record(
    session: Session,
    request: RecordRequest,
    signer: Signer | None,
    *,
    before: Before | None = None,
    begun: Callable[[], Edits | None] | None = None,
    turn: AbstractContextManager[object] | None = None,
    spool: Path | None = None,
    ended: Callable[[], None] | None = None,
    looked: Callable[[Before], None] | None = None,
) -> Recorded:
    """Return what was recorded, once the receipt is stored, or the store has refused it.

    `before` is the repository as the caller has just looked at it, `begun` returns a look that it began,
    None where that is too old by now. `turn` is entered to sign and to store: one signer and one ledger serve
    several runs at once. With `spool` the receipt is put into that folder instead of the ledger, for whoever
    collects and signs it. `ended` is called when the command has ended and all that it may have changed was looked
    at: another run can begin. `looked` is given the repository as it stands before anything runs, and may raise.

    Raises `ManifestError`, `UsageError`, `ConfigError` and `MachineError` before anything has run; afterwards only
    the store can fail, and the result says so.
    """
    if spool is None:
        notes_identity(session, request.notes)  # without one the receipt could not be stored
    early = begun() if begun else None
    try:
        before = look(session, request.definition, edits=early) if before is None else before
    except ManifestError as error:
        if error.code == "pattern-unmatched" and not request.declared:
            error.hint = "correct the option; `git ls-files` lists what is tracked"
        raise
    if looked is not None:
        looked(before)
    run = execute(session, request, before)
    drafted = draft(session, request, signer, before, run)
    seen = survey(session.repo.git) if run.after is None else run.after.survey()
    after = seen.state(request.definition.paths, names=CHAIN_FILES)
    if ended is not None:
        ended()
    came = () if early is None else _came_before(session, request.flight, after)
    receipt = drafted.completed(after, came=came)
    return keep(session, request, signer, run, receipt, drafted.bodies, turn=turn or nullcontext(), spool=spool)


def keep(
    session: Session,
    request: RecordRequest,
    signer: Signer | None,
    run: Executed,
    receipt: ShardReceipt,
    bodies: Sequence[bytes],
    *,
    turn: AbstractContextManager[object],
    spool: Path | None = None,
) -> Recorded:
    """Return what was recorded of a run: its receipt signed and stored, or put into a spool."""
    store = _to_ledger(session, request) if spool is None else partial(write_entry, spool)
    payload = receipt.encode()
    error = None
    with turn:
        envelope = Envelope(payload=payload, signature=None) if signer is None else sign_payload(payload, signer)
        if request.flight is not None:
            request.flight.about_to_store(envelope.id)
        try:
            store(receipt, envelope, bodies)
        except StoreError as caught:
            error = caught
    return Recorded(
        receipt=receipt,
        record=envelope.id,
        stored=error is None,
        exit_status=_exit_status(request, run, receipt, stored=error is None),
        result=run.result,
        error=error,
        log_text=run.log_text,
    )


def _came_before(session: Session, flight: Flight | None, after: WorkTreeState) -> tuple[str, ...]:
    """Return untracked files that were there when the command began, as the time of its note tells.

    A look that was begun early has not seen what came after it; the run made none of that. The time at which a
    file was last changed in any way can't be set by programs. Where the note is gone, any may have been there.
    """
    if flight is None:
        return ()
    root = session.repo.worktree or Path()
    try:
        began_ns = flight.note.stat().st_ctime_ns  # by the clock that stamps files
    except OSError:
        return after.untracked
    return tuple(path for path in after.untracked if _changed_ns(root / path) < began_ns)


def _changed_ns(path: Path) -> int:
    try:
        return path.lstat().st_ctime_ns
    except OSError:
        return 0


def _to_ledger(
    session: Session, request: RecordRequest
) -> Callable[[ShardReceipt, Envelope, Sequence[bytes]], None]:
    """Return what stores a receipt in the ledger; raises `UsageError` `no-identity`."""
    identity = notes_identity(session, request.notes)
    message = notes_message(request.notes, 1)

    def store(receipt: ShardReceipt, envelope: Envelope, bodies: Sequence[bytes]) -> None:
        session.ledger.append(
            {receipt.repo.commit: [envelope.encode()]}, bodies, identity=identity, message=message
        )

    return store


def look(session: Session, definition: Definition, *, edits: Edits | None = None) -> Before:
    """Return the repository as it stands; `edits` are being looked for already, where the caller began with that.

    Raises `UsageError` without a commit or a work tree, `ManifestError` where the scope can't be resolved.
    """
    repo = session.repo
    log = head_log(repo.git_dir)
    head = head_of(session)
    if repo.worktree is None:
        raise no_work_tree(repo, "nothing can run there")
    with edits or Edits(repo.git) as asked:  # git looks at the tree while we resolve the scope
        facts = CommitFacts(repo.objects, repo.commit(head).tree)
        manifest = resolve(definition, facts, ExtraFiles(repo.worktree))
        found = found_beside(repo, head, asked)
    state = found.state(definition.paths, names=CHAIN_FILES)
    return Before(head=head, state=state, manifest=manifest, shadows=shadows_of(manifest, repo.worktree), log=log)


def shadows_of(manifest: Manifest, root: Path) -> tuple[str, ...]:
    """Return the files of the test configuration chain that lie in the work tree and not in the commit."""
    absent = (entry.path for entry in manifest.entries if entry.kind == "absent")
    return tuple(path for path in absent if os.path.lexists(root / path))


def _exit_status(request: RecordRequest, run: Executed, receipt: ShardReceipt, *, stored: bool) -> int:
    """Return the child's status, but 1 where that is 0 and the receipt is not green, 3 where it is not stored.

    Without a command: 0 once the report is stored and shows no failure.
    """
    if not stored and not request.best_effort:
        return EXIT_NOT_STORED
    status = EXIT_YES if run.ended is None else shell_status(run.ended)
    return EXIT_NO if status == EXIT_YES and not receipt.is_green else status
