"""One driver at a time in a work tree, by a lock that the kernel gives back with its last holder.

The keepers of a driver's runs hold the lock as well: after a driver was killed it is free exactly when nothing of
its runs is left, so that whoever resumes never meets them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gitledger.errors import MachineError
from gitledger.machine.keeper import read_file, send
from gitledger.machine.processes import openers

__all__ = ["ORPHANS_S", "sole_driver"]

ORPHANS_S = 30.0
"""How long the runs of a killed driver may take to end; their keepers need about half of it at most."""
NUDGE_S = 1.0
_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)


@contextmanager
def sole_driver(file: Path, *, wait_s: float = ORPHANS_S, patient: bool = False) -> Iterator[tuple[int, ...]]:
    """Hold the lock `file` (made where it is missing); yields the descriptors that hold it.

    A driver that lives is not waited for, unless `patient`; the runs of a dead one are. Where the file system
    knows no locks there is none, and nothing is yielded. Raises `MachineError` `run-in-progress`,
    `lock-unwritable`.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise MachineError("lock-unwritable", f"{file} can't be written: {error.strerror}", "") from error
    try:
        if not _lock(fd, file, time.monotonic() + wait_s, patient=patient):
            yield ()
            return
        _sign(fd, file)
        yield (fd,)
    finally:
        os.close(fd)


def _lock(fd: int, file: Path, until_s: float, *, patient: bool) -> bool:
    nudged_s = float("-inf")
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _refuse_living(os.pread(fd, 200, 0), patient=patient)
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                return False
            raise MachineError("lock-unwritable", f"no lock can be had: {error.strerror}", "") from error
        else:
            return True
        if time.monotonic() >= until_s:
            raise _still_running(file)
        if time.monotonic() - nudged_s >= NUDGE_S and not patient:
            nudged_s = time.monotonic()
            for pid in _keepers(file):
                send(pid, signal.SIGCONT)  # those that their command had stopped end it, and themselves
        time.sleep(0.05)


def _sign(fd: int, file: Path) -> None:
    """Write down who holds the lock; raises `MachineError` `lock-unwritable`, where the disk is full."""
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, _identity(os.getpid()), 0)
    except OSError as error:
        raise MachineError("lock-unwritable", f"{file} can't be written: {error.strerror}", "make room") from error


def _refuse_living(holder: bytes, *, patient: bool) -> None:
    pid = holder.split(b" ")[0].decode("ascii", "replace")
    if not patient and pid.isdigit() and holder == _identity(int(pid)):
        raise MachineError(
            "run-in-progress",
            f"process {pid} runs shards in this work tree already",
            "wait for it; another work tree (`git worktree add`) can run its own",
        )


def _keepers(file: Path) -> list[int]:
    """Return the keepers that hold the lock, and no drivers that wait for it as we do."""
    return [pid for pid in openers(file.resolve()) if b"keeper" in read_file(f"/proc/{pid}/cmdline")]


def _still_running(file: Path) -> MachineError:
    pids = " ".join(map(str, _keepers(file)))
    text = "what a driver that was killed had started still runs"
    return MachineError(
        "run-in-progress", text, f"kill {pids} (and run again)" if pids else "end it, then run again"
    )


def _identity(pid: int) -> bytes:
    """Return a process's number and the time of its start (proc(5) `stat`, field 22): its own together."""
    fields = read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return b"%d %s" % (pid, fields[19] if len(fields) > 19 else b"")
