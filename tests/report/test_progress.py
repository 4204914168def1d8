"""How far a run has come, in words: spans, what is left, a line within a terminal's width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.report.progress import Under, clock_text, last_lines, left_s, progress_line, status_line


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0s"), (0.44, "0.4s"), (42, "42s"), (59.6, "1m00s"), (185, "3m05s"), (3600, "1h00m"), (7449, "2h04m")],
)
def test_spans_are_said_as_people_say_them(seconds, text):
    assert clock_text(seconds) == text


def test_what_is_left_counts_what_runs_and_what_waits_over_all_slots():
    under = [Under(name="a", seconds=60, estimate_s=100), Under(name="b", seconds=500, estimate_s=100)]
    assert left_s(under, [100, 60], slots=2, seen=[]) == 100, "(40 + 0 + 100 + 60) / 2"
    assert left_s(under, [], slots=2, seen=[]) == 40, "nobody helps the last one"


def test_a_shard_that_nobody_timed_counts_as_the_mean_and_nothing_known_is_no_estimate():
    assert left_s([], [None, 30, 90], slots=1, seen=[]) == 180
    assert left_s([], [None], slots=1, seen=[20, 40]) == 30
    assert left_s([Under(name="a", seconds=5)], [None], slots=1, seen=[]) is None


def test_the_line_names_what_runs_and_what_is_silent():
    under = [
        Under(name="l1@a100", seconds=192, quiet_s=90),
        *(Under(name=f"s{number}", seconds=1) for number in range(4)),
    ]
    line = progress_line(under, done=12, total=40, red=1, left=840)
    assert line == (
        "12 of 40 done; 1 not green; running l1@a100 (3m12s, no output for 1m30s), s0 (1.0s), s1 (1.0s), "
        "s2 (1.0s) and 1 more; about 14m00s left"
    )


@given(st.integers(1, 300), st.integers(0, 50))
def test_a_terminals_line_never_wraps(width, count):
    under = [Under(name=f"shard-{number}", seconds=1e6) for number in range(count)]
    line = status_line(under, done=1, total=2, red=0, left=1.0, width=width)
    assert len(line) <= max(1, width - 1)
    assert "\n" not in line


def test_the_end_of_a_log_is_what_says_something_and_drives_no_terminal():
    assert last_lines("one\n\n\x1b[31mtwo\x1b[0m\n   \nthree  \n\n", count=2) == ["\\x1b[31mtwo\\x1b[0m", "three"]
