"""From a journal to the result of its run: which test ended how, and what is missing.

Pure functions. The rules are DESIGN section 8, "Completeness": a test ends only by the reports of all its
phases, any failed report counts whatever follows it, a `rerun` is an attempt and no end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import PurePath

from gitledger.dataclass import dataclass
from gitledger.machine.child import ChildExit
from gitledger.records.bodies import Check, TestResult
from gitledger.records.decode import shown
from gitledger.records.ids import NodeId
from gitledger.records.outcomes import TestOutcome
from gitledger.suites.journal import CHECK, START, Event, Facts, Journal
from gitledger.suites.result import (
    SuiteResult,
    Tools,
    child_reasons,
    conclude,
    exit_reasons,
    outcome_reasons,
)

__all__ = ["summarise"]

_ENDS = ("passed", "failed", "skipped")
_CUT_BY_CACHE = ("lf", "stepwise")


@dataclass(slots=True)
class _Attempt:
    """One run of one test: the outcomes of its phases, and what else its reports said."""

    phases: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    wasxfail: bool = False
    is_superseded: bool = False
    duration_ns: int = 0

    def report(self, event: Event) -> None:
        if event.outcome not in _ENDS:
            self.is_superseded = True  # rerun plugins: this attempt is none that counts
        elif event.outcome == "failed":
            self.failed.append(event.when)
        if event.subtest:
            return  # a subtest that passed or was skipped says nothing of its test, and takes part in its time
        self.wasxfail |= event.wasxfail
        self.phases[event.when] = event.outcome
        self.duration_ns += event.duration_ns

    def end(self) -> tuple[TestOutcome | None, str | None]:
        """Return how this attempt ended and the phase that decided it; None where it broke off."""
        for phase in self.failed:
            if phase not in ("setup", "teardown"):
                # xdist reports the test that its worker died in with the phase `???`
                return TestOutcome.FAILED, phase if phase == "call" else None
        if self.failed:
            return TestOutcome.ERROR, self.failed[0]
        if self.phases.get("teardown") is None:
            return None, None
        if "skipped" in self.phases.values():
            return (TestOutcome.XFAILED if self.wasxfail else TestOutcome.SKIPPED), None
        if self.phases.get("setup") != "passed" or self.phases.get("call") != "passed":
            return None, None
        return (TestOutcome.XPASSED if self.wasxfail else TestOutcome.PASSED), None


@dataclass(slots=True)
class _Test:
    attempts: list[_Attempt] = field(default_factory=list)

    def take(self, event: Event) -> None:
        """Add an event; a start, or a second setup, opens an attempt."""
        if event.when == START:
            if not self.attempts or self.attempts[-1].phases:
                self.attempts.append(_Attempt())
            return
        is_second = bool(self.attempts) and event.when == "setup" and "setup" in self.attempts[-1].phases
        if not self.attempts or is_second:
            self.attempts.append(_Attempt())
        if event.when == CHECK:
            check = Check(name=event.name, passed=event.outcome == "passed", detail=event.detail)
            self.attempts[-1].checks.append(check)
        else:
            self.attempts[-1].report(event)

    def ends(self) -> list[tuple[TestOutcome | None, str | None]]:
        """Return the end of every attempt that no rerun superseded."""
        return [attempt.end() for attempt in self.attempts if not attempt.is_superseded]

    def result(self, node_id: str) -> TestResult | None:
        """Return the result by the worst of its ends, or None where it has none."""
        known = [(outcome, phase) for outcome, phase in self.ends() if outcome is not None]
        if not known:
            return None
        outcome, phase = min(known, key=lambda end: _BADNESS.index(end[0]))
        return TestResult(
            node_id=NodeId(node_id),
            outcome=outcome,
            phase=phase,
            duration_ns=self.attempts[-1].duration_ns,
            attempts=max(1, sum(bool(attempt.phases or attempt.failed) for attempt in self.attempts)),
            checks=tuple(
                check for attempt in self.attempts if not attempt.is_superseded for check in attempt.checks
            ),
        )


_BADNESS = (
    TestOutcome.FAILED,
    TestOutcome.ERROR,
    TestOutcome.XPASSED,
    TestOutcome.XFAILED,
    TestOutcome.SKIPPED,
    TestOutcome.PASSED,
)


def summarise(journal: Journal | None, end: ChildExit, *, repository: str | None = None) -> SuiteResult:
    """Return the result of a run from its journal (None: there is none) and from what the parent saw of its end.

    The child's claims are never better than its end: a signal, a time-out and a status that nothing explains
    each keep it from `passed`. `repository` is the real path of the work tree; where it is given, an ini file
    outside it does so too.
    """
    if journal is None:
        lacking = {"no-journal"} | child_reasons(end, finished=False)
        return conclude(
            reasons=lacking | exit_reasons(end.status, lacking), results=(), full_ids=(), selected_ids=()
        )
    tests = _replay(journal.events)
    chosen = journal.selected_ids
    collectors = _collector_results(journal.collectors)
    expected = set(chosen)
    strangers = [node_id for node_id in tests if node_id not in expected]
    ids = list(dict.fromkeys([*chosen, *strangers]))
    ended = {node_id: tests[node_id].result(node_id) for node_id in ids if node_id in tests}
    results = [result for node_id in ids if (result := ended.get(node_id)) is not None] + collectors
    missing = [node_id for node_id in ids if ended.get(node_id) is None]
    whole = [result.node_id for result in collectors]
    selected_ids = [*chosen, *strangers, *whole]

    reasons = (
        _collection_reasons(journal, repository)
        | _session_reasons(journal)
        | outcome_reasons(results)
        | _end_reasons(tests, chosen, whole)
        | child_reasons(end, finished=journal.is_finished)
    )
    if missing:
        reasons.add("missing-results")
    if strangers:
        reasons.add("uncollected-results")
    # The session's own status counts as well: `pytest || true` ends with 0.
    for status in (end.status, journal.exit_status):
        reasons |= exit_reasons(status, reasons) if status is not None else set()
    if not reasons and end.status != 0:
        reasons.add("exit-status")
    return conclude(
        reasons=reasons,
        results=results,
        full_ids=[*journal.table, *strangers, *whole],
        selected_ids=selected_ids,
        missing=missing,
        last_started=None if journal.is_finished else _last_started(journal.events),
        finished=journal.is_finished,
        workers=journal.workers,
        tools=_tools(journal.facts),
        rootdir=journal.facts.rootdir,
        inifile=journal.facts.inifile,
        args=journal.facts.args,
        narrowed=journal.facts.narrowed,
        notes=_notes(journal),
        observed=journal.facts.observed and not journal.is_unobserved and journal.distrust is None,
        roots=journal.facts.roots,
    )


def _replay(events: Iterable[Event]) -> dict[str, _Test]:
    tests: dict[str, _Test] = {}
    for event in events:
        test = tests.get(event.node_id)
        if test is None:
            test = tests[event.node_id] = _Test()
        test.take(event)
    return tests


def _collector_results(collectors: Iterable[tuple[str, str]]) -> list[TestResult]:
    """Return a result for each file or class that was skipped or broke as a whole; the worse where it did both."""
    found: dict[str, TestOutcome] = {}
    for outcome, node_id in collectors:
        if outcome != "skipped":
            found[node_id] = TestOutcome.ERROR
        else:
            found.setdefault(node_id, TestOutcome.SKIPPED)
    return [
        TestResult(node_id=NodeId(node_id), outcome=outcome, phase="collect") for node_id, outcome in found.items()
    ]


def _collection_reasons(journal: Journal, repository: str | None) -> set[str]:
    facts = journal.facts
    found = set()
    if not journal.is_collected:
        found.add("no-collection")
    elif not journal.selected:
        found.add("no-tests")
    if journal.is_collected and not journal.is_full:
        found.add("no-full-collection")
    if any(outcome != "skipped" for outcome, _ in journal.collectors):
        found.add("collection-error")
    if any(name in facts.narrowed for name in _CUT_BY_CACHE):
        found.add("last-failed")
    places = [place for place in (facts.inifile, facts.rootdir) if place]
    if repository and not all(PurePath(place).is_relative_to(repository) for place in places):
        found.add("config-outside")
    return found


def _session_reasons(journal: Journal) -> set[str]:
    claims = {
        "journal-mistrusted": journal.distrust is not None,
        "not-finished": not journal.is_finished,
        "worker-crashed": bool(journal.dead_workers) or any(event.when == "???" for event in journal.events),
        "workers-disagree": not journal.workers_agree,
        "internal-error": bool(journal.internal_errors),
        # every worker runs every test: one id ends once for each
        "duplicate-id": journal.facts.dist == "each",
    }
    return {reason for reason, holds in claims.items() if holds}


def _end_reasons(tests: dict[str, _Test], chosen: Sequence[str], whole: Sequence[str]) -> set[str]:
    found = set()
    if any(count > 1 for count in Counter([*chosen, *whole]).values()):
        found.add("duplicate-id")
    for test in tests.values():
        ends = {outcome for outcome, _ in test.ends()}
        if len(ends) > 1:
            found.add("conflicting-ends")
        elif len(test.ends()) > 1:
            found.add("duplicate-id")
    return found


def _last_started(events: Sequence[Event]) -> str | None:
    return next((event.node_id for event in reversed(events) if event.when == START), None)


def _tools(facts: Facts) -> Tools:
    return Tools(
        python=facts.python,
        pytest=facts.pytest,
        coverage=facts.coverage,
        xdist=facts.xdist,
        pytest_cov=facts.pytest_cov,
    )


def _notes(journal: Journal) -> list[str]:
    notes = []
    if journal.distrust is not None:
        notes.append(f"the journal can't be trusted: {journal.distrust}")
    if journal.torn:
        notes.append("the journal's last line breaks off")
    if journal.dead_workers:
        notes.append(f"workers died: {', '.join(shown(name) for name in journal.dead_workers)}")
    return notes
