"""The real collection of a command: what it would run, under the journal, without running it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.machine.child import run_child
from gitledger.suites.inject import child_environment
from gitledger.suites.journal import read_journal

__all__ = ["Collected", "collect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """`full` before any choice, `selected` after it, as collected; `fault` says why there is no collection."""

    full: tuple[str, ...] = ()
    selected: tuple[str, ...] = ()
    rootdir: str | None = None
    fault: str = ""


def collect(
    argv: Sequence[str],
    *,
    root: Path,
    folder: Path,
    environ: Mapping[str, str],
    clock: Callable[[], datetime],
    timeout_s: float | None = None,
) -> Collected:
    """Return what a pytest command collects. `folder` must be fresh and outside the tree.

    It is told not to run by `PYTEST_ADDOPTS`, whatever stands before pytest in the command.
    """
    plugin = folder / "plugin"
    plugin.mkdir(parents=True)
    journal, nonce = folder / "journal", os.urandom(16).hex()
    env = child_environment(environ, journal=journal, nonce=nonce, folder=plugin)
    env["PYTEST_ADDOPTS"] = " ".join(filter(None, [env.get("PYTEST_ADDOPTS", ""), "--collect-only", "-q"]))
    ended = run_child(argv, cwd=root, env=env, log=folder / "log", clock=clock, timeout_s=timeout_s)
    last = ((folder / "log").read_bytes().decode("utf-8", "replace").strip().splitlines() or ["no output"])[-1]
    if not journal.exists():
        return Collected(fault=f"no pytest ran: {last}")
    found = read_journal(journal.read_bytes(), nonce)
    broken = [node_id for outcome, node_id in found.collectors if outcome != "skipped"]
    if broken:
        return Collected(fault=f"collection failed in {', '.join(broken[:3])}")
    if found.distrust or not found.is_collected or not found.is_full or ended.status not in (0, 5):
        return Collected(fault=f"collection broke off: {found.distrust or last}")
    return Collected(full=tuple(found.table), selected=tuple(found.selected_ids), rootdir=found.facts.rootdir)
