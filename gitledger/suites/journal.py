"""Reads the journal that the plugin wrote inside the child, as something that anybody may have written.

One line is one event, an array whose first item names it:

    ["journal", 1, NONCE, {facts}]   the first line, and only there
    ["ids", [ID, ...]]               adds to the table of node ids; tests are named by their place in it
    ["selected", null | [PLACE…]]    what was chosen to run: all that the table holds so far, or these places
    ["collected", N]                 the choice is complete: N tests
    ["full", N]                      the table is complete: N tests before any choice
    ["collect", OUTCOME, ID]         a file or class that failed to be collected, or was skipped as a whole
    ["workers", N]                   xdist: that many workers were asked for
    ["worker", NAME, SAME]           xdist: this worker's collection, and whether it is that of the first one
    ["down", NAME]                   xdist: this worker died
    ["unobserved", NAME]             xdist: what this worker read was not told
    ["s", TEST]                      a test starts; TEST is a place in the table, or an id that is not in it
    ["r", TEST, WHEN, OUTCOME, NANOSECONDS, FLAGS]   a report; flags `x` (wasxfail), `s` (of a subtest)
    ["c", TEST, NAME, PASSED, DETAIL]   a comparison check of the test
    ["internal-error"]               pytest's own failure
    ["again"]                        the same process started another session afterwards
    ["finish", EXIT_STATUS]          the session ended
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple, NoReturn

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.records.decode import byte_length, shown
from gitledger.records.limits import MAX_NODE_ID_BYTES, MAX_TESTS, MAX_TEXT_BYTES

__all__ = [
    "CHECK",
    "MAX_JOURNAL_BYTES",
    "MAX_JOURNAL_LINE_BYTES",
    "START",
    "Event",
    "Facts",
    "Journal",
    "JournalReading",
    "read_journal",
]

MAX_JOURNAL_BYTES = 512 << 20
"""A whole journal."""
MAX_JOURNAL_LINE_BYTES = 1 << 20
"""One line of it."""
_VERSION = 1
_MAX_COLLECTORS = 100_000
_MAX_WORKERS = 10_000
_MAX_CHECKS = 100_000

START = "start"
"""The `when` of the event that a test started."""
CHECK = "check"
"""The `when` of a comparison check; `outcome` is then `passed` or `failed`."""


class Event(NamedTuple):
    """A start, a check, or one report of one phase of a test; durations in nanoseconds."""

    node_id: str
    when: str
    outcome: str = ""
    duration_ns: int = 0
    wasxfail: bool = False
    subtest: bool = False
    name: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the child said of itself; versions are None where the tool is absent."""

    python: str | None = None
    pytest: str | None = None
    coverage: str | None = None
    xdist: str | None = None
    pytest_cov: str | None = None
    rootdir: str | None = None
    inifile: str | None = None
    args: tuple[str, ...] | None = None
    roots: tuple[str, ...] | None = None
    observed: bool = False
    dist: str = "no"
    narrowed: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Journal:
    """What a journal says, as far as it could be read.

    `distrust` says why nothing green may follow from it (None: nothing speaks against it); what stands before
    the fault is kept, since a failure that was seen stays one. `torn`: the last line breaks off.
    """

    facts: Facts = field(default_factory=Facts)
    table: list[str] = field(default_factory=list)
    selected: list[int] | None = None
    is_collected: bool = False
    is_full: bool = False
    collectors: list[tuple[str, str]] = field(default_factory=list)
    workers: int | None = None
    workers_agree: bool = True
    is_unobserved: bool = False
    dead_workers: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    internal_errors: int = 0
    exit_status: int | None = None
    torn: bool = False
    distrust: str | None = None

    @property
    def is_finished(self) -> bool:
        """Tell whether the session was seen to finish."""
        return self.exit_status is not None

    @property
    def selected_ids(self) -> list[str]:
        """The ids that were chosen to run, in the order of collection; an id that stands twice is there twice."""
        return [self.table[place] for place in self.selected or ()]


class _MalformedError(ValueError):
    """A line is not what the plugin writes."""


def read_journal(data: bytes, nonce: str) -> Journal:
    """Return what the journal says, with `distrust` set where it isn't the one journal of one session.

    A last line without its newline is left out and reported as `torn`: that is how a killed run ends. Raises
    `DecodeError` for more than `MAX_JOURNAL_BYTES`, and nothing else.
    """
    if len(data) > MAX_JOURNAL_BYTES:
        raise DecodeError(
            "journal-too-large", f"a journal of {len(data)} bytes exceeds the limit", "split the shard"
        )
    return JournalReading(nonce).rest(data)


class JournalReading:
    """One pass over a journal's lines, up to the first that can't stand where it stands."""

    def __init__(self, nonce: str) -> None:
        self.journal = Journal()
        self._nonce = nonce
        self._lines = 0
        self._checks = 0
        self._steps: dict[str, Callable[..., None]] = {
            "journal": self._journal,
            "ids": self._ids,
            "selected": self._selected,
            "collected": self._collected,
            "full": self._full,
            "collect": self._collect,
            "workers": self._workers,
            "worker": self._worker,
            "down": self._down,
            "unobserved": self._unobserved,
            "s": self._start,
            "r": self._report,
            "c": self._check,
            "internal-error": self._internal_error,
            "again": self._again,
            "finish": self._finish,
        }

    def lines(self, whole: bytes) -> bool:
        """Take whole lines, each with its newline; False where one can't stand, which `journal.distrust` names."""
        for line in whole.split(b"\n")[:-1]:
            try:
                self.line(line)
            except (ValueError, RecursionError) as error:
                what = str(error) if isinstance(error, _MalformedError) else f"not a journal's line: {shown(line)}"
                self.journal.distrust = f"line {self._lines}: {what}"
                return False
        return True

    def rest(self, data: bytes) -> Journal:
        """Take what is left, the end included, and return the journal."""
        end = data.rfind(b"\n") + 1
        self.journal.torn = end != len(data)
        self.lines(data[:end])
        self.close()
        return self.journal

    def line(self, line: bytes) -> None:
        """Take one line without its newline; raises `ValueError`."""
        self._lines += 1
        if len(line) > MAX_JOURNAL_LINE_BYTES:
            _malformed(f"{len(line)} bytes, more than the limit of {MAX_JOURNAL_LINE_BYTES}")
        event = _DECODER.decode(line.decode("ascii"))
        match event:
            case [str(word), *items] if word in self._steps:
                pass
            case _:
                _malformed(f"an unknown event {shown(event)}")
        if (self._lines == 1) is not (word == "journal"):
            _malformed("a second session wrote here" if word == "journal" else "no session began")
        if self.journal.is_finished and word != "again":
            _malformed("something was written after the session's end")
        try:
            self._steps[word](*items)
        except TypeError as error:
            raise _MalformedError(f"a malformed event {shown(event)}") from error

    def close(self) -> None:
        """Say what only the whole of it shows."""
        journal = self.journal
        if journal.distrust is None and journal.torn and journal.is_finished:
            journal.distrust = "something was written after the session's end"
        if journal.selected is not None and any(place >= len(journal.table) for place in journal.selected):
            journal.distrust = journal.distrust or "a test was chosen that was not collected"
            journal.selected = [place for place in journal.selected if place < len(journal.table)]

    def _journal(self, version: object, nonce: object, facts: object) -> None:
        if version != _VERSION or isinstance(version, bool):
            _malformed(f"journal version {shown(version)}, expected {_VERSION}")
        if nonce != self._nonce:
            _malformed("the nonce of another run")
        self.journal.facts = _facts(facts)

    def _ids(self, ids: object) -> None:
        found = [_node_id(item) for item in _list(ids)]
        self.journal.table += found
        if len(self.journal.table) > MAX_TESTS:
            _malformed(f"more than {MAX_TESTS} tests")

    def _selected(self, places: object) -> None:
        journal = self.journal
        if journal.is_collected:
            _malformed("a choice of tests after the collection was complete")
        if places is None:
            found = list(range(len(journal.table)))
        else:
            found = [_integer(item, MAX_TESTS) for item in _list(places)]
        journal.selected = (journal.selected or []) + found
        if len(journal.selected) > MAX_TESTS:
            _malformed(f"more than {MAX_TESTS} tests")

    def _collected(self, count: object) -> None:
        journal = self.journal
        journal.selected = journal.selected or []
        if journal.is_collected or _integer(count, MAX_TESTS) != len(journal.selected):
            _malformed("the count of the chosen tests is not theirs")
        journal.is_collected = True

    def _full(self, count: object) -> None:
        journal = self.journal
        if journal.is_full or _integer(count, MAX_TESTS) != len(journal.table):
            _malformed("the count of the collected tests is not theirs")
        journal.is_full = True

    def _collect(self, outcome: object, node_id: object) -> None:
        if len(self.journal.collectors) >= _MAX_COLLECTORS:
            _malformed(f"more than {_MAX_COLLECTORS} collectors")
        self.journal.collectors.append((_text(outcome), _node_id(node_id)))

    def _workers(self, count: object) -> None:
        self.journal.workers = _integer(count, _MAX_WORKERS)

    def _worker(self, name: object, same: object) -> None:
        _text(name)
        if same is not True:
            self.journal.workers_agree = False

    def _down(self, name: object) -> None:
        if len(self.journal.dead_workers) >= _MAX_WORKERS:
            _malformed("too many workers died")
        self.journal.dead_workers.append(_text(name))

    def _unobserved(self, name: object) -> None:
        _text(name)
        self.journal.is_unobserved = True

    def _start(self, test: object) -> None:
        self.journal.events.append(Event(self._test(test), START))

    def _report(self, test: object, when: object, outcome: object, duration: object, flags: object) -> None:
        marks = _text(flags)
        event = Event(
            self._test(test), _text(when), _text(outcome), _integer(duration), "x" in marks, "s" in marks
        )
        if event.when in (START, CHECK):
            _malformed("a report of no phase")
        self.journal.events.append(event)

    def _check(self, test: object, name: object, passed: object, detail: object) -> None:
        self._checks += 1
        if self._checks > _MAX_CHECKS:
            _malformed(f"more than {_MAX_CHECKS} comparison checks")
        if not isinstance(passed, bool):
            _malformed(f"a check neither passed nor failed: {shown(passed)}")
        self.journal.events.append(
            Event(
                self._test(test),
                CHECK,
                "passed" if passed else "failed",
                name=_small_text(name),
                detail=_small_text(detail),
            )
        )

    def _test(self, test: object) -> str:
        if type(test) is int:
            if 0 <= test < len(self.journal.table):
                return self.journal.table[test]
            _malformed("a test that is not in the table")
        return _node_id(test)

    def _internal_error(self) -> None:
        self.journal.internal_errors += 1

    def _again(self) -> None:
        _malformed("the same process started a second session")

    def _finish(self, status: object) -> None:
        self.journal.exit_status = _integer(status)


def _malformed(text: str) -> NoReturn:
    raise _MalformedError(text)


def _no_number(text: str) -> NoReturn:
    _malformed(f"{shown(text)} is no number of a journal")


_DECODER = json.JSONDecoder(parse_float=_no_number, parse_constant=_no_number)


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT_BYTES:
        _malformed(f"expected a word, found {shown(value)}")
    return value


def _small_text(value: object) -> str:
    """Return a text that fits a body, whatever its characters."""
    if not isinstance(value, str) or byte_length(value) > MAX_TEXT_BYTES:
        _malformed(f"expected a text of at most {MAX_TEXT_BYTES} bytes, found {shown(value)}")
    return value


def _node_id(value: object) -> str:
    if not isinstance(value, str):
        _malformed(f"expected a node id, found {shown(value)}")
    if len(value) > MAX_NODE_ID_BYTES or len(value.encode("utf-8", "surrogatepass")) > MAX_NODE_ID_BYTES:
        _malformed(f"a node id of more than {MAX_NODE_ID_BYTES} bytes")
    return value


def _integer(value: object, high: int = (1 << 63) - 1) -> int:
    if type(value) is not int or not 0 <= value <= high:
        _malformed(f"expected an integer from 0 to {high}, found {shown(value)}")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        _malformed(f"expected a list, found {shown(value)}")
    return value


def _facts(value: object) -> Facts:
    if not isinstance(value, dict):
        _malformed(f"expected facts, found {shown(value)}")

    def text(name: str) -> str | None:
        found = value.get(name)
        return None if found is None else _text(found)

    args, roots = value.get("args"), value.get("roots")
    return Facts(
        python=text("python"),
        pytest=text("pytest"),
        coverage=text("coverage"),
        xdist=text("xdist"),
        pytest_cov=text("pytest-cov"),
        rootdir=text("rootdir"),
        inifile=text("inifile"),
        args=None if args is None else tuple(str(item) for item in _list(args)),
        roots=None if roots is None else tuple(_text(item) for item in _list(roots)),
        observed=value.get("observed") is True,
        dist=text("dist") or "no",
        narrowed=tuple(_text(item) for item in _list(value.get("narrowed", []))),
    )
