"""Declared patterns to what stands in a tree, descending only where a pattern or an exclusion can reach.

A folder into which no exclusion can reach is one tree id. One into which some can (by its text, whether or not
anything there is excluded today) is its children, so that what is excluded never shows in a digest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from gitledger.dataclass import dataclass
from gitledger.errors import ManifestError
from gitledger.manifest.entry import Entry, join_path, parent_folders
from gitledger.manifest.facts import Folders, TreeFacts
from gitledger.manifest.pattern import Pattern, States, compile_pattern, path_bytes
from gitledger.records.decode import shown
from gitledger.records.tree import MODE_FOLDER, MODE_SYMLINK, TreeEntry

__all__ = ["Scope", "matches", "refuse_detour", "resolve_scope"]


@dataclass(frozen=True, slots=True)
class Scope:
    """`entries` after exclusions; `folders`: each declared path that is a folder, else the folder it is in."""

    entries: tuple[Entry, ...]
    folders: frozenset[str]


def resolve_scope(paths: Sequence[str], excluded_paths: Sequence[str], facts: TreeFacts) -> Scope:
    """Return what the patterns stand for in the tree.

    Raises `ManifestError` naming the pattern: `scope-empty` (no patterns, an empty tree, everything excluded),
    `pattern-unmatched`, `symlinked-component`, `inside-submodule`, and those of `compile_pattern`.
    """
    if not paths:
        raise ManifestError("scope-empty", "no paths are declared", "declare paths; the default is [.]")
    exclusions = _Exclusions(tuple(compile_pattern(text) for text in excluded_paths))
    found: dict[str, TreeEntry] = {}
    for text in paths:
        matched = dict(matches(compile_pattern(text), facts))
        if not matched:
            raise _unmatched(text, "paths", "no tracked file or folder")
        found |= matched
    entries = {entry.path: entry for path, top in found.items() for entry in exclusions.without(path, top, facts)}
    exclusions.refuse_unmatched()
    if not entries or (set(entries) == {"."} and not facts.children("")):
        raise ManifestError(
            "scope-empty",
            f"nothing is left of paths {shown(list(paths))}",
            "narrow excluded_paths, or commit files",
        )
    folders = (path if top.kind == "tree" else path.rpartition("/")[0] for path, top in found.items())
    return Scope(tuple(entries.values()), frozenset(folders))


def _unmatched(text: str, key: str, what: str) -> ManifestError:
    return ManifestError(
        "pattern-unmatched",
        f"{key}: {shown(text)} matches {what}",
        "mend the pattern, or take it out of the configuration",
    )


def matches(pattern: Pattern, facts: Folders) -> Iterator[tuple[str, TreeEntry]]:
    """Yield each path that the pattern matches and what stands there; below a matched folder nothing more.

    Raises `ManifestError` where a literal path leads through a symlink or into a submodule.
    """
    if pattern.is_root:
        root = facts.entry("")
        yield from [("", root)] if root else []
    elif pattern.path is not None:
        yield from _standing_at(pattern.path, pattern, facts)
    else:
        yield from _walked(pattern, facts)


def _standing_at(path: str, pattern: Pattern, facts: Folders) -> Iterator[tuple[str, TreeEntry]]:
    """Yield what `_walked` finds for a pattern that stands for one path alone."""
    for above in parent_folders(path)[1:]:
        on_the_way = facts.entry(above)
        if on_the_way is None:
            return
        if on_the_way.mode != MODE_FOLDER:
            refuse_detour(above, on_the_way)
            return
    entry = facts.entry(path)
    if entry is not None and (entry.kind != "blob" or not pattern.folder_only):
        yield path, entry


def _walked(pattern: Pattern, facts: Folders) -> Iterator[tuple[str, TreeEntry]]:
    pending = [("", pattern.start())]
    while pending:
        folder, states = pending.pop()
        literals = pattern.literals(states)
        for entry in _candidates(facts, folder, literals):
            path = join_path(folder, entry.name)
            below, accepted = pattern.step(states, path_bytes(entry.name))
            if accepted and (entry.kind != "blob" or not pattern.folder_only):
                yield path, entry
            elif below and entry.mode == MODE_FOLDER:
                pending.append((path, below))
            elif below and literals is not None:
                refuse_detour(path, entry)


def _candidates(facts: Folders, folder: str, literals: tuple[str, ...] | None) -> Iterator[TreeEntry]:
    if literals is None:
        yield from facts.children(folder)
        return
    for name in literals:
        entry = facts.entry(join_path(folder, name))
        if entry is not None:
            yield entry


def refuse_detour(path: str, entry: TreeEntry) -> None:
    """Raise where `entry` at `path`, which something below is asked of, is a symlink or a submodule."""
    if entry.mode == MODE_SYMLINK:
        raise ManifestError(
            "symlinked-component",
            f"{shown(path)} is a symlink, and a declared path leads through it",
            "declare the path that it points to",
        )
    if entry.kind == "commit":
        raise ManifestError(
            "inside-submodule",
            f"{shown(path)} is a submodule, and a declared path leads into it",
            f"declare the submodule {shown(path)} itself",
        )


@dataclass(slots=True)
class _Exclusions:
    """Excluded patterns, and which of them have matched something in the scope."""

    patterns: tuple[Pattern, ...]
    hits: set[int] = field(default_factory=set)

    def without(self, path: str, top: TreeEntry, facts: TreeFacts) -> Iterator[Entry]:
        """Yield the lines of what stands at `path`, but for what is excluded."""
        if not self.patterns:
            yield Entry.of(path, top)
            return
        roots = {i for i, pattern in enumerate(self.patterns) if pattern.is_root}
        self.hits |= roots
        if roots:
            return
        states: tuple[States, ...] | None = tuple(pattern.start() for pattern in self.patterns)
        names = path.split("/") if path else []
        for i, name in enumerate(names):
            states = self._step(states or (), name, is_file=i + 1 == len(names) and top.kind == "blob")
            if states is None:
                return
        pending = [(path, top, states or ())]
        while pending:
            path, entry, here = pending.pop()
            if entry.mode != MODE_FOLDER or not any(here):
                yield Entry.of(path, entry)
                continue
            for child in facts.children(path):
                below = self._step(here, child.name, is_file=child.kind == "blob")
                if below is not None:
                    pending.append((join_path(path, child.name), child, below))

    def _step(self, states: tuple[States, ...], name: str, *, is_file: bool) -> tuple[States, ...] | None:
        """Return the states below the entry `name`, None where it is excluded itself."""
        below = []
        raw = path_bytes(name)
        excluded = False
        for i, (pattern, here) in enumerate(zip(self.patterns, states, strict=True)):
            reached, accepted = pattern.step(here, raw) if here else (here, False)
            if accepted and not (is_file and pattern.folder_only):
                self.hits.add(i)
                excluded = True
            below.append(reached)
        return None if excluded else tuple(below)

    def refuse_unmatched(self) -> None:
        """Raise for the first pattern that excluded nothing: a typing error would else widen the scope unseen."""
        for i, pattern in enumerate(self.patterns):
            if i not in self.hits:
                raise _unmatched(pattern.text, "excluded_paths", "nothing in the declared paths")
