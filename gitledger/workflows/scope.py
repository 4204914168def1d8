"""Scope: the narrowest scope that binds all that several runs of a shard were seen to read (DESIGN section 5).

What tests are collected from is proposed as a whole, read or not: a test that is added there has to change the
manifest. Of the rest, a folder of which every tracked file was read is proposed as a folder, all else file by
file. The configuration chain binds itself and is not listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from gitledger.dataclass import dataclass, replace
from gitledger.errors import DecodeError, ManifestError, UsageError
from gitledger.manifest.definition import Definition
from gitledger.manifest.entry import parent_folders
from gitledger.manifest.facts import TreeFacts
from gitledger.manifest.pattern import escape_path, path_bytes
from gitledger.manifest.resolve import Manifest, resolve
from gitledger.manifest.scope import resolve_scope
from gitledger.records.bodies import Inputs, check_body, decode_inputs
from gitledger.records.ids import CommitId, ShardKey
from gitledger.records.receipt import ShardReceipt
from gitledger.store.extras import ExtraFiles
from gitledger.store.facts import CommitFacts
from gitledger.workflows.browse import each_record
from gitledger.workflows.observed import outside_of, tracked_by
from gitledger.workflows.session import Session
from gitledger.workflows.target import no_commit, no_work_tree
from gitledger.workflows.trusted import read_config

__all__ = ["Proposal", "propose_scope"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A scope for one shard, and how the declared one compares.

    `outside`: what was read and the declared scope doesn't bind. `unread`: declared patterns of which nothing was
    read. `vanished`: what was read and is no longer there. `roots_known` is False where some run did not say what
    its tests were collected from; then tests that are added may lie outside the proposal.
    """

    key: ShardKey
    commit: CommitId
    records: tuple[str, ...]
    paths: tuple[str, ...]
    extra_paths: tuple[str, ...]
    declared: Definition
    outside: tuple[str, ...]
    unread: tuple[str, ...]
    vanished: tuple[str, ...]
    roots_known: bool

    @property
    def is_declared(self) -> bool:
        """Tell whether the declared scope is the proposed one."""
        declared = self.declared
        return (declared.paths, declared.extra_paths) == (self.paths, self.extra_paths)

    def encode(self) -> dict[str, Any]:
        """Return the document of `scope --json`."""
        return {
            "commit": self.commit,
            "declared": {
                "excluded_paths": list(self.declared.excluded_paths),
                "extra_paths": list(self.declared.extra_paths),
                "paths": list(self.declared.paths),
            },
            "name": self.key.name,
            "outside": list(self.outside),
            "proposed": {"extra_paths": list(self.extra_paths), "paths": list(self.paths)},
            "records": list(self.records),
            "roots_known": self.roots_known,
            "unread": list(self.unread),
            "vanished": list(self.vanished),
            "variant": self.key.variant,
        }


def propose_scope(session: Session, key: ShardKey, *, runs: int) -> Proposal:
    """Return the narrowest scope that binds what the newest `runs` observed runs of the shard read, at HEAD.

    Only green runs by signers whom HEAD's allowed_signers knows count: a run that broke off did not read it all.
    Raises `UsageError` `never-observed` where there are none, `ConfigError` for an unknown shard.
    """
    head = session.repo.head()
    if session.repo.worktree is None:
        raise no_work_tree(session.repo, "a scope is proposed for what is checked out")
    if head is None:
        raise no_commit(session.repo)
    definition = Definition.of(read_config(session.repo, head), key)
    observed = _observed(session, key)[-runs:]
    if not observed:
        raise UsageError(
            "never-observed",
            f"no green, signed run of {key} that was observed is in this ledger",
            f"git ledger record --shard {key}",
        )
    facts = CommitFacts(session.repo.objects, session.repo.commit(head).tree)
    extras = ExtraFiles(session.repo.worktree)
    read = {path for _, inputs in observed for path in inputs.paths}
    is_tracked = tracked_by(facts)
    tracked = {path for path in read if is_tracked(path)}
    ignored = {path for path in read - tracked if extras.entry(path) is not None}
    roots = {root for _, inputs in observed for root in inputs.roots or ()}
    paths, extra = _narrowest(definition, facts, tracked, roots), tuple(sorted(map(escape_path, ignored)))
    present = sorted(tracked | ignored)
    return Proposal(
        key=key,
        commit=head,
        records=tuple(record for record, _ in observed),
        paths=paths,
        extra_paths=extra,
        declared=definition,
        outside=_outside(definition, facts, extras, present),
        unread=_unread(definition, facts, present),
        vanished=tuple(sorted(read - tracked - ignored)),
        roots_known=all(inputs.roots is not None for _, inputs in observed),
    )


def _observed(session: Session, key: ShardKey) -> list[tuple[str, Inputs]]:
    """Return the records of the runs of the shard that count, with what they read, oldest first."""
    found: list[tuple[datetime, str, Inputs]] = []
    for _, entry in each_record(session):
        claim = entry.claim
        if not isinstance(claim, ShardReceipt) or claim.key != key or not claim.is_green:
            continue
        inputs = None if entry.signer is None or entry.fault else _inputs(session, claim)
        if inputs is not None:
            found.append((claim.session.ended_at, str(entry.id), inputs))
    return [(record, inputs) for _, record, inputs in sorted(found, key=lambda run: run[:2])]


def _inputs(session: Session, receipt: ShardReceipt) -> Inputs | None:
    """Return what the receipt says that was read; None where that isn't here, or can't be read."""
    ref = receipt.bodies.get("inputs")
    blob = None if ref is None else session.ledger.body(ref.oid)
    if ref is None or blob is None:
        return None
    try:
        check_body(ref, blob)
        return decode_inputs(blob)
    except DecodeError:
        return None


def _narrowest(definition: Definition, facts: TreeFacts, tracked: set[str], roots: set[str]) -> tuple[str, ...]:
    """Return canonical patterns that bind all of `tracked` and each of `roots` as a whole."""
    whole = {root for root in roots if root == "." or facts.entry(root) is not None}
    if "." in whole:
        return (".",)
    bound = _resolved(definition, facts, whole)
    rest = {_stands(facts, path) for path in tracked}
    if bound is not None:
        rest = set(bound.uncovered(sorted(rest)))
    patterns = _without_nested(whole | _folded(facts, rest, whole)) or {"."}
    return tuple(sorted({escape_path(path) for path in patterns}))


def _resolved(definition: Definition, facts: TreeFacts, paths: Iterable[str]) -> Manifest | None:
    """Return the manifest of the shard with these paths alone: what it binds beside them is the chain."""
    patterns = tuple(sorted({escape_path(path) for path in paths}))
    try:
        return resolve(replace(definition, paths=patterns, extra_paths=(), excluded_paths=()), facts, None)
    except ManifestError:
        return None


def _stands(facts: TreeFacts, path: str) -> str:
    """Return the path itself, or the submodule that it lies in."""
    for folder in parent_folders(path)[1:]:
        entry = facts.entry(folder)
        if entry is not None and entry.kind == "commit":
            return folder
    return path


def _folded(facts: TreeFacts, paths: set[str], whole: set[str]) -> set[str]:
    """Return `paths` with each folder of which all was read in place of its files; never the root."""
    wanted = Counter(folder for path in paths for folder in parent_folders(path)[1:])
    full = {folder for folder in wanted if _is_full(facts, folder, paths | whole)}
    return _without_nested(full | paths)


def _is_full(facts: TreeFacts, folder: str, paths: set[str]) -> bool:
    pending = [folder]
    while pending:
        at = pending.pop()
        for entry in facts.children(at):
            path = f"{at}/{entry.name}"
            if path in paths:
                continue
            if entry.kind != "tree":
                return False
            pending.append(path)
    return True


def _without_nested(paths: set[str]) -> set[str]:
    return {path for path in paths if paths.isdisjoint(parent_folders(path)[1:])}


def _outside(definition: Definition, facts: TreeFacts, extras: ExtraFiles, present: list[str]) -> tuple[str, ...]:
    try:
        return outside_of(resolve(definition, facts, extras), facts, present)
    except ManifestError:  # an extra input that is declared and not here: the tracked part tells all the same
        return outside_of(resolve(definition, facts, None), facts, present)


def _unread(definition: Definition, facts: TreeFacts, present: list[str]) -> tuple[str, ...]:
    """Return the declared patterns that bind nothing of what was read."""
    unread = []
    for pattern in definition.paths:
        entries = resolve_scope((pattern,), (), facts).entries
        alone = Manifest(definition=definition, lines=tuple(entry.line() for entry in entries), extra=())
        if len(alone.uncovered(present)) == len(present):
            unread.append(pattern)
    return tuple(sorted(unread, key=path_bytes))
