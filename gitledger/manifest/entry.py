"""One line of a manifest: an input by its path, and what git (or SHA-256) calls its content."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple, cast

from gitledger.manifest.pattern import path_bytes
from gitledger.records.tree import TreeEntry

__all__ = ["ROOT", "Entry", "join_path", "parent_folders"]

ROOT = "."
"""How a manifest spells the root; no file can have that name."""
Kind = Literal["blob", "tree", "commit", "extra", "absent"]


class Entry(NamedTuple):
    """`kind` is git's (`blob`, `tree`, `commit`), `extra` (the id is a SHA-256) or `absent` (mode 0, id `-`).

    Symlinks are blobs of mode 120000: their id is that of the target string. Submodules are commits.
    """

    mode: int
    kind: Kind
    id: str
    path: str

    def line(self) -> bytes:
        """Return `mode kind id TAB path NUL`, the form that digests are made over."""
        mode, kind, oid, path = self
        return path_bytes(f"{_octal(mode)} {kind} {oid}\t{path}\0")

    @staticmethod
    def read(line: bytes) -> Entry:
        """Return the entry that a line was made of."""
        return _read(line)

    @classmethod
    def of(cls, path: str, found: TreeEntry) -> Entry:
        """Return the line of what a commit's tree holds at `path` (empty: the root)."""
        return cls(found.mode, cast("Kind", found.kind), found.oid, path or ROOT)

    @classmethod
    def absent(cls, path: str) -> Entry:
        """Return the line that says that nothing stands at `path`."""
        return cls(0, "absent", "-", path)


@lru_cache(maxsize=64)
def _octal(mode: int) -> str:
    """Return a mode as lines spell it; there are five in the world."""
    return f"{mode:06o}"


@lru_cache(maxsize=1 << 16)
def _read(line: bytes) -> Entry:
    """Return a line's entry; the shards of a configuration share most of their chains."""
    text = line.decode("utf-8", "surrogateescape").removesuffix("\0")
    head, _, path = text.partition("\t")
    mode, kind, oid = head.split(" ")
    return Entry(int(mode, 8), cast("Kind", kind), oid, path)


def join_path(folder: str, name: str) -> str:
    """Return the path of `name` in `folder` (empty: the root)."""
    return f"{folder}/{name}" if folder else name


@lru_cache(maxsize=4096)
def parent_folders(path: str) -> tuple[str, ...]:
    """Return every folder above `path`, the root (empty) first."""
    parts = path.split("/")[:-1]
    return tuple("/".join(parts[:i]) for i in range(len(parts) + 1))
