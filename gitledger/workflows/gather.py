"""From a repository to a situation: which commits, which records, whose signatures, under which policy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from gitledger.config.schema import Config
from gitledger.manifest.definition import Definition
from gitledger.records.bodies import BodyRef
from gitledger.records.ids import CommitId, Digest, ShardKey, TreeId
from gitledger.store.repository import Repository
from gitledger.store.view import LedgerView
from gitledger.trust.verified import Opened, Rejected, open_record
from gitledger.verdict.acceptance import signatories
from gitledger.verdict.evidence import sort_records
from gitledger.verdict.finding import Finding, blocking, note
from gitledger.verdict.pins import redefined
from gitledger.verdict.situation import Facts, Situation, Station, TargetShard
from gitledger.workflows.coverage_rule import coverage_pin, coverage_rule
from gitledger.workflows.dropped import Dropped, look_back
from gitledger.workflows.forge_users import ask_forges
from gitledger.workflows.inputs import Inputs
from gitledger.workflows.relevance import Relevance, marks_of, mattering
from gitledger.workflows.seen import see
from gitledger.workflows.session import Session, moment
from gitledger.workflows.trusted import Trusted, load_trusted, read_config

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
) -> Case:
    """Return the case of a commit: shards from the judged commit, everything else from the trusted one.

    `current_keys`: forges are asked anew, whatever they answered lately. Raises `ConfigError`, `UsageError`,
    `TrustError` and `StoreError` where it can't be judged at all.
    """
    repo = session.repo
    trusted = load_trusted(repo, target, policy_from)
    own = trusted.config if trusted.commit == target else read_config(repo, target)
    inputs = Inputs(repo, own, target)
    judged = inputs.definitions()
    pinned = judged if trusted.is_self else definitions(trusted.config)
    held_back = frozenset() if accept_shards else redefined(judged, pinned)
    info = repo.commit(target)
    view = session.ledger.view()
    shards = tuple(inputs.shards(held_back))
    dropped = look_back(session, view)
    stations = _stations(session, (view, dropped), target, trusted, shards)
    now = moment(session, at)
    evidence = [station.evidence for station in stations]
    keys = ask_forges(session, trusted.config, trusted.signers, now, evidence, current=current_keys)
    return Case(
        situation=Situation(
            commit=target,
            tree=info.tree,
            committed_at=info.committed_at,
            now=now,
            config=trusted.config,
            shards=shards,
            stations=stations,
            signatories=signatories(trusted.config.policy, trusted.signers, now, evidence, forges=keys.answers),
            facts=Facts(
                body=_bodies(view),
                changed=inputs.changed,
                digest_at=inputs.digest_at,
                blob_at=inputs.blob,
            ),
            history_cut=repo.history_is_cut(target),
            carry=carry,
            coverage=coverage_rule(repo, trusted.commit, trusted.config),
        ),
        trusted=trusted,
        inputs=inputs,
        judged=judged,
        pinned=pinned,
        limits=(
            *keys.notes,
            *_limits(view, target, stations),
            *dropped.findings({one.commit for one in stations if one.distance is not None}),
            *_coverage_pin(repo, trusted, (target, own), accepted=accept_shards),
        ),
    )


def _coverage_pin(
    repo: Repository, trusted: Trusted, judged: tuple[CommitId, Config], *, accepted: bool
) -> Iterator[Finding]:
    if trusted.config.policy.pin_shards and not trusted.is_self:
        yield from coverage_pin(repo, judged, (trusted.commit, trusted.config), accepted=accepted)


def definitions(config: Config) -> dict[ShardKey, Digest]:
    """Return the definition digest of every declared shard."""
    return {key: Definition.of(config, key).digest for key in config.shard_keys()}


def _limits(view: LedgerView, target: CommitId, stations: tuple[Station, ...]) -> Iterator[Finding]:
    """Yield the limits that notes exceed; one too large to be read may hide a failure, so it blocks.

    On an older commit too: what is carried from there, or past it, might not stand.
    """
    for station in stations:
        if station.commit != target and station.distance is None:
            continue
        for fault in view.faults(station.commit):
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
    session: Session,
    ledger: tuple[LedgerView, Dropped],
    target: CommitId,
    trusted: Trusted,
    shards: tuple[TargetShard, ...],
) -> tuple[Station, ...]:
    """Return the target and every other commit whose evidence may matter, nearest first."""
    repo = session.repo
    view, against = ledger[0], ledger[1].against
    relevance = Relevance(
        digests=[shard.digest_with(()) for shard in shards if not shard.has_extra],
        by_name=[shard.key for shard in shards if shard.has_extra],
        merged_matter=any(entry.valid_before is not None for entry in trusted.signers.entries),
    )
    added = {commit: marks_of(lines) for commit, lines in against.items()}
    chosen = [(target, 0), *mattering(relevance, see(session, view), added, repo.rings(target), target)]
    reachable: Collection[CommitId] = ()
    if trusted.config.carry.from_ == "policy-ref":
        reachable = repo.distances(trusted.commit, [commit for commit, _ in chosen])
    found: list[Station] = []
    for commit, distance in chosen:
        lines = (*view.lines(commit), *against.get(commit, ()))
        found += _stations_at(repo, trusted, commit, lines, distance, reachable)
    return tuple(found)


def _stations_at(
    repo: Repository,
    trusted: Trusted,
    commit: CommitId,
    lines: tuple[bytes, ...],
    distance: int | None,
    reachable: Collection[CommitId],
) -> list[Station]:
    """Return what a commit's records say.

    One that this clone lacks says nothing, unless the clone is shallow: then it may be an ancestor, and a failure
    on it must not be overlooked. Its tree is what each of its records claims, so there may be several.
    """
    info = repo.objects.read_commit(commit)
    opened = [open_record(line, commit=commit) for line in lines]
    if info is not None:
        trees = {info.tree}
    elif repo.is_shallow:
        trees = {item.statement.subject.tree for item in opened if not isinstance(item, Rejected)}
    else:
        trees = set()
    return [
        Station(
            commit=commit,
            tree=tree,
            committed_at=UNKNOWN if info is None else info.committed_at,
            distance=distance,
            evidence=sort_records([_placed(item, tree) for item in opened], repository=trusted.config.repository),
            from_ref=commit in reachable,
            present=info is not None,
        )
        for tree in sorted(trees)
    ]


def _placed(opened: Opened, tree: TreeId) -> Opened:
    """Return the record, rejected where its tree is not that of the commit that it stands on."""
    if isinstance(opened, Rejected) or opened.statement.subject.tree == tree:
        return opened
    detail = "its tree is not the commit's"
    return Rejected(line=opened.line, record=opened.id, reason="misplaced", detail=detail)
