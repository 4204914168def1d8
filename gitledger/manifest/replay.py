"""Manifests of many commits, each resolved anew only where something that it was resolved by has changed.

A resolution asks a tree what stands at some paths, and nothing else. So what it asked and what it was told is
noted; at another commit the same questions with the same answers give the same manifest. Of a folder only that it
is one matters, unless the manifest binds its id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import field

from gitledger.dataclass import dataclass
from gitledger.manifest.chain import KnownChains
from gitledger.manifest.definition import Definition
from gitledger.manifest.entry import ROOT, Entry, join_path, parent_folders
from gitledger.manifest.facts import TreeFacts
from gitledger.manifest.resolve import Manifest, resolve
from gitledger.records.ids import ShardKey
from gitledger.records.tree import MODE_FOLDER, TreeEntry

__all__ = ["Answers", "Followed", "Replays"]

_FOLDER = b"%06o tree " % MODE_FOLDER
"""How the line of a folder begins."""
KEPT = 6
"""Resolutions of one definition that are tried, the newest first."""
Answer = tuple[int, str] | None
Names = tuple[str, tuple[str, ...]]
"""A folder, and names in it that were asked for together."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What one tree said: what stands `at` a path, and what in a folder `under` names that were asked at once.

    Without an id, a folder answers only that it is one.
    """

    at: dict[str, Answer] = field(default_factory=dict)
    under: dict[Names, tuple[TreeEntry, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class _Watched:
    """The tree of one commit, and what was asked of it."""

    facts: TreeFacts
    asked: dict[str, TreeEntry | None] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    under: dict[Names, tuple[TreeEntry, ...]] = field(default_factory=dict)

    def entry(self, path: str) -> TreeEntry | None:
        found = self.asked[path] = self.facts.entry(path)
        return found

    def named(self, folder: str, names: tuple[str, ...]) -> tuple[TreeEntry, ...]:
        found = self.under[folder, names] = self.facts.named(folder, names)
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
    answers: Answers


@dataclass(slots=True)
class Replays:
    """Resolutions so far, by definition; the answers that commits gave are shared by all of them."""

    _chains: KnownChains = field(default_factory=dict)
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
        manifest = resolve(definition, watched, None, known=self._chains)
        kept.insert(0, _Resolved(manifest, _answers(manifest, watched)))
        del kept[KEPT:]
        return manifest

    def answers(self, definition: Definition, manifest: Manifest) -> Answers | None:
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
            for shards in self._rested_on(answers):
                shards.add(definition.key)

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
            for shards in self._rested_on(self._held.pop(key).answers):
                shards.discard(key)

    def _rested_on(self, answers: Answers) -> Iterator[set[ShardKey]]:
        """Yield, for each path of which something was answered, the shards that rest on it."""
        for path, answer in answers.at.items():
            shards = self._by_folder if answer == (MODE_FOLDER, "") else self._by_path
            yield shards.setdefault(path, set())
        for folder, names in answers.under:
            for name in names:
                yield self._by_path.setdefault(join_path(folder, name), set())


def _answers(manifest: Manifest, watched: _Watched) -> Answers:
    """Return what the resolution rests on: ids of what the manifest binds or lists, and kinds of other folders.

    What lies below a folder whose id it binds is implied by that.
    """
    bound = set(watched.listed)
    for line in manifest.lines:
        if line.startswith(_FOLDER):
            path = Entry.read(line).path
            bound.add("" if path == ROOT else path)
    found = Answers()
    for path, entry in watched.asked.items():
        if not _is_below(path, bound):
            found.at[path] = _answer(entry, with_id=path in bound)
    for (folder, names), entries in watched.under.items():
        if folder not in bound and not _is_below(folder, bound):
            found.under[folder, names] = entries
    return found


def _is_below(path: str, folders: set[str]) -> bool:
    return path != "" and not folders.isdisjoint(parent_folders(path))


def _answer(entry: TreeEntry | None, *, with_id: bool) -> Answer:
    if entry is None:
        return None
    return entry.mode, entry.oid if with_id or entry.mode != MODE_FOLDER else ""


def _agrees(answers: Answers, facts: TreeFacts, told: Answers) -> bool:
    """Tell whether a tree gives these answers; what it is asked for is noted in `told`."""
    for path, expected in answers.at.items():
        if path not in told.at:
            told.at[path] = _answer(facts.entry(path), with_id=True)
        found = told.at[path]
        if found != expected and (found is None or expected is None or expected != (found[0], "")):
            return False
    for asked, entries in answers.under.items():
        if asked not in told.under:
            told.under[asked] = facts.named(*asked)
        if told.under[asked] != entries:
            return False
    return True
