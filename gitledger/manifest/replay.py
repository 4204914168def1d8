"""Manifests of many commits, each resolved anew only where something that it was resolved by has changed.

A resolution asks a tree what stands at some paths, and nothing else. So what it asked and what it was told is
noted; at another commit the same questions with the same answers give the same manifest. Of a folder only that it
is one matters, unless the manifest binds its id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import field

from gitledger.dataclass import dataclass
from gitledger.manifest.definition import Definition
from gitledger.manifest.entry import ROOT
from gitledger.manifest.facts import TreeFacts
from gitledger.manifest.resolve import Manifest, resolve
from gitledger.records.ids import ShardKey
from gitledger.records.tree import MODE_FOLDER, TreeEntry

__all__ = ["Followed", "Replays"]

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

    def answers(self, definition: Definition, manifest: Manifest) -> Mapping[str, Answer] | None:
        """Return what a manifest that was resolved here rests on, None where that is not kept any more."""
        kept = self._resolved.get(definition, ())
        return next((one.answers for one in kept if one.manifest is manifest), None)


@dataclass(slots=True)
class Followed:
    """Manifests of shards at one commit after another: held on to where nothing that they rest on has changed."""

    replays: Replays
    _held: dict[ShardKey, _Resolved] = field(default_factory=dict)
    _by_path: dict[str, set[ShardKey]] = field(default_factory=dict)
    """Shards by what their manifests bind, or have seen to be absent."""
    _by_folder: dict[str, set[ShardKey]] = field(default_factory=dict)
    """Shards by the folders of which only that they are some matters."""

    def held(self, key: ShardKey) -> Manifest | None:
        """Return the manifest of a shard, None where it is to be resolved."""
        found = self._held.get(key)
        return None if found is None else found.manifest

    def hold(self, definition: Definition, manifest: Manifest) -> None:
        """Hold on to a manifest that was resolved by `replays` for the commit that this stands at."""
        answers = self.replays.answers(definition, manifest)
        if answers is not None:
            self._held[definition.key] = _Resolved(manifest, answers)
            for path, answer in answers.items():
                self._shards_by(path, answer).add(definition.key)

    def move(self, paths: Iterable[str], turned: Set[str]) -> None:
        """Go to a commit whose tree differs at `paths`, and let go what rests on any of them.

        At `turned` one of the two trees has a folder and the other has none: anything below may differ too.
        """
        for path in paths:
            self._let_go(self._by_path.get(path, ()))
        for path in turned:
            self._let_go(self._by_folder.get(path, ()))
            for shards in (self._by_path, self._by_folder):
                below = f"{path}/"
                for other in [other for other in shards if other.startswith(below)]:
                    self._let_go(shards[other])

    def forget(self) -> None:
        """Let go of everything: where the commit came to stand is not known."""
        self._held.clear()
        self._by_path.clear()
        self._by_folder.clear()

    def _let_go(self, keys: Iterable[ShardKey]) -> None:
        for key in list(keys):
            for path, answer in self._held.pop(key).answers.items():
                self._shards_by(path, answer).discard(key)

    def _shards_by(self, path: str, answer: Answer) -> set[ShardKey]:
        shards = self._by_folder if answer == (MODE_FOLDER, "") else self._by_path
        return shards.setdefault(path, set())


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
