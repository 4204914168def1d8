"""What resolving asks of the world: a commit's tree, and the files that no commit holds.

Paths are relative to the repository root, parts joined by `/`, decoded from UTF-8 with `surrogateescape`; the
root itself is the empty string. Absent things are None or empty, never an error; an object that the repository
should have and lacks is the implementation's error to raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from gitledger.records.ids import Digest
from gitledger.records.tree import TreeEntry

__all__ = ["ExtraFacts", "Folders", "StoredFolders", "TreeFacts"]


class Folders(Protocol):
    """Something that has files in folders. Symlinks are entries and never followed."""

    def entry(self, path: str) -> TreeEntry | None:
        """Return what stands at `path`; also None where a part on the way is no folder."""

    def children(self, path: str) -> tuple[TreeEntry, ...]:
        """Return what stands in the folder at `path`, nothing where it is no folder."""


class TreeFacts(Folders, Protocol):
    """The tree of one commit; `oid` of its entries are git object ids."""

    def named(self, folder: str, names: tuple[str, ...]) -> tuple[TreeEntry, ...]:
        """Return what stands in a folder under any of these names, one component each, in the names' order."""

    def blob(self, oid: str) -> bytes | None:
        """Return a blob's content, None where the repository lacks it."""


class StoredFolders(Protocol):
    """The tree of one commit as it is stored, for whoever compares large folders in which little differs."""

    def stored(self, path: str) -> Mapping[bytes, tuple[bytes, bytes]]:
        """Return mode (in octal digits) and binary id of what stands in the folder at `path`, by name."""


class ExtraFacts(Folders, Protocol):
    """The work tree, for ignored and generated files.

    `oid` of its entries is empty, and the mode of what is neither a regular file, a folder nor a symlink is 0.
    """

    def sha256(self, path: str) -> Digest:
        """Return the digest of a regular file's content; raises `ManifestError` where it can't be read."""
