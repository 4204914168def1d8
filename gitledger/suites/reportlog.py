"""pytest-reportlog's JSON Lines, read as something that anybody may have written.

A line is an object that names its kind under `$report_type`. Consumers must ignore kinds that they don't know
(pytest-reportlog, README, "Format"). The log names no test that was collected and not run: the reported tests are
the collection (DESIGN section 8). A log without `SessionFinish` is that of a session which broke off.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from gitledger.errors import DecodeError
from gitledger.machine.child import ChildExit
from gitledger.records.decode import shown
from gitledger.records.limits import MAX_NODE_ID_BYTES, MAX_TESTS
from gitledger.suites.journal import Event, Facts, Journal
from gitledger.suites.recorder import summarise
from gitledger.suites.report_file import MAX_REPORT_BYTES, report_less
from gitledger.suites.result import SuiteResult

__all__ = ["read_reportlog", "summarise_reportlog"]

_MAX_DURATION_S = 10**8
_SUBTESTS = ("subtestreport",)
_HINT = "check the command's --report-log option"


def read_reportlog(data: bytes) -> Journal:
    """Return the log as a journal; its collection are the tests that it reports.

    A last line without its newline is left out: that is how a killed run ends. Raises `DecodeError` for a line
    that is no report, for something after the session's end and for more than the limits.
    """
    if len(data) > MAX_REPORT_BYTES:
        _refuse(f"{len(data)} bytes, more than the limit of {MAX_REPORT_BYTES}")
    lines = data.split(b"\n")
    journal = Journal(is_full=True)
    journal.torn = lines.pop() != b""
    for number, line in enumerate(lines, 1):
        try:
            _line(journal, line, is_first=number == 1)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            _refuse(f"line {number}: {shown(error)}")
    if journal.torn and journal.is_finished:
        _refuse("something was written after the session's end")
    journal.table = list(dict.fromkeys(event.node_id for event in journal.events))
    if len(journal.table) > MAX_TESTS:
        _refuse(f"more than {MAX_TESTS} tests")
    journal.selected = list(range(len(journal.table)))
    journal.is_collected = True
    return journal


def _refuse(text: str) -> NoReturn:
    raise DecodeError("report-malformed", f"not a pytest report log: {text}", _HINT)


def _line(journal: Journal, line: bytes, *, is_first: bool) -> None:
    item = json.loads(line.decode("utf-8"), object_pairs_hook=_unique)
    if not isinstance(item, dict):
        raise TypeError("expected an object")
    kind = item["$report_type"] if "$report_type" in item else item["_report_type"]  # the latter: of subtests
    if kind == "SessionStart":
        if not is_first:
            raise ValueError("a second session wrote here")
        journal.facts = Facts(pytest=_optional_text(item.get("pytest_version")))
    elif is_first:
        raise ValueError("no session began")
    elif kind == "SessionFinish":
        if journal.is_finished:
            raise ValueError("the session ended twice")
        journal.exit_status = _integer(item["exitstatus"])
    elif kind in ("TestReport", "CollectReport") or str(kind).lower() in _SUBTESTS:
        if journal.is_finished:
            raise ValueError("a report after the session's end")
        _report(journal, item, str(kind))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _report(journal: Journal, item: dict[str, Any], kind: str) -> None:
    node_id, outcome = _node_id(item["nodeid"]), _text(item["outcome"])
    if kind == "CollectReport":
        if outcome != "passed":
            journal.collectors.append((outcome, node_id))
        return
    journal.events.append(
        Event(
            node_id,
            _text(item["when"]),
            outcome,
            _nanoseconds(item.get("duration")),
            wasxfail="wasxfail" in item,
            subtest=kind != "TestReport",
        )
    )


def _node_id(value: Any) -> str:
    text = _text(value)
    if len(text.encode("utf-8", "surrogatepass")) > MAX_NODE_ID_BYTES:
        raise ValueError(f"a node id of more than {MAX_NODE_ID_BYTES} bytes")
    return text


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {shown(value)}")
    return value


def _optional_text(value: Any) -> str | None:
    return None if value is None else _text(value)


def _integer(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"expected an exit status, found {shown(value)}")
    return value


def _nanoseconds(value: Any) -> int:
    """Return seconds in nanoseconds; what a frozen clock or a broken one gave is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return int(value * 1e9) if 0 <= value < _MAX_DURATION_S else 0


def summarise_reportlog(data: bytes | None, end: ChildExit, *, is_fresh: bool = True) -> SuiteResult:
    """Return the result of a run that wrote a report log (None: there is none; not fresh: an earlier run's)."""
    if data is None or not is_fresh:
        return report_less("report-missing" if data is None else "report-stale", end)
    try:
        return summarise(read_reportlog(data), end)
    except DecodeError as error:
        return report_less("report-malformed", end, note=error.message)
