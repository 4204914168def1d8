"""From a repository to a situation: which commits, which records, whose signatures, under which policy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from gitledger.config.schema import Config
from gitledger.errors import UsageError
from gitledger.manifest.definition import Definition
from gitledger.records.bodies import BodyRef
from gitledger.records.decode import parse_time
from gitledger.records.ids import CommitId, Digest, ShardKey, TreeId
from gitledger.store.view import LedgerView
from gitledger.trust.verified import Opened, Rejected, open_record
from gitledger.verdict.acceptance import signatories
from gitledger.verdict.evidence import Evidence, sort_records
from gitledger.verdict.finding import Finding, blocking, note
from gitledger.verdict.pins import redefined
from gitledger.verdict.situation import Facts, Situation, Station
from gitledger.workflows.inputs import Inputs
from gitledger.workflows.session import Session
from gitledger.workflows.trusted import Trusted, load_trusted, read_config

__all__ = ["Case", "gather"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A situation, and what its makers need of it: the trusted policy and both sides' definitions."""

    situation: Situation
    trusted: Trusted
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
) -> Case:
    """Return the case of a commit: shards from the judged commit, everything else from the trusted one.

    Raises `ConfigError`, `UsageError` and `StoreError` where it can't be judged at all.
    """
    repo = session.repo
    trusted = load_trusted(repo, target, policy_from)
    own = trusted.config if trusted.commit == target else read_config(repo, target)
    judged = definitions(own)
    pinned = judged if trusted.is_self else definitions(trusted.config)
    held_back = frozenset() if accept_shards or not trusted.config.policy.pin_shards else redefined(judged, pinned)
    inputs = Inputs(repo, own, target)
    info = repo.commit(target)
    view = session.ledger.view()
    stations = _stations(session, view, target, trusted)
    now = _moment(session, at)
    return Case(
        situation=Situation(
            commit=target,
            tree=info.tree,
            committed_at=info.committed_at,
            now=now,
            config=trusted.config,
            shards=tuple(inputs.shards(held_back)),
            stations=stations,
            signatories=signatories(
                trusted.config.policy, trusted.signers, now, [station.evidence for station in stations]
            ),
            facts=Facts(body=_bodies(view), changed=inputs.changed, digest_at=inputs.digest_at),
            history_cut=repo.history_is_cut(target),
            carry=carry,
        ),
        trusted=trusted,
        judged=judged,
        pinned=pinned,
        limits=tuple(_limits(view, target)),
    )


def definitions(config: Config) -> dict[ShardKey, Digest]:
    """Return the definition digest of every declared shard."""
    return {key: Definition.of(config, key).digest for key in config.shard_keys()}


def _moment(session: Session, at: str | None) -> datetime:
    if at is None:
        return session.now()
    try:
        return parse_time(at)
    except ValueError as error:
        raise UsageError("bad-time", f"--at {at!a}: {error}", "--at 2026-01-31T12:00:00Z") from error


def _limits(view: LedgerView, target: CommitId) -> Iterator[Finding]:
    """Yield the limits that the target's notes exceed; a note too large to read may hide a failure: it blocks."""
    for fault in view.faults(target):
        make = blocking if fault.code == "note-too-large" else note
        yield make(
            fault.code,
            "2",
            target[:12],
            expected="notes within the limits of docs/reference/formats.md",
            found=fault.text,
            remedy="git ledger fsck",
        )


def _bodies(view: LedgerView) -> Callable[[BodyRef], bytes | None]:
    return lambda ref: view.body(ref.oid)


def _stations(session: Session, view: LedgerView, target: CommitId, trusted: Trusted) -> tuple[Station, ...]:
    """Return the target and every other commit whose evidence may count, nearest first."""
    repo = session.repo
    annotated = view.commits()
    distances = repo.distances(target, annotated)
    reachable: Collection[CommitId] = ()
    if trusted.config.carry.from_ == "policy-ref":
        reachable = repo.distances(trusted.commit, annotated)
    present = [target, *(commit for commit in annotated if commit != target)]
    found = []
    for commit in present:
        info = repo.objects.read_commit(commit)
        if info is None:
            continue
        found.append(
            Station(
                commit=commit,
                tree=info.tree,
                committed_at=info.committed_at,
                distance=0 if commit == target else distances.get(commit),
                evidence=_evidence(view, commit, info.tree, trusted),
                from_ref=commit in reachable,
            )
        )
    return tuple(sorted(found, key=_outwards))


def _outwards(station: Station) -> tuple[int, CommitId]:
    return (1 << 62 if station.distance is None else station.distance), station.commit


def _evidence(view: LedgerView, commit: CommitId, tree: TreeId, trusted: Trusted) -> Evidence:
    opened = [_placed(open_record(line, commit=commit), tree) for line in view.lines(commit)]
    return sort_records(opened, repository=trusted.config.repository)


def _placed(opened: Opened, tree: TreeId) -> Opened:
    """Return the record, rejected where its tree is not that of the commit that it stands on."""
    if isinstance(opened, Rejected) or opened.statement.subject.tree == tree:
        return opened
    detail = "its tree is not the commit's"
    return Rejected(line=opened.line, record=opened.id, reason="misplaced", detail=detail)
