"""C04: one rule for one threshold, on exact integers, against coverage's own where floats are exact enough."""

from __future__ import annotations

import pytest
from coverage.results import should_fail_under
from hypothesis import given
from hypothesis import strategies as st

from gitledger.records.threshold import meets, parse_threshold


@pytest.mark.parametrize(
    ("covered", "total", "threshold", "precision", "enough"),
    [
        (545, 1000, "55", 0, False),  # 54.5 is rounded to even, 54
        (5451, 10000, "55", 0, True),
        (5451, 10000, "55", 1, False),
        (5451, 10000, "55.0", 0, True),  # trailing zeros ask for no decimals
        (556, 1000, "55.9", 0, False),  # the threshold's decimals count
        (559, 1000, "55.9", 0, True),
        (99995, 100000, "100", 0, False),
        (99995, 100000, "100", 9, False),
        (100000, 100000, "100", 0, True),
        (99995, 100000, "99.999", 0, False),
        (99995, 100000, "99.99", 0, True),
        (0, 0, "1", 0, False),  # coverage says 100
        (0, 10, "0.1", 0, False),
        (1, 3, "33.333333333333333333", 0, True),
        (1, 3, "33.333333333333333334", 0, False),
        (10**18 - 1, 10**18, "100", 0, False),
    ],
)
def test_c04_the_rule_at_its_edges(covered, total, threshold, precision, enough):
    assert meets(covered, total, threshold, precision) is enough


@given(st.integers(0, 5000), st.integers(1, 5000), st.integers(1, 10000), st.integers(0, 2))
def test_c04_the_rule_is_coverages_own_away_from_what_floats_cannot_hold(covered, total, hundredths, precision):
    covered = min(covered, total)
    if (2 * 100 * 100 * covered) % total == 0 and (100 * 100 * covered) % total:
        return  # exactly between two numbers of two decimals: there a float is rounded by its noise
    threshold = f"{hundredths / 100:g}"
    percent = 100.0 * covered / total
    assert meets(covered, total, threshold, precision) is not should_fail_under(
        percent, float(threshold), precision
    )


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "100.1", "nan", "inf", "1e999999", "x", "0.0", "1" + "0" * 30, "1e-30"]
)
def test_what_is_no_threshold_is_refused(text):
    with pytest.raises(ValueError, match="expected"):
        parse_threshold(text)
