"""What people read of coverage: integers, the percentage that was compared, the threshold, and what was left out."""

from __future__ import annotations

import pytest

from gitledger.records.ids import ShardKey
from gitledger.records.merged import CoverageClaim
from gitledger.records.threshold import meets
from gitledger.report.coverage import coverage_lines
from gitledger.verdict.coverage import CoverageUnion
from gitledger.verdict.finding import blocking, note


def line(covered: int, total: int, threshold: str | None, precision: int = 0, *, branch: bool = False) -> str:
    passed = None if threshold is None else meets(covered, total, threshold, precision)
    claim = CoverageClaim(covered=covered, total=total, threshold=threshold, precision=precision, passed=passed)
    (found,) = coverage_lines(CoverageUnion(claim=claim, branch=branch), color=False)
    return found.removeprefix("coverage: ")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ((3, 4, "75"), "3/4 lines, 75%, threshold 75: passed"),
        ((545, 1000, "55"), "545/1000 lines, 54% (rounded from 54.50…), threshold 55: failed"),
        ((5451, 10000, "55"), "5451/10000 lines, 55% (rounded from 54.51…), threshold 55: passed"),
        ((5451, 10000, "55", 1), "5451/10000 lines, 54.5% (rounded from 54.510…), threshold 55: failed"),
        ((556, 1000, "55.9"), "556/1000 lines, 55.6%, threshold 55.9: failed"),
        ((99995, 100000, "100"), "99995/100000 lines, 99.99…%, threshold 100: failed"),
        ((99995, 100000, "99"), "99995/100000 lines, 99.99…%, threshold 99: passed"),
        ((1, 1000, None), "1/1000 lines, 0.10…%, no threshold"),
        ((0, 0, "1"), "0/0 lines, nothing measured, threshold 1: failed"),
    ],
)
def test_c04_the_line_shows_what_the_rule_compares_and_never_a_round_hundred_or_nought(given, text):
    assert line(*given) == text


def test_branches_are_said_to_be_in_the_numbers():
    assert line(2, 3, None, branch=True).startswith("2/3 lines and branches, ")


def test_c06_what_was_dropped_from_carried_fragments_is_named_by_shard_and_the_names_are_escaped():
    claim = CoverageClaim(covered=1, total=2, threshold=None, precision=0, passed=None)
    many = tuple(f"src/{number:02}.py" for number in range(12))
    dropped = ((ShardKey("a"), ("src/\x1b[31m.py",)), (ShardKey("b"), many))
    _, first, second = coverage_lines(CoverageUnion(claim=claim, dropped=dropped), color=False)
    assert first == "  a is carried, 1 file dropped as changed since: src/\\x1b[31m.py"
    assert second.startswith("  b is carried, 12 files dropped as changed since: src/00.py, ")
    assert second.endswith("src/09.py and 2 more")


def test_c01_a_refusal_shows_no_number_and_says_by_which_faults():
    fault = blocking("coverage-missing", "8", "a", expected="one", found="none")
    found = coverage_lines(CoverageUnion(faults=(fault, fault)), color=False)
    assert found == ["coverage: refused, there is no number to believe (coverage-missing)"]


def test_a_threshold_that_was_held_against_nothing_is_said_to_have_been():
    unjudged = note("coverage-unjudged", "8", "coverage", expected="all", found="not judged, nothing stands for a")
    (found,) = coverage_lines(CoverageUnion(notes=(unjudged,)), color=False)
    assert found == "coverage: not judged, there is no number yet (coverage-unjudged)"


def test_where_nobody_asked_nothing_is_said_unless_some_shards_measured():
    assert coverage_lines(CoverageUnion(), color=False) == []
    missing = note("coverage-missing", "8", "a", expected="one", found="none")
    (found,) = coverage_lines(CoverageUnion(notes=(missing,)), color=False)
    assert found == "coverage: no threshold, and not every shard is measured"
