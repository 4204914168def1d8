"""CTRF, the Common Test Report Format (JSON; ctrf.io), read as something that anybody may have written.

A test is known by its file, its suite and its name. The reported tests are the collection (DESIGN section 8), and
the summary must be the sum of the tests: a report that was cut down to what passed is no report.
"""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import Any, NoReturn

from gitledger.errors import DecodeError
from gitledger.machine.child import ChildExit
from gitledger.records.bodies import TestResult
from gitledger.records.decode import load_json, shown
from gitledger.records.ids import NodeId
from gitledger.records.limits import MAX_NODE_ID_BYTES, MAX_TESTS
from gitledger.records.outcomes import TestOutcome
from gitledger.suites.report_file import MAX_REPORT_BYTES, report_less, summarise_reported
from gitledger.suites.result import SuiteResult
from gitledger.wording import counted

__all__ = ["read_ctrf", "summarise_ctrf"]

_OUTCOMES = {
    "passed": TestOutcome.PASSED,
    "failed": TestOutcome.FAILED,
    "skipped": TestOutcome.SKIPPED,
    "pending": TestOutcome.SKIPPED,
    "other": TestOutcome.ERROR,  # whatever it is, it is not passed
}
_TODO = ("todo",)
"""What runners call a test that is planned and has no body (Jest, Vitest): it did not run and was not meant to."""
_MAX_MS = 10**11
_MAX_ATTEMPTS = 10_000


def read_ctrf(data: bytes, *, root: PurePath | None = None) -> tuple[TestResult, ...]:
    """Return what a report says, in its order; files below `root` are named from there.

    Reporters write `filePath` as the machine has it: an id must be the same test in every clone.

    Raises `DecodeError` for anything that is no such report: a byte order mark, duplicate keys, another format, an
    unknown status, over-long ids, counts that are not those of the tests.
    """
    if len(data) > MAX_REPORT_BYTES:
        _refuse(f"{len(data)} bytes, more than the limit of {MAX_REPORT_BYTES}")
    try:
        document = load_json(data, limit=MAX_REPORT_BYTES)
    except DecodeError as error:
        _refuse(error.message)
    if not isinstance(document, dict) or document.get("reportFormat", "CTRF") != "CTRF":
        _refuse("reportFormat is not CTRF")
    match document.get("results"):
        case {"tool": {"name": str()}, "summary": dict(summary), "tests": list(tests)}:
            pass
        case _:
            _refuse("results needs tool.name, summary and tests")
    if len(tests) > MAX_TESTS:
        _refuse(f"more than {MAX_TESTS} tests")
    results = tuple(_test(place, item, root) for place, item in enumerate(tests))
    _check_summary(summary, tests)
    return results


def _refuse(text: str) -> NoReturn:
    raise DecodeError("report-malformed", f"not a CTRF report: {text}", "check the command's report option")


def _test(place: int, item: Any, root: PurePath | None) -> TestResult:
    match item:
        case {"name": str(name), "status": str(status)} if status in _OUTCOMES:
            pass
        case _:
            _refuse(f"results.tests[{place}]: expected a name and a status, found {shown(item)}")
    suite = item.get("suite") or ()
    words = [suite] if isinstance(suite, str) else suite
    file = item.get("filePath") or ""
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in (*words, file)):
        _refuse(f"results.tests[{place}]: suite and filePath are texts")
    node_id = "::".join(filter(None, [_from_root(file, root), *words, name]))
    if len(node_id.encode("utf-8", "surrogatepass")) > MAX_NODE_ID_BYTES:
        _refuse(f"results.tests[{place}]: a name of more than {MAX_NODE_ID_BYTES} bytes")
    retries = item.get("retries") or 0
    if type(retries) is not int or not 0 <= retries < _MAX_ATTEMPTS:
        _refuse(f"results.tests[{place}].retries: expected a number, found {shown(retries)}")
    is_todo = status == "other" and item.get("rawStatus") in _TODO
    outcome = TestOutcome.SKIPPED if is_todo else _OUTCOMES[status]
    return TestResult(
        node_id=NodeId(node_id),
        outcome=outcome,
        phase="call" if outcome is TestOutcome.FAILED else None,
        duration_ns=_nanoseconds(item.get("duration")),
        attempts=1 + retries,
    )


def _from_root(file: str, root: PurePath | None) -> str:
    path = PurePath(file)
    if root is None or not path.is_relative_to(root):
        return file
    return path.relative_to(root).as_posix()


def _nanoseconds(value: Any) -> int:
    """Return milliseconds in nanoseconds; what is no time in range is 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return int(value * 10**6) if 0 <= value < _MAX_MS else 0


def _check_summary(summary: dict[str, Any], tests: list[Any]) -> None:
    counts = {status: sum(item["status"] == status for item in tests) for status in _OUTCOMES}
    counts["tests"] = len(tests)
    for name, count in counts.items():
        claimed = summary.get(name)
        if type(claimed) is not int or claimed != count:
            _refuse(f"results.summary.{name}: {shown(claimed)}, where {counted(count, 'test')} said so")


def summarise_ctrf(
    data: bytes | None, end: ChildExit, *, is_fresh: bool = True, root: PurePath | None = None
) -> SuiteResult:
    """Return the result of a run that wrote a CTRF report (None: there is none; not fresh: an earlier run's)."""
    if data is None or not is_fresh:
        return report_less("report-missing" if data is None else "report-stale", end)
    try:
        return summarise_reported(read_ctrf(data, root=root), end)
    except DecodeError as error:
        return report_less("report-malformed", end, note=error.message)
