"""Processes of runs whose driver and keeper were killed together: found by what is the run's own, and ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gitledger.machine.processes import MARKER, end_marked
from gitledger.wording import counted
from gitledger.workflows.flight import crashes
from gitledger.workflows.session import Session

__all__ = ["end_orphans"]


def end_orphans(session: Session, notes: Path, *, logs: Path | None) -> Iterator[str]:
    """End what dead runs of this work tree left alive, by TERM and KILL; yield a sentence for each that had any.

    Who was started by such a run itself (a terminal that one of its shards opened) ends nothing of it. `logs` is
    the folder of the driver's logs where nobody else may drive; a run of another driver may write to them by now.
    """
    mine = session.environ.get(MARKER, "").split(":")
    for crash in crashes(notes):
        if crash.note.marker in mine:
            continue
        own = crash.flight.folder / "log"
        if crash.has_folder and own.exists():
            log: Path | None = own.resolve()
        else:
            log = None if logs is None else (logs / f"{crash.flight.key}.log").resolve()
        number = end_marked(crash.note.marker, log=log)
        if number:
            what = counted(number, "process", "processes")
            yield f"ended {what} that {crash.flight.key} had left when its driver was killed"
