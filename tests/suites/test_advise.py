"""What another part would bring: a fixed cost and a share of what divides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.suites.advise import advise, fit
from gitledger.suites.cut import read_durations

S = 10**6


def test_two_points_of_a_real_suite_give_what_was_fixed_and_what_divides():
    """107 s unsharded against 67 s for a third of the tests: 47 s fixed, 60 s that divide."""
    line = fit([(60 * S, 107 * S), (20 * S, 67 * S)])
    assert (round(line.fixed_us / S), round(line.predict(15 * S) / S)) == (47, 62)


def test_one_part_more_or_less_is_told_by_the_cut_that_it_would_make():
    ids = [f"t/test_{n:02}.py::test" for n in range(12)]
    durations = read_durations(None)._replace(tests_us=dict.fromkeys(ids, 5 * S), fixed_us=0)
    found = advise(ids, 3, durations, [(60 * S, 107 * S), (20 * S, 67 * S)])
    assert {parts: round(us / S) for parts, us in found.longest_us.items()} == {2: 77, 3: 67, 4: 62}
    assert round(found.divisible_us / S) == 60


def test_parts_that_a_suite_has_no_files_for_are_left_out():
    found = advise(["a.py::t"], 1, read_durations(None), [(S, 2 * S)])
    assert list(found.longest_us) == [1]


def test_runs_that_hardly_differ_give_no_slope_of_noise():
    line = fit([(1000, 40 * S), (1100, 50 * S)])
    assert (line.slope, round(line.fixed_us / S)) == (1.0, 45)


def test_no_runs_teach_nothing():
    with pytest.raises(ValueError, match="no runs"):
        fit([])


@given(st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 10**10)), min_size=1, max_size=8))
def test_no_constant_is_below_zero(points):
    line = fit(points)
    assert line.fixed_us >= 0
    assert line.slope >= 0
    assert line.predict(0) == line.fixed_us
