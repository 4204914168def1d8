"""JUnit XML in the dialects of its writers, read as something that anybody may have written.

pytest, gotestsum, Gradle and cargo-nextest write what Jenkins reads: `failure`, `error` and `skipped` in a test.
Gradle, nextest and Surefire tell earlier attempts by `flakyFailure`, `rerunFailure` and their kin. CTest says by
an attribute `status` how a test ended, and calls one that it could not start skipped; that is no skip here. Others
say it by `status` or `result` alone: such a word counts as an element does, and an unknown one is an error.

The node id can't be recovered from it: a test is known by its class name and name. For a report file the
reported tests are the collection (DESIGN section 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import NoReturn
from xml.parsers import expat

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.machine.child import ChildExit
from gitledger.records.bodies import TestResult
from gitledger.records.decode import shown
from gitledger.records.ids import NodeId
from gitledger.records.limits import MAX_NODE_ID_BYTES, MAX_TESTS
from gitledger.records.outcomes import TestOutcome
from gitledger.suites.junit_claims import Claims, word_outcome
from gitledger.suites.report_file import MAX_REPORT_BYTES
from gitledger.suites.result import (
    SuiteResult,
    child_reasons,
    conclude,
    exit_reasons,
    outcome_reasons,
)

__all__ = ["JunitReport", "read_junit", "summarise_junit"]

_MAX_DEPTH = 32
_MAX_DURATION_S = 10**8
_SUITES = ("testsuites", "testsuite")
_BAD = {"failure": TestOutcome.FAILED, "error": TestOutcome.ERROR}
_ENDS = frozenset({*_BAD, "skipped"})
_ATTEMPTS = frozenset({"flakyFailure", "flakyError", "rerunFailure", "rerunError"})
"""Elements that stand for an earlier attempt of the test (Maven Surefire, "Rerun failing tests")."""
_CTEST_SKIPS = ("SKIP_RETURN_CODE=", "SKIP_REGULAR_EXPRESSION_MATCHED", "Disabled")
"""What CTest says of tests that were meant to be skipped (cmCTestTestHandler.cxx, CompletionStatus)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JunitReport:
    """The tests of a report, one result an id, and the ids that stand for more than one test.

    `strange` are words of `status` and `result` that made their tests errors.
    """

    results: tuple[TestResult, ...]
    duplicates: tuple[NodeId, ...]
    strange: tuple[str, ...] = ()


@dataclass(slots=True)
class _Case:
    classname: str
    name: str
    duration_ns: int
    status: str = ""
    attempts: int = 1
    skips: int = 0
    marks: set[TestOutcome] = field(default_factory=set)

    @property
    def outcome(self) -> TestOutcome:
        for outcome in (TestOutcome.FAILED, TestOutcome.ERROR, TestOutcome.XFAILED, TestOutcome.SKIPPED):
            if outcome in self.marks:
                return outcome
        return TestOutcome.PASSED


def read_junit(*documents: bytes) -> JunitReport:
    """Return what a JUnit XML report says; Gradle and Surefire write one document for each class.

    A failure or error under a (class name, name) makes that id bad, whatever else stands under it: pytest
    writes two cases for a failed call whose teardown broke as well. An id that stands twice without one is a
    duplicate. Raises `DecodeError` for anything that is no such report: malformed XML, a document type or
    entity declaration, over-long ids, more tests than the limit; and for what would be green and isn't: counts of
    failures that no case explains, more tests or skips counted than held, a failure outside of every case.
    """
    cases: list[_Case] = []
    strange: list[str] = []
    for data in documents:
        reading = _read_document(data, room=MAX_TESTS - len(cases))
        cases += reading.cases
        strange += reading.strange
    return _report(cases, strange)


def _read_document(data: bytes, *, room: int) -> _Reading:
    if len(data) > MAX_REPORT_BYTES:
        _refuse(f"{len(data)} bytes, more than the limit of {MAX_REPORT_BYTES}")
    reading = _Reading(room)
    parser = expat.ParserCreate(namespace_separator=None)
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.StartDoctypeDeclHandler = _no_doctype
    parser.EntityDeclHandler = _no_doctype
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise DecodeError("report-malformed", f"not a JUnit report: {error}", _HINT) from error
    if not reading.is_report:
        _refuse("no testsuite in it")
    if not any(case.marks & set(_BAD.values()) for case in reading.cases):
        if reading.claimed_bad:
            _refuse("it counts failures that none of its tests shows")
        for fault in (*reading.loose, *reading.claims.faults):
            _refuse(fault)
    return reading


_HINT = "check the command's report option"


def _refuse(text: str) -> NoReturn:
    raise DecodeError("report-malformed", f"not a JUnit report: {text}", _HINT)


def _no_doctype(*_: object) -> None:
    _refuse("it declares a document type")


class _Reading:
    """Collects the cases, `room` at most, while the parser goes through the document."""

    def __init__(self, room: int) -> None:
        self._room = room
        self.cases: list[_Case] = []
        self.is_report = False
        self.claimed_bad = 0
        self.claims = Claims()
        self.loose: list[str] = []
        self.strange: list[str] = []
        self._path: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        parent = self._path[-1] if self._path else ""
        if len(self._path) >= _MAX_DEPTH:
            _refuse(f"nested more than {_MAX_DEPTH} deep")
        self._path.append(name)
        if name in _SUITES:
            self._suite(name, attributes)
        elif name == "testcase":
            self._case(parent, attributes)
        elif parent == "testcase":
            self._mark(name, attributes)
        elif name in _ENDS:
            self.loose.append(f"<{name}> stands in <{parent}>, outside of its tests")

    def end(self, name: str) -> None:
        self._path.pop()
        if name in _SUITES:
            self.claims.close()
        elif name == "testcase" and self._path and self._path[-1] == "testsuite":
            case = self.cases[-1]
            self.claims.case(max(case.skips, TestOutcome.SKIPPED in case.marks))

    def _suite(self, name: str, attributes: dict[str, str]) -> None:
        self.is_report = self.is_report or len(self._path) == 1 or name == "testsuite"
        self.claims.open(attributes)
        for attribute in ("failures", "errors"):
            text = attributes.get(attribute, "0")
            # What is no plain number is taken as a claim: it must not hide one.
            self.claimed_bad += not (text.isascii() and text.strip().strip("0") == "")

    def _case(self, parent: str, attributes: dict[str, str]) -> None:
        if parent != "testsuite":
            _refuse("a testcase outside a testsuite")
        if "name" not in attributes:
            _refuse("a testcase without a name")
        case = _Case(
            attributes.get("classname", ""),
            attributes["name"],
            _duration_ns(attributes.get("time", "0")),
            status=attributes.get("status", ""),
        )
        for word in (case.status, attributes.get("result", "")):
            self._word(case, word)
        if len(_node_id(case).encode("utf-8", "surrogatepass")) > MAX_NODE_ID_BYTES:
            _refuse(f"a name of more than {MAX_NODE_ID_BYTES} bytes")
        if len(self.cases) >= self._room:
            _refuse(f"more than {MAX_TESTS} tests")
        self.cases.append(case)

    def _word(self, case: _Case, word: str) -> None:
        outcome = word_outcome(word)
        if outcome is None:
            return
        case.marks.add(outcome)
        if outcome is TestOutcome.ERROR:
            self.strange.append(word)

    def _mark(self, name: str, attributes: dict[str, str]) -> None:
        case = self.cases[-1]
        case.skips += name == "skipped"
        marks = case.marks
        if name in _BAD:
            marks.add(_BAD[name])
        elif name in _ATTEMPTS:
            case.attempts += 1
        elif name == "skipped" and case.status == "notrun":
            meant = attributes.get("message", "").startswith(_CTEST_SKIPS)
            marks.add(TestOutcome.SKIPPED if meant else TestOutcome.ERROR)
        elif name == "skipped":
            is_xfail = attributes.get("type") == "pytest.xfail"
            marks.add(TestOutcome.XFAILED if is_xfail else TestOutcome.SKIPPED)


def _duration_ns(text: str) -> int:
    """Return a case's `time` (seconds) in nanoseconds; what is no time in range is 0."""
    try:
        seconds = float(text)
    except ValueError:
        return 0
    return int(seconds * 1e9) if 0 <= seconds < _MAX_DURATION_S else 0


def _node_id(case: _Case) -> str:
    return f"{case.classname}::{case.name}" if case.classname else case.name


def _report(cases: list[_Case], strange: list[str]) -> JunitReport:
    grouped: dict[str, list[_Case]] = {}
    for case in cases:
        grouped.setdefault(_node_id(case), []).append(case)
    results = []
    duplicates = []
    for name, group in grouped.items():
        merged = _Case(group[0].classname, group[0].name, sum(case.duration_ns for case in group))
        merged.marks = set().union(*(case.marks for case in group))
        merged.attempts = max(case.attempts for case in group)
        is_one_test = len({(case.classname, case.name) for case in group}) == 1
        if len(group) > 1 and not (is_one_test and merged.outcome.is_bad):
            duplicates.append(NodeId(name))
        results.append(_result(name, merged))
    return JunitReport(results=tuple(results), duplicates=tuple(duplicates), strange=tuple(dict.fromkeys(strange)))


def _result(name: str, case: _Case) -> TestResult:
    # pytest names a file that can't be collected without a class name, and writes an error under it.
    phase = "call" if case.outcome is TestOutcome.FAILED else None
    return TestResult(
        node_id=NodeId(name),
        outcome=case.outcome,
        phase=phase,
        duration_ns=case.duration_ns,
        attempts=case.attempts,
    )


def summarise_junit(data: bytes | Sequence[bytes] | None, end: ChildExit, *, is_fresh: bool = True) -> SuiteResult:
    """Return the result of a run that wrote a JUnit report, of one document or several.

    `data` is None where there is no such file, `is_fresh` False where the run didn't write it (a report that
    an earlier run left behind says nothing of this one). No tests in it is no pass.
    """
    notes: list[str] = []
    report = JunitReport(results=(), duplicates=())
    reasons = set()
    if data is None:
        reasons.add("report-missing")
    elif not is_fresh:
        reasons.add("report-stale")
    else:
        try:
            report = read_junit(*([data] if isinstance(data, bytes) else data))
            reasons |= set() if report.results else {"no-tests"}
        except DecodeError as error:
            reasons.add("report-malformed")
            notes.append(error.message)
    finished = bool(report.results)
    if report.duplicates:
        reasons.add("duplicate-id")
        notes.append(f"one id stands for several tests: {shown(report.duplicates[0])}")
    if report.strange:
        notes.append(f"unknown words for how tests ended: {', '.join(map(shown, report.strange[:3]))}")
    reasons |= outcome_reasons(report.results) | child_reasons(end, finished=finished)
    reasons |= exit_reasons(end.status, reasons)
    ids = [result.node_id for result in report.results]
    return conclude(
        reasons=reasons, results=report.results, full_ids=ids, selected_ids=ids, finished=finished, notes=notes
    )
