"""libgit2, loaded when it pays: loading it takes as long as asking `git cat-file` for a thousand objects.

Most commands look at a few refs and some hundred objects and write nothing. They get by with files and one
`git cat-file`; whoever reads more, writes anything, or meets what isn't plain goes over to libgit2 for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from threading import Lock
from typing import TypeVar

from gitledger.errors import StoreError, UsageError
from gitledger.records.ids import BlobId, CommitId, TreeId
from gitledger.records.tree import CommitInfo, TreeEntry
from gitledger.store.cat_file import CatFile
from gitledger.store.encoding import decode_commit, decode_tree, parents_of
from gitledger.store.git import Git
from gitledger.store.meanwhile import Meanwhile
from gitledger.store.objects import GitObjects, Identity, ObjectKind, RefUpdate
from gitledger.store.ref_files import OddRef, RefFiles

__all__ = ["LateLibgit", "loading"]

_FEW = 1_000
"""How many objects are read through `git cat-file`; each takes 0.05 ms, about 0.03 more than through libgit2."""
_FORWARDED = (
    *("read_ref", "list_refs", "update_refs", "object_kind", "read_blob", "blob_size", "write_blob", "read_tree"),
    *("tree_bytes", "write_tree", "write_tree_bytes", "write_commit", "read_commit", "read_parents", "read_ahead"),
)
T = TypeVar("T")


class LateLibgit:
    """`GitObjects` of a repository that libgit2 can open: SHA-1, refs in files, nothing left at a remote.

    Where libgit2 can't open it after all, git's plumbing does it.
    """

    object_format = "sha1"

    def __init__(self, git: Git, git_dir: Path, common_dir: Path) -> None:
        self._git = git
        self._git_dir = git_dir
        self._few = CatFile(git, self.object_format)
        self._files = RefFiles(git_dir, common_dir)
        self._left = _FEW
        self._whole: GitObjects | None = None
        self._loading = Lock()

    def load(self) -> GitObjects:
        """Return the whole back end, loaded now; for whoever knows that it will be needed, and has time."""
        with self._loading:
            if self._whole is None:
                whole = _opened(self._git, self._git_dir)
                for name in _FORWARDED:  # a hundred thousand reads should not pay for what the first few spared
                    setattr(self, name, getattr(whole, name))
                self._whole = whole
                self._few.hang_up()
            return self._whole

    def _asked(self, few: Callable[[CatFile], T], whole: Callable[[GitObjects], T]) -> T:
        """Return what one back end or the other says of an object."""
        self._left -= 1
        if self._whole is None and self._left >= 0:
            try:
                return few(self._few)
            except StoreError:  # libgit2 may still read it, or say better what is wrong with it
                self._left = 0
        return whole(self._whole or self.load())

    def read_ahead(self, oids: Iterable[str]) -> None:
        """Prepare for reading certain objects soon."""
        wanted = list(oids)
        if self._whole is None and len(wanted) < self._left:
            self._few.read_ahead(wanted)

    def read_ref(self, name: str) -> CommitId | None:
        """Return the id a full ref name points to, symbolic refs followed, or None where there is no such ref."""
        try:
            return self._files.read(name)
        except OddRef:
            return self.load().read_ref(name)

    def named_by_head(self) -> str | None:
        """Return the full name of the ref that HEAD stands for, None for a detached one; raises `OddRef`."""
        return self._files.named_by("HEAD")

    def list_refs(self, prefix: str) -> Mapping[str, CommitId]:
        """Return every ref below `prefix` (which ends in `/`), by full name."""
        try:
            return self._files.below(prefix)
        except OddRef:
            return self.load().list_refs(prefix)

    def update_refs(self, updates: Sequence[RefUpdate]) -> bool:
        """Move all refs, or none, each only from its `old`; False where one had moved."""
        return self.load().update_refs(updates)

    def object_kind(self, oid: str) -> ObjectKind | None:
        """Return what kind of object a full id names, or None where the repository lacks it."""
        head = self._asked(lambda few: few.head(oid), lambda whole: (whole.object_kind(oid), 0))
        return None if head is None else head[0]

    def read_blob(self, blob: BlobId) -> bytes | None:
        """Return a blob's content, or None where the repository lacks it."""
        return self._asked(lambda few: few.read(blob, "blob"), lambda whole: whole.read_blob(blob))

    def blob_size(self, blob: BlobId) -> int | None:
        """Return a blob's size without reading it whole, or None where the repository lacks it."""

        def few(reader: CatFile) -> int | None:
            head = reader.head(blob)
            return head[1] if head is not None and head[0] == "blob" else None

        return self._asked(few, lambda whole: whole.blob_size(blob))

    def write_blob(self, content: bytes) -> BlobId:
        """Store a blob and return its id."""
        return self.load().write_blob(content)

    def read_tree(self, tree: TreeId) -> tuple[TreeEntry, ...] | None:
        """Return a tree's entries in git's order, or None where the repository lacks it."""
        raw = self.tree_bytes(tree)
        return None if raw is None else decode_tree(tree, raw)

    def tree_bytes(self, tree: TreeId) -> bytes | None:
        """Return a tree as it is stored, or None where the repository lacks it."""
        return self._asked(lambda few: few.read(tree, "tree"), lambda whole: whole.tree_bytes(tree))

    def write_tree(self, entries: Iterable[TreeEntry]) -> TreeId:
        """Store a tree of entries given in any order and return its id."""
        return self.load().write_tree(entries)

    def write_tree_bytes(self, raw: bytes) -> TreeId:
        """Store a tree that is given as it is stored, and return its id."""
        return self.load().write_tree_bytes(raw)

    def write_commit(
        self, *, tree: TreeId, parents: Sequence[CommitId], message: str, identity: Identity
    ) -> CommitId:
        """Store a commit, dated now, and return its id; no ref moves."""
        return self.load().write_commit(tree=tree, parents=parents, message=message, identity=identity)

    def read_commit(self, commit: CommitId) -> CommitInfo | None:
        """Return a commit, or None where the repository lacks it."""

        def few(reader: CatFile) -> CommitInfo | None:
            raw = reader.read(commit, "commit")
            return None if raw is None else decode_commit(commit, raw)

        return self._asked(few, lambda whole: whole.read_commit(commit))

    def read_parents(self, commit: CommitId) -> tuple[CommitId, ...] | None:
        """Return a commit's parents as stored, or None where the repository lacks it."""

        def few(reader: CatFile) -> tuple[CommitId, ...] | None:
            raw = reader.read(commit, "commit")
            return None if raw is None else parents_of(commit, raw)

        return self._asked(few, lambda whole: whole.read_parents(commit))


def loading(objects: GitObjects) -> AbstractContextManager[object]:
    """Load what moves refs while something else is waited for; what fails at it fails again where it is needed."""
    return Meanwhile(objects.load) if isinstance(objects, LateLibgit) else nullcontext()


def _opened(git: Git, git_dir: Path) -> GitObjects:
    from gitledger.store.gitplumbing import PlumbingObjects
    from gitledger.store.libgit import LibgitObjects

    try:
        return LibgitObjects(git_dir)
    except UsageError:
        return PlumbingObjects(git)
