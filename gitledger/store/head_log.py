"""Whether HEAD was elsewhere for a while: git's own log of it tells (gitrevisions(7), `HEAD@{1}`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

__all__ = ["HeadLog", "head_log", "was_elsewhere"]


class HeadLog(NamedTuple):
    """How far the log of HEAD had come: the file that it is in, and its length in bytes."""

    inode: int
    length: int


def head_log(git_dir: Path) -> HeadLog | None:
    """Return how far the log of a work tree's HEAD has come, None where git keeps none in a file."""
    try:
        found = _log_of(git_dir).stat()
    except OSError:
        return None
    return HeadLog(found.st_ino, found.st_size)


def was_elsewhere(git_dir: Path, since: HeadLog | None) -> bool:
    """Tell whether HEAD has named another commit since then, wherever it is now.

    False where nobody knows: there was no log, or it was written anew meanwhile (`git reflog expire`).
    """
    if since is None:
        return False
    try:
        with _log_of(git_dir).open("rb") as file:
            if os.fstat(file.fileno()).st_ino != since.inode:
                return False
            file.seek(since.length)
            added = file.read()
    except OSError:
        return False
    return any(
        len(words) == 3 and words[0] != words[1] for words in (line.split(b" ", 2) for line in added.splitlines())
    )


def _log_of(git_dir: Path) -> Path:
    return git_dir / "logs" / "HEAD"
