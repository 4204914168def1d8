"""Runs that are under way, noted down: when a driver is killed, the next one finds how far they had come.

A note says what ran, on what, and where its traces lie. Beside it its keeper writes how the command ended,
and its driver the id of the receipt before storing it. All of it goes when the receipt is stored; a note that is
left is evidence whose recorder died, or could not store it. Driver and keeper hold the note locked: one that is
free is of a run of which nothing lives.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import InternalError, LedgerError, MachineError, StoreError
from gitledger.records.decode import format_time, parse_time
from gitledger.records.ids import CommitId, RecordId, ShardKey
from gitledger.store.leftovers import OWNER, sweep_folders
from gitledger.suites.report_file import FileStamp

__all__ = ["Crash", "Flight", "FlightNote", "crashes", "sweep_halves", "take_off"]

HALF_S = 60.0
_NOTE, _END, _RECORD, _HALF = ".json", ".end", ".record", ".half"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightNote:
    """What has to be known of a run to record it without its driver.

    `manifest` is the digest of its inputs before it began, `earlier` its report file as it was then; `changed`,
    `untracked` and `shadows` are the dirt of the work tree that it began in. `devices` are the variables that gave
    it its devices, `marker` is what its processes carry, `version` the recorder's own, `host` the machine's name.
    `is_traced`: a tracer watched it.
    """

    commit: CommitId
    argv: tuple[str, ...]
    as_declared: bool
    nonce: str
    marker: str
    manifest: str
    changed: tuple[str, ...]
    untracked: tuple[str, ...]
    shadows: tuple[str, ...]
    is_traced: bool
    earlier: FileStamp | None
    mode: str
    devices: dict[str, str]
    version: str
    host: str
    started_at: datetime

    def encode(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        told = {name: getattr(self, name) for name in self.__dataclass_fields__}
        earlier = None if self.earlier is None else dataclasses.astuple(self.earlier)
        return {**told, "earlier": earlier, "started_at": format_time(self.started_at)}

    @classmethod
    def decode(cls, told: dict[str, Any]) -> FlightNote:
        """Return the note; raises `ValueError`, `TypeError` or `KeyError` for what is none."""

        def words(name: str) -> tuple[str, ...]:
            return tuple(map(str, told[name]))

        if not told["marker"]:
            raise ValueError("a run without a marker")
        return cls(
            commit=CommitId(told["commit"]),
            is_traced=told["is_traced"] is not False,
            as_declared=told["as_declared"] is True,
            earlier=None if told["earlier"] is None else FileStamp(*map(int, told["earlier"])),
            devices={str(name): str(value) for name, value in told["devices"].items()},
            started_at=parse_time(told["started_at"]),
            argv=words("argv"),
            changed=words("changed"),
            untracked=words("untracked"),
            shadows=words("shadows"),
            nonce=str(told["nonce"]),
            marker=str(told["marker"]),
            manifest=str(told["manifest"]),
            mode=str(told["mode"]),
            version=str(told["version"]),
            host=str(told["host"]),
        )


@dataclass(slots=True, kw_only=True)
class Flight:
    """One run that is under way: the folder that it works in, its note, and what is written beside it.

    `lock` is a descriptor of the note that keeps it locked, for the keeper to hold too; -1 where nothing is noted,
    since nobody could tell that the run still lives. `is_needed`: the run must not begin without a note.
    `is_kept`: it is noted down, and its command was started: whatever goes wrong from now on, it is evidence.
    """

    key: ShardKey
    folder: Path
    note: Path
    lock: int = -1
    is_needed: bool = True
    is_kept: bool = False

    @property
    def end_file(self) -> Path:
        """Where the keeper writes how the command ended."""
        return self.note.with_suffix(_END)

    @property
    def record_file(self) -> Path:
        """Where the id of the receipt stands that is about to be stored."""
        return self.note.with_suffix(_RECORD)

    def begin(self, note: FlightNote) -> None:
        """Note the run down before its command starts; raises `MachineError` `flight-unwritable` where needed."""
        if self.lock < 0:
            return
        told = {"folder": str(self.folder), "key": str(self.key)} | note.encode()
        try:
            with _refusing(self.note.parent):
                _write_all(self.lock, json.dumps(told).encode())
                self.note.with_suffix(_HALF).rename(self.note)
        except MachineError:
            if self.is_needed:
                raise
        else:
            self.is_kept = True

    def never_began(self) -> None:
        """Say that the command could not be started: there is nothing to keep."""
        self.is_kept = False

    def could_not_record(self) -> None:
        """Tell whoever records it that its driver was not killed. Never raises."""
        with suppress(OSError):
            self.record_file.touch()

    def about_to_store(self, record: RecordId) -> None:
        """Say which receipt will be this run's, so that it is not made twice. Never raises."""
        with suppress(OSError):
            self.record_file.write_text(record, "ascii")

    def clear(self, *, with_folder: bool = True) -> None:
        """Remove all of it; what says that it is done goes last, so that a kill between leaves no doubt."""
        if with_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        halves = (self.note.with_suffix(_HALF), self.end_file.with_suffix(f"{_END}{_HALF}"))
        for file in (*halves, self.end_file, self.note, self.record_file):
            with suppress(OSError):
                file.unlink(missing_ok=True)


@contextmanager
def take_off(notes: Path, key: ShardKey, *, is_needed: bool = True) -> Iterator[Flight]:
    """Yield a flight with a fresh folder outside the tree; raises `MachineError` `flight-unwritable`.

    It is cleared where the run could not begin, or by whoever has stored its receipt: a run that can't be stored,
    or whose driver is killed, leaves what the next one needs to record it. So does one after which anything else
    goes wrong (a key that can't sign any more, a full disk, a clone that was moved): `StoreError` `not-recorded`.
    """
    with _refusing(notes):
        notes.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _refusing(Path(tempfile.gettempdir())):
        sweep_folders(Path(tempfile.gettempdir()))
        folder = Path(tempfile.mkdtemp(prefix="gitledger-"))
    # A name of its own: a note that can't be recorded now is not written over by the shard's next run.
    note = notes / f"{key}.{os.urandom(4).hex()}{_NOTE}"
    flight = Flight(key=key, folder=folder, note=note, is_needed=is_needed)
    try:
        with _refusing(folder):
            (folder / OWNER).write_text(str(note.absolute()), "utf-8", "surrogateescape")
        with _refusing(notes):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            lock = os.open(note.with_suffix(_HALF), flags, 0o600)
        try:
            if _lock(lock) is not None or is_needed:
                flight.lock = lock
            yield flight
        finally:
            os.close(lock)
    except BaseException as error:
        if not flight.is_kept:
            flight.clear()
            raise
        flight.could_not_record()
        if isinstance(error, InternalError) or not isinstance(error, LedgerError | OSError):
            raise
        raise _not_recorded(key, error) from error


def _not_recorded(key: ShardKey, error: LedgerError | OSError) -> StoreError:
    """Return the error for a run of which no receipt could be made; what is needed for it is kept."""
    why = f"{error.message} [{error.code}]" if isinstance(error, LedgerError) else error.strerror or "unknown"
    text = f"what {key} came to could not be recorded, and is kept for the next run or record: {why}"
    hint = error.hint if isinstance(error, LedgerError) else ""
    return StoreError("not-recorded", text, hint or "git ledger run, once that is mended")


def _lock(fd: int) -> bool | None:
    """Return whether a note could be locked, or somebody holds it; None where the file system knows no locks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _write_all(fd: int, content: bytes) -> None:
    while content:
        content = content[os.write(fd, content) :]


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


def crashes(notes: Path) -> Iterator[Crash]:
    """Yield the runs that died with their driver, the oldest first, each locked until the next is asked for.

    Unreadable notes are removed.
    """
    for crash in _noted(notes):
        try:
            lock = os.open(crash.flight.note, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # somebody else has recorded it meanwhile
            continue
        try:
            if _lock(lock) is not False and crash.flight.note.exists():
                yield crash
        finally:
            os.close(lock)


def sweep_halves(notes: Path, now: datetime) -> None:
    """Remove what was written of notes that never were, by processes that were killed over a minute ago."""
    for path in notes.glob("*"):
        name = path.name.removesuffix(_HALF).removesuffix(_END).removesuffix(_RECORD)
        note = path.with_name(name + _NOTE)
        with suppress(OSError):
            if path.suffix != _NOTE and not note.exists() and now.timestamp() - path.stat().st_mtime > HALF_S:
                path.unlink()


def _noted(notes: Path) -> list[Crash]:
    found = []
    for note in notes.glob(f"*{_NOTE}"):
        try:
            told = json.loads(note.read_bytes())
            flight = Flight(key=ShardKey.parse(told["key"]), folder=Path(told["folder"]), note=note)
            crash = Crash(flight=flight, note=FlightNote.decode(told), has_folder=_is_ours(flight))
        except OSError:  # another user's, perhaps
            continue
        except (ValueError, TypeError, KeyError, AttributeError, LedgerError):
            with suppress(OSError):
                note.unlink(missing_ok=True)
            continue
        found.append(crash)
    return sorted(found, key=lambda crash: crash.note.started_at)


def _is_ours(flight: Flight) -> bool:
    """Tell whether a note names a folder that `take_off` made for it: it will be removed.

    The next driver may look for temporary files elsewhere, and the clone may have been moved: the folder itself
    says whose it is.
    """
    folder = flight.folder
    try:
        owner = Path((folder / OWNER).read_text("utf-8", "surrogateescape")).name
        is_mine = folder.lstat().st_uid == os.geteuid()
    except (OSError, ValueError):
        return False
    is_named = folder.is_absolute() and folder.name.startswith("gitledger-") and not folder.is_symlink()
    return is_named and is_mine and owner == flight.note.name
