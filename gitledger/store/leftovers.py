"""What killed processes left in the folder for temporary files and among the objects, swept by the next run.

Only what is ours by name and owner, and old: its newest file was last written two days ago, as the file system's
own clock tells. What a process still has open stays, where the system can say so.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["OLD_S", "OWNER", "sweep_folders", "sweep_objects"]

OLD_S = 2 * 24 * 3600
"""The age in seconds at which a leftover is one."""
OWNER = "of"
"""The file of a folder that names the note of what it belongs to: where that still stands, the folder does."""
_PREFIX = "gitledger-"
_OBJECT = "tmp_object_git2_*"


def sweep_folders(where: Path) -> tuple[Path, ...]:
    """Remove our own old temporary folders in `where`, and return them. Never raises."""
    with contextlib.suppress(OSError):
        named = [path for path in where.iterdir() if path.name.startswith(_PREFIX)]
        mine = [path for path in named if path.is_dir() and not path.is_symlink() and _is_mine(path)]
        old = [path for path in _old(mine, where) if not _is_wanted(path)]
        busy = _open_files() if old else frozenset()
        found = [path for path in old if not any(file.startswith(f"{path}/") for file in busy)]
        for path in found:
            shutil.rmtree(path, ignore_errors=True)
        return tuple(found)
    return ()


def sweep_objects(common: Path) -> tuple[Path, ...]:
    """Remove objects that were never finished (git itself sweeps its own only), and return them. Never raises."""
    with contextlib.suppress(OSError):
        objects = common / "objects"
        found = _old(list(objects.glob(f"??/{_OBJECT}")) + list(objects.glob(_OBJECT)), objects)
        for path in found:
            path.unlink(missing_ok=True)
        return tuple(found)
    return ()


def _is_mine(path: Path) -> bool:
    return path.lstat().st_uid == os.geteuid()


def _is_wanted(path: Path) -> bool:
    """Tell whether a note stands that says what the folder is kept for: a run that is still to be recorded."""
    try:
        return Path((path / OWNER).read_text("utf-8", "surrogateescape")).exists()
    except (OSError, ValueError):
        return False


def _old(paths: Iterable[Path], beside: Path) -> list[Path]:
    """Return the paths in which nothing is new, by the clock that the files beside them are dated by."""
    found = list(paths)
    if not found:
        return []
    with tempfile.TemporaryFile(dir=beside) as file:
        now_s = os.fstat(file.fileno()).st_mtime
    return [path for path in found if all(now_s - time_s > OLD_S for time_s in _times_s(path))]


def _times_s(path: Path) -> Iterator[float]:
    """Yield when a file was written, or a folder and all in it; most need no look at what is in them."""
    yield path.lstat().st_mtime
    if path.is_dir():
        yield from (child.lstat().st_mtime for child in path.rglob("*"))


def _open_files() -> frozenset[str]:
    """Return the files that processes have open, as far as this system and this user can tell."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            found.add(str(link.readlink()))
    return frozenset(found)
