"""A definition and a tree to a manifest, and its digest (DESIGN section 5).

The digest is SHA-256 over the definition's canonical form, a NUL, and the lines `mode kind id TAB path NUL` in
byte order. Lines are unique; declared paths that overlap (`src`, `src/a`) each keep theirs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from gitledger.config.schema import DURATIONS_PATH
from gitledger.dataclass import dataclass
from gitledger.errors import ManifestError
from gitledger.manifest.chain import KnownChains, configuration_chain
from gitledger.manifest.definition import Definition
from gitledger.manifest.entry import ROOT, Entry, parent_folders
from gitledger.manifest.extra import extra_lines, resolve_extra
from gitledger.manifest.facts import ExtraFacts, TreeFacts
from gitledger.manifest.scope import resolve_scope
from gitledger.records.ids import Digest
from gitledger.records.receipt import ExtraClaim

__all__ = ["Manifest", "digest_of", "resolve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a shard stands on at one commit: the `lines` of its entries, unique and in byte order.

    `extra` is None where the definition asks for extra inputs and nobody looked: then only a receipt's own claim
    of them gives a digest (`digest_with`).
    """

    definition: Definition
    lines: tuple[bytes, ...]
    extra: tuple[ExtraClaim, ...] | None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries in byte order of their lines."""
        return tuple(map(Entry.read, self.lines))

    @property
    def digest(self) -> Digest:
        """The digest; raises `ManifestError` (`extra-unavailable`) where extra inputs were not looked at."""
        if self.extra is None:
            raise ManifestError(
                "extra-unavailable",
                f"shard {self.definition.key} has extra inputs, which no commit holds",
                "record the shard where they are",
            )
        return self.digest_with(self.extra)

    def digest_with(self, extra: Sequence[ExtraClaim]) -> Digest:
        """Return the digest with the extra inputs that a receipt claims; raises as `digest_of` does."""
        return digest_of(self.definition, self.lines, extra)

    def uncovered(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return those of `paths` that the manifest does not cover, in the order given."""
        inputs = {entry.path: entry.kind for entry in self.entries if entry.kind != "absent"}
        extra = {claim.path for claim in self.extra or ()}
        folders = {path for path, kind in inputs.items() if kind in ("tree", "commit")}
        return tuple(
            path
            for path in paths
            if path not in inputs and path not in extra and folders.isdisjoint((ROOT, *parent_folders(path)[1:]))
        )


def digest_of(definition: Definition, tracked: Iterable[bytes], extra: Sequence[ExtraClaim]) -> Digest:
    """Return the digest of a manifest, given the lines of its tracked inputs in any order.

    Raises `ManifestError` (`extra-mismatch`) where `extra` is not what the definition's patterns ask for.
    """
    lines = {*tracked, *(entry.line() for entry in extra_lines(definition.extra_paths, extra))}
    digest = hashlib.sha256(definition.canonical + b"\0")
    digest.update(b"".join(sorted(lines)))
    return Digest(digest.hexdigest())


def resolve(
    definition: Definition, facts: TreeFacts, extra: ExtraFacts | None, *, known: KnownChains | None = None
) -> Manifest:
    """Return the manifest of a definition at the commit that `facts` are of.

    Raises `ManifestError` naming the path, for scopes that can't be resolved (see `resolve_scope`,
    `configuration_chain`, `resolve_extra`). With `extra` None, extra inputs are left to receipts.
    `known` spares work to whoever resolves many shards of one repository (see `KnownChains`).
    """
    scope = resolve_scope(definition.paths, definition.excluded_paths, facts)
    lines = {entry.line() for entry in scope.entries}
    found: tuple[ExtraClaim, ...] | None = ()
    if definition.extra_paths:
        found = None if extra is None else resolve_extra(definition.extra_paths, extra)
    if definition.results.kind != "exit-status":
        bound = {*definition.extra_paths, *(claim.path for claim in found or ())}
        lines |= configuration_chain(definition.command, scope.folders, facts, bound=bound, known=known)
    if definition.split is not None:
        durations = facts.entry(DURATIONS_PATH)
        entry = Entry.of(DURATIONS_PATH, durations) if durations else Entry.absent(DURATIONS_PATH)
        lines.add(entry.line())
    return Manifest(definition=definition, lines=tuple(sorted(lines)), extra=found)
