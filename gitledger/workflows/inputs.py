"""Definitions and manifests of declared shards at any commit, resolved once each."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import field
from functools import partial

from gitledger.config.schema import Config
from gitledger.dataclass import dataclass, replace
from gitledger.errors import ManifestError, StoreError
from gitledger.manifest.changes import changed_paths
from gitledger.manifest.definition import Definition
from gitledger.manifest.extra import resolve_extra
from gitledger.manifest.replay import Answers, Followed, Replays
from gitledger.manifest.resolve import Manifest
from gitledger.records.ids import BlobId, CommitId, Digest, ShardKey
from gitledger.records.receipt import ExtraClaim
from gitledger.records.tree import FILE_MODES
from gitledger.store.extras import ExtraFiles
from gitledger.store.facts import CommitFacts, TreeCache
from gitledger.store.meanwhile import Meanwhile
from gitledger.store.repository import Repository
from gitledger.store.worktree import literal_prefix
from gitledger.verdict.situation import TargetShard

__all__ = ["Inputs"]

NO_DIGEST = Digest("")
MAX_CHANGED_PATHS = 20
"""How many changed paths a plan lists for one shard."""


@dataclass(slots=True)
class Inputs:
    """Manifests of one configuration's shards. Trees are read once, whatever the number of shards and commits."""

    repo: Repository
    config: Config
    target: CommitId
    _facts: dict[CommitId, CommitFacts] = field(default_factory=dict)
    _manifests: dict[tuple[CommitId, ShardKey], Manifest | ManifestError] = field(default_factory=dict)
    _plain: dict[tuple[CommitId, ShardKey], Digest | None] = field(default_factory=dict)
    _definitions: dict[ShardKey, Definition] = field(default_factory=dict)
    _named: dict[ShardKey, Digest] = field(default_factory=dict)
    _digests: dict[int, tuple[Manifest, Digest]] = field(default_factory=dict)
    """By the identities of manifests, which stand beside: as long as they are kept, no other has them."""
    _replays: Replays = field(default_factory=Replays)
    _followed: Followed | None = None
    _last: list[CommitFacts] = field(default_factory=list)
    """The tree that `_followed` stands at, if it stands anywhere."""
    _told: dict[CommitId, Answers] = field(default_factory=dict)
    _cache: TreeCache | None = None
    _keys: list[ShardKey] = field(default_factory=list)
    _folders: list[frozenset[str]] = field(default_factory=list)
    _targets: dict[tuple[ShardKey, bool, int], tuple[Manifest, TargetShard]] = field(default_factory=dict)

    def at(self, target: CommitId) -> Inputs:
        """Return the same inputs seen from another commit; what either reads the other knows.

        From now on what a target has in common with the one before it is not even looked at again.
        """
        if self._followed is None:
            self._followed = Followed(self._replays)
        return replace(self, target=target)

    def definition(self, key: ShardKey) -> Definition:
        """Return the definition of a declared shard; raises `ConfigError` (`unknown-shard`)."""
        found = self._definitions.get(key)
        if found is None:
            found = self._definitions[key] = Definition.of(self.config, key)
        return found

    def definitions(self) -> dict[ShardKey, Digest]:
        """Return the definition digest of every declared shard."""
        return {key: self._definition_digest(key) for key in self.keys()}

    def keys(self) -> list[ShardKey]:
        """Return every declared identity, in file order."""
        if not self._keys:
            self._keys += self.config.shard_keys()
        return self._keys

    def _definition_digest(self, key: ShardKey) -> Digest:
        if key not in self._named:
            self._named[key] = self.definition(key).digest
        return self._named[key]

    def facts(self, commit: CommitId) -> CommitFacts:
        """Return the tree facts of a commit."""
        if commit not in self._facts:
            found = self._new_facts(commit)
            if self._followed is None:  # of a further commit hardly anything is new
                self._read_ahead(found)
        return self._facts[commit]

    def reading_ahead(self) -> AbstractContextManager[object]:
        """Read the target's trees while something else is done that asks nothing of these inputs."""
        if self.target in self._facts:
            return nullcontext()
        return Meanwhile(partial(self._read_ahead, self._new_facts(self.target)))

    def _new_facts(self, commit: CommitId) -> CommitFacts:
        if self._cache is None:
            self._cache = TreeCache(self.repo.objects)
        self._facts[commit] = found = CommitFacts(self.repo.objects, self.repo.commit(commit).tree, self._cache)
        return found

    def _read_ahead(self, facts: CommitFacts) -> None:
        with suppress(StoreError):
            facts.read_ahead(self._declared_folders())

    def _declared_folders(self) -> frozenset[str]:
        """Return the declared paths, each up to its first wildcard."""
        if not self._folders:
            paths = {path for key in self.keys() for path in self.definition(key).paths}
            self._folders.append(frozenset(path for path in map(literal_prefix, paths) if path))
        return self._folders[0]

    def manifest(self, commit: CommitId, key: ShardKey) -> Manifest | ManifestError:
        """Return a shard's tracked inputs at a commit, or the error that says why they can't be resolved."""
        found = self._manifests.get((commit, key))
        if found is None:
            try:
                found = self._resolve(commit, self.definition(key))
            except ManifestError as error:
                found = error
            self._manifests[commit, key] = found
        return found

    def _manifest_here(self, key: ShardKey) -> Manifest | ManifestError:
        """Return what `manifest` returns for the target, without a look at what is held on to."""
        held = None if self._followed is None else self._followed.held(key)
        if held is not None:
            return self._manifests.setdefault((self.target, key), held)
        found = self.manifest(self.target, key)
        if self._followed is not None and isinstance(found, Manifest):
            self._followed.hold(self.definition(key), found)
        return found

    def _resolve(self, commit: CommitId, definition: Definition) -> Manifest:
        return self._replays.resolve(definition, self.facts(commit), self._told.setdefault(commit, Answers()))

    def digest_at(self, commit: CommitId, key: ShardKey, extra: tuple[ExtraClaim, ...]) -> Digest | None:
        """Return a shard's manifest digest at a commit for given extra inputs; None where it has none there."""
        if extra:
            return self._digest_with(commit, key, extra)
        if (commit, key) not in self._plain:
            self._plain[commit, key] = self._digest_with(commit, key, ())
        return self._plain[commit, key]

    def _digest_with(self, commit: CommitId, key: ShardKey, extra: tuple[ExtraClaim, ...]) -> Digest | None:
        manifest = self.manifest(commit, key)
        if isinstance(manifest, ManifestError):
            return None
        known = self._digests.get(id(manifest)) if not extra else None
        if known is not None:  # one manifest of many commits
            return known[1]
        try:
            found = manifest.digest_with(extra)
        except ManifestError:  # the claim is not what extra_paths asks for: no digest can equal it
            return NO_DIGEST
        if not extra:
            self._digests[id(manifest)] = (manifest, found)
        return found

    def changed(self, commit: CommitId, key: ShardKey) -> tuple[str, ...]:
        """Return the inputs of a shard that differ between a commit and the target."""
        old, new = self.manifest(commit, key), self.manifest(self.target, key)
        if isinstance(old, ManifestError) or isinstance(new, ManifestError):
            return ()
        return changed_paths(old, new, self.facts(commit), self.facts(self.target), limit=MAX_CHANGED_PATHS)

    def blob(self, path: str) -> BlobId | None:
        """Return the blob of a regular file at the target, None where there is none."""
        entry = self.facts(self.target).entry(path)
        return BlobId(entry.oid) if entry is not None and entry.mode in FILE_MODES else None

    def shards(self, redefined: frozenset[ShardKey]) -> tuple[TargetShard, ...]:
        """Return every declared shard as it stands at the target."""
        self._follow()
        return tuple(self._shard(key, key in redefined) for key in self.keys())

    def _follow(self) -> None:
        """Take over the manifests of the target before this one that rest on nothing in which the two differ."""
        if self._followed is None:
            return
        facts, followed = self.facts(self.target), self._followed
        try:
            differing = self._last.pop().differing(facts) if self._last else None
        except StoreError:  # said where it is asked for
            differing = None
        if differing is None:
            followed.forget()
        else:
            followed.move(differing.paths, differing.turned)
        self._last.append(facts)

    def _shard(self, key: ShardKey, is_redefined: bool) -> TargetShard:
        """Return a shard as it stands here; the same value for all commits that have one manifest of it."""
        manifest = self._manifest_here(key)
        if isinstance(manifest, ManifestError):
            return self._new_shard(key, is_redefined, f"{manifest.code}: {manifest.message}")
        named = (key, is_redefined, id(manifest))
        known = self._targets.get(named)
        if known is None:
            known = self._targets[named] = (manifest, self._new_shard(key, is_redefined, ""))
        return known[1]

    def _new_shard(self, key: ShardKey, is_redefined: bool, fault: str) -> TargetShard:
        definition, target = self.definition(key), self.target
        plain = self.digest_at(target, key, ())

        def digest_with(extra: tuple[ExtraClaim, ...]) -> Digest:
            found = self.digest_at(target, key, extra) if extra else plain
            return NO_DIGEST if found is None else found

        return TargetShard(
            key=key,
            definition=self._definition_digest(key),
            digest_with=digest_with,
            has_extra=bool(definition.extra_paths),
            extra_now=self._extra_now(definition),
            split=definition.split,
            measured=definition.coverage != "none",
            fault=fault,
            redefined=is_redefined,
        )

    def _extra_now(self, definition: Definition) -> tuple[ExtraClaim, ...] | None:
        """Return the extra inputs as they lie in the work tree; None where there are none to be seen.

        Something is there that no receipt can have been recorded with (a pipe, a link, what can't be read): it is
        not absent, and `()` equals no receipt's claim.
        """
        if not definition.extra_paths:
            return ()
        if self.repo.worktree is None:
            return None
        facts = ExtraFiles(self.repo.worktree)
        try:
            return resolve_extra(definition.extra_paths, facts)
        except ManifestError:
            codes = {_fault(text, facts) for text in definition.extra_paths}
            return None if codes <= {"", "pattern-unmatched"} else ()


def _fault(pattern: str, facts: ExtraFiles) -> str:
    """Return the code of what keeps one pattern's files from being extra inputs, "" where nothing does."""
    try:
        resolve_extra([pattern], facts)
    except ManifestError as error:
        return error.code
    return ""
