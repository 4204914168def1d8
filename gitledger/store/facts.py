"""Facts of one commit's tree: which entry stands at a path, what lies below it, what a blob holds.

Structurally what the manifest room asks for; it never learns where the facts come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from typing import TypeGuard

from gitledger.dataclass import dataclass
from gitledger.records.ids import BlobId, TreeId
from gitledger.records.tree import MODE_FOLDER, TreeEntry
from gitledger.store.encoding import decode_tree, object_missing, refuse_unsound, unique_names
from gitledger.store.objects import GitObjects

__all__ = ["CommitFacts", "Differing", "TreeCache"]


@dataclass(frozen=True, slots=True)
class Differing:
    """Where two trees differ: at `paths` another entry stands in each, or one in one of them alone.

    `turned` are those at which one has a folder and the other has none; what lies below these is not named.
    """

    paths: frozenset[str]
    turned: frozenset[str]


@dataclass(slots=True)
class TreeCache:
    """Trees read so far, by id: a tree is the same in every commit that has it, and is read once."""

    objects: GitObjects
    _raw: dict[TreeId, bytes] = field(default_factory=dict)
    _entries: dict[TreeId, tuple[TreeEntry, ...]] = field(default_factory=dict)
    _by_name: dict[TreeId, dict[bytes, tuple[bytes, bytes]]] = field(default_factory=dict)
    _found: dict[tuple[str, str], TreeEntry | None] = field(default_factory=dict)
    _together: dict[tuple[str, tuple[str, ...]], tuple[TreeEntry, ...]] = field(default_factory=dict)

    def entries(self, tree: TreeId) -> tuple[TreeEntry, ...]:
        """Return a tree's entries in git's order.

        Raises `StoreError` `object-missing` where it isn't here, `object-corrupt` where its names are not sound.
        """
        known = self._entries.get(tree)
        if known is None:
            known = decode_tree(tree, self._read(tree))
            refuse_unsound(tree, known)
            self._entries[tree] = known
        return known

    def read_ahead(self, trees: Iterable[TreeId]) -> None:
        """Prepare for reading trees, those that are not known yet."""
        self.objects.read_ahead(tree for tree in trees if tree not in self._raw)

    def find(self, tree: str, name: str) -> TreeEntry | None:
        """Return a tree's entry of that name, None where it has none.

        A folder of thousands of files is not taken apart for names that it lacks. Raises as `entries` does, but
        for unsound names only where something was found.
        """
        asked = (tree, name)
        try:
            return self._found[asked]
        except KeyError:
            found = self._found[asked] = self._look_up(TreeId(tree), name)
            return found

    def find_all(self, tree: str, names: tuple[str, ...]) -> tuple[TreeEntry, ...]:
        """Return what `find` returns for each of the names, but for those that the tree lacks.

        Mostly it lacks them all, and one search tells. Raises as `find` does.
        """
        asked = (tree, names)
        found = self._together.get(asked)
        if found is None:
            raw = self._read(TreeId(tree))
            entries = [self.find(tree, name) for name in names] if _any_of(names).search(raw) else []
            found = self._together[asked] = tuple(entry for entry in entries if entry is not None)
        return found

    def differing(self, one: str, other: str) -> Differing:
        """Return where two trees differ. Only folders that do are read. Raises as `entries` does."""
        paths, turned = set[str](), set[str]()
        waiting = [("", one, other)] if one != other else []
        while waiting:
            folder, mine, theirs = waiting.pop()
            paths.add(folder)
            old, new = self.names(TreeId(mine)), self.names(TreeId(theirs))
            for name in old.keys() | new.keys():
                was, now = old.get(name), new.get(name)
                if was == now:
                    continue
                path = f"{folder}/{_text(name)}" if folder else _text(name)
                if _is_folder(was) and _is_folder(now):
                    waiting.append((path, was[1].hex(), now[1].hex()))
                    continue
                paths.add(path)
                if _is_folder(was) or _is_folder(now):
                    turned.add(path)
        return Differing(frozenset(paths), frozenset(turned))

    def names(self, tree: TreeId) -> dict[bytes, tuple[bytes, bytes]]:
        """Return mode and binary id of a tree's entries by name, as they are stored. Raises as `entries` does."""
        names = self._by_name.get(tree)
        if names is None:
            names = self._by_name[tree] = unique_names(tree, self._read(tree))
        return names

    def _look_up(self, tree: TreeId, name: str) -> TreeEntry | None:
        try:
            stored = name.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return None
        # Whatever else these bytes may hold, a tree with that entry holds these. Most look-ups end here.
        if tree not in self._by_name and b" %s\0" % stored not in self._read(tree):
            return None
        found = self.names(tree).get(stored)
        if found is None or stored.decode("utf-8", "surrogateescape") != name:
            return None
        mode, oid = found
        return TreeEntry(int(mode, 8), name, oid.hex())

    def _read(self, tree: TreeId) -> bytes:
        raw = self._raw.get(tree)
        if raw is None:
            raw = self.objects.tree_bytes(tree)
            if raw is None:
                raise object_missing("tree", tree)
            self._raw[tree] = raw
        return raw


@lru_cache(maxsize=16)
def _any_of(names: tuple[str, ...]) -> re.Pattern[bytes]:
    """Return what is found in any stored tree that has an entry of one of the names, and maybe in others."""
    stored = (name.encode("utf-8", "surrogateescape") for name in names)
    return re.compile(b" (?:%b)\0" % b"|".join(map(re.escape, stored)))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _is_folder(entry: tuple[bytes, bytes] | None) -> TypeGuard[tuple[bytes, bytes]]:
    return entry is not None and int(entry[0], 8) == MODE_FOLDER


class CommitFacts:
    """The tree of one commit; paths lead from its root, `/` between components, bytes outside UTF-8 as surrogates.

    Share one `TreeCache` among the commits of one command: `plan` then reads each tree once, however many shards
    and commits it compares.
    """

    def __init__(self, objects: GitObjects, tree: TreeId, cache: TreeCache | None = None) -> None:
        self._objects = objects
        self._cache = TreeCache(objects) if cache is None else cache
        self._root = TreeEntry(MODE_FOLDER, "", tree)
        self._folders: dict[str, TreeEntry | None] = {"": self._root}

    def read_ahead(self, paths: Iterable[str]) -> None:
        """Prepare for questions about these folders, and about those above them."""
        levels: dict[int, set[str]] = {}
        for path in paths:
            parts = path.strip("/").split("/")
            for depth in range(1, len(parts) + 1):
                levels.setdefault(depth, set()).add("/".join(parts[:depth]))
        for _, folders in sorted(levels.items()):
            found = (self.entry(folder) for folder in sorted(folders))
            self._cache.read_ahead(TreeId(one.oid) for one in found if one is not None and one.mode == MODE_FOLDER)

    @property
    def tree(self) -> TreeId:
        """The id of the root tree."""
        return TreeId(self._root.oid)

    def differing(self, other: CommitFacts) -> Differing:
        """Return where another commit's tree differs from this one's. Raises as `entry` does."""
        return self._cache.differing(self._root.oid, other._root.oid)

    def entry(self, path: str) -> TreeEntry | None:
        """Return the entry at `path` (`""`: the root folder), or None where the commit has none.

        Only exact paths name something: an empty, `.` or `..` component never does. Raises `StoreError`
        `object-missing` where a tree on the way isn't in this clone.
        """
        if not path:
            return self._root
        folder, slash, name = path.rpartition("/")
        if slash and not folder:
            return None
        if folder not in self._folders:  # there mostly is more to be asked of it
            self._folders[folder] = self._walk(folder)
        return self._below(self._folders[folder], name)

    def _walk(self, path: str) -> TreeEntry | None:
        found: TreeEntry | None = self._root
        for name in path.split("/"):
            found = self._below(found, name)
        return found

    def _below(self, folder: TreeEntry | None, name: str) -> TreeEntry | None:
        if folder is None or folder.mode != MODE_FOLDER:
            return None
        return self._cache.find(folder.oid, name)

    def named(self, folder: str, names: tuple[str, ...]) -> tuple[TreeEntry, ...]:
        """Return what `entry` returns for each of the names in the folder, but for those that it lacks.

        Raises as `entry` does.
        """
        found = self.entry(folder)
        if found is None or found.mode != MODE_FOLDER:
            return ()
        return self._cache.find_all(found.oid, names)

    def children(self, path: str) -> tuple[TreeEntry, ...]:
        """Return the entries of the folder at `path` in git's order; nothing where there is no folder."""
        found = self.entry(path)
        if found is None or found.mode != MODE_FOLDER:
            return ()
        return self._cache.entries(TreeId(found.oid))

    def stored(self, path: str) -> Mapping[bytes, tuple[bytes, bytes]]:
        """Return mode and binary id of what `children` returns, by name and as it is stored."""
        found = self.entry(path)
        if found is None or found.mode != MODE_FOLDER:
            return {}
        return self._cache.names(TreeId(found.oid))

    def blob(self, oid: str) -> bytes | None:
        """Return a blob's content, or None where this clone lacks it."""
        return self._objects.read_blob(BlobId(oid))
