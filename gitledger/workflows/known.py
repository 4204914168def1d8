"""What one command reads but once, however many commits it judges."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime

from gitledger.config.schema import Config
from gitledger.dataclass import dataclass, replace
from gitledger.records.ids import CommitId, TreeId
from gitledger.records.tree import MODE_FOLDER, CommitInfo, TreeEntry
from gitledger.store.facts import CommitFacts, TreeCache
from gitledger.store.history import rings
from gitledger.store.repository import Repository
from gitledger.store.union import NoteFault
from gitledger.store.view import LedgerView
from gitledger.trust.signers import Signers
from gitledger.trust.verified import Opened, Rejected, Verified, open_record
from gitledger.verdict.evidence import Evidence, sort_records
from gitledger.verdict.memory import Memory
from gitledger.verdict.situation import CoverageRule
from gitledger.workflows.coverage_rule import coverage_rule
from gitledger.workflows.dropped import Dropped, look_back
from gitledger.workflows.inputs import Inputs
from gitledger.workflows.relevance import Seen, marks_of
from gitledger.workflows.seen import see
from gitledger.workflows.session import Session
from gitledger.workflows.trusted import Trusted, load_trusted, read_config

__all__ = ["Known", "Placed"]

Placed = tuple[tuple[TreeId, Evidence], ...]
"""What a commit's records say, for its tree; of a commit that is not here, for each tree that they claim."""
_FOLDER = ".gitledger"
MAX_READ_AHEAD = 400
"""Receipts of one commit whose results are read at once; more are read as they are asked for."""


@dataclass(frozen=True, slots=True)
class _Ruled:
    """The coverage rule of a configuration, and the entries of the files that it was read from."""

    config: Config
    read: Mapping[str, TreeEntry | None]
    rule: CoverageRule


@dataclass(slots=True)
class Known:
    """One reading of the ledger and of the repository, for one or for many judgements at one moment.

    `order` gives commits their places in a walk in which no parent comes before its children, so that those before
    a commit are known to be no ancestors of it; without it anything may be one.
    """

    session: Session
    view: LedgerView
    seen: Seen
    dropped: Dropped
    order: Mapping[CommitId, int] = field(default_factory=dict)
    _trees: TreeCache | None = None
    _trusted: dict[tuple[str, str | None], Trusted] = field(default_factory=dict)
    _configs: dict[str, Config] = field(default_factory=dict)
    _inputs: dict[int, Inputs] = field(default_factory=dict)
    _placed: dict[tuple[CommitId, str], Placed] = field(default_factory=dict)
    _prepared: set[tuple[CommitId, str]] = field(default_factory=set)
    _commits: dict[CommitId, CommitInfo | None] = field(default_factory=dict)
    _faults: dict[CommitId, tuple[NoteFault, ...]] = field(default_factory=dict)
    _parents: dict[CommitId, tuple[CommitId, ...] | None] = field(default_factory=dict)
    _memories: dict[tuple[object, ...], tuple[tuple[Config, Signers], Memory]] = field(default_factory=dict)
    _rules: dict[int, list[_Ruled]] = field(default_factory=dict)
    _lines: dict[tuple[CommitId, bytes], Opened] = field(default_factory=dict)

    @classmethod
    def of(cls, session: Session, *, order: Mapping[CommitId, int] | None = None) -> Known:
        """Return the ledger as it stands now."""
        view = session.ledger.view()
        dropped = look_back(session, view)
        return cls(
            session=session,
            view=view,
            seen=Seen(see(session, view), {commit: marks_of(lines) for commit, lines in dropped.against.items()}),
            dropped=dropped,
            order=order or {},
        )

    def reopened(self, session: Session) -> Known:
        """Return the same knowledge for another session on the same repository, in a process that was forked off.

        What is plain values is shared; whatever holds on to an open repository is read anew.
        """
        return Known(
            session=session,
            view=session.ledger.view(),
            seen=self.seen,
            dropped=self.dropped,
            order=self.order,
            _trusted=self._trusted,
            _configs=self._configs,
            _placed=self._placed,
            _commits=self._commits,
            _faults=self._faults,
            _parents=self._parents,
            _memories=self._memories,
            _rules=self._rules,
            _lines=self._lines,
        )

    @property
    def repo(self) -> Repository:
        """The repository."""
        return self.session.repo

    def trusted(self, target: CommitId, policy_from: str | None) -> Trusted:
        """Return what `load_trusted` returns, and raise what it raises; the same files are read once."""
        folder = "" if policy_from is not None else self._folder(target)
        if folder is None:
            return load_trusted(self.repo, target, None, self.session.kept_configs)
        key = (folder, policy_from)
        if key not in self._trusted:
            self._trusted[key] = load_trusted(self.repo, target, policy_from, self.session.kept_configs)
        found = self._trusted[key]
        return found if policy_from is not None else replace(found, commit=target)

    def config(self, commit: CommitId) -> Config:
        """Return what `read_config` returns, and raise what it raises; the same file is read once."""
        folder = self._folder(commit)
        if folder is None:
            return read_config(self.repo, commit, self.session.kept_configs)
        if folder not in self._configs:
            self._configs[folder] = read_config(self.repo, commit, self.session.kept_configs)
        return self._configs[folder]

    def _folder(self, commit: CommitId) -> str | None:
        found = CommitFacts(self.repo.objects, self.repo.commit(commit).tree, self._tree_cache()).entry(_FOLDER)
        return found.oid if found is not None and found.mode == MODE_FOLDER else None

    def _tree_cache(self) -> TreeCache:
        if self._trees is None:
            self._trees = TreeCache(self.repo.objects)
        return self._trees

    def coverage_rule(self, commit: CommitId, config: Config) -> CoverageRule:
        """Return what `coverage_rule` returns for a commit, and raise what it raises.

        Commits that agree in every file that it reads have one; `config` is one that this object has returned.
        """
        facts = CommitFacts(self.repo.objects, self.repo.commit(commit).tree, self._tree_cache())
        for one in self._rules.get(id(config), ()):
            if one.config is config and all(facts.entry(path) == entry for path, entry in one.read.items()):
                return one.rule
        read: dict[str, TreeEntry | None] = {}

        def watched(path: str) -> bytes | None:
            read[path] = facts.entry(path)
            return self.repo.file_at(commit, path)

        rule = coverage_rule(watched, config)
        self._rules.setdefault(id(config), []).append(_Ruled(config, read, rule))
        return rule

    def inputs(self, config: Config, target: CommitId) -> Inputs:
        """Return the shards' inputs at a commit, by a configuration that this object has returned."""
        known = self._inputs.get(id(config))
        if known is not None and known.config is config:
            return known.at(target)
        self._inputs[id(config)] = found = Inputs(self.repo, config, target)
        return found

    def memory(
        self, policy: tuple[Config, Signers], now: datetime, rule: CoverageRule, asked: Sequence[str]
    ) -> Memory:
        """Return what is remembered between judgements by one policy, at one moment, that asked the same forges.

        Policies are told apart as objects, which are kept beside.
        """
        config, signers = policy
        named = (id(config), id(signers), now, rule, *asked)
        return self._memories.setdefault(named, (policy, Memory()))[1]

    def evidence(self, commit: CommitId, repository: str) -> Placed:
        """Return what a commit's records say, what was dropped lately and speaks against something included.

        A commit that this clone lacks says nothing, unless the clone is shallow: then it may be an ancestor, and a
        failure on it must not be overlooked.
        """
        found = self.open(commit, repository)
        key = (commit, repository)
        if key not in self._prepared:
            self._prepared.add(key)
            self._read_ahead(found)
        return found

    def open(self, commit: CommitId, repository: str) -> Placed:
        """Return what `evidence` returns, and prepare for no look at results."""
        key = (commit, repository)
        if key not in self._placed:
            lines = (*self.view.lines(commit), *self.dropped.against.get(commit, ()))
            opened = [self.open_line(commit, line) for line in lines]
            found = (
                (tree, sort_records((_placed(item, tree) for item in opened), repository=repository))
                for tree in self._trees_of(commit, opened)
            )
            self._placed[key] = tuple((tree, evidence.placed(commit, tree)) for tree, evidence in found)
        return self._placed[key]

    def open_line(self, commit: CommitId, line: bytes) -> Opened:
        """Return what `open_record` returns of a line that stands on a commit."""
        found = self._lines.get((commit, line))
        if found is None:
            kept = self.session.kept_signatures
            was_good = kept is not None and kept.has(line)
            found = self._lines[commit, line] = open_record(line, commit=commit, was_good=was_good)
            if kept is not None and not was_good and isinstance(found, Verified):
                kept.add(line)
        return found

    def _read_ahead(self, placed: Placed) -> None:
        """Prepare for looking at the results of a commit's receipts, which whoever judges them does one by one."""
        receipts = [held.receipt for _, evidence in placed for held in evidence.shards]
        bodies = [receipt.bodies["tests"].oid for receipt in receipts if "tests" in receipt.bodies]
        if 1 < len(bodies) <= MAX_READ_AHEAD:
            self.view.read_ahead(bodies)

    def _trees_of(self, commit: CommitId, opened: Collection[Opened]) -> list[TreeId]:
        info = self.commit(commit)
        if info is not None:
            return [info.tree]
        if not self.repo.is_shallow:
            return []
        return sorted({item.statement.subject.tree for item in opened if not isinstance(item, Rejected)})

    def rings(self, target: CommitId) -> Iterator[list[CommitId]]:
        """Yield `target` and its ancestors by distance, of those that are here and whose ancestry is known."""
        if not self.order:
            return self.repo.rings(target)
        return rings(self._parents_of, self.repo.boundary, target)

    def apart(self, target: CommitId) -> frozenset[CommitId]:
        """Return commits that are known to be no ancestors of `target`."""
        place = self.order.get(target)
        if place is None:
            return frozenset()
        return frozenset(commit for commit, other in self.order.items() if other < place)

    def _parents_of(self, commit: CommitId) -> tuple[CommitId, ...] | None:
        if commit not in self._parents:
            self._parents[commit] = self.repo.objects.read_parents(commit)
        return self._parents[commit]

    def commit(self, commit: CommitId) -> CommitInfo | None:
        """Return a commit, None where this clone lacks it."""
        if commit not in self._commits:
            self._commits[commit] = self.repo.objects.read_commit(commit)
        return self._commits[commit]

    def faults(self, commit: CommitId) -> tuple[NoteFault, ...]:
        """Return the limits that the notes of a commit exceed."""
        if commit not in self._faults:
            self._faults[commit] = self.view.faults(commit)
        return self._faults[commit]


def _placed(opened: Opened, tree: TreeId) -> Opened:
    """Return the record, rejected where its tree is not that of the commit that it stands on."""
    if isinstance(opened, Rejected) or opened.statement.subject.tree == tree:
        return opened
    detail = "its tree is not the commit's"
    return Rejected(line=opened.line, record=opened.id, reason="misplaced", detail=detail)
