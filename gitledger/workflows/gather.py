"""From a repository to a situation: which commits, which records, whose signatures, under which policy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from functools import partial

from gitledger.config.schema import Config
from gitledger.dataclass import dataclass
from gitledger.errors import ConfigError
from gitledger.manifest.definition import Definition
from gitledger.records.bodies import BodyRef
from gitledger.records.ids import CommitId, Digest, ShardKey
from gitledger.store.meanwhile import Meanwhile
from gitledger.store.repository import Repository
from gitledger.store.view import LedgerView
from gitledger.verdict.acceptance import signatories
from gitledger.verdict.finding import Finding, blocking, note
from gitledger.verdict.pins import redefined
from gitledger.verdict.situation import Facts, Situation, Station, TargetShard
from gitledger.workflows.coverage_rule import coverage_pin
from gitledger.workflows.forge_users import ask_forges
from gitledger.workflows.inputs import Inputs
from gitledger.workflows.known import Known
from gitledger.workflows.relevance import Relevance, mattering
from gitledger.workflows.session import Session, moment
from gitledger.workflows.trusted import Trusted

__all__ = ["Case", "gather"]

UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)
"""When a commit was made that this clone lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A situation, and what its makers need of it: trusted policy, the shards' inputs, both sides' definitions."""

    situation: Situation
    trusted: Trusted
    inputs: Inputs
    judged: dict[ShardKey, Digest]
    pinned: dict[ShardKey, Digest]
    limits: tuple[Finding, ...]


def gather(
    session: Session,
    target: CommitId,
    *,
    policy_from: str | None = None,
    carry: bool | None = None,
    at: str | None = None,
    accept_shards: bool = False,
    current_keys: bool = False,
    known: Known | None = None,
) -> Case:
    """Return the case of a commit: shards from the judged commit, everything else from the trusted one.

    `current_keys`: forges are asked anew, whatever they answered lately. `known` is shared by whoever judges many
    commits. Raises `ConfigError`, `UsageError`, `TrustError` and `StoreError` where it can't be judged at all.
    """
    repo = session.repo
    is_alone = known is None
    known = Known.of(session) if known is None else known
    trusted = known.trusted(target, policy_from)
    own = trusted.config if trusted.commit == target else known.config(target)
    inputs = known.inputs(own, target)
    judged = inputs.definitions()
    pinned = judged if trusted.is_self else definitions(trusted.config)
    held_back = frozenset() if accept_shards else redefined(judged, pinned)
    info = repo.commit(target)
    if is_alone:
        with inputs.reading_ahead():  # git's share of the work, while the records are opened
            known.open(target, trusted.config.repository)
    bodies_ahead = partial(known.evidence, target, trusted.config.repository)
    with Meanwhile(bodies_ahead) if is_alone else nullcontext():  # and while inputs are resolved
        shards = tuple(inputs.shards(held_back))
    stations = _stations(known, target, trusted, shards)
    now = moment(session, at)
    evidence = [station.evidence for station in stations]
    keys = ask_forges(session, trusted.config, trusted.signers, now, evidence, current=current_keys)
    rule = known.coverage_rule(trusted.commit, trusted.config)
    memory = known.memory((trusted.config, trusted.signers), now, rule, sorted(keys.answers))
    policy = trusted.config.policy
    return Case(
        situation=Situation(
            commit=target,
            tree=info.tree,
            committed_at=info.committed_at,
            now=now,
            config=trusted.config,
            shards=shards,
            stations=stations,
            signatories=signatories(
                policy, trusted.signers, now, evidence, forges=keys.answers, settled=memory.settled
            ),
            facts=Facts(
                body=_bodies(known.view),
                changed=inputs.changed,
                digest_at=inputs.digest_at,
                blob_at=inputs.blob,
            ),
            history_cut=repo.history_is_cut(target),
            carry=carry,
            coverage=rule,
            ended_threshold=trusted.source if rule.threshold and _has_none(known, target, own, trusted) else "",
            memory=memory,
        ),
        trusted=trusted,
        inputs=inputs,
        judged=judged,
        pinned=pinned,
        limits=(
            *keys.notes,
            *_limits(known, target, stations),
            *known.dropped.findings({one.commit for one in stations if one.distance is not None}),
            *_coverage_pin(repo, trusted, (target, own), accepted=accept_shards),
        ),
    )


def _coverage_pin(
    repo: Repository, trusted: Trusted, judged: tuple[CommitId, Config], *, accepted: bool
) -> Iterator[Finding]:
    if trusted.config.policy.pin_shards and not trusted.is_self:
        theirs, source = (trusted.commit, trusted.config), trusted.source
        yield from coverage_pin(repo, judged, theirs, accepted=accepted, source=source)


def _has_none(known: Known, target: CommitId, own: Config, trusted: Trusted) -> bool:
    """Tell whether the judged commit itself has no threshold on coverage; one that can't be read is not none."""
    if trusted.is_self:
        return False
    with suppress(ConfigError):
        return known.coverage_rule(target, own).threshold is None
    return False


def definitions(config: Config) -> dict[ShardKey, Digest]:
    """Return the definition digest of every declared shard."""
    return {key: Definition.of(config, key).digest for key in config.shard_keys()}


def _limits(known: Known, target: CommitId, stations: tuple[Station, ...]) -> Iterator[Finding]:
    """Yield the limits that notes exceed; one too large to be read may hide a failure, so it blocks.

    On an older commit too: what is carried from there, or past it, might not stand.
    """
    for station in stations:
        if station.commit != target and station.distance is None:
            continue
        for fault in known.faults(station.commit):
            if station.commit != target and fault.code != "note-too-large":
                continue
            make = blocking if fault.code == "note-too-large" else note
            yield make(
                fault.code,
                "2",
                station.commit[:12],
                expected="notes within the limits of docs/reference/formats.md",
                found=fault.text,
                remedy="git ledger fsck",
            )


def _bodies(view: LedgerView) -> Callable[[BodyRef], bytes | None]:
    return lambda ref: view.body(ref.oid)


def _stations(
    known: Known, target: CommitId, trusted: Trusted, shards: tuple[TargetShard, ...]
) -> tuple[Station, ...]:
    """Return the target and every other commit whose evidence may matter, nearest first."""
    relevance = Relevance(
        digests=[shard.digest_with(()) for shard in shards if not shard.has_extra],
        by_name=[shard.key for shard in shards if shard.has_extra],
        merged_matter=any(entry.valid_before is not None for entry in trusted.signers.entries),
    )
    rings, apart = known.rings(target), known.apart(target)
    chosen = [(target, 0), *mattering(relevance, known.seen, rings, target, apart=apart)]
    reachable: Collection[CommitId] = ()
    if trusted.config.carry.from_ == "policy-ref":
        reachable = known.repo.distances(trusted.commit, [commit for commit, _ in chosen])
    found = []
    for commit, distance in chosen:
        info = known.commit(commit)
        for tree, evidence in known.evidence(commit, trusted.config.repository):  # for each tree that it may have
            station = Station(
                commit=commit,
                tree=tree,
                committed_at=UNKNOWN if info is None else info.committed_at,
                distance=distance,
                evidence=evidence,
                from_ref=commit in reachable,
                present=info is not None,
            )
            found.append(station)
    return tuple(found)
