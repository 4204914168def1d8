"""Doctor: real forwards on this machine, a report of each, and, where asked for, a record of each.

The report file is written before anything runs, saying that nothing has been shown yet, and again as each recipe
ends: whoever finds it after a power cut finds no older pass. Records are stored one by one for the same reason.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import field
from pathlib import Path
from typing import Any

from gitledger.config.schema import NotesConfig
from gitledger.dataclass import dataclass
from gitledger.errors import (
    EXIT_INCONCLUSIVE,
    EXIT_NO,
    EXIT_NOT_STORED,
    EXIT_SKIPPED,
    EXIT_YES,
    StoreError,
    UsageError,
)
from gitledger.lanes.catalogue import Unusable
from gitledger.lanes.compose import Place, not_run, report_of
from gitledger.lanes.model import FoundModel, ModelError, find_model
from gitledger.lanes.settings import download_folders, overrides_of
from gitledger.lanes.supervise import Limits, World, run_probe
from gitledger.lanes.task import LaneTask
from gitledger.machine.gpu import visible_gpus
from gitledger.machine.interrupts import Interrupts
from gitledger.machine.kernel_driver import kernel_driver
from gitledger.machine.redact import redact_url
from gitledger.records.capability import CapabilityReport, encode_reports
from gitledger.records.capability_record import CapabilityRecord
from gitledger.records.capability_status import ReasonCode, Status
from gitledger.records.ids import CommitId, RecordId
from gitledger.records.receipt import RepoClaim
from gitledger.store.worktree import WorkTreeState, work_tree_state
from gitledger.suites.inject import without_keys
from gitledger.trust.sign import claim_of, sign_payload
from gitledger.trust.signer import Signer
from gitledger.workflows.notes_author import notes_identity, notes_message
from gitledger.workflows.session import Session
from gitledger.workflows.target import head_of

__all__ = ["DoctorRequest", "Doctored", "doctor", "exit_status", "store_reports", "world_of"]

MAX_LISTED_PATHS = 20
_OFF = frozenset({"false", "off", "no", "0"})
DISABLED_KEY = "gitledger.doctor"
"""`git config gitledger.doctor false` on a machine on which nothing may be executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorRequest:
    """What is to be executed. `lenient`: recipes that don't apply to a model may be skipped (`--all-recipes`).

    `lacking` are recipes that should have been executed and can't be used: without them there is no whole answer.
    `report` is the file to write, `base` what relative model paths start from. `repository` and `notes` are needed
    only where records are stored.
    """

    tasks: tuple[LaneTask, ...]
    base: Path
    lenient: bool = False
    lacking: tuple[Unusable, ...] = ()
    limits: Limits = field(default_factory=Limits)
    python: str = sys.executable
    report: Path | None = None
    repository: str = ""
    notes: NotesConfig = field(default_factory=NotesConfig)
    user: str = ""
    gpu_uuid: bool = True
    tell: Callable[[CapabilityReport], None] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctored:
    """What came of it: a report for each task, in order, and those that were stored, with their records."""

    reports: tuple[CapabilityReport, ...]
    stored: tuple[tuple[CapabilityReport, RecordId], ...]
    exit_status: int
    error: StoreError | None = None
    lacking: tuple[Unusable, ...] = ()

    def encode(self) -> dict[str, Any]:
        """Return the document of `doctor --json`."""
        return {
            "exit_status": self.exit_status,
            "lacking": [{"recipe": item.recipe, "why": item.why} for item in self.lacking],
            "records": [record for _, record in self.stored],
            "reports": [report.fields() for report in self.reports],
        }


def world_of(session: Session, python: str) -> World:
    """Return what probes are started with: the environment without what could sign."""
    return World(python=python, environ=without_keys(session.environ), clock=session.now, home=session.home)


def doctor(session: Session, request: DoctorRequest, signer: Signer | None) -> Doctored:
    """Return the reports of every task; with a signer each is stored as it comes.

    Raises `UsageError` without a commit or work tree, or where the report can't be written, and `MachineError`
    where no process can be started; a store that fails keeps no report from being made.
    """
    if not request.tasks:
        raise UsageError(
            "no-recipes", "there is no recipe to run, and nothing is never a pass", "--recipe torch-eager"
        )
    head = head_of(session)
    before = work_tree_state(session.repo.git)
    if signer is not None:
        notes_identity(session, request.notes)  # what would keep it from being stored is said before anything runs
    done = [_unfinished(session, request, task, head, before) for task in request.tasks]
    _write(request.report, done)
    stored: list[tuple[CapabilityReport, RecordId]] = []
    error: StoreError | None = None
    with Interrupts() as interrupts:
        models: dict[str, FoundModel | ModelError] = {}
        for place, task in enumerate(request.tasks):
            if interrupts.received:
                break
            done[place] = _run(session, request, task, (head, before), models, interrupts)
            _write(request.report, done)
            request.tell(done[place])
            if signer is not None:
                try:
                    (record,) = store_reports(session, request, [done[place]], signer)
                    stored.append((done[place], record))
                except StoreError as caught:
                    error = caught
    status = exit_status(done, lenient=request.lenient)
    if request.lacking and status in (EXIT_YES, EXIT_SKIPPED):
        status = EXIT_INCONCLUSIVE
    return Doctored(
        reports=tuple(done),
        stored=tuple(stored),
        exit_status=status if error is None else EXIT_NOT_STORED,
        error=error,
        lacking=request.lacking,
    )


def exit_status(reports: Sequence[CapabilityReport], *, lenient: bool = False) -> int:
    """Return what the worst report exits with: 1 failed, 99 inconclusive, 77 skipped, 0 passed.

    No report is no pass. `lenient`: what a recipe does not apply to is no worse than a pass, beside one.
    """
    statuses = {report.status for report in reports}
    if lenient and Status.PASSED in statuses:
        weighed = [report for report in reports if not _does_not_apply(report)]
        statuses = {report.status for report in weighed}
    for status, code in (
        (Status.FAILED, EXIT_NO),
        (Status.INCONCLUSIVE, EXIT_INCONCLUSIVE),
        (Status.SKIPPED, EXIT_SKIPPED),
    ):
        if status in statuses:
            return code
    return EXIT_YES if statuses else EXIT_SKIPPED


def _does_not_apply(report: CapabilityReport) -> bool:
    return report.reason is not None and report.reason.code is ReasonCode.RECIPE_NOT_APPLICABLE


def store_reports(
    session: Session, request: DoctorRequest, reports: Sequence[CapabilityReport], signer: Signer
) -> list[RecordId]:
    """Return the records that were signed and stored on the reports' commits; raises `StoreError`."""
    lines: dict[CommitId, list[bytes]] = {}
    records = []
    for report in reports:
        record = CapabilityRecord(
            repository=request.repository, report=report, signer=claim_of(signer, user=request.user)
        )
        envelope = sign_payload(record.encode(), signer)
        lines.setdefault(report.repo.commit, []).append(envelope.encode())
        records.append(envelope.id)
    session.ledger.append(
        lines,
        [],
        identity=notes_identity(session, request.notes),
        message=notes_message(request.notes, len(records)),
    )
    return records


def _run(
    session: Session,
    request: DoctorRequest,
    task: LaneTask,
    began: tuple[CommitId, WorkTreeState],
    models: dict[str, FoundModel | ModelError],
    interrupts: Interrupts,
) -> CapabilityReport:
    """Return the report of one task; a model is looked for and hashed once."""
    head, before = began
    world = world_of(session, request.python)
    model = _model(session, request, task, models)
    if isinstance(model, ModelError):
        return not_run(task, _place(session, head, before), model, session.now())
    run = run_probe(task, model, world, request.limits, interrupts)
    return report_of(task, _place(session, head, before), model, run)


def _model(
    session: Session, request: DoctorRequest, task: LaneTask, models: dict[str, FoundModel | ModelError]
) -> FoundModel | ModelError:
    if task.model is None:
        text = "no model is configured: --lane, --model or GITLEDGER_DOCTOR_MODEL names one"
        return ModelError(ReasonCode.MODEL_NOT_CONFIGURED, text)
    if (session.repo.config(DISABLED_KEY) or "").lower() in _OFF:
        return ModelError(ReasonCode.DISABLED_BY_POLICY, f"git config {DISABLED_KEY} is off on this machine")
    if task.model not in models:
        try:
            folders = download_folders(session.environ, request.base)
            models[task.model] = find_model(task.model, folders, request.base)
        except ModelError as error:
            models[task.model] = error
    return models[task.model]


def _unfinished(
    session: Session, request: DoctorRequest, task: LaneTask, head: CommitId, before: WorkTreeState
) -> CapabilityReport:
    """Return what is true of a task until it has ended: that it has shown nothing."""
    if task.model is None:
        found = _model(session, request, task, {})
        if isinstance(found, ModelError):
            return not_run(task, _place(session, head, before, after=before), found, session.now())
    error = ModelError(ReasonCode.INTERRUPTED, "it did not come to its end")
    return not_run(task, _place(session, head, before, after=before), error, session.now())


def _place(
    session: Session, head: CommitId, before: WorkTreeState, *, after: WorkTreeState | None = None
) -> Place:
    return Place.here(
        repo=_repo(session, head, before, after or work_tree_state(session.repo.git)),
        overrides=overrides_of(session.environ),
        environ=session.environ,
        home=session.home,
        driver=lambda kind: _driver(session, kind),
    )


_VENDORS = {"cuda": "nvidia", "hip": "amd"}


def _driver(session: Session, kind: str) -> str | None:
    """Return the driver of a kind of GPU, by its vendor's tool, else as the kernel tells it."""
    gpus = visible_gpus(session.environ, uuids=False)
    told = gpus.driver if gpus is not None and gpus.vendor == _VENDORS.get(kind) else None
    return told or kernel_driver(kind)


def _repo(session: Session, head: CommitId, before: WorkTreeState, after: WorkTreeState) -> RepoClaim:
    """Return where it ran: dirty by tracked changes at start or end, untracked files at start, or another HEAD."""
    repo = session.repo
    dirt = sorted({*before.changed, *before.untracked, *after.changed})
    if after.head != head:
        dirt.insert(0, "(HEAD moved during the run)")
    remote = repo.config("remote.origin.url")
    return RepoClaim(
        commit=head,
        tree=repo.commit(head).tree,
        branch=repo.branch(),
        remote=redact_url(remote) if remote else None,
        dirty=bool(dirt),
        dirty_paths=tuple(dirt[:MAX_LISTED_PATHS]),
    )


def _write(file: Path | None, reports: Sequence[CapabilityReport]) -> None:
    """Write the report file anew, all of it or nothing; raises `UsageError` `report-unwritable`."""
    if file is None:
        return
    with ExitStack() as stack:
        try:
            handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
            stack.callback(Path(name).unlink, missing_ok=True)
            with os.fdopen(handle, "w", encoding="ascii") as out:
                out.write(encode_reports(list(reports)))
            Path(name).chmod(0o644)
            Path(name).replace(file)
        except OSError as error:
            text = f"the report {file} can't be written: {error.strerror}"
            raise UsageError("report-unwritable", text, "--report FILE in a folder that exists") from error
