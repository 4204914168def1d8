"""The journal's reader takes nothing for granted, and the rules that turn events into results."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.errors import DecodeError
from gitledger.records.outcomes import Outcome
from gitledger.suites import journal as journal_module
from gitledger.suites.journal import read_journal
from gitledger.suites.recorder import summarise
from gitledger.suites.result import REASONS, conclude

NONCE = "0123456789abcdef"
HEAD = ["journal", 1, NONCE, {"python": "3.12.1", "dist": "no", "narrowed": []}]
GREEN = [
    HEAD,
    ["ids", ["a", "b"]],
    ["selected", None],
    ["collected", 2],
    ["full", 2],
    *(
        event
        for test in (0, 1)
        for event in (
            ["s", test],
            ["r", test, "setup", "passed", 1, ""],
            ["r", test, "call", "passed", 1, ""],
            ["r", test, "teardown", "passed", 1, ""],
        )
    ),
    ["finish", 0],
]


def lines(events) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def judge(data: bytes, end, **seen):
    return summarise(read_journal(data, NONCE), end(**seen))


def test_the_green_journal_is_green(end):
    result = judge(lines(GREEN), end)
    assert (result.outcome, result.reasons) == ("passed", ())
    assert result.results[0].duration_ns == 3


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        ({"status": 1}, "exit-status"),
        ({"status": 5}, "exit-status"),
        ({"status": None}, "exit-status"),
        ({"status": None, "signal": 11}, "signal-at-exit"),
        ({"status": 0, "timed_out": True}, "timeout"),
        ({"status": 0, "stalled": True}, "stalled"),
        ({"status": 0, "interrupted": True}, "interrupted"),
        ({"status": None, "signal": 9, "interrupted": True}, "interrupted"),
        ({"status": 0, "oom": True}, "out-of-memory"),
    ],
)
def test_claims_are_never_better_than_what_the_parent_saw(end, seen, reason):
    assert judge(lines(GREEN), end, **seen).reasons == (reason,)


# A start is for people: without it the reports still tell how the test ended.
@pytest.mark.parametrize("place", [place for place, event in enumerate(GREEN) if event[0] != "s"])
def test_without_any_one_of_its_events_a_journal_is_not_green(end, place):
    result = judge(lines(GREEN[:place] + GREEN[place + 1 :]), end)
    assert result.outcome != "passed"
    assert result.reasons


@given(st.data())
def test_a_journal_that_breaks_off_anywhere_is_not_green(end, data):
    whole = lines(GREEN)
    length = data.draw(st.integers(0, len(whole) - 1))
    read = read_journal(whole[:length], NONCE)
    assert read.torn is (length > 0 and whole[length - 1 : length] != b"\n")
    assert summarise(read, end()).outcome != "passed"


BAD_EVENTS = [
    ["unknown"],
    [],
    {},
    None,
    "s",
    ["s"],
    ["s", 2],
    ["s", -1],
    ["s", True],
    ["s", None],
    ["s", 0, 1],
    ["r", 0, "call", "passed", -1, ""],
    ["r", 0, "call", "passed", 1.5, ""],
    ["r", 0, "start", "passed", 1, ""],
    ["r", 0, "call", None, 1, ""],
    ["r", 0, "call", "passed", 1],
    ["ids", "ab"],
    ["ids", [1]],
    ["ids", ["x" * 70_000]],
    ["selected", [0]],
    ["selected", ["a"]],
    ["collected", 2],
    ["full", 2],
    ["full", 3],
    ["workers", -1],
    ["journal", 1, NONCE, {}],
    ["again"],
    ["finish", -1],
    ["finish", None],
]


@pytest.mark.parametrize("event", BAD_EVENTS, ids=range(len(BAD_EVENTS)))
def test_an_event_that_cant_stand_there_is_mistrusted_and_what_was_before_it_is_kept(end, event):
    events = [*GREEN[:9], event, *GREEN[9:]]
    read = read_journal(lines(events), NONCE)
    assert read.distrust is not None
    assert read.distrust.startswith("line 10: ")
    result = summarise(read, end())
    assert "journal-mistrusted" in result.reasons
    assert result.outcome == "error"
    assert [item.node_id for item in result.results] == ["a"]


@pytest.mark.parametrize(
    "line",
    [
        b'["s",0',
        b"\xff",
        b'["s",NaN]',
        b'["s",1e5]',
        b"[" * 100_000,
        b'["s",' + b"9" * 5000 + b"]",
        b"",
        b"\x00" * 100,
    ],
    ids=range(8),
)
def test_a_line_that_is_no_json_is_mistrusted(end, line):
    data = lines(GREEN[:9]) + line + b"\n" + lines(GREEN[9:])
    assert "journal-mistrusted" in judge(data, end).reasons


@pytest.mark.parametrize("tail", [b"x", b'["s",0]\n', lines(GREEN), b"\n"])
def test_nothing_stands_after_the_end(end, tail):
    assert "journal-mistrusted" in judge(lines(GREEN) + tail, end).reasons


@pytest.mark.parametrize(
    "head",
    [
        ["journal", 1, "another nonce", {}],
        ["journal", 1, None, {}],
        ["journal", 2, NONCE, {}],
        ["journal", True, NONCE, {}],
        ["journal", 1, NONCE, []],
        ["journal", 1, NONCE, {"python": 3}],
        ["journal", 1, NONCE, {"narrowed": "lf"}],
    ],
    ids=range(7),
)
def test_another_runs_journal_says_nothing(end, head):
    result = judge(lines([head, *GREEN[1:]]), end)
    assert result.results == ()
    assert "journal-mistrusted" in result.reasons


def test_an_empty_journal_is_not_green(end):
    result = judge(b"", end)
    assert result.outcome == "incomplete"
    assert {"no-collection", "not-finished"} <= set(result.reasons)


def test_a_choice_of_what_was_never_collected_is_mistrusted(end):
    events = [HEAD, ["ids", ["a"]], ["selected", [0, 7]], ["collected", 2], ["full", 1], ["finish", 0]]
    assert "journal-mistrusted" in judge(lines(events), end).reasons


def test_a_journal_over_its_limit_is_refused(monkeypatch):
    monkeypatch.setattr(journal_module, "MAX_JOURNAL_BYTES", 10)
    with pytest.raises(DecodeError):
        read_journal(lines(GREEN), NONCE)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
words = st.sampled_from(sorted({event[0] for event in GREEN} | {"collect", "workers", "worker", "down", "again"}))


@given(
    st.lists(
        st.binary(max_size=40) | st.tuples(words, json_values).map(lambda e: json.dumps([e[0], e[1]]).encode())
    )
)
def test_any_bytes_are_read_without_another_error(end, parts):
    data = lines([HEAD]) + b"\n".join(parts)
    summarise(read_journal(data, NONCE), end())


def attempt(*reports, test=0):
    return [["s", test], *(["r", test, *report] for report in reports)]


SETUP = ("setup", "passed", 1, "")
CALL = ("call", "passed", 1, "")
TEARDOWN = ("teardown", "passed", 1, "")
GOOD = attempt(SETUP, CALL, TEARDOWN)
FAILED = attempt(SETUP, ("call", "failed", 1, ""), TEARDOWN)
RERUN = attempt(SETUP, ("call", "rerun", 1, ""), TEARDOWN)


@pytest.mark.parametrize(
    ("events", "status", "outcome", "reasons"),
    [
        (GOOD, 0, "passed", ()),
        (FAILED, 1, "failed", ("test-failed",)),
        (FAILED, 0, "failed", ("test-failed",)),
        ([*RERUN, *GOOD], 0, "passed", ()),
        ([*RERUN, *RERUN, *FAILED], 1, "failed", ("test-failed",)),
        (RERUN, 0, "incomplete", ("missing-results",)),
        ([*FAILED, *GOOD], 0, "failed", ("test-failed", "conflicting-ends")),
        ([*GOOD, *FAILED], 1, "failed", ("test-failed", "conflicting-ends")),
        ([*GOOD, *GOOD], 0, "failed", ("duplicate-id",)),
        (attempt(SETUP, CALL), 0, "incomplete", ("missing-results",)),
        (attempt(CALL, TEARDOWN), 0, "incomplete", ("missing-results",)),
        (attempt(SETUP, TEARDOWN), 0, "incomplete", ("missing-results",)),
        (attempt(SETUP, ("call", "passed", 1, "s"), TEARDOWN), 0, "incomplete", ("missing-results",)),
        (attempt(SETUP, ("call", "failed", 1, "s"), CALL, TEARDOWN), 0, "failed", ("test-failed",)),
        (attempt(("???", "failed", 0, "")), 1, "failed", ("test-failed", "worker-crashed")),
        ([*GOOD, ["s", "stranger"]], 0, "error", ("uncollected-results", "missing-results")),
        ([*GOOD, *attempt(SETUP, CALL, TEARDOWN, test="stranger")], 0, "error", ("uncollected-results",)),
        ([*GOOD, ["down", "gw0"]], 0, "error", ("worker-crashed",)),
        ([*GOOD, ["worker", "gw1", False]], 0, "error", ("workers-disagree",)),
        ([*GOOD, ["internal-error"]], 0, "error", ("internal-error",)),
        ([*GOOD, ["collect", "skipped", "m.py"]], 0, "passed", ()),
        ([*GOOD, ["collect", "failed", "m.py"]], 0, "error", ("test-error", "collection-error")),
        ([*GOOD, ["collect", "odd", "m.py"]], 0, "error", ("test-error", "collection-error")),
        ([*GOOD, ["collect", "skipped", "a"]], 0, "failed", ("duplicate-id",)),
    ],
)
def test_the_rules_of_completeness(end, events, status, outcome, reasons):
    head = [HEAD, ["ids", ["a"]], ["selected", None], ["collected", 1], ["full", 1]]
    result = judge(lines([*head, *events, ["finish", status]]), end, status=status)
    assert (result.outcome, result.reasons) == (outcome, reasons)
    assert result.counts.ended <= result.counts.collected


def test_every_worker_running_every_test_is_no_pass_even_where_one_alone_told(end):
    head = [
        [*HEAD[:3], {**HEAD[3], "dist": "each"}],
        ["ids", ["a"]],
        ["selected", None],
        ["collected", 1],
        ["full", 1],
    ]
    assert judge(lines([*head, *GOOD, ["finish", 0]]), end).reasons == ("duplicate-id",)


def test_a_result_has_no_reasons_exactly_when_it_passed():
    for reason, outcome in REASONS.items():
        assert outcome is not Outcome.PASSED
        result = conclude(reasons=[reason], results=(), full_ids=(), selected_ids=())
        assert (result.outcome, result.reasons) == (outcome, (reason,))
    with pytest.raises(ValueError, match="no such reason"):
        conclude(reasons=["other"], results=(), full_ids=(), selected_ids=())


def test_eight_times_the_tests_take_about_eight_times_the_time(end):
    """10,000 tests once took 3 s, by a set that was built anew for each of them: eight times took sixty-four."""

    def spent(count: int) -> float:
        phases = [
            ["r", place, phase, "passed", 1, ""]
            for place in range(count)
            for phase in ("setup", "call", "teardown")
        ]
        starts = [["s", place] for place in range(count)]
        ids = [f"tests/test_a.py::test_{place}" for place in range(count)]
        data = lines(
            [
                HEAD,
                ["ids", ids],
                ["selected", None],
                ["collected", count],
                ["full", count],
                *starts,
                *phases,
                ["finish", 0],
            ]
        )
        least = 1e9
        for _ in range(3):
            began = time.process_time()
            assert judge(data, end).outcome == "passed"
            least = min(least, time.process_time() - began)
        return least

    assert spent(16_000) < 24 * spent(2_000)
