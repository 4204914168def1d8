"""Processes of runs whose driver and keeper were killed together: found by their run's marker, and ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gitledger.machine.processes import MARKER, end_marked
from gitledger.machine.sole import while_undriven
from gitledger.workflows.flight import crashes
from gitledger.workflows.session import Session

__all__ = ["end_orphans", "end_orphans_unless_driven"]


def end_orphans(session: Session, notes: Path) -> Iterator[str]:
    """End what dead runs of this work tree left alive, by TERM and KILL; yield a sentence for each that had any.

    Call it where no driver lives. Who was started by such a run itself (a terminal that one of its shards opened)
    ends nothing of it.
    """
    mine = session.environ.get(MARKER, "").split(":")
    for crash in crashes(notes):
        if crash.note.marker in mine:
            continue
        number = end_marked(crash.note.marker)
        if number:
            what = "a process" if number == 1 else f"{number} processes"
            yield f"ended {what} that {crash.flight.key} had left when its driver was killed"


def end_orphans_unless_driven(session: Session) -> list[str]:
    """End them as above, where no driver lives in this work tree; one that does looks after its own."""
    folder = session.repo.git_dir / "gitledger"
    if not any((folder / "flight").glob("*.json")):
        return []
    with while_undriven(folder / "run.lock") as is_undriven:
        return list(end_orphans(session, folder / "flight")) if is_undriven else []
