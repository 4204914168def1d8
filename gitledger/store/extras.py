"""Extra paths of a manifest: ignored or generated files of the work tree, known by content (DESIGN section 5).

No symlink is ever followed: each folder on the way is opened as a folder that isn't a link, so that what was
hashed is what lies at that path.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.errors import ManifestError
from gitledger.records.decode import shown
from gitledger.records.ids import Digest
from gitledger.records.tree import MODE_EXECUTABLE, MODE_FILE, MODE_FOLDER, MODE_SYMLINK, TreeEntry

__all__ = ["ExtraFact", "ExtraFiles", "extra_file"]

_CHUNK_BYTES = 1 << 20
_AS_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_AS_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraFact:
    """One regular file: its path from the root, git's mode for it, SHA-256 of its content, size in bytes."""

    path: str
    mode: int
    sha256: Digest
    size: int


def extra_file(work_tree: Path, path: str) -> ExtraFact:
    """Return the fact of one regular file below `work_tree`.

    Raises `ManifestError`, naming the path: `path-outside`, `extra-missing`, `extra-not-regular` (folders,
    devices, symlinks, and symlinks on the way), `extra-unreadable`, `extra-unstable` (changed
    while it was read).
    """
    parts = _parts(path)
    if not parts:
        raise _error("extra-not-regular", path, "is the repository's root, not a file")
    with _folder(work_tree, parts[:-1], path) as parent:
        return _hash(parent, parts[-1], "/".join(parts))


class ExtraFiles:
    """The files below `work_tree` as the manifest room asks for them: entries with an empty `oid`, by path.

    The mode of what is neither a regular file, a folder nor a symlink is 0. `.git` isn't there. Raises
    `ManifestError` `extra-unreadable` where the system refuses to tell.
    """

    def __init__(self, work_tree: Path) -> None:
        self._work_tree = work_tree

    def entry(self, path: str) -> TreeEntry | None:
        """Return what stands at `path` (`""`: the root); None also where a part on the way is no real folder."""
        try:
            parts = _parts(path) if path else []
            if not parts:
                return TreeEntry(MODE_FOLDER, "", "")
            with _folder(self._work_tree, parts[:-1], path) as parent:
                return _entry(parent, parts[-1], path)
        except ManifestError as error:
            _raise_unless_absent(error)
            return None

    def children(self, path: str) -> tuple[TreeEntry, ...]:
        """Return what stands in the folder at `path`, sorted by bytes; nothing where it is no real folder."""
        try:
            with _folder(self._work_tree, _parts(path) if path else [], path) as folder:
                names = sorted(set(_names(folder, path)) - {".git"}, key=os.fsencode)
                found = [_entry(folder, name, f"{path}/{name}") for name in names]
        except ManifestError as error:
            _raise_unless_absent(error)
            return ()
        return tuple(entry for entry in found if entry is not None)

    def sha256(self, path: str) -> Digest:
        """Return the digest of a regular file's content; raises as `extra_file` does."""
        return extra_file(self._work_tree, path).sha256


def _raise_unless_absent(error: ManifestError) -> None:
    if error.code == "extra-unreadable":
        raise error


def _names(folder: int, path: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError as error:
        raise _unreadable(path, error) from error


def _entry(parent: int, name: str, path: str) -> TreeEntry | None:
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error) from error
    return TreeEntry(_git_mode(mode), name, "")


def _git_mode(mode: int) -> int:
    if stat.S_ISREG(mode):
        return MODE_EXECUTABLE if mode & stat.S_IXUSR else MODE_FILE
    if stat.S_ISLNK(mode):
        return MODE_SYMLINK
    return MODE_FOLDER if stat.S_ISDIR(mode) else 0


def _parts(path: str) -> list[str]:
    parts = path.split("/")
    if path.startswith("/") or not path or "\0" in path or {"..", ".git"} & set(parts):
        raise _error("path-outside", path, "leaves the work tree")
    return [part for part in parts if part not in {"", "."}]


@contextlib.contextmanager
def _folder(work_tree: Path, parts: list[str], path: str) -> Iterator[int]:
    """Open a folder below the work tree, component by component."""
    with contextlib.ExitStack() as opened:
        folder = _open(os.fspath(work_tree), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, None, path)
        opened.callback(os.close, folder)
        for part in parts:
            folder = _open(part, _AS_FOLDER, folder, path)
            opened.callback(os.close, folder)
        yield folder


def _open(name: str, flags: int, parent: int | None, path: str) -> int:
    try:
        return os.open(name, flags, dir_fd=parent)
    except OSError as error:
        raise _unreadable(path, error) from error


def _hash(parent: int, name: str, path: str) -> ExtraFact:
    file = _open(name, _AS_FILE, parent, path)
    try:
        before = os.fstat(file)
        if not stat.S_ISREG(before.st_mode):
            raise _error("extra-not-regular", path, "is not a regular file")
        hasher = hashlib.sha256()
        size = 0
        while chunk := os.read(file, _CHUNK_BYTES):
            hasher.update(chunk)
            size += len(chunk)
        after = os.fstat(file)
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(file)
    if (before.st_mtime_ns, before.st_ctime_ns, before.st_size) != (after.st_mtime_ns, after.st_ctime_ns, size):
        raise _error("extra-unstable", path, "changed while it was read")
    return ExtraFact(path=path, mode=_git_mode(before.st_mode), sha256=Digest(hasher.hexdigest()), size=size)


def _unreadable(path: str, error: OSError) -> ManifestError:
    if error.errno == errno.ENOENT:
        return _error("extra-missing", path, "does not exist")
    if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.ENXIO}:
        return _error("extra-not-regular", path, "is not a regular file, or lies behind a symlink")
    return _error("extra-unreadable", path, f"can't be read ({error.strerror})")


_HINTS = {
    "extra-missing": "build or generate it first, or correct extra_paths",
    "extra-not-regular": "name the real file in extra_paths",
    "extra-unreadable": "make it readable, or correct extra_paths",
    "extra-unstable": "wait until whatever writes it has ended",
    "path-outside": "give a path from the repository's root, below it and outside .git",
}


def _error(code: str, path: str, what: str) -> ManifestError:
    return ManifestError(code, f"extra path {shown(path, 300)} {what}", _HINTS[code])
