"""What keeps choices from being a union: every fault of it, not only the first (DESIGN section 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gitledger.records.bodies import collection_digest
from gitledger.records.ids import NodeId, ShardKey
from gitledger.verdict.environments import ENVIRONMENT_KEYS, Group, group_of, plain
from gitledger.verdict.evidence import Held
from gitledger.verdict.finding import Finding, blocking
from gitledger.verdict.memory import Memory
from gitledger.verdict.results import told
from gitledger.verdict.select import Choice
from gitledger.verdict.situation import Situation
from gitledger.verdict.way_out import way_out
from gitledger.wording import counted

__all__ = ["find_faults"]


def find_faults(choices: Sequence[Choice], situation: Situation) -> tuple[Finding, ...]:
    """Return every fault of a union; each refuses a merge and blocks a verdict."""
    return (
        *_missing(choices),
        *_disagreements(choices, situation),
        *_duplicates(choices, situation.memory),
        *_split_faults(choices),
        *_extra_faults(choices),
        *_undecodable(choices, situation),
    )


def _missing(choices: Iterable[Choice]) -> Iterator[Finding]:
    for choice in choices:
        if choice.result is None:
            changed = ", ".join(ascii(path)[1:-1] for path in choice.changed_paths[:5])
            found = "; ".join(filter(None, [choice.detail, changed]))
            gist = "; ".join(filter(None, [choice.gist, changed])) if choice.gist else ""
            yield blocking(
                choice.reason,
                "6",
                choice.shard.key,
                expected="a green receipt, fresh or carried",
                found=found or choice.reason.replace("-", " "),
                remedy=way_out(choice),
                gist=gist,
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
                    expected=f"{name} {plain(first)} as in {key}",
                    found=f"{name} {plain(value)}",
                    remedy=f"git ledger record --shard {choice.shard.key}",
                )


def _facets(key: ShardKey, held: Held, situation: Situation) -> Iterator[tuple[Group, str, object]]:
    receipt, merge = held.receipt, situation.config.merge
    yield "*", "record version", receipt.version
    yield "*", "mode", receipt.session.mode
    if merge.environment == "off":
        return
    for name in ("python", "platform", "pytest", "gitledger"):
        yield group_of(key, merge), name, ENVIRONMENT_KEYS[name](receipt.environment)


def _duplicates(choices: Iterable[Choice], memory: Memory) -> Iterator[Finding]:
    """Yield each pair of shards of one variant that share node ids; three ids are shown."""
    owner: dict[tuple[str | None, NodeId], ShardKey] = {}
    clashes: dict[tuple[ShardKey, ShardKey], list[NodeId]] = {}
    found = list(choices)
    if not _share_ids(found, memory):
        return
    for choice in found:
        for node_id in choice.results.node_ids:
            first = owner.setdefault((choice.shard.key.variant, node_id), choice.shard.key)
            if first != choice.shard.key:
                clashes.setdefault((first, choice.shard.key), []).append(node_id)
    for (first, second), ids in clashes.items():
        yield blocking(
            "duplicate-tests",
            "7",
            second,
            expected="each test in exactly one shard of a variant",
            found=f"{len(ids)} also in {first}: {', '.join(ascii(item)[1:-1] for item in ids[:3])}",
            remedy="give the shards' commands disjoint tests",
        )


def _share_ids(choices: Iterable[Choice], memory: Memory) -> bool:
    """Tell whether any two shards of one variant may share ids; as a rule none do, and sets tell that quickly."""
    seen: dict[str | None, set[NodeId]] = {}
    for choice in choices:
        ids = told(choice.results, memory).node_ids
        known = seen.setdefault(choice.shard.key.variant, set())
        if not known.isdisjoint(ids):
            return True
        known |= ids
    return False


def _split_faults(choices: Iterable[Choice]) -> Iterator[Finding]:
    """Yield where the parts of a split are not exactly one full collection; overlaps are duplicates already."""
    groups: dict[ShardKey, list[Choice]] = {}
    for choice in choices:
        key, split = choice.shard.key, choice.shard.split
        if split is not None and choice.result is not None:
            base = key.name.removesuffix(f"-{split.index}-of-{split.total}")
            groups.setdefault(ShardKey(base, key.variant), []).append(choice)
    for key, parts in groups.items():
        yield from _part_faults(key, parts)


def _part_faults(key: ShardKey, parts: Sequence[Choice]) -> Iterator[Finding]:
    """Yield what is wrong with the parts of one split, fresh and carried ones together.

    A part that broke off has no end for some of its tests: it is red already, and no partition can be told.
    """
    receipts = [part.result.held.receipt for part in parts if part.result is not None]
    collections = {(item.collection.full_digest, item.collection.full_count) for item in receipts}
    if len(collections) > 1:
        yield blocking(
            "split-disagrees",
            "7",
            key,
            expected="one full collection in every part",
            found=f"{len(collections)} different collections",
            remedy=f"git ledger record --shard {parts[0].shard.key}",
        )
        return
    full_digest, full_count = collections.pop()
    total = parts[0].shard.split.total if parts[0].shard.split else 0
    ended = all(len(part.results) == item.counts.collected for part, item in zip(parts, receipts, strict=True))
    ids = [node_id for part in parts for node_id in part.results.node_ids]
    if len(parts) == total and ended and collection_digest(ids) != full_digest:
        yield blocking(
            "split-incomplete",
            "7",
            key,
            expected=f"parts that make up the full collection of {counted(full_count, 'test')}, nothing twice",
            found=f"{counted(len(ids), 'test')} in {counted(len(parts), 'part')}",
            remedy="git ledger split --check",
        )


def _extra_faults(choices: Iterable[Choice]) -> Iterator[Finding]:
    for choice in choices:
        shard, result = choice.shard, choice.result
        if result is None or not shard.has_extra or shard.extra_now is None:
            continue
        if set(shard.extra_now) != set(result.held.receipt.manifest.extra):
            yield blocking(
                "extra-changed",
                "5",
                shard.key,
                expected="the extra inputs that the receipt was recorded with",
                found="other content in this work tree, or no regular file",
                remedy=f"git ledger record --shard {shard.key}",
            )


def _undecodable(choices: Iterable[Choice], situation: Situation) -> Iterator[Finding]:
    """Yield what a trusted key signed and we can't read: it may be a failure, so it blocks.

    On another commit it blocks only where something is taken from another commit, since only then does that
    history count. Revoking it does not help: a revocation only ever turns green into red.
    """
    elsewhere = any(choice.result is not None and choice.result.commit != situation.commit for choice in choices)
    beyond = situation.config.carry.from_ == "same-manifest"
    for station in situation.stations:
        reached = elsewhere and (beyond or station.distance is not None)
        if station.commit != situation.commit and not reached:
            continue
        for item in station.evidence.undecodable:
            if situation.signatories.trusts(item):
                yield blocking(
                    "undecodable",
                    "2",
                    item.id[:12],
                    expected="a record that this version can read",
                    found=item.detail,
                    remedy="upgrade git-ledger",
                )
