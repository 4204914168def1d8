"""One driver at a time in a work tree, by a lock that the kernel gives back with its last holder.

The keepers of a driver's runs hold the lock as well: after a driver was killed it is free exactly when nothing of
its runs is left, so that whoever resumes never meets them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gitledger.errors import MachineError
from gitledger.machine.keeper import read_file

__all__ = ["ORPHANS_S", "sole_driver"]

ORPHANS_S = 30.0
"""How long the runs of a killed driver may take to end; their keepers need about half of it at most."""
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
        if not _lock(fd, time.monotonic() + wait_s, patient=patient):
            yield ()
            return
        _sign(fd, file)
        yield (fd,)
    finally:
        os.close(fd)


def _lock(fd: int, until_s: float, *, patient: bool) -> bool:
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _wait(os.pread(fd, 200, 0), until_s, patient=patient)
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                return False
            raise MachineError("lock-unwritable", f"no lock can be had: {error.strerror}", "") from error
        else:
            return True


def _sign(fd: int, file: Path) -> None:
    """Write down who holds the lock; raises `MachineError` `lock-unwritable`, where the disk is full."""
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, _identity(os.getpid()), 0)
    except OSError as error:
        raise MachineError("lock-unwritable", f"{file} can't be written: {error.strerror}", "make room") from error


def _wait(holder: bytes, until_s: float, *, patient: bool) -> None:
    pid = holder.split(b" ")[0].decode("ascii", "replace")
    if not patient and pid.isdigit() and holder == _identity(int(pid)):
        raise MachineError(
            "run-in-progress",
            f"process {pid} runs shards in this work tree already",
            "wait for it; another work tree (`git worktree add`) can run its own",
        )
    if time.monotonic() >= until_s:
        raise MachineError(
            "run-in-progress",
            f"what a driver that was killed (process {pid or '?'}) had started still runs",
            "end it, then run again",
        )
    time.sleep(0.05)


def _identity(pid: int) -> bytes:
    """Return a process's number and the time of its start (proc(5) `stat`, field 22): its own together."""
    fields = read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return b"%d %s" % (pid, fields[19] if len(fields) > 19 else b"")
