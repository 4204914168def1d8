"""Carrying: which older green receipt stands for each shard that the target lacks (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field

from gitledger.dataclass import dataclass, replace
from gitledger.records.environment import Environment
from gitledger.records.ids import NodeId, ShardKey
from gitledger.verdict.environments import Group, difference, group_of
from gitledger.verdict.field import Candidate, newest_first
from gitledger.verdict.select import Choice
from gitledger.verdict.situation import Situation
from gitledger.verdict.stale import why_stale
from gitledger.verdict.standing import Green, Standing

__all__ = ["carry"]


_Judged = tuple[Green, str, str]
"""A green that could be carried, and the reason and detail that speak against it in the present company, or ""."""


@dataclass(slots=True)
class _Company:
    """What stands already, in whose company a carried receipt comes: environments by group, ids by variant."""

    situation: Situation
    environments: dict[Group, list[Environment]] = field(default_factory=dict)
    node_ids: dict[str | None, set[NodeId]] = field(default_factory=dict)
    firsts: dict[ShardKey, tuple[int, Choice]] = field(default_factory=dict)
    """The first that could stand for each shard, and in the company of how many environments that was found."""

    def around(self, key: ShardKey) -> Sequence[Environment]:
        """Return the environments that a shard's has to agree with."""
        return self.environments.get(group_of(key, self.situation.config.merge), ())

    def join(self, choice: Choice) -> None:
        """Let what stands for a shard settle its group's environment."""
        if choice.result is not None:
            group = group_of(choice.shard.key, self.situation.config.merge)
            known = self.environments.setdefault(group, [])
            environment = self.situation.memory.environment(choice.result.held)
            if environment not in known:  # most shards ran in one: comparing each with each would be quadratic
                known.append(environment)


def carry(found: Sequence[Standing], situation: Situation) -> tuple[Choice, ...]:
    """Return a choice for every shard: the fresh ones as they are, the others carried where that is allowed.

    Shards are asked in the order of their newest receipts, each for its nearest one that agrees with whatever
    stands already; so where nothing fresh settles the environment, the newest receipt does.
    """
    company = _Company(situation)
    for choice in (one.fresh for one in found):
        if choice is not None:
            company.join(choice)
            ids = company.node_ids.setdefault(choice.shard.key.variant, set())
            ids.update(choice.results.node_ids)
    carried = {}
    for one in _in_order([one for one in found if one.fresh is None], company):
        carried[one.field.shard.key] = choice = _carried(one, company)
        company.join(choice)
    return tuple(one.fresh or carried[one.field.shard.key] for one in found)


def _in_order(lacking: Sequence[Standing], company: _Company) -> list[Standing]:
    """Return the shards by the first receipt that could stand for each, the newest first; those without, last."""
    first = {one.field.shard.key: _first(one, company) for one in lacking}
    newest = newest_first(item for item in first.values() if item is not None)
    rank = {(item.held.id, item.held.key): place for place, item in enumerate(newest)}

    def place(one: Standing) -> int:
        item = first[one.field.shard.key]
        return len(rank) if item is None else rank[item.held.id, item.held.key]

    return sorted(lacking, key=place)


def _first(one: Standing, company: _Company) -> Candidate | None:
    key = one.field.shard.key
    environments = company.around(key)
    for green, reason, _ in _look(one, environments, company):
        if not reason and green.choice is not None:
            company.firsts[key] = (len(environments), green.choice)
            return green.item
    return None


def _carried(one: Standing, company: _Company) -> Choice:
    """Return the nearest older green that agrees with its company, or the reason why there is none.

    Where no other environment has joined since, the first that could stand is still the one.
    """
    key = one.field.shard.key
    environments = company.around(key)
    many, first = company.firsts.get(key, (-1, None))
    if first is not None and many == len(environments):
        return first
    refused: Choice | None = None
    for green, reason, detail in _look(one, environments, company):
        if not reason and green.choice is not None:
            return green.choice
        refused = refused or Choice(
            shard=one.field.shard, verdict="stale", reason=reason, detail=detail, about=green.item
        )
    if refused is None:
        return why_stale(one.field, company.situation)
    return replace(refused, attempts=tuple(newest_first(one.field.fresh)))


def _look(one: Standing, environments: Sequence[Environment], company: _Company) -> Iterator[_Judged]:
    """Yield the carry candidates of a shard, nearest first, as they stand in the present company."""
    situation, number = company.situation, 0
    taken = company.node_ids.get(one.field.shard.key.variant, ())
    while (green := one.green(number, situation)) is not None:
        differs = _difference(green.environment, environments, situation)
        if differs:
            yield green, "environment-changed", differs
        elif green.reason:
            yield green, green.reason, green.detail
        elif green.node_ids.isdisjoint(taken):
            yield green, "", ""
        else:
            twice = next(node_id for node_id in green.results.node_ids if node_id in taken)
            yield green, "duplicate-tests", f"{twice!a} ran freshly in another shard"
        number += 1


def _difference(mine: Environment, others: Collection[Environment], situation: Situation) -> str:
    """Return what `difference` returns; one value for all that ran in one environment differs in nothing."""
    for other in others:
        if other is not mine:
            return difference(mine, others, situation.config.carry.environment)
    return ""
