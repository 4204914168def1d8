"""Which files explain that two manifests of one definition differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gitledger.manifest.entry import ROOT, Entry, join_path
from gitledger.manifest.facts import StoredFolders
from gitledger.manifest.pattern import path_bytes
from gitledger.manifest.resolve import Manifest
from gitledger.records.tree import TreeEntry

__all__ = ["changed_paths"]


def changed_paths(
    old: Manifest, new: Manifest, old_facts: StoredFolders, new_facts: StoredFolders, *, limit: int
) -> tuple[str, ...]:
    """Return at most `limit` paths of files that changed, came or went, sorted; only trees that differ are read.

    Extra inputs are compared where both manifests hold them. A folder that came or went is its files.
    """
    found: set[str] = set()
    for path in _changes(old, new, old_facts, new_facts):
        if len(found) >= limit:
            break
        found.add(path)
    return tuple(sorted(found, key=path_bytes))


def _changes(old: Manifest, new: Manifest, old_facts: StoredFolders, new_facts: StoredFolders) -> Iterator[str]:
    before, after = _only_in(old, new), _only_in(new, old)
    for path in sorted({*before, *after}, key=path_bytes):
        at = "" if path == ROOT else path
        yield from _descend(at, _found(before.get(path)), _found(after.get(path)), old_facts, new_facts)
    extra_before = {claim.path: claim for claim in old.extra or ()}
    extra_after = {claim.path: claim for claim in new.extra or ()}
    if old.extra is not None and new.extra is not None:
        for path in sorted({*extra_before, *extra_after}):
            if extra_before.get(path) != extra_after.get(path):
                yield path


def _only_in(one: Manifest, other: Manifest) -> dict[str, Entry]:
    """Return the entries of one manifest that the other lacks, by their paths."""
    return {entry.path: entry for entry in map(Entry.read, {*one.lines}.difference(other.lines))}


def _found(entry: Entry | None) -> TreeEntry | None:
    if entry is None or entry.kind == "absent":
        return None
    return TreeEntry(entry.mode, entry.path.rpartition("/")[2], entry.id)


def _descend(
    path: str,
    left: TreeEntry | None,
    right: TreeEntry | None,
    old_facts: StoredFolders,
    new_facts: StoredFolders,
) -> Iterator[str]:
    pending = [(path, left, right)]
    while pending:
        path, left, right = pending.pop()
        if left == right:
            continue
        kinds = [entry.kind for entry in (left, right) if entry]
        if any(kind != "tree" for kind in kinds):
            yield path
        before = _children(path, left, old_facts)
        after = _children(path, right, new_facts)
        for stored in sorted({name for name, _ in before.items() ^ after.items()}, reverse=True):
            name = stored.decode("utf-8", "surrogateescape")
            pending.append(
                (join_path(path, name), _child(name, before.get(stored)), _child(name, after.get(stored)))
            )


def _children(path: str, entry: TreeEntry | None, facts: StoredFolders) -> Mapping[bytes, tuple[bytes, bytes]]:
    return facts.stored(path) if entry is not None and entry.kind == "tree" else {}


def _child(name: str, stored: tuple[bytes, bytes] | None) -> TreeEntry | None:
    return None if stored is None else TreeEntry(int(stored[0], 8), name, stored[1].hex())
