"""Manifests of many commits, each resolved anew only where something that it was resolved by has changed.

A resolution asks a tree what stands at some paths, and nothing else. So what it asked and what it was told is
noted; at another commit the same questions with the same answers give the same manifest. Of a folder only that it
is one matters, unless the manifest binds its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gitledger.dataclass import dataclass
from gitledger.manifest.definition import Definition
from gitledger.manifest.entry import ROOT
from gitledger.manifest.facts import TreeFacts
from gitledger.manifest.resolve import Manifest, resolve
from gitledger.records.tree import MODE_FOLDER, TreeEntry

__all__ = ["Replays"]

KEPT = 6
"""Resolutions of one definition that are tried, the newest first."""
Answer = tuple[int, str] | None
Answers = dict[str, Answer]


@dataclass(slots=True)
class _Watched:
    """The tree of one commit, and what was asked of it."""

    facts: TreeFacts
    asked: dict[str, TreeEntry | None] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)

    def entry(self, path: str) -> TreeEntry | None:
        found = self.facts.entry(path)
        self.asked[path] = found
        return found

    def children(self, path: str) -> tuple[TreeEntry, ...]:
        self.asked[path] = self.facts.entry(path)
        self.listed.add(path)
        return self.facts.children(path)

    def blob(self, oid: str) -> bytes | None:
        return self.facts.blob(oid)  # content-addressed: the same wherever it is asked for


@dataclass(frozen=True, slots=True)
class _Resolved:
    manifest: Manifest
    answers: Mapping[str, Answer]


@dataclass(slots=True)
class Replays:
    """Resolutions so far, by definition; the answers that commits gave are shared by all of them."""

    _resolved: dict[Definition, list[_Resolved]] = field(default_factory=dict)

    def resolve(self, definition: Definition, facts: TreeFacts, told: Answers) -> Manifest:
        """Return what `resolve` returns without extra inputs, and raise what it raises.

        `told` are the answers that this commit gave already: one and the same for all definitions asked of it.
        """
        kept = self._resolved.setdefault(definition, [])
        for one in kept:
            if _agrees(one.answers, facts, told):
                return one.manifest
        watched = _Watched(facts)
        manifest = resolve(definition, watched, None)
        kept.insert(0, _Resolved(manifest, _answers(manifest, watched)))
        del kept[KEPT:]
        return manifest


def _answers(manifest: Manifest, watched: _Watched) -> Mapping[str, Answer]:
    """Return what the resolution rests on: ids of what the manifest binds or lists, and kinds of other folders.

    What lies below a folder whose id it binds is implied by that.
    """
    bound = {"" if entry.path == ROOT else entry.path for entry in manifest.entries if entry.kind == "tree"}
    bound |= watched.listed
    found = {}
    for path, entry in watched.asked.items():
        if not _is_below(path, bound):
            found[path] = _answer(entry, with_id=path in bound)
    return found


def _is_below(path: str, folders: set[str]) -> bool:
    if not path:
        return False
    above = path
    while "/" in above:
        above = above.rpartition("/")[0]
        if above in folders:
            return True
    return "" in folders


def _answer(entry: TreeEntry | None, *, with_id: bool) -> Answer:
    if entry is None:
        return None
    return entry.mode, entry.oid if with_id or entry.mode != MODE_FOLDER else ""


def _agrees(answers: Mapping[str, Answer], facts: TreeFacts, told: Answers) -> bool:
    for path, expected in answers.items():
        if path not in told:
            told[path] = _answer(facts.entry(path), with_id=True)
        found = told[path]
        if found != expected and (found is None or expected is None or expected != (found[0], "")):
            return False
    return True
