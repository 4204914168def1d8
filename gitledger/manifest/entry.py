"""One line of a manifest: an input by its path, and what git (or SHA-256) calls its content."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

from gitledger.manifest.pattern import path_bytes
from gitledger.records.tree import TreeEntry

__all__ = ["ROOT", "Entry", "join_path", "parent_folders"]

ROOT = "."
"""How a manifest spells the root; no file can have that name."""


class Entry(NamedTuple):
    """`kind` is git's (`blob`, `tree`, `commit`), `extra` (the id is a SHA-256) or `absent` (mode 0, id `-`).

    Symlinks are blobs of mode 120000: their id is that of the target string. Submodules are commits.
    """

    mode: int
    kind: Literal["blob", "tree", "commit", "extra", "absent"]
    id: str
    path: str

    def line(self) -> bytes:
        """Return `mode kind id TAB path NUL`, the form that digests are made over."""
        return _line(self)

    @classmethod
    def of(cls, path: str, found: TreeEntry) -> Entry:
        """Return the line of what a commit's tree holds at `path` (empty: the root)."""
        kind: Literal["blob", "tree", "commit"] = "blob"
        if found.kind == "tree":
            kind = "tree"
        elif found.kind == "commit":
            kind = "commit"
        return cls(found.mode, kind, found.oid, path or ROOT)

    @classmethod
    def absent(cls, path: str) -> Entry:
        """Return the line that says that nothing stands at `path`."""
        return cls(0, "absent", "-", path)


@lru_cache(maxsize=1 << 16)
def _line(entry: Entry) -> bytes:
    """Return an entry's line; the shards of a configuration share most of their chains."""
    return b"%06o %s %s\t%s\0" % (entry.mode, entry.kind.encode(), entry.id.encode(), path_bytes(entry.path))


def join_path(folder: str, name: str) -> str:
    """Return the path of `name` in `folder` (empty: the root)."""
    return f"{folder}/{name}" if folder else name


def parent_folders(path: str) -> list[str]:
    """Return every folder above `path`, the root (empty) first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:i]) for i in range(len(parts) + 1)]
