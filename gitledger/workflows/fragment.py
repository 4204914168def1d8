"""The coverage fragment of a run that has just ended: read by the interpreter that measured, bound to blobs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gitledger.errors import LedgerError
from gitledger.machine.child import run_child
from gitledger.records.fragments import encode_fragment
from gitledger.records.ids import BlobId
from gitledger.suites.inject import without_keys
from gitledger.suites.measured import (
    MeasureError,
    Measurement,
    facts_of,
    fragment_from,
    prepare_reading,
    read_answer,
)
from gitledger.wording import counted
from gitledger.workflows.request import Before
from gitledger.workflows.session import Session

__all__ = ["fragment_of_run"]

READING_TIMEOUT_S = 1800.0
"""How long coverage may take to analyse the sources."""


def fragment_of_run(session: Session, before: Before, folder: Path) -> tuple[bytes | None, tuple[str, ...]]:
    """Return the fragment's body and sentences about it; None where the run measured nothing, or nobody can tell.

    `folder` is the companion's. Never raises for what the run left behind: a run without its fragment is recorded
    all the same, and says so.
    """
    try:
        found = facts_of(folder)
        return (None, ()) if found is None else _read(session, before, folder, found)
    except LedgerError as error:
        hint = f"; {error.hint}" if error.hint else ""
        return None, (f"no coverage is recorded: {error.message}{hint}",)


def _read(
    session: Session, before: Before, folder: Path, found: Measurement
) -> tuple[bytes | None, tuple[str, ...]]:
    root = session.repo.worktree or Path()
    reading = prepare_reading(found, folder, root=root, tracked=_tracked(session, before))
    if reading is None:
        return None, ("no coverage is recorded: the run measured, and saved no data",)
    argv, answer = reading
    run_child(
        argv,
        cwd=root,
        env=without_keys(session.environ),
        log=folder / "reading" / "log",
        clock=session.now,
        timeout_s=READING_TIMEOUT_S,
    )
    fragment = fragment_from(read_answer(answer), found, lambda paths: _blobs(session, paths))
    notes = []
    if fragment.outside_count:
        named = ", ".join(ascii(name)[1:-1] for name in fragment.outside[:3])
        notes.append(
            f"coverage: {counted(fragment.outside_count, 'measured file')} not among the commit's: {named}"
        )
    return encode_fragment(fragment), tuple(notes)


def _tracked(session: Session, before: Before) -> list[str]:
    """Return the paths of the commit's regular files."""
    listed = session.repo.git.run("ls-tree", "-r", "-z", "--full-tree", before.head).stdout
    found = []
    for line in listed.split(b"\0"):
        mode, _, path = line.partition(b"\t")
        if mode.startswith(b"100"):
            found.append(path.decode("utf-8", "surrogateescape"))
    return found


def _blobs(session: Session, paths: list[str]) -> Mapping[str, BlobId]:
    """Return the blobs that git would make of files as they stand, line ends and filters as git applies them."""
    if any("\n" in path or path.startswith(chr(34)) for path in paths):
        raise MeasureError("coverage-unreadable", "a measured file has a name that git takes for a quoted one")
    lines = "".join(f"{path}\n" for path in paths).encode("utf-8", "surrogateescape")
    done = session.repo.git.run("hash-object", "--stdin-paths", stdin=lines) if paths else None
    ids = done.text.split() if done else []
    return dict(zip(paths, map(BlobId, ids), strict=True))
