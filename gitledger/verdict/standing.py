"""What the receipts of one shard come to by themselves, found once for all situations that see them alike.

A report judges each commit of a history, and from one commit to the next hardly any shard has other inputs or
other receipts: they only lie one step further away. So what is found of a shard, the rest of the union aside, is
kept by all that it rests on: the shard as it stands at the target (one value for all commits with one manifest of
it), the receipts, and how each is seen from there (of the target itself, within reach, of an ancestor, nearer than
which others). Policy, signers, the moment and the coverage rule are the memory's own (`memory`). What rests on
more is found anew each time: shards with extra inputs or a scope with a fault, and receipts for which others must
vouch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from gitledger.dataclass import dataclass, replace
from gitledger.records.bodies import NO_RESULTS, Results
from gitledger.records.environment import Environment
from gitledger.records.ids import NodeId
from gitledger.verdict.attempts import attempts_used
from gitledger.verdict.evidence import Held
from gitledger.verdict.field import Candidate, Field, attempts_at, is_lasting, read_field, seen_as
from gitledger.verdict.results import ResultFault, remembered_results, told
from gitledger.verdict.select import Choice, carry_candidates, choose_fresh
from gitledger.verdict.situation import Situation, Station, TargetShard

__all__ = ["Green", "Standing", "standings"]

_FAR = 1 << 62


@dataclass(slots=True)
class Green:
    """A green that could be carried: its results, or the reason and detail that speak against it by itself.

    `environment` is one and the same value for all that ran in one.
    """

    item: Candidate
    environment: Environment
    results: Results = NO_RESULTS
    node_ids: frozenset[NodeId] = frozenset()
    reason: str = ""
    detail: str = ""
    choice: Choice | None = None
    """What it is where it stands."""


@dataclass(slots=True)
class Standing:
    """The receipts of a shard, what those of the target decide, and the greens that could be carried.

    `seen` are all that it was made of: as long as it is kept, so are they, and their identities name no others.
    """

    field: Field
    fresh: Choice | None
    seen: Sequence[Held]
    candidates: Sequence[Candidate] | None = None
    greens: list[Green] = dataclasses.field(default_factory=list)

    def green(self, number: int, situation: Situation) -> Green | None:
        """Return a green that could be carried, the nearest being number 0, looked into when first asked for."""
        if number < len(self.greens):
            return self.greens[number]
        if self.candidates is None:
            self.candidates = carry_candidates(self.field, situation)
        for item in self.candidates[len(self.greens) : number + 1]:
            self.greens.append(_green(item, self.field, situation))
        return self.greens[number] if number < len(self.greens) else None


def standings(situation: Situation) -> tuple[Standing, ...]:
    """Return what stands of each declared shard by itself."""
    receipts, known = situation.receipts(), situation.memory.standings
    views = {id(station): seen_as(station, situation) for station in situation.stations}
    found = []
    for shard in situation.shards:
        mine = receipts.get(shard.key, [])
        if shard.has_extra or shard.fault:
            found.append(_found(shard, situation, mine))
            continue
        name = (id(shard), situation.history_cut, situation.may_carry, *_sight(mine, views))
        one = known.get(name)
        if one is None:
            one = _found(shard, situation, mine)
            if is_lasting(mine, situation):
                known[name] = one
        found.append(one)
    return tuple(found)


def _sight(receipts: Sequence[tuple[Station, Held]], views: dict[int, int]) -> list[int]:
    """Return what tells these receipts, and how they are seen, from others: distances by their order alone."""
    found = [value for station, held in receipts for value in (id(held), views[id(station)])]
    if len(receipts) > 1:
        distances = [_FAR if station.distance is None else station.distance for station, _ in receipts]
        order = {distance: place for place, distance in enumerate(sorted(set(distances)))}
        found += [order[distance] for distance in distances]
    return found


def _found(shard: TargetShard, situation: Situation, receipts: Sequence[tuple[Station, Held]]) -> Standing:
    field = read_field(shard, situation, receipts)
    fresh = _with_results(choose_fresh(field), situation)
    return Standing(field, fresh, [held for _, held in receipts])


def _with_results(choice: Choice | None, situation: Situation) -> Choice | None:
    """Return a fresh choice with its results; a green whose results can't be believed is stale."""
    if choice is None or choice.result is None:
        return choice
    results = remembered_results(choice.result.held, situation)
    if not isinstance(results, ResultFault):
        return replace(choice, results=results)
    if choice.verdict != "fresh":
        return choice
    detail = f"{results.code}: {results.detail}"
    return replace(choice, verdict="stale", reason="malformed", detail=detail, result=None, about=choice.result)


def _green(item: Candidate, one: Field, situation: Situation) -> Green:
    """Return a green with what speaks against carrying it, its company aside."""
    environment = situation.memory.environment(item.held)
    attempts = attempts_at(item, one)
    limit, runs = situation.config.policy.max_attempts, attempts_used(attempts)
    if limit is not None and runs > limit:
        return Green(item, environment, reason="policy", detail=f"max_attempts: {runs} on {item.commit[:12]}")
    claim = item.held.receipt.manifest
    if situation.facts.digest_at(item.commit, one.shard.key, claim.extra) != claim.digest:
        detail = "the manifest is not that of the commit it was recorded on"
        return Green(item, environment, reason="malformed", detail=detail)
    results = remembered_results(item.held, situation)
    if isinstance(results, ResultFault):
        return Green(item, environment, reason="malformed", detail=f"{results.code}: {results.detail}")
    choice = Choice(
        shard=one.shard,
        verdict="carryable",
        reason="unchanged",
        result=item,
        results=results,
        attempts=attempts,
        about=item,
    )
    return Green(item, environment, results, told(results, situation.memory).node_ids, choice=choice)
