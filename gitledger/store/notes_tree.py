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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gitledger.records.ids import BlobId, TreeId
from gitledger.records.tree import MODE_EXECUTABLE, MODE_FILE, MODE_FOLDER, TreeEntry
from gitledger.store.encoding import ID_BYTES, object_missing
from gitledger.store.objects import GitObjects

__all__ = ["Blobs", "NotesTrees", "Settle"]

Blobs = frozenset[BlobId]
Settle = Callable[[str, Blobs], BlobId | None]
"""Given an object id and all blobs found at its paths: the blob to keep, or None to keep no note for it."""

_LEVELS = 2
_HEX = re.compile(r"\A[0-9a-fA-F]+\Z")
_NOTE_MODES = frozenset({MODE_FILE, MODE_EXECUTABLE, 0o100664, 0o100600})


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

    def find(self, root: TreeId, oid: str) -> Blobs:
        """Return the blobs at all paths of `oid`: none, one, or several; reads one folder a level."""
        return frozenset(self._find(root, oid, 0))

    def _find(self, tree: TreeId, oid: str, depth: int) -> Iterator[BlobId]:
        level = self._level(tree, depth)
        yield from level.notes.get(oid[depth:], ())
        for below in level.folders.get(oid[depth : depth + 2], ()):
            yield from self._find(below, oid, depth + 2)

    def notes(self, roots: Iterable[TreeId]) -> Mapping[str, Blobs]:
        """Return every object id that has a note in any of the trees, with all of its blobs."""
        found: dict[str, set[BlobId]] = defaultdict(set)
        for oid, blob in self._walk(set(roots), "", set()):
            found[oid].add(blob)
        return {oid: frozenset(blobs) for oid, blobs in found.items()}

    def beyond(self, own: Iterable[TreeId], theirs: Iterable[TreeId]) -> Mapping[str, Blobs]:
        """Return the notes of `own`, leaving out folders that `theirs` has as well: what may differ, and more."""
        shared: set[tuple[TreeId, str]] = set()
        self._mark(set(own), set(theirs), "", shared)
        found: dict[str, set[BlobId]] = defaultdict(set)
        for oid, blob in self._walk(set(own), "", shared):
            found[oid].add(blob)
        return {oid: frozenset(blobs) for oid, blobs in found.items()}

    def _mark(self, own: set[TreeId], theirs: set[TreeId], prefix: str, shared: set[tuple[TreeId, str]]) -> None:
        shared.update((tree, prefix) for tree in own & theirs)
        mine, others = _Pile(), _Pile()
        for tree in own - theirs:
            mine.add(self._level(tree, len(prefix)))
        for tree in theirs:
            others.add(self._level(tree, len(prefix)))
        for digits in mine.folders.keys() & others.folders.keys():
            self._mark(mine.folders[digits], others.folders[digits], prefix + digits, shared)

    def _walk(
        self, trees: set[TreeId], prefix: str, without: set[tuple[TreeId, str]]
    ) -> Iterator[tuple[str, BlobId]]:
        """Yield (object id, blob) of every note in folders that aren't in `without`."""
        below: dict[str, set[TreeId]] = defaultdict(set)
        for tree in trees:
            if (tree, prefix) in without:
                continue
            level = self._level(tree, len(prefix))
            for rest, blobs in level.notes.items():
                for blob in blobs:
                    yield prefix + rest, blob
            for digits, folders in level.folders.items():
                below[digits].update(folders)
        for digits, joined in below.items():
            yield from self._walk(joined, prefix + digits, without)

    def join(self, roots: Iterable[TreeId], loose: Mapping[str, Blobs], settle: Settle) -> TreeId:
        """Return the tree of everything that the trees hold and the `loose` notes, by object id.

        Several blobs of one object, or any blob in a folder that is rewritten, become the one that `settle` says.
        Foreign entries are kept; of two with one name the greater (mode, id) is, and a note's place comes first.
        """
        pile = {oid: set(blobs) for oid, blobs in loose.items()}
        tree = self._join(set(roots), pile, "", settle)
        return tree if tree is not None else self._objects.write_tree(())

    def _join(
        self, trees: set[TreeId], loose: Mapping[str, set[BlobId]], prefix: str, settle: Settle
    ) -> TreeId | None:
        if not loose and len(trees) == 1:
            return next(iter(trees))
        pile = _Pile()
        for rest, blobs in loose.items():
            pile.notes[rest].update(blobs)
        for tree in trees:
            pile.add(self._level(tree, len(prefix)))
        if len(prefix) < 2 * _LEVELS:
            entries = self._inner_entries(pile, prefix, settle)
        else:
            entries = self._leaf_entries(pile, prefix, settle)
        taken = {entry.name for entry in entries}
        entries += [TreeEntry(*_last(name, kinds)) for name, kinds in pile.foreign.items() if name not in taken]
        return self._objects.write_tree(entries) if entries else None

    def _inner_entries(self, pile: _Pile, prefix: str, settle: Settle) -> list[TreeEntry]:
        pushed: dict[str, dict[str, set[BlobId]]] = defaultdict(dict)
        for rest, blobs in pile.notes.items():
            pushed[rest[:2]][rest[2:]] = blobs
        entries = []
        for digits in pile.folders.keys() | pushed.keys():
            tree = self._join(pile.folders.get(digits, set()), pushed.get(digits, {}), prefix + digits, settle)
            if tree is not None:
                entries.append(TreeEntry(MODE_FOLDER, digits, tree))
        return entries

    def _leaf_entries(self, pile: _Pile, prefix: str, settle: Settle) -> list[TreeEntry]:
        """Return the notes of the last level, those from deeper folders among them; what is left there stays."""
        entries = []
        for digits, trees in pile.folders.items():
            for oid, blob in self._walk(trees, prefix + digits, set()):
                pile.notes[oid[len(prefix) :]].add(blob)
            residue = self._strip(trees, len(prefix) + 2)
            if residue is not None:
                entries.append(TreeEntry(MODE_FOLDER, digits, residue))
        for rest, blobs in pile.notes.items():
            kept = settle(prefix + rest, frozenset(blobs))
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

    def _level(self, tree: TreeId, depth: int) -> _Level:
        known = self._levels.get((tree, depth))
        if known is None:
            entries = self._objects.read_tree(tree)
            if entries is None:
                raise object_missing("notes tree", tree)
            known = self._levels[tree, depth] = _sorted_out(entries, self._digits - depth)
        return known


def _sorted_out(entries: Iterable[TreeEntry], digits_left: int) -> _Level:
    notes: dict[str, tuple[BlobId, ...]] = {}
    folders: dict[str, tuple[TreeId, ...]] = {}
    foreign: list[TreeEntry] = []
    for entry in entries:
        name = entry.name.lower()
        length = len(name)
        is_hex = length in (2, digits_left) and _HEX.match(name) is not None
        if is_hex and length == digits_left and entry.mode in _NOTE_MODES:
            notes[name] = (*notes.get(name, ()), BlobId(entry.oid))
        elif is_hex and length == 2 and digits_left > 2 and entry.mode == MODE_FOLDER:
            folders[name] = (*folders.get(name, ()), TreeId(entry.oid))
        else:
            foreign.append(entry)
    return _Level(notes, folders, tuple(foreign))


def _last(name: str, kinds: set[tuple[int, str]]) -> tuple[int, str, str]:
    mode, oid = max(kinds)
    return mode, name, oid
