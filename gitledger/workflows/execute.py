"""One run of a shard's command under the recorder's eyes: child, journal or report, and what moved meanwhile."""

from __future__ import annotations

import secrets
import signal
import tempfile
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from gitledger.config.schema import DURATIONS_PATH
from gitledger.errors import ConfigError, DecodeError, ManifestError
from gitledger.machine.child import ChildExit, run_child
from gitledger.machine.redact import excerpt, secret_values
from gitledger.machine.trace import find_tracer
from gitledger.manifest.resolve import resolve
from gitledger.records.bodies import Inputs
from gitledger.store.extras import ExtraFiles
from gitledger.store.facts import CommitFacts
from gitledger.suites.cut import read_durations
from gitledger.suites.inject import child_environment, with_observer, without_keys
from gitledger.suites.journal import read_journal
from gitledger.suites.part import is_the_part, of_part, with_companion
from gitledger.suites.recorder import summarise
from gitledger.suites.result import SuiteResult, conclude
from gitledger.workflows.declared import is_declared_command, ran_as_declared
from gitledger.workflows.fragment import fragment_of_run
from gitledger.workflows.observed import inputs_of_run
from gitledger.workflows.reports import look_at_report, result_of_leftover, result_of_run
from gitledger.workflows.request import Before, RecordRequest
from gitledger.workflows.session import Session
from gitledger.workflows.traced import Traced

__all__ = ["LOG_EXCERPT_BYTES", "Executed", "execute", "result_of_journal"]

LOG_EXCERPT_BYTES = 64 << 10
DUMP_SIGNAL = int(signal.SIGUSR1)
"""At which pytest writes its stacks before a hang is ended; only processes that handle it get it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """What ran and how it ended (`ended` None: nothing ran). `reasons` are the recorder's own against it.

    `coverage` is the body of its fragment, None where it measured nothing.
    """

    ended: ChildExit | None
    started_at: datetime
    ended_at: datetime
    result: SuiteResult
    argv: tuple[str, ...]
    reasons: tuple[str, ...]
    log_text: str = ""
    coverage: bytes | None = None
    inputs: Inputs | None = None


def execute(session: Session, request: RecordRequest, before: Before) -> Executed:
    """Return how the command ended; raises `ConfigError` without one, `MachineError` where it can't start."""
    if request.command is None:
        return _after_the_fact(session, request)
    if not request.command:
        raise ConfigError(
            "no-command",
            f"shard {request.key} declares no command",
            f"git ledger record --shard {request.key} -- COMMAND",
        )
    if request.flight is not None:
        return _in_folder(session, request, request.command, before, request.flight.folder)
    with tempfile.TemporaryDirectory(prefix="gitledger-") as folder:
        return _in_folder(session, request, request.command, before, Path(folder))


def _after_the_fact(session: Session, request: RecordRequest) -> Executed:
    root = session.repo.worktree or Path()
    now = session.now()
    result = result_of_leftover(request.report or request.definition.results, root, now)
    return Executed(ended=None, started_at=now, ended_at=now, result=result, argv=(), reasons=())


def _in_folder(
    session: Session, request: RecordRequest, argv: tuple[str, ...], before: Before, folder: Path
) -> Executed:
    root = session.repo.worktree or Path()
    results = request.definition.results
    journal, nonce = folder / "journal", secrets.token_hex(16)
    split = request.definition.split
    durations = session.repo.file_at(before.head, DURATIONS_PATH) if split else None
    env = without_keys(session.environ, pass_agent=request.pass_agent)
    plugin, observed = folder / "plugin", folder / "observed"
    if results.kind == "pytest":
        plugin.mkdir()
        env = child_environment(
            session.environ,
            journal=journal,
            nonce=nonce,
            folder=plugin,
            pass_agent=request.pass_agent,
            marker=request.definition.marker,
            dump_signal=DUMP_SIGNAL,
        )
        env = with_companion(env, folder=plugin, split=split, durations=durations)
        observer = folder / "observer"
        observer.mkdir()
        env, observed = with_observer(env, folder=observer, root=root)
    traced = Traced.begin(root, folder, find_tracer(env, folder)) if request.trace else None
    earlier = look_at_report(results, root)
    log = request.log or folder / "log"
    if request.flight is not None:
        request.flight.begin(commit=before.head, nonce=nonce, argv=argv, started_at=session.now())
    ended = run_child(
        argv,
        cwd=root,
        env=env,
        log=log,
        clock=session.now,
        timeout_s=request.timeout_s,
        stall_s=request.stall_s,
        progress=lambda: journal.stat().st_size if journal.exists() else 0,
        dump_signal=DUMP_SIGNAL if results.kind == "pytest" else 0,
        echo=request.echo,
        interrupts=request.interrupts,
        held=request.held,
        tracing=None if traced is None else traced.tracing,
    )
    if results.kind == "pytest":
        result = result_of_journal(journal, nonce, ended, root)
    else:
        result = result_of_run(results, root, request.key, ended, earlier)
    told = observed if results.kind == "pytest" else None
    inputs, unobserved = inputs_of_run(session, before, result, told, traced)
    result = replace(result, notes=(*result.notes, *unobserved))
    reasons = _reasons(session, request, argv, before, result)
    if split is not None:
        if not is_the_part(result, split, read_durations(durations)):
            reasons.append("not-the-part")
        result = of_part(result, split)
    fragment: bytes | None = None
    if results.kind == "pytest" and request.definition.coverage != "none":
        fragment, notes = fragment_of_run(session, before, plugin)
        result = replace(result, notes=(*result.notes, *notes))
    return Executed(
        ended=ended,
        started_at=ended.started_at,
        ended_at=ended.ended_at,
        result=result,
        argv=argv,
        reasons=tuple(reasons),
        log_text=excerpt(log, LOG_EXCERPT_BYTES, secret_values(session.environ)),
        coverage=fragment,
        inputs=inputs,
    )


def result_of_journal(journal: Path, nonce: str, ended: ChildExit, root: Path) -> SuiteResult:
    """Return what the journal says, decoded as hostile; without one, or with one that can't be read: not green."""
    repository = str(root.resolve())
    try:
        data = journal.read_bytes()
    except OSError:
        return summarise(None, ended, repository=repository)
    try:
        return summarise(read_journal(data, nonce), ended, repository=repository)
    except DecodeError:
        return conclude(reasons=["journal-mistrusted"], results=(), full_ids=(), selected_ids=())


def _reasons(
    session: Session, request: RecordRequest, argv: tuple[str, ...], before: Before, result: SuiteResult
) -> list[str]:
    """Return what speaks against the receipt beside the results: another command, or inputs that moved."""
    reasons = []
    declared = request.definition.command
    if request.declared and not (
        declared is not None
        and is_declared_command(argv, declared, session.environ)
        and ran_as_declared(result.args, declared)
    ):
        reasons.append("other-command")
    if session.repo.head() != before.head:
        reasons.append("head-moved")
    if request.definition.extra_paths and _extra_moved(session, request, before):
        reasons.append("extra-moved")
    return reasons


def _extra_moved(session: Session, request: RecordRequest, before: Before) -> bool:
    """Tell whether the extra inputs are others after the run than before it: the result stands on neither."""
    repo = session.repo
    facts = CommitFacts(repo.objects, repo.commit(before.head).tree)
    try:
        return (
            resolve(request.definition, facts, ExtraFiles(repo.worktree or Path())).extra != before.manifest.extra
        )
    except ManifestError:
        return True
