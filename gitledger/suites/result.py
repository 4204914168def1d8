"""How one run of one shard ended, whatever its results were read from: journal, report file or exit status.

A result is `passed` exactly when no reason speaks against it. Every reason is of the closed list here, and says
by itself how bad it is; all that apply are given at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import MappingProxyType

from gitledger.dataclass import dataclass
from gitledger.machine.child import ChildExit
from gitledger.records.bodies import TestResult, collection_digest
from gitledger.records.ids import Digest, NodeId
from gitledger.records.outcomes import Counts, Outcome, TestOutcome, worst

__all__ = [
    "REASONS",
    "SuiteResult",
    "Tools",
    "child_reasons",
    "conclude",
    "exit_reasons",
    "outcome_reasons",
]

REASONS = MappingProxyType(
    {
        # the tests
        "test-failed": Outcome.FAILED,
        "test-error": Outcome.ERROR,
        "check-failed": Outcome.FAILED,  # a comparison check, whatever its test made of it
        "duplicate-id": Outcome.FAILED,  # one id stands for two items
        "conflicting-ends": Outcome.FAILED,  # one id ended twice, differently
        # the collection
        "no-collection": Outcome.INCOMPLETE,
        "no-full-collection": Outcome.INCOMPLETE,  # what was deselected is not known
        "no-tests": Outcome.INCOMPLETE,
        "collection-error": Outcome.ERROR,
        "uncollected-results": Outcome.ERROR,  # reports of tests that were not collected
        "last-failed": Outcome.INCOMPLETE,  # what ran depends on an earlier run (--lf, --stepwise)
        "config-outside": Outcome.INCOMPLETE,  # the ini file lies outside the repository
        # the session
        "no-journal": Outcome.INCOMPLETE,
        "journal-mistrusted": Outcome.ERROR,
        "not-finished": Outcome.INCOMPLETE,
        "missing-results": Outcome.INCOMPLETE,
        "worker-crashed": Outcome.ERROR,
        "workers-disagree": Outcome.ERROR,
        "internal-error": Outcome.ERROR,
        # a report file
        "report-missing": Outcome.INCOMPLETE,
        "report-stale": Outcome.INCOMPLETE,
        "report-malformed": Outcome.ERROR,
        # the process, as its parent saw it
        "timeout": Outcome.ERROR,
        "stalled": Outcome.ERROR,
        "interrupted": Outcome.INCOMPLETE,
        "out-of-memory": Outcome.ERROR,
        "signal": Outcome.ERROR,
        "signal-at-exit": Outcome.ERROR,  # after the session had finished
        "exit-status": Outcome.ERROR,  # nothing that was reported explains it
    }
)
"""Each reason that keeps a run from `passed`, and the outcome that it stands for (the worst one counts)."""
_EXPLAIN_NO_STATUS = {
    "check-failed",
    "config-outside",
    "duplicate-id",
    "last-failed",
    "no-full-collection",
    "no-journal",
    "no-tests",
    "report-missing",
    "report-stale",
    "workers-disagree",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Versions as the child reported them; None: absent, or not known."""

    python: str | None = None
    pytest: str | None = None
    coverage: str | None = None
    xdist: str | None = None
    pytest_cov: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """How one run of one shard ended; `reasons` is empty exactly when it passed.

    `results` stand in collection order. Files and classes that were skipped or failed as a whole count as one
    test each, of phase `collect`, under their own id. `full_ids` are what was collected before any choice,
    `selected_ids` what was chosen to run, `missing` those of them without an end. `last_started` is the test
    that was under way when a session broke off. `notes` are sentences for people, already escaped. `observed`: all
    processes of the session told what they read; `roots` are the real paths that it collected from.
    """

    outcome: Outcome
    reasons: tuple[str, ...]
    results: tuple[TestResult, ...]
    counts: Counts
    full_ids: tuple[NodeId, ...]
    selected_ids: tuple[NodeId, ...]
    full_digest: Digest
    selected_digest: Digest
    missing: tuple[NodeId, ...] = ()
    last_started: NodeId | None = None
    finished: bool = False
    workers: int | None = None
    tools: Tools = Tools()
    rootdir: str | None = None
    inifile: str | None = None
    args: tuple[str, ...] | None = None
    narrowed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    observed: bool = False
    roots: tuple[str, ...] | None = None

    @property
    def full_count(self) -> int:
        """The number of tests before any choice."""
        return len(self.full_ids)


def conclude(
    *,
    reasons: Iterable[str],
    results: Sequence[TestResult],
    full_ids: Sequence[str],
    selected_ids: Sequence[str],
    missing: Sequence[str] = (),
    last_started: str | None = None,
    finished: bool = False,
    workers: int | None = None,
    tools: Tools | None = None,
    rootdir: str | None = None,
    inifile: str | None = None,
    args: tuple[str, ...] | None = None,
    narrowed: tuple[str, ...] = (),
    notes: Sequence[str] = (),
    observed: bool = False,
    roots: tuple[str, ...] | None = None,
) -> SuiteResult:
    """Return the result that follows from its parts; the reasons alone decide the outcome."""
    given = set(reasons)
    ordered = tuple(reason for reason in REASONS if reason in given)
    if len(ordered) != len(given):
        raise ValueError(f"no such reason: {sorted(given - set(ordered))}")
    return SuiteResult(
        outcome=worst(REASONS[reason] for reason in ordered) if ordered else Outcome.PASSED,
        reasons=ordered,
        results=tuple(results),
        counts=Counts.of(
            (result.outcome for result in results),
            collected=len(selected_ids),
            deselected=max(len(full_ids) - len(selected_ids), 0),
        ),
        full_ids=tuple(map(NodeId, full_ids)),
        selected_ids=tuple(map(NodeId, selected_ids)),
        full_digest=collection_digest(full_ids),
        selected_digest=collection_digest(selected_ids),
        missing=tuple(map(NodeId, missing)),
        last_started=NodeId(last_started) if last_started is not None else None,
        finished=finished,
        workers=workers,
        tools=tools or Tools(),
        rootdir=rootdir,
        inifile=inifile,
        args=args,
        narrowed=narrowed,
        notes=tuple(notes),
        observed=observed,
        roots=roots,
    )


def outcome_reasons(results: Iterable[TestResult]) -> set[str]:
    """Return the reasons that tests' own outcomes give, and comparison checks that did not hold."""
    found = set()
    for result in results:
        if result.outcome is TestOutcome.FAILED:
            found.add("test-failed")
        elif result.outcome is TestOutcome.ERROR:
            found.add("test-error")
        if result.checks and not all(check.passed for check in result.checks):
            found.add("check-failed")
    return found


def child_reasons(end: ChildExit, *, finished: bool) -> set[str]:
    """Return what the way in which the process ended says, whatever it reported before.

    A time-out, a stall or an interruption explains the signal that followed; any other signal is named, as
    `signal-at-exit` where the session had `finished`. The kernel's OOM killer is named beside them.
    """
    asked = {"timeout": end.timed_out, "stalled": end.stalled, "interrupted": end.interrupted}
    found = {reason for reason, holds in asked.items() if holds}
    if not found and end.signal is not None:
        found.add("signal-at-exit" if finished else "signal")
    if end.oom:
        found.add("out-of-memory")
    return found


def exit_reasons(status: int | None, reasons: Iterable[str]) -> set[str]:
    """Return `exit-status` where the process says "no" and nothing among `reasons` explains it.

    pytest exits with 5 where there were no tests, with 1 for failures, and otherwise for what broke off.
    """
    explained = set(reasons) - _EXPLAIN_NO_STATUS
    if status == 0 or explained or (status == 5 and "no-tests" in reasons):
        return set()
    return {"exit-status"}
