"""The back end for what libgit2 can't open: objects and refs through git's own plumbing.

sha256 and reftable repositories, partial clones whose objects git fetches when they are asked for, folders that
`safe.directory` lets in: whatever git itself can work with. Objects are read through one `git cat-file` that lives
as long as this object, trees are written through one `git mktree`, refs move in one `git update-ref` transaction.
A process that failed is asked nothing of in English: what became of the refs is looked at.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Mapping, Sequence

from gitledger.errors import StoreError, UsageError
from gitledger.records.ids import BlobId, CommitId, TreeId
from gitledger.records.tree import CommitInfo, TreeEntry
from gitledger.store.cat_file import CatFile
from gitledger.store.conversation import Conversation, ConversationEnded
from gitledger.store.encoding import (
    ID_BYTES,
    decode_commit,
    decode_tree,
    encode_commit,
    parents_of,
)
from gitledger.store.git import Git, GitDone
from gitledger.store.held import sweep_dead
from gitledger.store.objects import SYSTEM_CLOCK, Clock, Identity, ObjectKind, RefUpdate
from gitledger.store.ref_faults import ref_blocked, ref_locked, ref_symbolic, ref_unreadable, store_unwritable

__all__ = ["STAY_HERE", "PlumbingObjects"]

_DURABLE = ("-c", "core.fsync=committed,loose-object,reference", "-c", "core.fsyncMethod=fsync")
"""Objects reach the disk before the refs that lead to them (git's default leaves loose objects to the system)."""
STAY_HERE = {"GIT_NO_LAZY_FETCH": "1"}
"""Commits are never left out of a partial clone: one that is not here is not asked for. (Git 2.39.4 and newer;
an older git asks its remote in vain.)"""
_HEX = re.compile(r"\A[0-9a-f]+\Z")
_ANY_END = frozenset(range(-64, 256))
_UNWRITABLE = tuple(
    os.strerror(number)
    for number in (
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO),
        errno.EMFILE,
    )
)
"""What the system, and not git, says where nothing can be written; git runs in the C locale."""


class PlumbingObjects:
    """`GitObjects` over git's plumbing, for the repository that `git` is pointed at.

    Raises `UsageError` `repository-unsupported` where git can't read its objects or refs, and from every method
    `StoreError` `object-unavailable` where a partial clone's remote can't be asked for an object.
    """

    def __init__(self, git: Git, clock: Clock = SYSTEM_CLOCK) -> None:
        self._git = git
        self._clock = clock
        facts = git.run("rev-parse", "--show-object-format", "--git-common-dir", statuses=_ANY_END)
        words = facts.text.split("\n")
        if facts.status or len(words) != 2 or words[0] not in ID_BYTES:
            raise UsageError(
                "repository-unsupported", f"git can't read the repository: {facts.reason}", "git --version"
            )
        self.object_format = words[0]
        self._common = (git.folder / words[1]).resolve()
        self._here = CatFile(git, self.object_format, env=STAY_HERE)
        self._anywhere = CatFile(git, self.object_format)
        self._tree_writer: Conversation | None = None

    # --- refs --------------------------------------------------------------------------------------------------

    def read_ref(self, name: str) -> CommitId | None:
        """Return the id a full ref name points to, symbolic refs followed, or None where there is no such ref."""
        if name.startswith("refs/"):
            found = self._refs(name).get(name)
            return None if found is None else found[0]
        done = self._git.run("rev-parse", "-q", "--verify", "--end-of-options", name, statuses=_ANY_END)
        return CommitId(done.text) if done.status == 0 else None

    def list_refs(self, prefix: str) -> Mapping[str, CommitId]:
        """Return every ref below `prefix` (which ends in `/`), by full name."""
        return {name: oid for name, (oid, _) in self._refs(prefix).items() if name.startswith(prefix)}

    def _refs(self, *patterns: str) -> Mapping[str, tuple[CommitId, str]]:
        """Return value and symbolic target (`""` for none) of the refs that `patterns` are, or lie above."""
        names = [name.rstrip("/") for name in patterns]
        form = "--format=%(objectname) %(refname) %(symref)"
        done = self._git.run("for-each-ref", form, "--", *names, statuses=_ANY_END)
        # A ref that holds garbage is left out with a warning that names it; to take it for absent would be a lie.
        broken = [name for name in names if name.encode("utf-8", "surrogateescape") in done.stderr]
        if done.status or broken:
            raise ref_unreadable((broken or names)[0], done.reason)
        found = {}
        for line in done.text.splitlines():
            oid, name, symref = line.split(" ")
            found[name] = (CommitId(oid), symref)
        return found

    def update_refs(self, updates: Sequence[RefUpdate]) -> bool:
        """Move all refs, or none, each only from its `old`; False where one had moved.

        Raises `StoreError` as the contract says: `ref-locked`, `ref-conflict`, `store-unwritable`.
        """
        if not updates:
            return True
        before = self._refs(*(update.name for update in updates))
        if not _is_as_expected(updates, before):
            return False
        sweep_dead(self._common)
        none = "0" * 2 * ID_BYTES[self.object_format]
        words = ["start", *(_command(update, none) for update in updates), "prepare", "commit"]
        done = self._git.run(
            *(*_DURABLE, "update-ref", "-m", "ledger", "--no-deref", "--stdin", "-z"),
            stdin=b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in words),
            statuses=_ANY_END,
        )
        if done.status == 0:
            return True
        if not _is_as_expected(updates, self._refs(*(update.name for update in updates))):
            return False
        raise self._unmoved(updates, done)

    def _unmoved(self, updates: Sequence[RefUpdate], done: GitDone) -> StoreError:
        """Return why refs that still have their old values could not be moved."""
        for update in updates:
            blocker = self._blocker(update.name) if update.new is not None else None
            if blocker is not None:
                return ref_blocked(update.name, blocker)
        locks = [self._common / f"{update.name}.lock" for update in updates]
        locks += [self._common / name for name in ("packed-refs.lock", "reftable/tables.list.lock")]
        held = next((lock for lock in locks if lock.exists()), None)
        if held is None and any(said in done.reason for said in _UNWRITABLE):
            return store_unwritable(self._common, done.reason)
        return ref_locked(held or locks[0])

    def _blocker(self, name: str) -> str | None:
        """Return the ref that keeps `name` from being one: a leading part of it, or something below it."""
        parts = name.split("/")
        above = {"/".join(parts[:length]) for length in range(2, len(parts))}
        found = self._refs(*above, name)
        return next((other for other in found if other in above or other.startswith(f"{name}/")), None)

    # --- objects -----------------------------------------------------------------------------------------------

    def read_ahead(self, oids: Iterable[str]) -> None:
        """Prepare for reading certain objects soon."""
        self._anywhere.read_ahead(oids)

    def object_kind(self, oid: str) -> ObjectKind | None:
        """Return what kind of object a full id names, or None where the repository lacks it; fetches nothing."""
        head = self._here.head(oid)
        return None if head is None else head[0]

    def read_blob(self, blob: BlobId) -> bytes | None:
        """Return a blob's content, or None where the repository lacks it."""
        return self._anywhere.read(blob, "blob")

    def blob_size(self, blob: BlobId) -> int | None:
        """Return a blob's size without reading it whole, or None where the repository lacks it."""
        head = self._anywhere.head(blob)
        return head[1] if head is not None and head[0] == "blob" else None

    def write_blob(self, content: bytes) -> BlobId:
        """Store a blob and return its id."""
        return BlobId(self._write("blob", content))

    def read_tree(self, tree: TreeId) -> tuple[TreeEntry, ...] | None:
        """Return a tree's entries in git's order, or None where the repository lacks it."""
        raw = self.tree_bytes(tree)
        return None if raw is None else decode_tree(tree, raw)

    def tree_bytes(self, tree: TreeId) -> bytes | None:
        """Return a tree as it is stored, or None where the repository lacks it."""
        return self._anywhere.read(tree, "tree")

    def write_tree(self, entries: Iterable[TreeEntry]) -> TreeId:
        """Store a tree of entries given in any order and return its id."""
        lines = (f"{entry.mode:o} {entry.kind} {entry.oid}\t{entry.name}\0" for entry in entries)
        listing = "".join(lines).encode("utf-8", "surrogateescape") + b"\0"
        writer = self._tree_writer
        if writer is None:
            # What a partial clone left at its remote is not fetched only to be named in a tree.
            writer = Conversation(self._git, *_DURABLE, "mktree", "-z", "--batch", "--missing")
            self._tree_writer = writer
        try:
            writer.ask(listing)
            return TreeId(writer.line().decode("ascii"))
        except ConversationEnded as error:
            self._tree_writer = None
            raise store_unwritable(self._common, str(error)) from error

    def write_tree_bytes(self, raw: bytes) -> TreeId:
        """Store a tree that is given as it is stored, and return its id."""
        return self.write_tree(decode_tree("0" * 2 * ID_BYTES[self.object_format], raw))

    def write_commit(
        self, *, tree: TreeId, parents: Sequence[CommitId], message: str, identity: Identity
    ) -> CommitId:
        """Store a commit, dated by the clock, and return its id; no ref moves."""
        raw = encode_commit(
            tree=tree, parents=parents, message=message, identity=identity, at_s=int(self._clock())
        )
        return CommitId(self._write("commit", raw))

    def _write(self, kind: ObjectKind, content: bytes) -> str:
        words = (*_DURABLE, "hash-object", "-t", kind, "-w", "--no-filters", "--stdin")
        done = self._git.run(*words, stdin=content, statuses=_ANY_END)
        if done.status or not _HEX.match(done.text):
            raise store_unwritable(self._common, done.reason)
        return done.text

    def read_commit(self, commit: CommitId) -> CommitInfo | None:
        """Return a commit, or None where the repository lacks it."""
        raw = self._here.read(commit, "commit")
        return None if raw is None else decode_commit(commit, raw)

    def read_parents(self, commit: CommitId) -> tuple[CommitId, ...] | None:
        """Return a commit's parents as stored, or None where the repository lacks it."""
        raw = self._here.read(commit, "commit")
        return None if raw is None else parents_of(commit, raw)


def _is_as_expected(updates: Iterable[RefUpdate], found: Mapping[str, tuple[CommitId, str]]) -> bool:
    """Tell whether the refs have the old values; raises `StoreError` `ref-conflict` for a symbolic one."""
    for update in updates:
        oid, symref = found.get(update.name, (None, ""))
        if symref:
            raise ref_symbolic(update.name, symref)
        if oid != update.old:
            return False
    return True


def _command(update: RefUpdate, none: str) -> str:
    """Return one line for `git update-ref --stdin -z`."""
    old = update.old or none
    if update.old == update.new:
        return f"verify {update.name}\0{old}"
    if update.new is None:
        return f"delete {update.name}\0{old}"
    return f"update {update.name}\0{update.new}\0{old}"
