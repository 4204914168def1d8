"""Carrying: which older green receipt stands for each shard that the target lacks (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field, replace

from gitledger.dataclass import dataclass
from gitledger.records.bodies import TestResult
from gitledger.records.environment import Environment
from gitledger.records.ids import KeyFingerprint, NodeId, RecordId, ShardKey
from gitledger.verdict.attempts import attempts_used
from gitledger.verdict.environments import Group, difference, group_of
from gitledger.verdict.field import Candidate, Field, newest_first
from gitledger.verdict.results import ResultFault, remembered_results
from gitledger.verdict.select import Choice, carry_candidates
from gitledger.verdict.situation import Situation
from gitledger.verdict.stale import why_stale

__all__ = ["carry"]


@dataclass(frozen=True, slots=True)
class _Judged:
    """A green that could be carried: its results, or the reason and detail that speak against it."""

    item: Candidate
    results: tuple[TestResult, ...] = ()
    reason: str = ""
    detail: str = ""


@dataclass(slots=True)
class _Company:
    """What stands already, in whose company a carried receipt comes: environments by group, ids by variant."""

    situation: Situation
    environments: dict[Group, list[Environment]] = field(default_factory=dict)
    node_ids: dict[str | None, set[NodeId]] = field(default_factory=dict)
    judged: dict[tuple[RecordId, KeyFingerprint | None], _Judged] = field(default_factory=dict)
    """Receipts that were looked into already: their bodies are read once."""
    candidates: dict[ShardKey, list[Candidate]] = field(default_factory=dict)
    """The greens of each shard that could be carried, company aside."""
    firsts: dict[ShardKey, tuple[int, _Judged]] = field(default_factory=dict)
    """The first that could stand for each shard, and in the company of how many environments that was found."""

    def around(self, one: Field) -> Sequence[Environment]:
        """Return the environments that a shard's has to agree with."""
        return self.environments.get(group_of(one.shard.key, self.situation.config.merge), ())

    def join(self, choice: Choice) -> None:
        """Let what stands for a shard settle its group's environment."""
        if choice.result is not None:
            group = group_of(choice.shard.key, self.situation.config.merge)
            known = self.environments.setdefault(group, [])
            environment = choice.result.held.receipt.environment
            if environment not in known:  # most shards ran in one: comparing each with each would be quadratic
                known.append(environment)


def carry(fields: Sequence[Field], fresh: Sequence[Choice | None], situation: Situation) -> tuple[Choice, ...]:
    """Return a choice for every shard: the fresh ones as they are, the others carried where that is allowed.

    Shards are asked in the order of their newest receipts, each for its nearest one that agrees with whatever
    stands already; so where nothing fresh settles the environment, the newest receipt does.
    """
    company = _Company(situation)
    for choice in fresh:
        if choice is not None:
            company.join(choice)
            ids = company.node_ids.setdefault(choice.shard.key.variant, set())
            ids.update(result.node_id for result in choice.results)
    lacking = [one for one, choice in zip(fields, fresh, strict=True) if choice is None]
    found = {}
    for one in _in_order(lacking, company):
        found[one.shard.key] = choice = _carried(one, company)
        company.join(choice)
    return tuple(choice or found[one.shard.key] for one, choice in zip(fields, fresh, strict=True))


def _in_order(lacking: Sequence[Field], company: _Company) -> list[Field]:
    """Return the shards by the first receipt that could stand for each, the newest first; those without, last."""
    first = {one.shard.key: _first(one, company) for one in lacking}
    newest = newest_first(item for item in first.values() if item is not None)
    rank = {(item.held.id, item.held.key): place for place, item in enumerate(newest)}

    def place(one: Field) -> int:
        item = first[one.shard.key]
        return len(rank) if item is None else rank[item.held.id, item.held.key]

    return sorted(lacking, key=place)


def _first(one: Field, company: _Company) -> Candidate | None:
    for judged in _look(one, company):
        if not judged.reason:
            company.firsts[one.shard.key] = (len(company.around(one)), judged)
            return judged.item
    return None


def _anew(one: Field, company: _Company) -> Iterator[_Judged]:
    """Yield what `_look` does; where nobody has joined since, the first that could stand is still the one."""
    many, judged = company.firsts.get(one.shard.key, (-1, None))
    if judged is not None and many == len(company.around(one)):
        yield judged
    else:
        yield from _look(one, company)


def _carried(one: Field, company: _Company) -> Choice:
    """Return the nearest older green that agrees with its company, or the reason why there is none."""
    refused: Choice | None = None
    for judged in _anew(one, company):
        item = judged.item
        if not judged.reason:
            return Choice(
                shard=one.shard,
                verdict="carryable",
                reason="unchanged",
                result=item,
                results=judged.results,
                attempts=_attempts(item, one),
                about=item,
            )
        refused = refused or Choice(
            shard=one.shard, verdict="stale", reason=judged.reason, detail=judged.detail, about=item
        )
    if refused is None:
        return why_stale(one, company.situation)
    return replace(refused, attempts=tuple(newest_first(one.fresh)))


def _look(one: Field, company: _Company) -> Iterator[_Judged]:
    """Yield the carry candidates of a shard, nearest first, as they stand in the present company."""
    situation = company.situation
    environments = company.around(one)
    taken = company.node_ids.get(one.shard.key.variant, set())
    key = one.shard.key
    if key not in company.candidates:
        company.candidates[key] = carry_candidates(one, situation)
    for item in company.candidates[key]:
        mine = item.held.receipt.environment
        differs = difference(mine, environments, situation.config.carry.environment)
        if differs:
            yield _Judged(item, reason="environment-changed", detail=differs)
            continue
        identity = (item.held.id, item.held.key)
        if identity not in company.judged:
            company.judged[identity] = _judge(item, one, situation, taken)
        yield company.judged[identity]


def _judge(item: Candidate, one: Field, situation: Situation, taken: Collection[NodeId]) -> _Judged:
    """Return what speaks against carrying a receipt, its company's environments aside."""
    limit, runs = situation.config.policy.max_attempts, attempts_used(_attempts(item, one))
    if limit is not None and runs > limit:
        return _Judged(item, reason="policy", detail=f"max_attempts: {runs} on {item.commit[:12]}")
    claim = item.held.receipt.manifest
    if situation.facts.digest_at(item.commit, one.shard.key, claim.extra) != claim.digest:
        detail = "the manifest is not that of the commit it was recorded on"
        return _Judged(item, reason="malformed", detail=detail)
    results = remembered_results(item.held, situation)
    if isinstance(results, ResultFault):
        return _Judged(item, reason="malformed", detail=f"{results.code}: {results.detail}")
    twice = next((result.node_id for result in results if result.node_id in taken), None)
    if twice is not None:
        return _Judged(item, reason="duplicate-tests", detail=f"{twice!a} ran freshly in another shard")
    return _Judged(item, results)


def _attempts(item: Candidate, one: Field) -> tuple[Candidate, ...]:
    """Return all runs of the shard on the commit of a receipt: what `max_attempts` counts there."""
    runs = (other for other in one.candidates if other.commit == item.commit and other.matches)
    return tuple(newest_first(runs))
