"""Facts of one commit's tree: which entry stands at a path, what lies below it, what a blob holds.

Structurally what the manifest room asks for; it never learns where the facts come from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from gitledger.dataclass import dataclass
from gitledger.records.ids import BlobId, TreeId
from gitledger.records.tree import MODE_FOLDER, TreeEntry
from gitledger.store.encoding import decode_tree, object_missing, refuse_unsound, unique_names
from gitledger.store.objects import GitObjects

__all__ = ["CommitFacts", "TreeCache"]


@dataclass(slots=True)
class TreeCache:
    """Trees read so far, by id: a tree is the same in every commit that has it, and is read once."""

    objects: GitObjects
    _raw: dict[TreeId, bytes] = field(default_factory=dict)
    _entries: dict[TreeId, tuple[TreeEntry, ...]] = field(default_factory=dict)
    _by_name: dict[TreeId, dict[bytes, tuple[bytes, bytes]]] = field(default_factory=dict)
    _found: dict[tuple[str, str], TreeEntry | None] = field(default_factory=dict)

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
        if asked not in self._found:
            self._found[asked] = self._look_up(TreeId(tree), name)
        return self._found[asked]

    def _look_up(self, tree: TreeId, name: str) -> TreeEntry | None:
        try:
            stored = name.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return None
        names = self._by_name.get(tree)
        if names is None:
            raw = self._read(tree)
            # Whatever else these bytes may hold, a tree with that entry holds these. Most look-ups end here.
            if b" %s\0" % stored not in raw:
                return None
            names = self._by_name[tree] = unique_names(tree, raw)
        found = names.get(stored)
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

    def children(self, path: str) -> tuple[TreeEntry, ...]:
        """Return the entries of the folder at `path` in git's order; nothing where there is no folder."""
        found = self.entry(path)
        if found is None or found.mode != MODE_FOLDER:
            return ()
        return self._cache.entries(TreeId(found.oid))

    def blob(self, oid: str) -> bytes | None:
        """Return a blob's content, or None where this clone lacks it."""
        return self._objects.read_blob(BlobId(oid))
