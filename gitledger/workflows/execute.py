"""One run of a shard's command under the recorder's eyes: child, journal or report, and what moved meanwhile."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gitledger import __version__
from gitledger.config.schema import DURATIONS_PATH
from gitledger.dataclass import replace
from gitledger.errors import ConfigError, InternalError, MachineError
from gitledger.machine.child import run_child
from gitledger.machine.environment import host_name
from gitledger.store.edits import Edits
from gitledger.suites.following import Following
from gitledger.suites.inject import child_environment, with_observer, without_keys
from gitledger.suites.part import with_companion
from gitledger.workflows.aftermath import aftermath
from gitledger.workflows.ahead import load_ahead
from gitledger.workflows.declared import is_declared_command
from gitledger.workflows.flight import Flight, FlightNote
from gitledger.workflows.reports import look_at_report, result_of_leftover
from gitledger.workflows.request import Before, RecordRequest
from gitledger.workflows.scene import Executed, Scene
from gitledger.workflows.session import Session

if TYPE_CHECKING:
    from gitledger.workflows.traced import Traced

__all__ = ["execute"]

DUMP_SIGNAL = int(signal.SIGUSR1)
"""At which pytest writes its stacks before a hang is ended; only processes that handle it get it."""

MAX_NOTED = 1000
"""Paths of either kind of dirt that a note keeps: whether there is any is what counts."""


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
    results, declared = request.definition.results, request.definition.command
    scene = Scene(
        folder=folder,
        log=request.log or folder / "log",
        nonce=os.urandom(16).hex(),
        argv=argv,
        as_declared=declared is not None and is_declared_command(argv, declared, session.environ),
        earlier=look_at_report(results, root),
    )
    split = request.definition.split
    durations = session.repo.file_at(before.head, DURATIONS_PATH) if split else None
    env, observed = without_keys(session.environ, pass_agent=request.pass_agent), None
    if results.kind == "pytest":
        scene.plugin.mkdir()
        env = child_environment(
            session.environ,
            journal=scene.journal,
            nonce=scene.nonce,
            folder=scene.plugin,
            pass_agent=request.pass_agent,
            marker=request.definition.marker,
            dump_signal=DUMP_SIGNAL,
        )
        env = with_companion(env, folder=scene.plugin, split=split, durations=durations)
        scene.observed.parent.mkdir()
        env, observed = with_observer(env, folder=scene.observed.parent, root=root)
    traced = _traced(env, root=root, folder=folder) if request.trace else None
    marker, flight, held = os.urandom(8).hex(), request.flight, request.held
    if flight is not None:
        held = (*held, flight.lock) if flight.lock >= 0 else held
        flight.begin(_note(session, request, before, scene, marker))
    if request.began is not None:
        request.began()
    following = Following(scene.journal, scene.nonce) if results.kind == "pytest" else None
    with following or nullcontext(), _unless_started(flight):
        ended = run_child(
            argv,
            cwd=root,
            env=env,
            log=scene.log,
            clock=session.now,
            timeout_s=request.timeout_s,
            stall_s=request.stall_s,
            progress=lambda: scene.journal.stat().st_size if scene.journal.exists() else 0,
            dump_signal=DUMP_SIGNAL if results.kind == "pytest" else 0,
            echo=request.echo,
            interrupts=request.interrupts,
            held=held,
            tracing=None if traced is None else traced.tracing,
            marker=marker,
            end_file=None if flight is None else flight.end_file.absolute(),
            started=partial(load_ahead, session),
        )
    edits = Edits(session.repo.git)  # git looks at the tree while we read what the run left
    executed = aftermath(
        session, request, before, scene, ended, observed=observed, traced=traced, following=following
    )
    return replace(executed, after=edits)


def _traced(env: Mapping[str, str], *, root: Path, folder: Path) -> Traced:
    from gitledger.machine.trace import find_tracer  # loaded for the few runs that ask for it
    from gitledger.workflows.traced import Traced

    return Traced.begin(root, folder, find_tracer(env, folder))


@contextmanager
def _unless_started(flight: Flight | None) -> Iterator[None]:
    """Let nothing be kept of a command that could not be started."""
    try:
        yield
    except (MachineError, InternalError):
        if flight is not None:
            flight.never_began()
        raise


def _note(session: Session, request: RecordRequest, before: Before, scene: Scene, marker: str) -> FlightNote:
    """Return what is noted down of a run, so that it can be recorded should its driver be killed."""
    return FlightNote(
        commit=before.head,
        argv=scene.argv,
        as_declared=scene.as_declared,
        nonce=scene.nonce,
        marker=marker,
        manifest=before.manifest.digest,
        changed=before.state.changed[:MAX_NOTED],
        untracked=before.state.untracked[:MAX_NOTED],
        shadows=before.shadows,
        is_traced=request.trace,
        earlier=scene.earlier,
        mode=request.mode,
        devices={name: value for name, value in session.environ.items() if name.endswith("_VISIBLE_DEVICES")},
        version=__version__,
        host=host_name(),
        started_at=session.now(),
    )
