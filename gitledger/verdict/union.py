"""The union for a commit: what stands for each declared shard, and every fault of it (DESIGN section 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from gitledger.dataclass import dataclass
from gitledger.records.ids import RecordId
from gitledger.verdict.carry import carry
from gitledger.verdict.coverage import CoverageUnion, judge_coverage
from gitledger.verdict.ended_threshold import ending
from gitledger.verdict.faults import find_faults
from gitledger.verdict.field import Field
from gitledger.verdict.finding import Finding, note
from gitledger.verdict.select import Choice, at_distances, withdraw
from gitledger.verdict.situation import Situation
from gitledger.verdict.standing import standings

__all__ = ["Union", "form_union"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """What stands for each declared shard, in configuration order.

    `faults` refuse a merge and block a verdict; a shard for which nothing stands is among them. A shard that
    failed is no fault of the union: it is merged as failed.
    """

    choices: tuple[Choice, ...]
    fields: tuple[Field, ...]
    faults: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    revoked: frozenset[RecordId]
    coverage: CoverageUnion = field(default_factory=CoverageUnion)

    @property
    def results(self) -> tuple[Choice, ...]:
        """The shards for which a receipt stands, green or red."""
        return tuple(choice for choice in self.choices if choice.result is not None)


def form_union(situation: Situation) -> Union:
    """Return the union for the situation's commit, with every fault and not only the first."""
    found = standings(situation)
    chosen = carry(found, situation)
    revoked = situation.revoked
    away = {station.commit: station.distance for station in situation.stations}
    choices = tuple(at_distances(withdraw(choice, situation, revoked), away) for choice in chosen)
    coverage = judge_coverage(choices, situation)
    return Union(
        choices=choices,
        fields=tuple(one.field for one in found),
        faults=ending((*find_faults(choices, situation), *coverage.faults), situation.ended_threshold),
        notes=(*coverage.notes, *_extra_notes(choices), *_beyond_ancestry(choices), *_undeclared(situation)),
        revoked=revoked,
        coverage=coverage,
    )


def _extra_notes(choices: Iterable[Choice]) -> Iterator[Finding]:
    for choice in choices:
        if choice.result is not None and choice.shard.has_extra and choice.shard.extra_now is None:
            yield note(
                "extra-not-rechecked",
                "5",
                choice.shard.key,
                expected="the extra inputs in the work tree",
                found="not here; the signer's hashes stand",
            )


def _beyond_ancestry(choices: Iterable[Choice]) -> Iterator[Finding]:
    """Yield what was accepted from a commit that is no ancestor (`carry.from: same-manifest`)."""
    for choice in choices:
        if choice.result is not None and not choice.result.is_ancestor:
            yield note(
                "beyond-ancestry",
                "6",
                choice.shard.key,
                expected="a receipt of the commit or of an ancestor",
                found=f"one of {choice.result.commit[:12]}, accepted by carry.from: same-manifest",
            )


def _undeclared(situation: Situation) -> Iterator[Finding]:
    declared = {shard.key for shard in situation.shards}
    for key in sorted({held.receipt.key for held in situation.here.shards} - declared, key=str):
        yield note(
            "undeclared-shard",
            "7",
            key,
            expected="a shard of .gitledger/config.yaml",
            found="receipts of a shard that is not declared; they are ignored",
        )
