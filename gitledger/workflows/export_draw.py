"""Many commits drawn by several processes, each a run of neighbours: each costs some hundredths of a second."""

from __future__ import annotations

import gc
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any

from gitledger.errors import LedgerError
from gitledger.workflows.export_matrix import Matrix
from gitledger.workflows.history import History
from gitledger.workflows.known import Known
from gitledger.workflows.session import open_session

__all__ = ["draw"]

LEAST_COMMITS = 25
"""A process is worth its start from so many commits on."""
MAX_PROCESSES = 16
_SHARED: list[Known] = []
"""What was read before processes were forked off, which have it without being handed it; empty otherwise."""


def draw(history: History, *, processes: int | None = None) -> Matrix:
    """Return the matrix of a history; `processes` are as many as this one may use CPUs, unless said otherwise."""
    commits = history.commits
    worth = min(_cpus(), MAX_PROCESSES, len(commits) // LEAST_COMMITS)
    number = worth if processes is None else min(processes, len(commits))
    if number < 2:
        return _drawn(history)
    session = history.session
    world = (
        session.repo.worktree or session.repo.git_dir,
        dict(session.environ),
        session.home,
        session.now(),
        session.offline,
    )
    size = -(-len(commits) // number)
    slices = [commits[start : start + size] for start in range(0, len(commits), size)]
    jobs = [(world, part, history.policy_from) for part in slices]
    matrix = Matrix()
    _open_all(history)
    _SHARED[:] = [history.known]
    try:
        with ProcessPoolExecutor(len(slices), mp_context=multiprocessing.get_context("fork")) as pool:
            for part in pool.map(_draw_slice, jobs):
                matrix.absorb(part)
    except (BrokenProcessPool, OSError):  # no memory, no processes: slower, and the same
        return _drawn(history)
    finally:
        _SHARED.clear()
    return matrix


def _open_all(history: History) -> None:
    """Open the records of all commits that are shown, once for all processes: each needs most of them."""
    known = history.known
    with suppress(LedgerError):  # said of the commits that it concerns, when they are judged
        repository = known.trusted(history.commits[0], history.policy_from).config.repository
        for commit in history.commits:
            known.open(commit, repository)


def _cpus() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if affinity is None else len(affinity(0))


def _drawn(history: History) -> Matrix:
    """Return the matrix, drawn here.

    Judging makes millions of values and no cycles of them; looking for cycles in what is kept took a third of the
    time.
    """
    matrix, is_looked_for = Matrix(), gc.isenabled()
    gc.disable()
    try:
        for column in history.columns():
            matrix.add(column)
    finally:
        if is_looked_for:
            gc.enable()
    return matrix


def _draw_slice(job: tuple[Any, ...]) -> dict[str, Any]:
    (folder, environ, home, now, offline), commits, policy_from = job
    session = open_session(folder, environ=environ, home=home, now=lambda: now, offline=offline)
    history = History(
        session=session,
        known=_SHARED[0].reopened(session),
        commits=commits,
        left_out=0,
        policy_from=policy_from,
    )
    return _drawn(history).plain()
