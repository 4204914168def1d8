"""What one run leaves for the next: a file beside the repository's objects, which may vanish at any moment.

It is a convenience and nothing else: a file that is another user's or open to others is as good as none, and one
that can't be written is not written. It never leaves this clone. What is in it, and whether that is whole, is for
whoever reads it to see.

Several processes may write it at once: each writes a whole file and renames it, and the last one stays.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Sequence
from pathlib import Path

__all__ = ["kept_path", "read_kept", "write_kept"]

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_NEW = ".new"


def kept_path(common_dir: Path, what: str) -> Path:
    """Return where `what` is kept for this user in a repository."""
    return common_dir / "gitledger" / f"{what}-{os.geteuid()}"


def read_kept(path: Path) -> bytes | None:
    """Return a file's content; None where there is none, or where somebody but this user could have written it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(file, "rb") as stream:
            found = os.fstat(file)
            mine = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _OTHERS
            return stream.read() if mine else None
    except OSError:
        return None


def write_kept(path: Path, content: Sequence[bytes]) -> bool:
    """Write a file whole or not at all; False where that isn't possible now."""
    try:
        path.parent.mkdir(exist_ok=True)
        return _write(path, content)
    except OSError:
        return False


def _write(path: Path, content: Sequence[bytes]) -> bool:
    """Write a file whole or not at all. Who holds the lock of the unfinished one is its only writer.

    A process killed here leaves one unfinished file, which the next one takes over.
    """
    new = path.with_name(path.name + _NEW)
    file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(file, "r+b", buffering=0) as stream:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(file), os.lstat(new)):
            return False  # it was finished, and renamed, before its lock was ours
        try:
            stream.truncate()
            os.fchmod(file, 0o600)
            for piece in content:
                view = memoryview(piece)
                while view:
                    view = view[stream.write(view) :]
            new.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                new.unlink()
            raise
    return True
