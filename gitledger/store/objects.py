"""The one contract that a git back end fulfils: objects by id, refs by compare-and-swap, nothing else.

Absent things are None, never an empty value. There is no unconditional ref write: whoever moves a ref says from
which value (DESIGN section 2, law 2). Replace refs and grafts are never honoured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, Protocol

from gitledger.dataclass import dataclass
from gitledger.records.ids import BlobId, CommitId, TreeId
from gitledger.records.tree import CommitInfo, TreeEntry

__all__ = ["SYSTEM_CLOCK", "Clock", "GitObjects", "Identity", "ObjectKind", "RefUpdate"]

Clock = Callable[[], float]
"""Seconds since 1970."""
SYSTEM_CLOCK: Clock = partial(time.clock_gettime, time.CLOCK_REALTIME)
"""What notes commits are dated by unless a back end is given another clock. Nothing ever judges by these dates."""
ObjectKind = Literal["blob", "tree", "commit", "tag"]


@dataclass(frozen=True, slots=True)
class Identity:
    """Name and mail address of the author and committer of a notes commit."""

    name: str
    email: str


@dataclass(frozen=True, slots=True)
class RefUpdate:
    """One ref moved from `old` to `new`; None stands for a ref that does not exist (before, or after)."""

    name: str
    old: CommitId | None
    new: CommitId | None


class GitObjects(Protocol):
    """Objects and refs of one repository."""

    object_format: str
    """`sha1` or `sha256`."""

    def read_ref(self, name: str) -> CommitId | None:
        """Return the id a full ref name points to, symbolic refs followed, or None where there is no such ref.

        The id is the ref's own value, as `update_refs` compares it: a tag is not peeled.
        """

    def list_refs(self, prefix: str) -> Mapping[str, CommitId]:
        """Return every ref below `prefix` (which ends in `/`), by full name."""

    def update_refs(self, updates: Sequence[RefUpdate]) -> bool:
        """Move all refs, or none, each only from its `old`; False where one had moved.

        Every object written before is durable before a ref moves. All are locked and compared before the first
        moves; a crash in the middle may leave some moved, in no promised order, so whoever needs an order makes
        two calls. An update with `old == new` only compares.

        Raises `StoreError`: `ref-locked` (another process holds a lock at this moment: try again), `ref-conflict`
        (a ref where a folder must be, or a symbolic ref), `store-unwritable` (read-only, full disk).
        """

    def read_ahead(self, oids: Iterable[str]) -> None:
        """Prepare for reading certain objects soon; nothing that is said or raised changes by it."""

    def object_kind(self, oid: str) -> ObjectKind | None:
        """Return what kind of object a full id names, or None where the repository lacks it; fetches nothing."""

    def read_blob(self, blob: BlobId) -> bytes | None:
        """Return a blob's content, or None where the repository lacks it."""

    def blob_size(self, blob: BlobId) -> int | None:
        """Return a blob's size without reading it whole, or None where the repository lacks it."""

    def write_blob(self, content: bytes) -> BlobId:
        """Store a blob and return its id."""

    def read_tree(self, tree: TreeId) -> tuple[TreeEntry, ...] | None:
        """Return a tree's entries in git's order, or None where the repository lacks it."""

    def tree_bytes(self, tree: TreeId) -> bytes | None:
        """Return a tree as it is stored, or None where the repository lacks it; for readers of many trees."""

    def write_tree(self, entries: Iterable[TreeEntry]) -> TreeId:
        """Store a tree of entries given in any order and return its id."""

    def write_tree_bytes(self, raw: bytes) -> TreeId:
        """Store a tree that is given as it is stored, and return its id."""

    def write_commit(
        self, *, tree: TreeId, parents: Sequence[CommitId], message: str, identity: Identity
    ) -> CommitId:
        """Store a commit, dated by the back end's clock, and return its id; no ref moves."""

    def read_commit(self, commit: CommitId) -> CommitInfo | None:
        """Return a commit, or None where the repository lacks it."""

    def read_parents(self, commit: CommitId) -> tuple[CommitId, ...] | None:
        """Return a commit's parents as stored, or None where the repository lacks it; for walks over history."""
