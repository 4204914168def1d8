"""Runs that are under way, noted down: when a driver is killed, the next one finds how far they had come.

A note says what ran, on what, and where its traces lie. Beside it its keeper writes how the command ended, and its
driver the id of the receipt before storing it. All of it goes when the receipt is stored; a note that is still
there when no driver lives is evidence whose recorder died, or could not store it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import LedgerError, MachineError
from gitledger.records.decode import format_time, parse_time
from gitledger.records.ids import CommitId, RecordId, ShardKey
from gitledger.suites.report_file import FileStamp

__all__ = ["Crash", "Flight", "FlightNote", "crashes", "take_off"]

_NOTE, _END, _RECORD = ".json", ".end", ".record"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightNote:
    """What has to be known of a run to record it without its driver.

    `manifest` is the digest of its inputs before it began, `earlier` its report file as it was then, `devices` the
    variables that gave it its devices, `marker` what its processes carry, `version` the recorder's own.
    """

    commit: CommitId
    argv: tuple[str, ...]
    as_declared: bool
    nonce: str
    marker: str
    manifest: str
    earlier: FileStamp | None
    mode: str
    devices: dict[str, str]
    version: str
    started_at: datetime

    def encode(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        told = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        earlier = None if self.earlier is None else dataclasses.astuple(self.earlier)
        return {**told, "argv": list(self.argv), "earlier": earlier, "started_at": format_time(self.started_at)}

    @classmethod
    def decode(cls, told: dict[str, Any]) -> FlightNote:
        """Return the note; raises `ValueError`, `TypeError` or `KeyError` for what is none."""
        words = ("nonce", "marker", "manifest", "mode", "version")
        if not told["marker"]:
            raise ValueError("a run without a marker")
        return cls(
            commit=CommitId(told["commit"]),
            argv=tuple(map(str, told["argv"])),
            as_declared=told["as_declared"] is True,
            earlier=None if told["earlier"] is None else FileStamp(*map(int, told["earlier"])),
            devices={str(name): str(value) for name, value in told["devices"].items()},
            started_at=parse_time(told["started_at"]),
            **{name: str(told[name]) for name in words},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """One run that is under way: the folder that it works in, its note, and what is written beside it."""

    key: ShardKey
    folder: Path
    note: Path

    @property
    def end_file(self) -> Path:
        """Where the keeper writes how the command ended."""
        return self.note.with_suffix(_END)

    @property
    def record_file(self) -> Path:
        """Where the id of the receipt stands that is about to be stored."""
        return self.note.with_suffix(_RECORD)

    def begin(self, note: FlightNote) -> None:
        """Note the run down before its command starts; raises `MachineError` `flight-unwritable`."""
        half = self.note.with_suffix(".half")
        with _refusing(self.note.parent):
            half.touch(mode=0o600)
            half.write_text(
                json.dumps({"folder": str(self.folder), "key": str(self.key)} | note.encode()), "utf-8"
            )
            half.rename(self.note)

    def about_to_store(self, record: RecordId) -> None:
        """Say which receipt will be this run's, so that it is not made twice. Never raises."""
        with suppress(OSError):
            self.record_file.write_text(record, "ascii")

    def clear(self, *, with_folder: bool = True) -> None:
        """Remove all of it; what says that it is done goes last, so that a kill between leaves no doubt."""
        if with_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        halves = (self.note.with_suffix(".half"), self.end_file.with_suffix(f"{_END}.half"))
        for file in (*halves, self.end_file, self.note, self.record_file):
            with suppress(OSError):
                file.unlink(missing_ok=True)


@contextmanager
def take_off(notes: Path, key: ShardKey) -> Iterator[Flight]:
    """Yield a flight with a fresh folder outside the tree; raises `MachineError` `flight-unwritable`.

    It is cleared where the run could not begin, or by whoever has stored its receipt: a run that can't be stored,
    or whose driver is killed, leaves what the next one needs to record it.
    """
    with _refusing(notes):
        notes.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _refusing(Path(tempfile.gettempdir())):
        folder = Path(tempfile.mkdtemp(prefix="gitledger-"))
    # A name of its own: a note that can't be recorded now is not written over by the shard's next run.
    flight = Flight(key=key, folder=folder, note=notes / f"{key}.{secrets.token_hex(4)}{_NOTE}")
    try:
        yield flight
    except BaseException:
        flight.clear()
        raise


@contextmanager
def _refusing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        text = f"a run can't be noted down in {folder}: {error.strerror}"
        raise MachineError(
            "flight-unwritable", text, f"make room in {folder}, and let it be written to"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """A run whose driver died or could not store it. `has_folder`: its traces are still there, and ours."""

    flight: Flight
    note: FlightNote
    has_folder: bool

    def last_sign_s(self) -> float:
        """Return when the run last wrote something, in seconds since the epoch."""
        files = self.flight.folder.rglob("*") if self.has_folder else ()
        times = [path.stat().st_mtime for path in files if path.is_file()]
        return max([self.flight.note.stat().st_mtime, *times])

    def clear(self) -> None:
        """Remove all of it; a folder that is not ours stays."""
        self.flight.clear(with_folder=self.has_folder)


def crashes(notes: Path) -> list[Crash]:
    """Return the runs that died with their driver, the oldest first; call it where no driver lives.

    Unreadable notes are removed.
    """
    found = []
    for note in notes.glob(f"*{_NOTE}"):
        try:
            told = json.loads(note.read_bytes())
            flight = Flight(key=ShardKey.parse(told["key"]), folder=Path(told["folder"]), note=note)
            crash = Crash(flight=flight, note=FlightNote.decode(told), has_folder=_is_ours(flight.folder))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, LedgerError):
            with suppress(OSError):
                note.unlink(missing_ok=True)
            continue
        found.append(crash)
    return sorted(found, key=lambda crash: crash.note.started_at)


def _is_ours(folder: Path) -> bool:
    """Tell whether a note names a folder as `take_off` makes them: it will be removed."""
    is_named = folder.parent == Path(tempfile.gettempdir()) and folder.name.startswith("gitledger-")
    return is_named and folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.geteuid()
