"""The ledger of one repository: reads are unions, writes only add, refs move by compare-and-swap.

The laws that hold here are those of DESIGN section 2: grow only, compare and swap, bodies first, nothing lost and
nothing half. Only local refs are written.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from gitledger.dataclass import dataclass, replace
from gitledger.errors import StoreError
from gitledger.records.ids import BlobId, CommitId, TreeId
from gitledger.store.claims import subjects_in
from gitledger.store.encoding import object_missing
from gitledger.store.history import distances
from gitledger.store.inbox import Aside, By, TellAside, inbox_commit, own_inbox, stands_in_the_way
from gitledger.store.notes_tree import Blobs, NotesTrees
from gitledger.store.objects import GitObjects, Identity, RefUpdate
from gitledger.store.refs import (
    BODIES_REF,
    INBOX_PREFIX,
    RECORDS_REF,
    TRACKING_PREFIX,
    Tips,
    all_tips,
    local_tips,
    roots_of,
    tracking_tips,
    tree_of,
)
from gitledger.store.union import NoteFault, Union, require_body, require_line, split_lines, unite_lines
from gitledger.store.view import LedgerView

__all__ = ["BODIES_REF", "INBOX_PREFIX", "RECORDS_REF", "TRACKING_PREFIX", "Ledger", "Retry", "Tips"]


def _drawn() -> float:
    """Return a random number from 0 to 1; what draws it is loaded for the first pause."""
    from random import random

    return random()  # noqa: S311 - no secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How a lost race is tried again: pauses that double, with jitter, until they add up to `budget_s` seconds."""

    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = _drawn
    budget_s: float = 10.0
    first_s: float = 0.002
    longest_s: float = 0.25

    def attempts(self) -> Iterator[int]:
        """Yield the numbers of attempts from 0, with a pause before each but the first."""
        left_s, pause_s, number = self.budget_s, self.first_s, 0
        while True:
            yield number
            if left_s <= 0:
                return
            length_s = min(left_s, pause_s * (0.5 + self.draw()))
            self.sleep(length_s)
            left_s -= length_s
            pause_s = min(self.longest_s, 2 * pause_s)
            number += 1


Build = Callable[[CommitId | None], CommitId | None]
"""Given a ref's present commit, the commit that it should move to, or None where it may stay."""
Join = Callable[[Collection[TreeId]], TreeId]


class Ledger:
    """Records and bodies of one repository.

    Every read is of the refs as they are at that moment; `view` gives one moment to read from repeatedly, which is
    also much faster. Raises `StoreError`: `ref-locked` and `ref-contended` once retries are used up,
    `ref-conflict`, `store-unwritable`, `object-missing`, `object-corrupt`. `aside` is told of what could not be
    written to the notes refs and lies in an inbox ref instead, under a random name of `token`.
    """

    def __init__(
        self,
        objects: GitObjects,
        *,
        retry: Retry | None = None,
        aside: TellAside = lambda _: None,
        token: Callable[[], str] = lambda: os.urandom(16).hex(),
    ) -> None:
        self.aside = aside
        self._token = token
        self._objects = objects
        self._retry = retry or Retry()
        self._trees = NotesTrees(objects)
        self._union = Union(objects, self._trees)

    def view(self) -> LedgerView:
        """Return the ledger as it stands now: local refs, tracking refs of all remotes, inbox refs."""
        return self._view(all_tips(self._objects))

    def view_of(self, tips: Tips) -> LedgerView:
        """Return what certain commits hold, such as the tracking tips of one remote."""
        return self._view(tips)

    def _view(self, tips: Tips) -> LedgerView:
        return LedgerView(self._objects, self._trees, tips)

    def commits(self) -> frozenset[CommitId]:
        """Return the ids of all objects that have a note."""
        return self.view().commits()

    def lines(self, commit: CommitId) -> tuple[bytes, ...]:
        """Return a commit's lines as `LedgerView.lines` does."""
        return self.view().lines(commit)

    def faults(self, commit: CommitId) -> tuple[NoteFault, ...]:
        """Return the limits that the notes of a commit exceed, each of which may hide evidence."""
        return self.view().faults(commit)

    def body(self, oid: BlobId) -> bytes | None:
        """Return a body as `LedgerView.body` does."""
        return self.view().body(oid)

    def has_body(self, oid: BlobId) -> bool:
        """Tell whether `body` would return one."""
        return self.view().has_body(oid)

    def local_tips(self) -> Tips:
        """Return the tips of this clone's own refs."""
        return local_tips(self._objects)

    def tracking_tips(self, remote: str) -> Tips:
        """Return the tips of what was last fetched from `remote`."""
        return tracking_tips(self._objects, remote)

    def append(
        self,
        records: Mapping[CommitId, Sequence[bytes]],
        bodies: Sequence[bytes],
        *,
        identity: Identity,
        message: str,
    ) -> None:
        """Add lines to commits, and the bodies that they name, to the local refs.

        The bodies are in place before any line is. What is there already stays as it is, so that a repetition
        changes nothing. Where a notes ref can't be moved (a lock that stays, a user's ref in its place), all of it
        lands in an inbox ref of this clone, which every read takes in; `aside` is told, and the next append or
        sync that gets through folds it into the notes. Raises `StoreError` `not-a-line`, `line-too-long`,
        `body-too-large` before anything is written; `note-too-large`, `note-too-many-lines` before any ref moved;
        why the notes ref could not be moved, where the inbox ref couldn't be made either.
        """
        for line in (line for lines in records.values() for line in lines):
            require_line(line)
        for body in bodies:
            require_body(body)
        notes = {commit: unite_lines(*lines) for commit, lines in records.items() if lines}
        blobs = [self._objects.write_blob(body) for body in bodies]
        try:
            self._append(notes, blobs, lambda: (identity, message))
        except StoreError as error:
            if not stands_in_the_way(error):
                raise
            self._set_aside(notes, blobs, error, identity, message)
        else:
            # The append is done; that something older could not be folded in as well is no failure of it.
            with contextlib.suppress(StoreError):
                self.fold_inbox(identity=identity, message=message)

    def _append(self, notes: Mapping[CommitId, bytes], blobs: Sequence[BlobId], by: By) -> None:
        moves = []
        if blobs:
            moves.append(self._advance(BODIES_REF, lambda roots: self._union.bodies(roots, blobs), by))
        if notes:
            moves.append(self._advance(RECORDS_REF, lambda roots: self._union.records(roots, notes), by))
        # All objects first: the back end then waits for the disk once, and no body is left without its line.
        for move in [move.prepared() for move in moves]:
            self._make(move)

    def _set_aside(
        self,
        notes: Mapping[CommitId, bytes],
        blobs: Sequence[BlobId],
        error: StoreError,
        identity: Identity,
        message: str,
    ) -> None:
        """Put notes and bodies into an inbox ref, by themselves: whatever stands in the way may be no ledger."""
        commit = self._apart(notes, blobs, lambda: (identity, message))
        ref = INBOX_PREFIX + self._token()
        try:
            made = self._objects.update_refs([RefUpdate(ref, None, commit)])
        except StoreError as second:
            raise error from second
        if not made:
            raise error
        self.aside(Aside(ref, error))

    def apart(self, records: Mapping[CommitId, Sequence[bytes]], bodies: Iterable[BlobId], *, by: By) -> CommitId:
        """Store a commit as inbox refs have them, which holds certain lines and bodies alone, and return its id.

        The bodies are in the repository already. Raises `StoreError` as `append` does.
        """
        return self._apart({commit: unite_lines(*lines) for commit, lines in records.items()}, list(bodies), by)

    def _apart(self, notes: Mapping[CommitId, bytes], blobs: Sequence[BlobId], by: By) -> CommitId:
        trees = {}
        if blobs:
            trees["bodies"] = self._union.bodies(set(), blobs)
        if notes:
            trees["records"] = self._union.records(set(), notes)
        return inbox_commit(self._objects, trees, by)

    def fold_inbox(self, *, identity: Identity, message: str) -> None:
        """Fold this clone's own inbox refs into its notes, and delete each by the id that was folded."""
        own = own_inbox(self._objects)
        if own:
            left = self.unite_into_local(Tips(inbox=frozenset(own.values())), by=lambda: (identity, message))
            self.forget_inbox({name: tip for name, tip in own.items() if tip not in left.inbox})

    def forget_inbox(self, folded: Mapping[str, CommitId]) -> None:
        """Delete own inbox refs that were folded, each only if it still has the id that was."""
        for name, tip in folded.items():
            self._objects.update_refs([RefUpdate(name, tip, None)])

    def unite_into_local(self, tips: Tips, *, by: By) -> Tips:
        """Fold commits that hold parts of a ledger into the local refs, all bodies before any line.

        Afterwards the tips of notes refs are ancestors of the local ones, so that a push is a fast-forward; an
        inbox commit gives its content only. A ref that holds nothing new moves forward without a commit of ours.
        Returns the tips that were left where they are, since their trees repeat themselves without end; reads
        take what there is in them all the same.
        """
        inbox = self._sound(tips.inbox)
        trees = roots_of(self._objects, Tips(inbox=inbox))
        bodies, all_bodies = self._fold(BODIES_REF, tips.bodies, trees.bodies, self._union.bodies, by)
        added = trees.records if all_bodies else ()
        records, all_records = self._fold(RECORDS_REF, tips.records, added, self._union.records, by)
        folded = inbox if all_bodies and all_records else frozenset()
        return Tips(records=records, bodies=bodies, inbox=tips.inbox - folded)

    def _sound(self, inbox: frozenset[CommitId]) -> frozenset[CommitId]:
        """Return the inbox commits that add to the local refs what a ledger can hold."""
        own = roots_of(self._objects, Tips() if not inbox else local_tips(self._objects))

        def is_sound(tips: frozenset[CommitId]) -> bool:
            new = roots_of(self._objects, Tips(inbox=tips))
            return not (
                self._trees.repeats(new.bodies, own.bodies) or self._trees.repeats(new.records, own.records)
            )

        return inbox if is_sound(inbox) else frozenset(tip for tip in inbox if is_sound(frozenset({tip})))

    def _fold(
        self, ref: str, tips: Iterable[CommitId], trees: Collection[TreeId], join: Join, by: By
    ) -> tuple[frozenset[CommitId], bool]:
        """Fold them into one ref; return the tips that could not be, and whether the loose trees could."""
        left: set[CommitId] = set()
        for tip in sorted(tips):
            if not self._is_folded(self._adopt(ref, tip, join, by)):
                left.add(tip)
        beside = self._advance(ref, lambda roots: join({*roots, *trees}), by) if trees else None
        return frozenset(left), beside is None or self._is_folded(beside)

    def _is_folded(self, move: _Move) -> bool:
        """Make a move; False where what would be joined repeats itself without end."""
        try:
            self._make(move)
        except StoreError as error:
            if error.code != "notes-tree-repeats":
                raise
            return False
        return True

    def repeating(self, tips: Tips) -> bool:
        """Tell whether the trees of some tips repeat themselves without end, as nobody's ledger does."""
        roots = roots_of(self._objects, tips)
        return self._trees.repeats(roots.records) or self._trees.repeats(roots.bodies)

    def local_only(self, remote: str, *, elsewhere: bool = False) -> Mapping[CommitId, tuple[bytes, ...]]:
        """Return the lines of this clone's own refs that the tracking refs of `remote` lack, by commit.

        `elsewhere`: those tell of another place than where the remote is now; what they hold may be lacking there.
        """
        ours, theirs = local_tips(self._objects), tracking_tips(self._objects, remote)
        return self._beyond(ours | theirs, Tips()) if elsewhere else self._beyond(ours, theirs)

    def fetched_only(self, other: str, remote: str) -> Mapping[CommitId, tuple[bytes, ...]]:
        """Return the lines fetched from `other` that neither this clone's own refs nor `remote` hold."""
        known = local_tips(self._objects) | tracking_tips(self._objects, remote)
        return self._beyond(tracking_tips(self._objects, other), known)

    def _beyond(self, ours: Tips, known_tips: Tips) -> Mapping[CommitId, tuple[bytes, ...]]:
        own = roots_of(self._objects, ours).records
        theirs = roots_of(self._objects, known_tips).records
        unpublished: dict[CommitId, tuple[bytes, ...]] = {}
        claims = partial(subjects_in, self._objects)
        for oid, blobs in self._trees.beyond(own, theirs, claims).items():
            known = frozenset(blob for root in theirs for blob in self._trees.find(root, oid))
            lines = () if blobs <= known else self._lines_beyond(blobs, known)
            if lines:
                unpublished[CommitId(oid)] = lines
        return unpublished

    def _lines_beyond(self, blobs: Blobs, known: Blobs) -> tuple[bytes, ...]:
        there = set(split_lines(map(self._content, known)))
        return tuple(line for line in split_lines(map(self._content, blobs)) if line not in there)

    def _content(self, blob: BlobId) -> bytes:
        content = self._objects.read_blob(blob)
        if content is None:
            raise object_missing("note", blob)
        return content

    def _advance(self, ref: str, join: Join, by: By) -> _Move:
        """Return the move of a notes ref to a child of its tip whose tree joins the tip's with something else."""

        def build(tip: CommitId | None) -> CommitId | None:
            base = set() if tip is None else {tree_of(self._objects, tip)}
            tree = join(base)
            if tree in base:
                return None
            return self._commit(tree, [] if tip is None else [tip], by)

        return _Move(self._objects, ref, build)

    def _adopt(self, ref: str, theirs: CommitId, join: Join, by: By) -> _Move:
        """Return the move of a notes ref to where `theirs` is its ancestor, and its tree the join of both."""

        def build(tip: CommitId | None) -> CommitId | None:
            if tip is None or tip == theirs:
                return theirs
            their_tree, our_tree = tree_of(self._objects, theirs), tree_of(self._objects, tip)
            tree = join({our_tree, their_tree})
            # History is kept on both sides, even where one tree holds all: fsck looks in it for what was dropped.
            if tree == our_tree and self._descends(tip, theirs):
                return None
            if tree == their_tree and self._descends(theirs, tip):
                return theirs
            return self._commit(tree, [tip, theirs], by)

        return _Move(self._objects, ref, build)

    def _commit(self, tree: TreeId, parents: Sequence[CommitId], by: By) -> CommitId:
        identity, message = by()
        return self._objects.write_commit(tree=tree, parents=parents, message=message, identity=identity)

    def _descends(self, commit: CommitId, ancestor: CommitId) -> bool:
        return bool(distances(self._objects.read_parents, frozenset(), commit, {ancestor}))

    def _make(self, move: _Move) -> None:
        """Move a ref to what is built for its present commit; where it moved meanwhile, build anew on that."""
        lost = StoreError("ref-contended", f"{move.ref} could not be moved", "try again")
        for _ in self._retry.attempts():
            tip, new = move.built or move.prepared().built or (None, None)
            move = replace(move, built=None)
            if new is None or new == tip:
                return
            try:
                if self._objects.update_refs([RefUpdate(move.ref, tip, new)]):
                    return
                lost = StoreError("ref-contended", f"{move.ref} moved at every attempt", "try again")
            except StoreError as error:
                if error.code != "ref-locked":
                    raise
                lost = error
        raise lost


@dataclass(frozen=True, slots=True)
class _Move:
    """A ref that is to move to what `build` makes of its commit; `built` holds such a commit and what it made."""

    objects: GitObjects
    ref: str
    build: Build
    built: tuple[CommitId | None, CommitId | None] | None = None

    def prepared(self) -> _Move:
        """Return the move with its objects written for the ref as it is now."""
        tip = self.objects.read_ref(self.ref)
        return replace(self, built=(tip, self.build(tip)))
