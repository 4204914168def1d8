"""One folder of a notes tree, sorted out; and which folders a walk through many has been in.

As git's notes.c reads a tree: a blob whose path spells a whole id is a note, a folder of two hex digits an inner
level, upper case included, and anything else is foreign.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from gitledger.dataclass import dataclass
from gitledger.records.ids import BlobId, TreeId
from gitledger.records.tree import MODE_EXECUTABLE, MODE_FILE, MODE_FOLDER, TreeEntry
from gitledger.store.encoding import split_tree

__all__ = ["MAX_REPEATED", "MAX_REPEATED_IN_JOIN", "Level", "Seen", "sort_out"]

_HEX = re.compile(rb"\A[0-9a-fA-F]+\Z")
_NOTE_MODES = frozenset({b"%o" % mode for mode in (MODE_FILE, MODE_EXECUTABLE, 0o100664, 0o100600)})
_FOLDER_MODE = b"%o" % MODE_FOLDER
MAX_REPEATED = 1_000
"""How many entries of folders that stand in several places are followed in one walk; honest ledgers have none."""
MAX_REPEATED_IN_JOIN = 100_000
"""The same for joins, which must not give up for what others pushed in small pieces."""


@dataclass(frozen=True, slots=True)
class Level:
    """One folder of a notes tree, sorted out: rest of id -> blobs, next two digits -> folders, and the others."""

    notes: Mapping[str, tuple[BlobId, ...]]
    folders: Mapping[str, tuple[TreeId, ...]]
    foreign: tuple[TreeEntry, ...]

    @property
    def size(self) -> int:
        """How many entries it has."""
        return len(self.notes) + len(self.folders) + len(self.foreign)


@dataclass(slots=True)
class Seen:
    """The folders that a walk has been in, what of them it has been in again, and where it would go no further."""

    limit: int = MAX_REPEATED
    trees: set[TreeId] = field(default_factory=set)
    repeated: int = 0
    refused: set[tuple[TreeId, int]] = field(default_factory=set)

    def admits(self, tree: TreeId, depth: int, entries: int) -> bool:
        """Tell whether to go on into a folder of that many entries."""
        if tree not in self.trees:
            self.trees.add(tree)
            return True
        if self.repeated > self.limit:
            self.refused.add((tree, depth))
            return False
        self.repeated += 1 + entries
        return True


def sort_out(tree: TreeId, raw: bytes, digits_left: int) -> Level:
    """Return a folder as it is stored, of a path that leaves `digits_left` of an id; raises `StoreError`."""
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
    return Level(notes, folders, tuple(foreign))
