"""Processes of runs whose driver and keeper were killed together: found by their run's marker, and ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gitledger.machine.processes import MARKER, end_marked
from gitledger.wording import counted
from gitledger.workflows.flight import crashes
from gitledger.workflows.session import Session

__all__ = ["end_orphans"]


def end_orphans(session: Session, notes: Path) -> Iterator[str]:
    """End what dead runs of this work tree left alive, by TERM and KILL; yield a sentence for each that had any.

    Who was started by such a run itself (a terminal that one of its shards opened)
    ends nothing of it.
    """
    mine = session.environ.get(MARKER, "").split(":")
    for crash in crashes(notes):
        if crash.note.marker in mine:
            continue
        number = end_marked(crash.note.marker)
        if number:
            what = counted(number, "process", "processes")
            yield f"ended {what} that {crash.flight.key} had left when its driver was killed"
