"""The fast back end: objects and refs through libgit2.

What libgit2 1.9 gets wrong is kept out here. Its notes API never fans out and overwrites (DESIGN section 2), so
trees are written as objects and refs move in a transaction: lock, read again under the lock, set. Its commit
objects honour grafts, so commits are read as bytes. `ReferenceTransaction.set_target` can't take a signature
(pygit2 1.21 raises TypeError). Whether a transaction would make `a/b` beside a packed ref `a` is looked at under
the lock.

Objects are held against their ids here, as those are that come from `git cat-file`: libgit2 would do it by a SHA-1
that looks for collisions as well, in three times the time. git looks for those in what it takes into a repository.

Objects are written without waiting for the disk, and reach it all at once before a ref moves: one wait for a dozen
files, where libgit2 would wait for each of them and its folder (measured on ext4: 2 ms against 66).
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pygit2
from pygit2.enums import ObjectType, ReferenceType

from gitledger.errors import StoreError, UsageError
from gitledger.records.ids import BlobId, CommitId, TreeId
from gitledger.records.tree import CommitInfo, TreeEntry
from gitledger.store.durable import sync_files
from gitledger.store.encoding import (
    ID_BYTES,
    decode_commit,
    decode_tree,
    encode_commit,
    encode_tree,
    object_corrupt,
    object_id,
    parents_of,
)
from gitledger.store.held import holding, sweep_dead
from gitledger.store.objects import SYSTEM_CLOCK, Clock, Identity, ObjectKind, RefUpdate
from gitledger.store.ref_faults import ref_blocked, ref_locked, ref_symbolic, ref_unreadable, store_unwritable

if TYPE_CHECKING:
    from pygit2.transaction import ReferenceTransaction

__all__ = ["LibgitObjects", "set_switches"]

_KINDS: Mapping[int, ObjectKind] = {
    ObjectType.BLOB: "blob",
    ObjectType.TREE: "tree",
    ObjectType.COMMIT: "commit",
    ObjectType.TAG: "tag",
}
_FAULTS = (pygit2.GitError, OSError, ValueError, MemoryError)


@cache
def set_switches() -> None:
    """Let git, which knows safe.directory from the environment too, be the one judge of ownership.

    And let `LibgitObjects` be the one that holds what it reads against its id.
    """
    pygit2.settings.owner_validation = False
    pygit2.settings.enable_strict_hash_verification(False)


class _RefMovedError(Exception):
    """Leaves the transaction without committing it."""


class LibgitObjects:
    """`GitObjects` over libgit2, for the repository whose git folder is `git_dir` (a linked worktree's own, too).

    Raises `UsageError` `repository-unsupported` for what libgit2 can't open. Who owns the folder is not checked:
    git itself has judged that (`safe.directory`) by the time the repository was found.
    """

    object_format = "sha1"

    def __init__(self, git_dir: Path, clock: Clock = SYSTEM_CLOCK, *, durable: bool = True) -> None:
        set_switches()
        self._clock = clock
        self._durable = durable
        self._unsynced: set[str] = set()
        try:
            self._repo = pygit2.Repository(str(git_dir), pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
        except (pygit2.GitError, KeyError, OSError) as error:
            raise UsageError("repository-unsupported", f"{git_dir} can't be opened: {_said(error)}") from error
        self._common = _common_dir(git_dir)
        self._open_refs()

    def _open_refs(self) -> None:
        """Open the refs such that they reach the disk when they move, whatever becomes of other objects.

        libgit2 1.9 asks its process-wide switch when it opens the refs (refdb_fs.c), and at every object anew.
        """
        pygit2.settings.enable_fsync_gitdir(self._durable)
        try:
            self._lookup("HEAD")
        finally:
            pygit2.settings.enable_fsync_gitdir(False)

    def read_ref(self, name: str) -> CommitId | None:
        """Return the id a full ref name points to, symbolic refs followed, or None where there is no such ref."""
        reference = self._lookup(name)
        try:
            return None if reference is None else CommitId(str(reference.resolve().target))
        except KeyError:
            return None
        except _FAULTS as error:
            raise ref_unreadable(name, _said(error)) from error

    def _lookup(self, name: str) -> pygit2.Reference | None:
        try:
            return self._repo.lookup_reference(name)
        except (KeyError, pygit2.InvalidSpecError):
            return None
        except _FAULTS as error:
            raise ref_unreadable(name, _said(error)) from error

    def list_refs(self, prefix: str) -> Mapping[str, CommitId]:
        """Return every ref below `prefix` (which ends in `/`), by full name."""
        found = {name: self.read_ref(name) for name in sorted(self._names(prefix))}
        return {name: target for name, target in found.items() if target is not None}

    def _names(self, prefix: str) -> set[str]:
        """Return the names of refs below `prefix`, some of which may be gone by now.

        pygit2 can only list all refs of a repository; tens of thousands of branches shouldn't slow down each read.
        Loose ones first: what `git pack-refs` moves meanwhile is then found packed.
        """
        names: set[str] = set()
        root = f"{self._common}/"
        for folder, _, files in os.walk(root + prefix.removesuffix("/")):
            below = folder.removeprefix(root)
            names.update(f"{below}/{file}" for file in files if not file.endswith(".lock"))
        try:
            packed = (self._common / "packed-refs").read_bytes()
        except OSError:
            return names
        if (spelt := prefix.encode("utf-8", "surrogateescape")) not in packed:
            return names
        pattern = rb"^[0-9a-f]+ (" + re.escape(spelt) + rb"[^\n]+)$"
        names.update(os.fsdecode(name) for name in re.findall(pattern, packed, re.MULTILINE))
        return names

    def update_refs(self, updates: Sequence[RefUpdate]) -> bool:
        """Move all refs, or none, each only from its `old`; False where one had moved.

        Raises `StoreError` as the contract says: `ref-locked`, `ref-conflict`, `store-unwritable`.
        """
        self._sync()
        sweep_dead(self._common)
        try:
            with holding(self._common) as held, self._repo.transaction() as transaction:
                for update in sorted(updates, key=lambda update: update.name):
                    self._lock(transaction, update)
                    held.note(update.name)
                for update in updates:
                    self._compare(update)
                for update in updates:
                    self._queue(transaction, update)
        except _RefMovedError:
            return False
        except _FAULTS as error:
            raise self._unmoved(updates, error) from error
        return True

    def _lock(self, transaction: ReferenceTransaction, update: RefUpdate) -> None:
        try:
            transaction.lock_ref(update.name)
        except _FAULTS as error:
            raise self._unmoved([update], error) from error

    def _compare(self, update: RefUpdate) -> None:
        """Hold the ref's value, read under its lock, against the expected one."""
        reference = self._lookup(update.name)
        if reference is not None and reference.type == ReferenceType.SYMBOLIC:
            raise ref_symbolic(update.name, str(reference.target))
        now = None if reference is None else str(reference.target)
        if now != update.old:
            raise _RefMovedError
        if update.old is None and update.new is not None:
            self._require_place(update.name)

    def _require_place(self, name: str) -> None:
        blocker = self._blocker(name)
        if blocker is not None:
            raise ref_blocked(name, blocker)

    def _blocker(self, name: str) -> str | None:
        """Return the ref that keeps `name` from being one: a leading part of it, or something below it."""
        parts = name.split("/")
        for length in range(2, len(parts)):
            above = "/".join(parts[:length])
            if self.read_ref(above) is not None:
                return above
        return next(iter(self.list_refs(name + "/")), None)

    def _queue(self, transaction: ReferenceTransaction, update: RefUpdate) -> None:
        if update.old == update.new:
            return
        if update.new is None:
            transaction.remove(update.name)
        else:
            transaction.set_target(update.name, update.new, message="ledger")

    def _unmoved(self, updates: Iterable[RefUpdate], error: BaseException) -> StoreError:
        """Return why refs could not be locked or written."""
        for update in updates:
            blocker = self._blocker(update.name) if update.new is not None else None
            if blocker is not None:
                return ref_blocked(update.name, blocker)
        locks = [self._common / f"{update.name}.lock" for update in updates] + [self._common / "packed-refs.lock"]
        held = next((lock for lock in locks if lock.exists()), None)
        if held is not None or _is_contention(error):
            return ref_locked(held or locks[0])
        return store_unwritable(self._common, _said(error))

    def read_ahead(self, oids: Iterable[str]) -> None:
        """Prepare for reading certain objects soon; here each is as quick by itself."""

    def object_kind(self, oid: str) -> ObjectKind | None:
        """Return what kind of object a full id names, or None where the repository lacks it."""
        if len(oid) != 2 * ID_BYTES[self.object_format]:
            return None
        try:
            return _KINDS.get(self._repo.odb.read_header(oid)[0])
        except KeyError:
            return None
        except _FAULTS as error:
            raise object_corrupt("object", oid) from error

    def read_blob(self, blob: BlobId) -> bytes | None:
        """Return a blob's content, or None where the repository lacks it."""
        return self._read(blob, ObjectType.BLOB)

    def blob_size(self, blob: BlobId) -> int | None:
        """Return a blob's size without reading it whole, or None where the repository lacks it."""
        if len(blob) != 2 * ID_BYTES[self.object_format]:
            return None
        try:
            kind, size = self._repo.odb.read_header(blob)
        except KeyError:
            return None
        except _FAULTS as error:
            raise object_corrupt("blob", blob) from error
        return size if kind == ObjectType.BLOB else None

    def write_blob(self, content: bytes) -> BlobId:
        """Store a blob and return its id."""
        return BlobId(self._write(ObjectType.BLOB, content))

    def read_tree(self, tree: TreeId) -> tuple[TreeEntry, ...] | None:
        """Return a tree's entries in git's order, or None where the repository lacks it."""
        raw = self.tree_bytes(tree)
        return None if raw is None else decode_tree(tree, raw)

    def tree_bytes(self, tree: TreeId) -> bytes | None:
        """Return a tree as it is stored, or None where the repository lacks it."""
        return self._read(tree, ObjectType.TREE)

    def write_tree(self, entries: Iterable[TreeEntry]) -> TreeId:
        """Store a tree of entries given in any order and return its id."""
        return self.write_tree_bytes(encode_tree(entries))

    def write_tree_bytes(self, raw: bytes) -> TreeId:
        """Store a tree that is given as it is stored, and return its id."""
        return TreeId(self._write(ObjectType.TREE, raw))

    def write_commit(
        self, *, tree: TreeId, parents: Sequence[CommitId], message: str, identity: Identity
    ) -> CommitId:
        """Store a commit, dated now, and return its id; no ref moves."""
        raw = encode_commit(
            tree=tree, parents=parents, message=message, identity=identity, at_s=int(self._clock())
        )
        return CommitId(self._write(ObjectType.COMMIT, raw))

    def read_commit(self, commit: CommitId) -> CommitInfo | None:
        """Return a commit, or None where the repository lacks it."""
        raw = self._read(commit, ObjectType.COMMIT)
        return None if raw is None else decode_commit(commit, raw)

    def read_parents(self, commit: CommitId) -> tuple[CommitId, ...] | None:
        """Return a commit's parents as stored, or None where the repository lacks it."""
        raw = self._read(commit, ObjectType.COMMIT)
        return None if raw is None else parents_of(commit, raw)

    def _read(self, oid: str, kind: ObjectType) -> bytes | None:
        """Return an object's bytes, None where it is absent or of another kind; never a prefix match."""
        if len(oid) != 2 * ID_BYTES[self.object_format]:
            return None
        try:
            found, raw = self._repo.read(oid)
        except KeyError:
            return None
        except _FAULTS as error:
            raise object_corrupt(kind.name.lower(), oid) from error
        if found != kind:
            return None
        if object_id(_KINDS[kind], raw, self.object_format) != oid:
            raise object_corrupt(_KINDS[kind], oid)
        return raw

    def _write(self, kind: ObjectType, content: bytes) -> str:
        try:
            oid = str(self._repo.odb.write(kind, content))
        except _FAULTS as error:
            raise store_unwritable(self._common, _said(error)) from error
        self._unsynced.add(oid)
        return oid

    def _sync(self) -> None:
        """Wait until every object that was written here is on the disk."""
        written, self._unsynced = self._unsynced, set()
        if not self._durable or not written:
            return
        try:
            sync_files(f"{self._common}/objects/{oid[:2]}/{oid[2:]}" for oid in written)
        except OSError as error:
            self._unsynced |= written
            raise store_unwritable(self._common, _said(error)) from error


def _common_dir(git_dir: Path) -> Path:
    """Return the folder that holds the refs: a linked worktree's `commondir` names it (gitrepository-layout)."""
    pointer = git_dir / "commondir"
    return (git_dir / pointer.read_text().strip()).resolve() if pointer.is_file() else git_dir


def _said(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _is_contention(error: BaseException) -> bool:
    """Tell a lock that another process took, or a folder that it removed, at the very moment of locking.

    libgit2 1.9 (filebuf.c) says the first when it sees the lock, the second when it loses the race to create it;
    pygit2 keeps nothing but the text.
    """
    said = _said(error)
    reasons = (os.strerror(errno.EEXIST), os.strerror(errno.ENOENT))
    return said.startswith("failed to lock file") or (
        said.startswith("failed to create locked file") and said.endswith(reasons)
    )
