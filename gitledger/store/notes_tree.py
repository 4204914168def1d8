"""Notes trees of any fan-out: look-up, iteration, and the one way in which they are joined and written.

A notes tree maps object ids to blobs; slashes may stand after any pair of digits, at different depths in one tree,
and one object may have several paths (then all of its blobs count). As git's notes.c reads them: a blob whose path
spells a whole id is a note, a folder of two hex digits is an inner level, upper case included; anything else is
foreign and stays as it is. What is written here has two levels (`ab/cd/rest`), whatever git or we wrote before;
only folders that change are rewritten.

A join is a join in the sense of a semilattice, on tree ids and not only on content: equal folders stay as they
are, and folders that differ become the canonical folder of everything in them. So it commutes, associates, and
joining again changes nothing (DESIGN section 2, law 1).

A folder holds the rests of ids, so that none stands in two places of an honest ledger. But a few kilobytes of
folders that name each other 256 times spell more notes than anybody could list, and whoever may push can push them
(law 7). So a walk follows repetitions up to a bound. Beyond it, a folder that was seen before is not followed to
each of its places: its notes are asked of which ids they say that they are, and those are looked up. Joins refuse.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import field
from functools import cache

from gitledger.dataclass import dataclass
from gitledger.errors import StoreError
from gitledger.records.ids import BlobId, TreeId
from gitledger.records.tree import MODE_FILE, MODE_FOLDER, TreeEntry
from gitledger.store.encoding import ID_BYTES, encode_tree, object_missing, tree_id
from gitledger.store.fan import Fan
from gitledger.store.levels import MAX_REPEATED_IN_JOIN, Level, Seen, sort_out
from gitledger.store.objects import GitObjects

__all__ = ["Blobs", "Claims", "NotesTrees", "Settle"]

Blobs = frozenset[BlobId]
Settle = Callable[[str, Blobs], BlobId | None]
"""Given an object id and all blobs found at its paths: the blob to keep, or None to keep no note for it."""

_LEVELS = 2
Claims = Callable[[BlobId], Iterable[str]]
"""Given a blob, the object ids that it says it is a note of: what counts at any other is nothing anyway."""


@dataclass(slots=True)
class _Pile:
    """What is to stand in one folder: the folders that it joins, unpacked, and loose notes."""

    notes: dict[str, set[BlobId]] = field(default_factory=lambda: defaultdict(set))
    folders: dict[str, set[TreeId]] = field(default_factory=lambda: defaultdict(set))
    foreign: dict[str, set[tuple[int, str]]] = field(default_factory=lambda: defaultdict(set))

    def add(self, level: Level) -> None:
        for rest, blobs in level.notes.items():
            self.notes[rest].update(blobs)
        for digits, trees in level.folders.items():
            self.folders[digits].update(trees)
        for entry in level.foreign:
            self.foreign[entry.name].add((entry.mode, entry.oid))


@dataclass(slots=True)
class _Joined:
    """Where a join has been: in the folders of the levels that we write, and in what lies deeper."""

    here: Seen = field(default_factory=lambda: Seen(MAX_REPEATED_IN_JOIN))
    below: Seen = field(default_factory=lambda: Seen(MAX_REPEATED_IN_JOIN))


class NotesTrees:
    """The notes trees of one repository, each given by its root.

    Folders once read are kept for the life of the object (they are content-addressed), so that trees which share
    folders, as a clone's and its remote's do, are read once. Raises `StoreError` `object-missing` where a folder
    is not there, and whatever the back end raises.
    """

    def __init__(self, objects: GitObjects) -> None:
        self._objects = objects
        self._digits = 2 * ID_BYTES[objects.object_format]
        self._levels: dict[tuple[TreeId, int], Level] = {}
        self._fans: dict[TreeId, Fan | None] = {}
        self._last = (TreeId(""), b"")

    def find(self, root: TreeId, oid: str) -> Blobs:
        """Return the blobs at all paths of `oid`: none, one, or several; reads one folder a level."""
        tree, depth = root, 0
        while depth < self._digits and (fan := self._fan(tree)) is not None:
            below = fan.get(oid[depth : depth + 2])
            if below is None:
                return frozenset()
            tree, depth = below, depth + 2
        found: set[BlobId] = set()
        trees = {tree}
        while trees:
            levels = [self._level(tree, depth) for tree in trees]
            for level in levels:
                found.update(level.notes.get(oid[depth:], ()))
            digits = oid[depth : depth + 2]
            trees = {folder for level in levels for folder in level.folders.get(digits, ())}
            depth += 2
        return frozenset(found)

    def look_ahead(self, root: TreeId, oids: Iterable[str]) -> None:
        """Prepare for finding these, a level of folders at a time."""
        level, depth = {root: list(oids)}, 0
        while level and depth < self._digits:
            self._objects.read_ahead(level)
            below: dict[TreeId, list[str]] = {}
            for tree, here in level.items():
                fan = self._fan(tree)
                if fan is None:
                    self._level(tree, depth)  # taken apart while it is at hand
                    continue
                for oid in here:
                    folder = fan.get(oid[depth : depth + 2])
                    if folder is not None:
                        below.setdefault(folder, []).append(oid)
            level, depth = below, depth + 2

    def notes(self, roots: Iterable[TreeId], claims: Claims) -> Mapping[str, Blobs]:
        """Return every object id that has a note in any of the trees, with all of its blobs."""
        trees, seen = set(roots), Seen()
        found: dict[str, Blobs] = {}
        self._collect([("", trees)], seen, found)
        _add_notes(found, self._claimed(trees, seen, claims))
        return found

    def _collect(self, places: list[tuple[str, set[TreeId]]], seen: Seen, found: dict[str, Blobs]) -> None:
        """Add the notes at and below some places, but for what `seen` refuses."""
        while places:
            prefix, here = places.pop()
            below: dict[str, set[TreeId]] = {}
            for tree in here:
                leaf = self._leaf(tree, len(prefix))
                level = None if leaf else self._level(tree, len(prefix))
                if not seen.admits(tree, len(prefix), len(leaf) if level is None else level.size):
                    continue
                if level is None:
                    rows = ((prefix + rest.decode("ascii"), (BlobId(oid.hex()),)) for rest, oid in leaf)
                    _add_notes(found, rows)
                    continue
                _add_notes(found, ((prefix + rest, blobs) for rest, blobs in level.notes.items()))
                for digits, folders in level.folders.items():
                    below.setdefault(digits, set()).update(folders)
            places += [(prefix + digits, joined) for digits, joined in below.items()]

    def places(self, roots: Iterable[TreeId]) -> Mapping[str, frozenset[TreeId]]:
        """Return the folders that the roots hold, by the two digits of each; and by "" the roots themselves."""
        trees = frozenset(roots)
        below: dict[str, set[TreeId]] = defaultdict(set)
        for tree in trees:
            for digits, folders in self._level(tree, 0).folders.items():
                below[digits].update(folders)
        return {"": trees, **{digits: frozenset(folders) for digits, folders in below.items()}}

    def notes_at(
        self, prefix: str, trees: Iterable[TreeId]
    ) -> tuple[Mapping[str, Blobs], frozenset[TreeId]] | None:
        """Return the notes at one of `places` by object id, and the folders that they stand in.

        At "" those which stand in a root itself. None where a folder stands in several places below.
        """
        seen = Seen(0)
        found: dict[str, Blobs] = {}
        if not prefix:
            roots = frozenset(trees)
            for tree in roots:
                _add_notes(found, self._level(tree, 0).notes.items())
            return found, roots
        self._collect([(prefix, set(trees))], seen, found)
        return None if seen.repeated or seen.refused else (found, frozenset(seen.trees))

    def noted(self, roots: Iterable[TreeId], claims: Claims) -> frozenset[str]:
        """Return every object id that has a note in any of the trees."""
        return frozenset(self.notes(roots, claims))

    def repeats(self, own: Iterable[TreeId], theirs: Iterable[TreeId] = ()) -> bool:
        """Tell whether the folders of `own` that `theirs` lacks name each other over and over."""
        seen, shared = Seen(), set[tuple[TreeId, str]]()
        trees = set(own)
        self._mark(trees, set(theirs), "", shared, Seen())
        for _ in self._walk(trees, "", shared, seen):
            if seen.refused:
                break
        return bool(seen.refused)

    def _claimed(self, roots: set[TreeId], seen: Seen, claims: Claims) -> Iterator[tuple[str, Blobs]]:
        """Yield the notes in folders that a walk didn't follow, at those places that they are notes of."""
        blobs: set[BlobId] = set()
        done: set[tuple[TreeId, int]] = set()
        places = list(seen.refused)
        while places:
            place = places.pop()
            if place in done:
                continue
            done.add(place)
            level = self._level(*place)
            blobs.update(blob for found in level.notes.values() for blob in found)
            places += [(tree, place[1] + 2) for trees in level.folders.values() for tree in trees]
        for oid in {oid for blob in blobs for oid in claims(blob) if len(oid) == self._digits}:
            found = frozenset(blob for root in roots for blob in self.find(root, oid))
            if found:
                yield oid, found

    def _leaf(self, tree: TreeId, depth: int) -> list[tuple[bytes, bytes]]:
        """Return the rows of a folder of the last level that holds notes as we write them and nothing else.

        Nearly every folder of a large ledger is one; whatever else it may be, none of its rows are returned.
        """
        if depth != 2 * _LEVELS:
            return []
        raw = self._stored(tree)
        rows: list[tuple[bytes, bytes]] = _leaf_row(self._digits).findall(raw)
        row = len(b"100644 \0") + self._digits - depth + self._digits // 2
        return rows if len(rows) * row == len(raw) else []

    def beyond(self, own: Iterable[TreeId], theirs: Iterable[TreeId], claims: Claims) -> Mapping[str, Blobs]:
        """Return the notes of `own`, leaving out folders that `theirs` has as well: what may differ, and more."""
        shared: set[tuple[TreeId, str]] = set()
        trees, seen = set(own), Seen()
        self._mark(trees, set(theirs), "", shared, Seen())
        found: dict[str, set[BlobId]] = defaultdict(set)
        for oid, blobs in self._walk(trees, "", shared, seen):
            found[oid].update(blobs)
        for oid, claimed in self._claimed(trees, seen, claims):
            found[oid] |= claimed
        return {oid: frozenset(blobs) for oid, blobs in found.items()}

    def _mark(
        self,
        own: set[TreeId],
        theirs: set[TreeId],
        prefix: str,
        shared: set[tuple[TreeId, str]],
        seen: Seen,
    ) -> None:
        """Put places into `shared` at which both have the same folder; not all where there is no end to it."""
        shared.update((tree, prefix) for tree in own & theirs)
        if own <= theirs:
            return
        mine, others = _Pile(), _Pile()
        for trees, pile in ((own - theirs, mine), (theirs, others)):
            for tree in trees:
                level = self._level(tree, len(prefix))
                if not seen.admits(tree, len(prefix), level.size):
                    return
                pile.add(level)
        for digits in mine.folders.keys() & others.folders.keys():
            self._mark(mine.folders[digits], others.folders[digits], prefix + digits, shared, seen)

    def _walk(
        self, trees: Iterable[TreeId], prefix: str, without: Set[tuple[TreeId, str]], seen: Seen
    ) -> Iterator[tuple[str, tuple[BlobId, ...]]]:
        """Yield (object id, blobs) of every note in folders that aren't in `without`, several times for some.

        Places that `seen` refuses are left out, and are written down there.
        """
        places = [(prefix, set(trees))]
        while places:
            prefix, here = places.pop()
            below: dict[str, set[TreeId]] = {}
            for tree in here:
                if without and (tree, prefix) in without:
                    continue
                level = self._level(tree, len(prefix))
                if not seen.admits(tree, len(prefix), level.size):
                    continue
                for rest, blobs in level.notes.items():
                    yield prefix + rest, blobs
                for digits, folders in level.folders.items():
                    below.setdefault(digits, set()).update(folders)
            places += [(prefix + digits, joined) for digits, joined in below.items()]

    def _join_level(self, tree: TreeId, depth: int, seen: _Joined) -> Level:
        """Return a folder that is to be joined; raises `StoreError` `notes-tree-repeats` where there is no end."""
        level = self._level(tree, depth)
        if not seen.here.admits(tree, depth, level.size):
            raise _endless(tree)
        return level

    def join(self, roots: Iterable[TreeId], loose: Mapping[str, Blobs], settle: Settle) -> TreeId:
        """Return the tree of everything that the trees hold and the `loose` notes, by object id.

        Several blobs of one object, or any blob in a folder that is rewritten, become the one that `settle` says.
        Foreign entries are kept; of two with one name the greater (mode, id) is, and a note's place comes first.
        Raises `StoreError` `notes-tree-repeats`.
        """
        pile = {oid: set(blobs) for oid, blobs in loose.items()}
        tree = self._join(set(roots), pile, "", settle, _Joined())
        return tree if tree is not None else self._objects.write_tree(())

    def _join(
        self,
        trees: set[TreeId],
        loose: Mapping[str, set[BlobId]],
        prefix: str,
        settle: Settle,
        seen: _Joined,
    ) -> TreeId | None:
        if not loose and len(trees) == 1:
            return next(iter(trees))
        if len(trees) == 1 and len(prefix) < 2 * _LEVELS:
            [tree] = trees
            fan = self._fan(tree)
            if fan is not None:
                return self._join_below(tree, fan, loose, prefix, settle, seen)
        pile = _Pile()
        for rest, blobs in loose.items():
            pile.notes[rest].update(blobs)
        for tree in trees:
            pile.add(self._join_level(tree, len(prefix), seen))
        if len(prefix) < 2 * _LEVELS:
            entries = self._inner_entries(pile, prefix, settle, seen)
        else:
            entries = self._leaf_entries(pile, prefix, settle, seen)
        taken = {entry.name for entry in entries}
        entries += [TreeEntry(*_last(name, kinds)) for name, kinds in pile.foreign.items() if name not in taken]
        return self._written(encode_tree(entries), trees) if entries else None

    def _written(self, raw: bytes, trees: Set[TreeId]) -> TreeId:
        """Return the id of a folder, stored now unless it is one of `trees`, which are stored already."""
        tree = tree_id(raw, self._objects.object_format)
        return tree if tree in trees else self._objects.write_tree_bytes(raw)

    def _join_below(
        self,
        tree: TreeId,
        fan: Fan,
        loose: Mapping[str, set[BlobId]],
        prefix: str,
        settle: Settle,
        seen: _Joined,
    ) -> TreeId:
        """Return a folder with loose notes joined into the folders that they belong in, all others as they are."""
        pushed: dict[str, dict[str, set[BlobId]]] = defaultdict(dict)
        for rest, blobs in loose.items():
            pushed[rest[:2]][rest[2:]] = blobs
        replaced = {}
        for digits, notes in pushed.items():
            there = fan.get(digits)
            joined = self._join(set() if there is None else {there}, notes, prefix + digits, settle, seen)
            if joined is not None:
                replaced[digits] = joined
        return self._written(fan.with_folders(replaced), {tree})

    def _inner_entries(self, pile: _Pile, prefix: str, settle: Settle, seen: _Joined) -> list[TreeEntry]:
        pushed: dict[str, dict[str, set[BlobId]]] = defaultdict(dict)
        for rest, blobs in pile.notes.items():
            pushed[rest[:2]][rest[2:]] = blobs
        entries = []
        for digits in pile.folders.keys() | pushed.keys():
            folders, notes = pile.folders.get(digits, set()), pushed.get(digits, {})
            tree = self._join(folders, notes, prefix + digits, settle, seen)
            if tree is not None:
                entries.append(TreeEntry(MODE_FOLDER, digits, tree))
        return entries

    def _leaf_entries(self, pile: _Pile, prefix: str, settle: Settle, seen: _Joined) -> list[TreeEntry]:
        """Return the notes of the last level, those from deeper folders among them; what is left there stays."""
        entries = []
        for digits, trees in pile.folders.items():
            for oid, blobs in self._walk(trees, prefix + digits, frozenset(), seen.below):
                pile.notes[oid[len(prefix) :]].update(blobs)
            for tree, _ in seen.below.refused:
                raise _endless(tree)
            residue = self._strip(trees, len(prefix) + 2)
            if residue is not None:
                entries.append(TreeEntry(MODE_FOLDER, digits, residue))
        for rest, found in pile.notes.items():
            kept = settle(prefix + rest, frozenset(found))
            if kept is not None:
                entries.append(TreeEntry(MODE_FILE, rest, kept))
        return entries

    def _strip(self, trees: set[TreeId], depth: int) -> TreeId | None:
        """Return the tree of what is foreign below folders whose notes have moved, None where nothing is."""
        pile = _Pile()
        for tree in trees:
            pile.add(self._level(tree, depth))
        entries = []
        for digits, below in pile.folders.items():
            residue = self._strip(below, depth + 2)
            if residue is not None:
                entries.append(TreeEntry(MODE_FOLDER, digits, residue))
        taken = {entry.name for entry in entries}
        entries += [TreeEntry(*_last(name, kinds)) for name, kinds in pile.foreign.items() if name not in taken]
        return self._objects.write_tree(entries) if entries else None

    def _fan(self, tree: TreeId) -> Fan | None:
        if tree not in self._fans:
            self._fans[tree] = Fan.of(self._stored(tree), self._digits // 2)
        return self._fans[tree]

    def _stored(self, tree: TreeId) -> bytes:
        """Return a folder as it is stored; the last one is kept, for what turns out to be no fan."""
        if self._last[0] != tree:
            raw = self._objects.tree_bytes(tree)
            if raw is None:
                raise object_missing("notes tree", tree)
            self._last = (tree, raw)
        return self._last[1]

    def _level(self, tree: TreeId, depth: int) -> Level:
        known = self._levels.get((tree, depth))
        if known is None:
            known = sort_out(tree, self._stored(tree), self._digits - depth)
            self._levels[tree, depth] = known
        return known


@cache
def _leaf_row(digits: int) -> re.Pattern[bytes]:
    """Return what a row of a folder of the last level looks like, where ids have so many hex digits."""
    return re.compile(rb"100644 ([0-9a-f]{%d})\0(.{%d})" % (digits - 2 * _LEVELS, digits // 2), re.DOTALL)


def _add_notes(found: dict[str, Blobs], notes: Iterable[tuple[str, Iterable[BlobId]]]) -> None:
    for oid, blobs in notes:
        known = found.get(oid)
        found[oid] = frozenset(blobs) if known is None else known.union(blobs)


def _endless(tree: TreeId) -> StoreError:
    return StoreError(
        "notes-tree-repeats",
        f"notes tree {tree} stands in its own ledger again and again: no notes tree is like that",
        "git ledger fsck (it names the ref that holds it)",
    )


def _last(name: str, kinds: set[tuple[int, str]]) -> tuple[int, str, str]:
    mode, oid = max(kinds)
    return mode, name, oid
