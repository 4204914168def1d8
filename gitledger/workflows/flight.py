"""Runs that are under way, noted down: when a driver is killed, the next one finds how far they had come.

A note names the folder with the run's journal and holds the nonce that binds it. It goes when the receipt is
stored; one that is still there when no driver lives is evidence whose recorder died.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gitledger.records.decode import format_time, parse_time
from gitledger.records.ids import CommitId, ShardKey

__all__ = ["Crash", "Flight", "crashes", "take_off"]

_NOTE = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """One run that is under way: the folder that it works in, and its note."""

    key: ShardKey
    folder: Path
    note: Path

    def begin(self, *, commit: CommitId, nonce: str, argv: Sequence[str], started_at: datetime) -> None:
        """Note the run down before its command starts."""
        told = {
            "argv": list(argv),
            "commit": commit,
            "folder": str(self.folder),
            "key": str(self.key),
            "nonce": nonce,
            "started_at": format_time(started_at),
        }
        half = self.note.with_suffix(".half")
        half.touch(mode=0o600)
        half.write_text(json.dumps(told), "utf-8")
        half.rename(self.note)


@contextmanager
def take_off(notes: Path, key: ShardKey) -> Iterator[Flight]:
    """Yield a flight with a fresh folder outside the tree; only a kill leaves anything of it."""
    notes.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="gitledger-"))
    flight = Flight(key=key, folder=folder, note=notes / f"{key}{_NOTE}")
    try:
        yield flight
    finally:
        flight.note.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """What a note says of a run whose driver died."""

    flight: Flight
    commit: CommitId
    nonce: str
    argv: tuple[str, ...]
    started_at: datetime

    def last_sign(self) -> float:
        """Return when the run last wrote something, in seconds since the epoch."""
        times = [path.stat().st_mtime for path in self.flight.folder.rglob("*") if path.is_file()]
        return max([self.flight.note.stat().st_mtime, *times])

    def clear(self) -> None:
        """Remove the note and the folder."""
        self.flight.note.unlink(missing_ok=True)
        shutil.rmtree(self.flight.folder, ignore_errors=True)


def crashes(notes: Path) -> list[Crash]:
    """Return the runs that died with their driver; call it where no driver lives. Unreadable notes are removed."""
    found = []
    for note in sorted(notes.glob(f"*{_NOTE}")):
        try:
            told = json.loads(note.read_bytes())
            flight = Flight(key=ShardKey.parse(told["key"]), folder=Path(told["folder"]), note=note)
            crash = Crash(
                flight=flight,
                commit=CommitId(told["commit"]),
                nonce=str(told["nonce"]),
                argv=tuple(map(str, told["argv"])),
                started_at=parse_time(told["started_at"]),
            )
        except (OSError, ValueError, TypeError, KeyError):
            note.unlink(missing_ok=True)
            continue
        if _is_ours(flight.folder):
            found.append(crash)
        else:
            note.unlink(missing_ok=True)
    return found


def _is_ours(folder: Path) -> bool:
    """Tell whether a note names a folder as `take_off` makes them: it will be removed."""
    is_named = folder.parent == Path(tempfile.gettempdir()) and folder.name.startswith("gitledger-")
    return is_named and folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.geteuid()
