"""Facts of one commit's tree: which entry stands at a path, what lies below it, what a blob holds.

Structurally what the manifest room asks for; it never learns where the facts come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gitledger.records.ids import BlobId, TreeId
from gitledger.records.tree import MODE_FOLDER, TreeEntry
from gitledger.store.encoding import object_missing, refuse_unsound
from gitledger.store.objects import GitObjects

__all__ = ["CommitFacts", "TreeCache"]


@dataclass(slots=True)
class TreeCache:
    """Trees read so far, by id: a tree is the same in every commit that has it, and is read once."""

    objects: GitObjects
    _entries: dict[TreeId, tuple[TreeEntry, ...]] = field(default_factory=dict)
    _by_name: dict[TreeId, Mapping[str, TreeEntry]] = field(default_factory=dict)

    def entries(self, tree: TreeId) -> tuple[TreeEntry, ...]:
        """Return a tree's entries in git's order.

        Raises `StoreError` `object-missing` where it isn't here, `object-corrupt` where its names are not sound.
        """
        known = self._entries.get(tree)
        if known is None:
            read = self.objects.read_tree(tree)
            if read is None:
                raise object_missing("tree", tree)
            refuse_unsound(tree, read)
            known = self._entries[tree] = read
        return known

    def named(self, tree: TreeId) -> Mapping[str, TreeEntry]:
        """Return a tree's entries by name."""
        known = self._by_name.get(tree)
        if known is None:
            known = self._by_name[tree] = {entry.name: entry for entry in self.entries(tree)}
        return known


class CommitFacts:
    """The tree of one commit; paths lead from its root, `/` between components, bytes outside UTF-8 as surrogates.

    Share one `TreeCache` among the commits of one command: `plan` then reads each tree once, however many shards
    and commits it compares.
    """

    def __init__(self, objects: GitObjects, tree: TreeId, cache: TreeCache | None = None) -> None:
        self._objects = objects
        self._cache = TreeCache(objects) if cache is None else cache
        self._root = TreeEntry(MODE_FOLDER, "", tree)

    @property
    def tree(self) -> TreeId:
        """The id of the root tree."""
        return TreeId(self._root.oid)

    def entry(self, path: str) -> TreeEntry | None:
        """Return the entry at `path` (`""`: the root folder), or None where the commit has none.

        Only exact paths name something: an empty, `.` or `..` component never does. Raises `StoreError`
        `object-missing` where a tree on the way isn't in this clone.
        """
        found = self._root
        for name in path.split("/") if path else ():
            if found.mode != MODE_FOLDER:
                return None
            below = self._cache.named(TreeId(found.oid)).get(name)
            if below is None:
                return None
            found = below
        return found

    def children(self, path: str) -> tuple[TreeEntry, ...]:
        """Return the entries of the folder at `path` in git's order; nothing where there is no folder."""
        found = self.entry(path)
        if found is None or found.mode != MODE_FOLDER:
            return ()
        return self._cache.entries(TreeId(found.oid))

    def blob(self, oid: str) -> bytes | None:
        """Return a blob's content, or None where this clone lacks it."""
        return self._objects.read_blob(BlobId(oid))
