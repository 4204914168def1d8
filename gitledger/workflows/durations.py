"""Durations of tests from the ledger's own records: what splits are cut by, and what another part would bring."""

from __future__ import annotations

import json

from gitledger.config.schema import DURATIONS_PATH
from gitledger.dataclass import dataclass
from gitledger.records.ids import CommitId, ShardKey
from gitledger.records.outcomes import TestOutcome
from gitledger.suites.cut import read_durations
from gitledger.verdict.field import Candidate
from gitledger.verdict.results import ResultFault, load_results
from gitledger.verdict.union import form_union
from gitledger.workflows.gather import Case, gather
from gitledger.workflows.session import Session

__all__ = ["Measured", "Run", "durations_of", "encode_durations", "runs_of"]

_RAN = frozenset({TestOutcome.PASSED, TestOutcome.FAILED, TestOutcome.XFAILED, TestOutcome.XPASSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One recorded run of a shard: how long it took as a whole, and each test of it, in microseconds."""

    key: ShardKey
    wall_us: int
    tests_us: dict[str, int]
    workers: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Durations by test, the ledger's over the tracked ones; `workers`: under how many they were taken."""

    tests_us: dict[str, int]
    fixed_us: int
    workers: tuple[int | None, ...]
    refreshed: int


def runs_of(case: Case) -> list[Run]:
    """Return the complete runs of every declared shard that a case holds, nearest and newest first."""
    found = []
    for field in form_union(case.situation).fields:
        for candidate in field.candidates:
            run = _run(case, candidate)
            if run is not None:
                found.append(run)
    return found


def _run(case: Case, candidate: Candidate) -> Run | None:
    receipt = candidate.held.receipt
    if not receipt.session.finished or not receipt.session.witnessed:
        return None
    results = load_results(candidate.held, case.situation.facts)
    if isinstance(results, ResultFault):
        return None
    tests = {str(item.node_id): item.duration_ns // 1000 for item in results if item.outcome in _RAN}
    wall = receipt.session.ended_at - receipt.session.started_at
    return Run(
        key=receipt.key,
        wall_us=int(wall.total_seconds() * 10**6),
        tests_us=tests,
        workers=receipt.session.workers,
    )


def durations_of(session: Session, target: CommitId, *, policy_from: str | None = None) -> Measured:
    """Return the newest duration of every test that the ledger knows, over those that are tracked already.

    Skipped tests took no time that says anything. A test that several runs hold counts as in the nearest of them.
    """
    case = gather(session, target, policy_from=policy_from)
    known = read_durations(session.repo.file_at(target, DURATIONS_PATH))
    fresh: dict[str, int] = {}
    workers: set[int | None] = set()
    for run in runs_of(case):
        new = {node_id: value for node_id, value in run.tests_us.items() if node_id not in fresh}
        if new:
            workers.add(run.workers)
            fresh.update(new)
    return Measured(
        tests_us={**known.tests_us, **fresh},
        fixed_us=known.fixed_us,
        workers=tuple(sorted(workers, key=lambda count: count or 0)),
        refreshed=len(fresh),
    )


def encode_durations(found: Measured) -> bytes:
    """Return the text of the tracked file: seconds by node id, sorted, so that changes read well."""
    document = {
        "version": 1,
        "fixed_per_file": found.fixed_us / 10**6,
        "workers": list(found.workers),
        "tests": {node_id: value / 10**6 for node_id, value in sorted(found.tests_us.items())},
    }
    return (json.dumps(document, indent=1) + "\n").encode("utf-8")
