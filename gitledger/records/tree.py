"""Git tree entries and commits as plain values, shared by the rooms that keep them and those that judge them."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from gitledger.dataclass import dataclass
from gitledger.records.ids import CommitId, TreeId

__all__ = [
    "FILE_MODES",
    "MODES",
    "MODE_EXECUTABLE",
    "MODE_FILE",
    "MODE_FOLDER",
    "MODE_GITLINK",
    "MODE_SYMLINK",
    "CommitInfo",
    "TreeEntry",
]

MODE_FILE = 0o100644
MODE_EXECUTABLE = 0o100755
MODE_SYMLINK = 0o120000
MODE_FOLDER = 0o040000
MODE_GITLINK = 0o160000
FILE_MODES = frozenset({MODE_FILE, MODE_EXECUTABLE, 0o100664})
"""What git checks out as a regular file; it wrote the last of them long ago, and still reads it."""
MODES = FILE_MODES | {MODE_SYMLINK, MODE_FOLDER, MODE_GITLINK}
"""Every mode that git has ever written into a tree."""


class TreeEntry(NamedTuple):
    """One entry of a git tree; a tuple, since a plan makes tens of thousands.

    `name` is one path component, decoded from UTF-8 with `surrogateescape` (git paths are bytes); `oid` is the
    full hex id of the blob, tree, or submodule commit.
    """

    mode: int
    name: str
    oid: str

    @property
    def kind(self) -> str:
        """Return `blob`, `tree` or `commit`, as git names the three."""
        return {MODE_FOLDER: "tree", MODE_GITLINK: "commit"}.get(self.mode, "blob")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo:
    """What judging needs of a commit; times are aware and in UTC."""

    id: CommitId
    tree: TreeId
    parents: tuple[CommitId, ...]
    committed_at: datetime
    authored_at: datetime
    summary: str
