"""The union for a commit: what stands for each declared shard, and every fault of it (DESIGN section 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gitledger.records.bodies import TestResult, collection_digest
from gitledger.records.environment import Environment
from gitledger.records.ids import NodeId, RecordId, ShardKey
from gitledger.verdict.evidence import Held
from gitledger.verdict.finding import Finding, blocking, note
from gitledger.verdict.results import ResultFault, load_results
from gitledger.verdict.revoked import revoked_records
from gitledger.verdict.select import (
    Candidate,
    Choice,
    Field,
    carry_candidates,
    choose_fresh,
    newest_first,
    read_field,
    why_stale,
)
from gitledger.verdict.situation import Situation

__all__ = ["ENVIRONMENT_KEYS", "Union", "form_union"]

Group = str | None
"""Shards whose environments and node ids are held against each other: one variant, or all that have none."""

ENVIRONMENT_KEYS: dict[str, Callable[[Environment], object]] = {
    "python": lambda environment: environment.python,
    "platform": lambda environment: environment.platform,
    "pytest": lambda environment: environment.pytest,
    "gitledger": lambda environment: environment.gitledger,
    "coverage": lambda environment: environment.coverage,
    "gpu": lambda environment: environment.gpu and (environment.gpu.vendor, environment.gpu.names),
}
"""What `carry.environment` may name, and how each is read."""


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

    @property
    def results(self) -> tuple[Choice, ...]:
        """The shards for which a receipt stands, green or red."""
        return tuple(choice for choice in self.choices if choice.result is not None)


def form_union(situation: Situation) -> Union:
    """Return the union for the situation's commit, with every fault and not only the first."""
    evidence = [station.evidence for station in situation.stations]
    revoked = revoked_records(evidence, situation.signatories)
    fields = tuple(read_field(shard, situation, revoked) for shard in situation.shards)
    fresh = [_with_results(choose_fresh(field), situation) for field in fields]
    choices = _carry(fields, fresh, situation)
    faults = [
        *_missing(choices),
        *_disagreements(choices, situation),
        *_duplicates(choices),
        *_split_faults(choices),
        *_extra_faults(choices),
    ]
    return Union(
        choices=choices,
        fields=fields,
        faults=tuple(faults),
        notes=(*_extra_notes(choices), *_undeclared(situation)),
        revoked=revoked,
    )


def _with_results(choice: Choice | None, situation: Situation) -> Choice | None:
    """Return a fresh choice with its results; a green whose results can't be believed is stale."""
    if choice is None or choice.result is None:
        return choice
    results = load_results(choice.result.held, situation.facts)
    if not isinstance(results, ResultFault):
        return replace(choice, results=results)
    if choice.verdict != "fresh":
        return choice
    detail = f"{results.code}: {results.detail}"
    return replace(choice, verdict="stale", reason="malformed", detail=detail, result=None, about=choice.result)


def _carry(fields: Sequence[Field], fresh: Sequence[Choice | None], situation: Situation) -> tuple[Choice, ...]:
    """Return a choice for every shard: the fresh ones as they are, the others carried where that is allowed."""
    environments = _reference_environments(fields, fresh, situation)
    taken: dict[Group, set[NodeId]] = {}
    for choice in fresh:
        if choice is not None and choice.result is not None:
            taken.setdefault(choice.shard.key.variant, set()).update(item.node_id for item in choice.results)
    choices = []
    for field, choice in zip(fields, fresh, strict=True):
        if choice is None:
            reference = environments.get(_environment_group(field.shard.key, situation))
            choice = _carried(field, situation, reference, taken.get(field.shard.key.variant, set()))
        choices.append(choice)
    return tuple(choices)


def _carried(field: Field, situation: Situation, reference: Environment | None, taken: set[NodeId]) -> Choice:
    """Return the nearest older green that agrees with the rest, or the reason why there is none."""
    refused: Choice | None = None
    for item in carry_candidates(field, situation):
        fault, results = _carry_fault(item, field, situation, reference, taken)
        if fault is None:
            return Choice(
                shard=field.shard,
                verdict="carryable",
                reason="unchanged",
                result=item,
                results=results,
                about=item,
            )
        refused = refused or Choice(
            shard=field.shard, verdict="stale", reason=fault[0], detail=fault[1], about=item
        )
    return refused or why_stale(field, situation)


def _carry_fault(
    item: Candidate,
    field: Field,
    situation: Situation,
    reference: Environment | None,
    taken: set[NodeId],
) -> tuple[tuple[str, str] | None, tuple[TestResult, ...]]:
    receipt = item.held.receipt
    differs = _environment_difference(receipt.environment, reference, situation.config.carry.environment)
    if differs:
        return ("environment-changed", differs), ()
    claim = receipt.manifest
    if situation.facts.digest_at(item.commit, field.shard.key, claim.extra) not in (None, claim.digest):
        return ("malformed", "the manifest is not that of the commit it was recorded on"), ()
    results = load_results(item.held, situation.facts)
    if isinstance(results, ResultFault):
        return ("malformed", f"{results.code}: {results.detail}"), ()
    for result in results:
        if result.node_id in taken:
            return ("duplicate-tests", f"{result.node_id!a} ran freshly in another shard"), ()
    return None, results


def _environment_group(key: ShardKey, situation: Situation) -> Group:
    """Return what an environment is compared within: all shards under `strict`, else one variant."""
    return "*" if situation.config.merge.environment == "strict" else key.variant


def _reference_environments(
    fields: Sequence[Field], fresh: Sequence[Choice | None], situation: Situation
) -> dict[Group, Environment]:
    """Return the environment that carried receipts must agree with: the fresh one, else the newest carryable."""
    found: dict[Group, Environment] = {}
    for choice in fresh:
        if choice is not None and choice.result is not None:
            group = _environment_group(choice.shard.key, situation)
            environment = choice.result.held.receipt.environment
            found[group] = _overlay(found[group], environment) if group in found else environment
    best: dict[Group, list[Candidate]] = {}
    for field, choice in zip(fields, fresh, strict=True):
        if choice is None:
            best.setdefault(_environment_group(field.shard.key, situation), []).extend(
                carry_candidates(field, situation)[:1]
            )
    for group, candidates in best.items():
        for item in newest_first(candidates):
            environment = item.held.receipt.environment
            found[group] = _overlay(found[group], environment) if group in found else environment
    return found


def _overlay(first: Environment, second: Environment) -> Environment:
    """Return `first`, its unknown versions taken from `second`: a linter's receipt says nothing of pytest."""
    return replace(
        first,
        python=first.python or second.python,
        pytest=first.pytest or second.pytest,
        coverage=first.coverage or second.coverage,
        gpu=first.gpu or second.gpu,
    )


def _environment_difference(one: Environment, other: Environment | None, keys: Iterable[str]) -> str:
    """Return which of `keys` differ, as text; what either side does not know differs from nothing."""
    if other is None:
        return ""
    differing = []
    for key in keys:
        mine, theirs = ENVIRONMENT_KEYS[key](one), ENVIRONMENT_KEYS[key](other)
        if mine is not None and theirs is not None and mine != theirs:
            differing.append(f"{key}: {_plain(mine)} against {_plain(theirs)}")
    return "; ".join(differing)


def _plain(value: object) -> str:
    names = getattr(value, "__slots__", None)
    return " ".join(str(getattr(value, name)) for name in reversed(names)) if names else str(value)


def _missing(choices: Iterable[Choice]) -> Iterator[Finding]:
    for choice in choices:
        if choice.result is None:
            found = "; ".join(filter(None, [choice.detail, ", ".join(choice.changed_paths[:5])]))
            yield blocking(
                choice.reason,
                "6",
                choice.shard.key,
                expected="a green receipt, fresh or carried",
                found=found or choice.reason.replace("-", " "),
                remedy=f"git ledger record --shard {choice.shard.key}",
            )


def _disagreements(choices: Iterable[Choice], situation: Situation) -> Iterator[Finding]:
    """Yield where fresh inputs disagree on record version, mode, or environment."""
    firsts: dict[tuple[Group, str], tuple[ShardKey, object]] = {}
    for choice in choices:
        if choice.result is None or not choice.result.fresh:
            continue
        for group, name, value in _facets(choice.shard.key, choice.result.held, situation):
            if value is None:
                continue
            key, first = firsts.setdefault((group, name), (choice.shard.key, value))
            if value != first:
                yield blocking(
                    "inputs-disagree",
                    "7",
                    choice.shard.key,
                    expected=f"{name} {_plain(first)} as in {key}",
                    found=f"{name} {_plain(value)}",
                    remedy=f"git ledger record --shard {choice.shard.key}",
                )


def _facets(key: ShardKey, held: Held, situation: Situation) -> Iterator[tuple[Group, str, object]]:
    receipt = held.receipt
    yield "*", "record version", receipt.version
    yield "*", "mode", receipt.session.mode
    if situation.config.merge.environment == "off":
        return
    group = _environment_group(key, situation)
    for name in ("python", "platform", "pytest", "gitledger"):
        yield group, name, ENVIRONMENT_KEYS[name](receipt.environment)


def _duplicates(choices: Iterable[Choice]) -> Iterator[Finding]:
    """Yield each pair of shards of one variant that share node ids; three ids are shown."""
    owner: dict[tuple[Group, NodeId], ShardKey] = {}
    clashes: dict[tuple[ShardKey, ShardKey], list[NodeId]] = {}
    for choice in choices:
        for result in choice.results:
            first = owner.setdefault((choice.shard.key.variant, result.node_id), choice.shard.key)
            if first != choice.shard.key:
                clashes.setdefault((first, choice.shard.key), []).append(result.node_id)
    for (first, second), ids in clashes.items():
        yield blocking(
            "duplicate-tests",
            "7",
            second,
            expected="each test in exactly one shard of a variant",
            found=f"{len(ids)} also in {first}: {', '.join(ascii(item) for item in ids[:3])}",
            remedy="give the shards' commands disjoint tests",
        )


def _split_faults(choices: Iterable[Choice]) -> Iterator[Finding]:
    """Yield where the parts of a split are not exactly one full collection; overlaps are duplicates already."""
    groups: dict[tuple[str, Group], list[Choice]] = {}
    for choice in choices:
        split = choice.shard.split
        if split is not None and choice.result is not None and choice.results:
            base = choice.shard.key.name.removesuffix(f"-{split.index}-of-{split.total}")
            groups.setdefault((base, choice.shard.key.variant), []).append(choice)
    for (base, variant), parts in groups.items():
        key = ShardKey(base, variant)
        total = parts[0].shard.split.total if parts[0].shard.split else 0
        collections = {
            (part.result.held.receipt.collection.full_digest, part.result.held.receipt.collection.full_count)
            for part in parts
            if part.result is not None
        }
        if len(collections) > 1:
            yield blocking(
                "split-disagrees",
                "7",
                key,
                expected="one full collection in every part",
                found=f"{len(collections)} different collections",
                remedy=f"git ledger record --shard {parts[0].shard.key}",
            )
            continue
        full_digest, full_count = next(iter(collections))
        ids = [result.node_id for part in parts for result in part.results]
        if len(parts) == total and collection_digest(ids) != full_digest:
            yield blocking(
                "split-incomplete",
                "7",
                key,
                expected=f"parts that make up the full collection of {full_count} tests",
                found=f"{len(ids)} tests in {len(parts)} parts",
                remedy="git ledger split --check",
            )


def _extra_faults(choices: Iterable[Choice]) -> Iterator[Finding]:
    for choice in choices:
        shard, result = choice.shard, choice.result
        if result is None or not result.fresh or not shard.has_extra or shard.extra_now is None:
            continue
        if shard.extra_now != result.held.receipt.manifest.extra:
            yield blocking(
                "extra-changed",
                "5",
                shard.key,
                expected="the extra inputs that the receipt was recorded with",
                found="other content in this work tree",
                remedy=f"git ledger record --shard {shard.key}",
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


def _undeclared(situation: Situation) -> Iterator[Finding]:
    declared = {shard.key for shard in situation.shards}
    names = sorted({held.receipt.key for held in situation.here.shards} - declared)
    for key in names:
        yield note(
            "undeclared-shard",
            "7",
            key,
            expected="a shard of .gitledger/config.yaml",
            found="receipts of a shard that is not declared; they are ignored",
        )
