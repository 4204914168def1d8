"""Notes trees of any fan-out: look-up, iteration, and the one way in which they are joined and written.

A notes tree maps object ids to blobs; slashes may stand after any pair of digits, at different depths in one tree,
and one object may have several paths (then all of its blobs count). As git's notes.c reads them: a blob whose path
spells a whole id is a note, a folder of two hex digits is an inner level, upper case included; anything else is
foreign and stays as it is. What is written here has two levels (`ab/cd/rest`), whatever git or we wrote before;
only folders that change are rewritten.

A join is a join in the sense of a semilattice, on tree ids and not only on content: equal folders stay as they
are, and folders that differ become the canonical folder of everything in them. So it commutes, associates, and
joining again changes nothing (DESIGN section 2, law 1).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from gitledger.errors import StoreError
from gitledger.records.ids import BlobId, TreeId
from gitledger.records.tree import MODE_EXECUTABLE, MODE_FILE, MODE_FOLDER, TreeEntry
from gitledger.store.encoding import ID_BYTES, object_missing, split_tree
from gitledger.store.fan import Fan
from gitledger.store.objects import GitObjects

__all__ = ["Blobs", "NotesTrees", "Settle"]

Blobs = frozenset[BlobId]
Settle = Callable[[str, Blobs], BlobId | None]
"""Given an object id and all blobs found at its paths: the blob to keep, or None to keep no note for it."""

_LEVELS = 2
_HEX = re.compile(rb"\A[0-9a-fA-F]+\Z")
_NOTE_MODES = frozenset({b"%o" % mode for mode in (MODE_FILE, MODE_EXECUTABLE, 0o100664, 0o100600)})
_FOLDER_MODE = b"%o" % MODE_FOLDER
_LEAF = {
    2 * size: re.compile(rb"100644 ([0-9a-f]{%d})\0.{%d}" % (2 * size - 2 * _LEVELS, size), re.DOTALL)
    for size in ID_BYTES.values()
}
MAX_REPEATED = 1_000_000
"""How many entries of folders that stand in more than one place are read in one walk. Honest ledgers have none (a
folder holds the rests of ids, which no two places share); folder after folder that names another 256 times is a
tree of a few kilobytes which it would take for ever to walk."""


@dataclass(frozen=True, slots=True)
class _Level:
    """One folder of a notes tree, sorted out: rest of id -> blobs, next two digits -> folders, and the others."""

    notes: Mapping[str, tuple[BlobId, ...]]
    folders: Mapping[str, tuple[TreeId, ...]]
    foreign: tuple[TreeEntry, ...]


@dataclass(slots=True)
class _Pile:
    """What is to stand in one folder: the folders that it joins, unpacked, and loose notes."""

    notes: dict[str, set[BlobId]] = field(default_factory=lambda: defaultdict(set))
    folders: dict[str, set[TreeId]] = field(default_factory=lambda: defaultdict(set))
    foreign: dict[str, set[tuple[int, str]]] = field(default_factory=lambda: defaultdict(set))

    def add(self, level: _Level) -> None:
        for rest, blobs in level.notes.items():
            self.notes[rest].update(blobs)
        for digits, trees in level.folders.items():
            self.folders[digits].update(trees)
        for entry in level.foreign:
            self.foreign[entry.name].add((entry.mode, entry.oid))


@dataclass(slots=True)
class _Seen:
    """The folders that a walk has been in, and what of them it has been in again."""

    trees: set[TreeId] = field(default_factory=set)
    repeated: int = 0

    def count(self, tree: TreeId, entries: int) -> None:
        if tree not in self.trees:
            self.trees.add(tree)
            return
        self.repeated += 1 + entries
        if self.repeated > MAX_REPEATED:
            raise StoreError(
                "notes-tree-repeats",
                f"notes tree {tree} stands in its own ledger again and again: no notes tree is like that",
                "git ledger fsck names the ref that holds it",
            )


@dataclass(slots=True)
class _Visits:
    """Where one operation has been: comparing two trees, and walking through one."""

    marked: _Seen = field(default_factory=_Seen)
    walked: _Seen = field(default_factory=_Seen)


class NotesTrees:
    """The notes trees of one repository, each given by its root.

    Folders once read are kept for the life of the object (they are content-addressed), so that trees which share
    folders, as a clone's and its remote's do, are read once. Raises `StoreError` `object-missing` where a folder
    is not there, and whatever the back end raises.
    """

    def __init__(self, objects: GitObjects) -> None:
        self._objects = objects
        self._digits = 2 * ID_BYTES[objects.object_format]
        self._levels: dict[tuple[TreeId, int], _Level] = {}
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

    def notes(self, roots: Iterable[TreeId]) -> Mapping[str, Blobs]:
        """Return every object id that has a note in any of the trees, with all of its blobs."""
        found: dict[str, set[BlobId]] = defaultdict(set)
        for oid, blobs in self._walk(set(roots), "", frozenset(), _Visits()):
            found[oid].update(blobs)
        return {oid: frozenset(blobs) for oid, blobs in found.items()}

    def noted(self, roots: Iterable[TreeId]) -> frozenset[str]:
        """Return every object id that has a note in any of the trees; the keys of `notes`, in half the time."""
        found: set[str] = set()
        visits = _Visits()
        places = [("", set(roots))]
        while places:
            prefix, here = places.pop()
            below: dict[str, set[TreeId]] = {}
            for tree in here:
                names = self._leaf_names(tree, len(prefix))
                if names is not None:
                    visits.walked.count(tree, len(names))
                    found.update([prefix + name for name in names])
                    continue
                level = self._visit(tree, len(prefix), visits.walked)
                found.update([prefix + rest for rest in level.notes])
                for digits, folders in level.folders.items():
                    below.setdefault(digits, set()).update(folders)
            places += [(prefix + digits, joined) for digits, joined in below.items()]
        return frozenset(found)

    def _leaf_names(self, tree: TreeId, depth: int) -> list[str] | None:
        """Return the names in a folder of the last level that holds notes as we write them and nothing else."""
        if depth != 2 * _LEVELS:
            return None
        raw = self._stored(tree)
        names = _LEAF[self._digits].findall(raw)
        row = len(b"100644 \0") + self._digits - depth + self._digits // 2
        return b" ".join(names).decode("ascii").split(" ") if names and len(names) * row == len(raw) else None

    def beyond(self, own: Iterable[TreeId], theirs: Iterable[TreeId]) -> Mapping[str, Blobs]:
        """Return the notes of `own`, leaving out folders that `theirs` has as well: what may differ, and more."""
        shared: set[tuple[TreeId, str]] = set()
        visits = _Visits()
        self._mark(set(own), set(theirs), "", shared, visits)
        found: dict[str, set[BlobId]] = defaultdict(set)
        for oid, blobs in self._walk(set(own), "", shared, visits):
            found[oid].update(blobs)
        return {oid: frozenset(blobs) for oid, blobs in found.items()}

    def _mark(
        self,
        own: set[TreeId],
        theirs: set[TreeId],
        prefix: str,
        shared: set[tuple[TreeId, str]],
        visits: _Visits,
    ) -> None:
        shared.update((tree, prefix) for tree in own & theirs)
        mine, others = _Pile(), _Pile()
        for trees, pile in ((own - theirs, mine), (theirs, others)):
            for tree in trees:
                pile.add(self._visit(tree, len(prefix), visits.marked))
        for digits in mine.folders.keys() & others.folders.keys():
            self._mark(mine.folders[digits], others.folders[digits], prefix + digits, shared, visits)

    def _walk(
        self, trees: Iterable[TreeId], prefix: str, without: Set[tuple[TreeId, str]], visits: _Visits
    ) -> Iterator[tuple[str, tuple[BlobId, ...]]]:
        """Yield (object id, blobs) of every note in folders that aren't in `without`, several times for some."""
        places = [(prefix, set(trees))]
        while places:
            prefix, here = places.pop()
            below: dict[str, set[TreeId]] = {}
            for tree in here:
                if without and (tree, prefix) in without:
                    continue
                level = self._visit(tree, len(prefix), visits.walked)
                for rest, blobs in level.notes.items():
                    yield prefix + rest, blobs
                for digits, folders in level.folders.items():
                    below.setdefault(digits, set()).update(folders)
            places += [(prefix + digits, joined) for digits, joined in below.items()]

    def _visit(self, tree: TreeId, depth: int, seen: _Seen) -> _Level:
        """Return a folder on a walk; raises `StoreError` `notes-tree-repeats` where there is no end to it."""
        level = self._level(tree, depth)
        seen.count(tree, len(level.notes) + len(level.folders) + len(level.foreign))
        return level

    def join(self, roots: Iterable[TreeId], loose: Mapping[str, Blobs], settle: Settle) -> TreeId:
        """Return the tree of everything that the trees hold and the `loose` notes, by object id.

        Several blobs of one object, or any blob in a folder that is rewritten, become the one that `settle` says.
        Foreign entries are kept; of two with one name the greater (mode, id) is, and a note's place comes first.
        """
        pile = {oid: set(blobs) for oid, blobs in loose.items()}
        tree = self._join(set(roots), pile, "", settle, _Visits())
        return tree if tree is not None else self._objects.write_tree(())

    def _join(
        self,
        trees: set[TreeId],
        loose: Mapping[str, set[BlobId]],
        prefix: str,
        settle: Settle,
        visits: _Visits,
    ) -> TreeId | None:
        if not loose and len(trees) == 1:
            return next(iter(trees))
        if len(trees) == 1 and len(prefix) < 2 * _LEVELS:
            [tree] = trees
            fan = self._fan(tree)
            if fan is not None:
                return self._join_below(fan, loose, prefix, settle, visits)
        pile = _Pile()
        for rest, blobs in loose.items():
            pile.notes[rest].update(blobs)
        for tree in trees:
            pile.add(self._visit(tree, len(prefix), visits.marked))
        if len(prefix) < 2 * _LEVELS:
            entries = self._inner_entries(pile, prefix, settle, visits)
        else:
            entries = self._leaf_entries(pile, prefix, settle, visits)
        taken = {entry.name for entry in entries}
        entries += [TreeEntry(*_last(name, kinds)) for name, kinds in pile.foreign.items() if name not in taken]
        return self._objects.write_tree(entries) if entries else None

    def _join_below(
        self, fan: Fan, loose: Mapping[str, set[BlobId]], prefix: str, settle: Settle, visits: _Visits
    ) -> TreeId:
        """Return a folder with loose notes joined into the folders that they belong in, all others as they are."""
        pushed: dict[str, dict[str, set[BlobId]]] = defaultdict(dict)
        for rest, blobs in loose.items():
            pushed[rest[:2]][rest[2:]] = blobs
        replaced = {}
        for digits, notes in pushed.items():
            there = fan.get(digits)
            joined = self._join(set() if there is None else {there}, notes, prefix + digits, settle, visits)
            if joined is not None:
                replaced[digits] = joined
        return self._objects.write_tree_bytes(fan.with_folders(replaced))

    def _inner_entries(self, pile: _Pile, prefix: str, settle: Settle, visits: _Visits) -> list[TreeEntry]:
        pushed: dict[str, dict[str, set[BlobId]]] = defaultdict(dict)
        for rest, blobs in pile.notes.items():
            pushed[rest[:2]][rest[2:]] = blobs
        entries = []
        for digits in pile.folders.keys() | pushed.keys():
            folders, notes = pile.folders.get(digits, set()), pushed.get(digits, {})
            tree = self._join(folders, notes, prefix + digits, settle, visits)
            if tree is not None:
                entries.append(TreeEntry(MODE_FOLDER, digits, tree))
        return entries

    def _leaf_entries(self, pile: _Pile, prefix: str, settle: Settle, visits: _Visits) -> list[TreeEntry]:
        """Return the notes of the last level, those from deeper folders among them; what is left there stays."""
        entries = []
        for digits, trees in pile.folders.items():
            for oid, blobs in self._walk(trees, prefix + digits, frozenset(), visits):
                pile.notes[oid[len(prefix) :]].update(blobs)
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

    def _level(self, tree: TreeId, depth: int) -> _Level:
        known = self._levels.get((tree, depth))
        if known is None:
            known = _sorted_out(tree, self._stored(tree), self._digits - depth)
            self._levels[tree, depth] = known
        return known


def _sorted_out(tree: TreeId, raw: bytes, digits_left: int) -> _Level:
    notes: dict[str, tuple[BlobId, ...]] = {}
    folders: dict[str, tuple[TreeId, ...]] = {}
    foreign: list[TreeEntry] = []
    for mode, name, oid in split_tree(tree, raw):
        length = len(name)
        is_hex = (length == digits_left or length == 2) and _HEX.match(name) is not None
        if is_hex and length == digits_left and mode.lstrip(b"0") in _NOTE_MODES:
            digits = name.decode("ascii").lower()
            notes[digits] = (*notes.get(digits, ()), BlobId(oid.hex()))
        elif is_hex and length == 2 and digits_left > 2 and mode.lstrip(b"0") == _FOLDER_MODE:
            digits = name.decode("ascii").lower()
            folders[digits] = (*folders.get(digits, ()), TreeId(oid.hex()))
        else:
            foreign.append(TreeEntry(int(mode, 8), name.decode("utf-8", "surrogateescape"), oid.hex()))
    return _Level(notes, folders, tuple(foreign))


def _last(name: str, kinds: set[tuple[int, str]]) -> tuple[int, str, str]:
    mode, oid = max(kinds)
    return mode, name, oid
