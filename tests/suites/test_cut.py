"""The cut: laws of partitions, the exact optimum, and durations that nobody should believe."""

from __future__ import annotations

import itertools
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.suites.cut import (
    Durations,
    FileCost,
    TooManyPartsError,
    cut_files,
    file_costs,
    files_of_part,
    read_durations,
)


def suite(seconds: list[float], *, fixed: float = 0.0) -> tuple[list[str], Durations]:
    """One test a file, in order; returns ids and durations."""
    ids = [f"tests/test_{place:03}.py::test" for place in range(len(seconds))]
    text = {"version": 1, "fixed_per_file": fixed, "tests": dict(zip(ids, seconds, strict=True))}
    return ids, read_durations(json.dumps(text).encode())


def lengths(seconds: list[float], parts: int) -> list[float]:
    ids, durations = suite(seconds)
    return [sum(cost.cost_us for cost in part) / 1e6 for part in cut_files(file_costs(ids, durations), parts)]


@pytest.mark.parametrize(
    ("seconds", "parts", "expected"),
    [
        ([1] * 6 + [30], 3, [3, 3, 30]),
        ([30] + [1] * 6, 3, [30, 3, 3]),
        ([5, 5, 5, 5, 1, 1, 1, 1], 4, [5, 5, 5, 9]),
        ([1] * 10 + [50] + [1] * 10, 3, [10, 50, 10]),
        ([2] * 6, 3, [4, 4, 4]),
        ([7], 1, [7]),
        ([3, 1, 2], 3, [3, 1, 2]),
    ],
)
def test_u09_longest_part_is_the_shortest_possible_and_the_rest_is_even(seconds, parts, expected):
    assert lengths(seconds, parts) == expected


def test_u09_more_parts_than_files_is_an_error():
    ids, durations = suite([1, 2])
    with pytest.raises(TooManyPartsError, match="3 parts of 2 files"):
        files_of_part(ids, 1, 3, durations)
    with pytest.raises(TooManyPartsError):
        cut_files([], 1)


@pytest.mark.parametrize("value", [0, float("nan"), -1, float("inf"), 1e12, "1", None, True, [], 86_401])
def test_u09_durations_that_are_none_leave_a_partition_without_empty_parts(value):
    ids = [f"t/test_{place}.py::test" for place in range(7)]
    durations = read_durations(json.dumps(dict.fromkeys(ids, value)).encode())
    assert bool(durations.warnings) is (value != 0 or isinstance(value, bool))
    parts = [files_of_part(ids, index, 3, durations) for index in (1, 2, 3)]
    assert sorted(map(len, parts)) == [2, 2, 3]


@pytest.mark.parametrize(
    "text", [b"", b"\xff", b"{", b"[1]", b"null", b'{"version": 2}', b'{"version": 1}', b"[" * 100_000]
)
def test_u11_a_damaged_file_is_said_and_the_cut_still_a_partition(text):
    durations = read_durations(text)
    assert durations.warnings
    assert durations.tests_us == {}
    assert read_durations(None).warnings == ()


def test_u11_new_tests_count_as_the_mean_of_their_file_else_of_the_suite():
    known = {"a.py::one": 2.0, "a.py::two": 4.0, "b.py::one": 9.0}
    durations = read_durations(json.dumps(known).encode())._replace(fixed_us=0)
    ids = [*known, "a.py::new", "c.py::new"]
    costs = {cost.file: cost.cost_us for cost in file_costs(ids, durations)}
    assert costs == {"a.py": 9_000_000, "b.py": 9_000_000, "c.py": 5_000_000}
    assert {cost.cost_us for cost in file_costs(["x.py::t", "y.py::t"], read_durations(None))} == {1_001_000}


def test_u11_durations_of_several_worker_counts_are_warned_of():
    text = {"version": 1, "tests": {}, "workers": [None, 4]}
    assert "xdist" in read_durations(json.dumps(text).encode()).warnings[0]


def test_stale_ids_of_tests_that_are_gone_change_nothing():
    ids, durations = suite([1, 2, 3, 4, 5])
    stale = durations._replace(tests_us={**durations.tests_us, "tests/gone.py::test": 10**9})
    assert [files_of_part(ids, i, 2, stale) for i in (1, 2)] == [
        files_of_part(ids, i, 2, durations) for i in (1, 2)
    ]


def test_files_stand_in_the_order_of_their_folders_as_pytest_collects_them():
    ids = ["t/b.py::x", "t/a/z.py::x", "t/a.py::x", "t/a-b/x.py::x", "s.py::x"]
    assert [cost.file for cost in file_costs(ids, read_durations(None))] == [
        "s.py",
        "t/a/z.py",
        "t/a-b/x.py",
        "t/a.py",
        "t/b.py",
    ]


NODE = st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("ab"), st.integers(0, 9)).map(
    lambda item: f"{item[1]}/test_{item[0]}.py::test_{item[2]}"
)
SUITES = st.sets(NODE, min_size=1, max_size=40)


@given(ids=SUITES, parts=st.integers(1, 16), seed=st.integers(), data=st.data())
def test_u10_every_order_gives_the_same_partition(ids, parts, seed, data):
    ids = sorted(ids)
    times = data.draw(st.dictionaries(st.sampled_from(ids), st.floats(), max_size=40))
    durations = read_durations(json.dumps(times).encode())
    shuffled = random.Random(seed).sample(ids, len(ids))
    files = {node_id.partition("::")[0] for node_id in ids}
    if parts > len(files):
        with pytest.raises(TooManyPartsError):
            files_of_part(shuffled, 1, parts, durations)
        return
    cut = [files_of_part(shuffled, index, parts, durations) for index in range(1, parts + 1)]
    assert all(cut)
    assert sorted(itertools.chain(*cut)) == sorted(files)
    assert cut == [files_of_part(ids, index, parts, durations) for index in range(1, parts + 1)]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=9), st.integers(1, 9))
def test_the_cut_is_the_optimum_of_all_cuts(costs, parts):
    """Against every contiguous cut there is: first the longest part, then the sum of squares."""
    if parts > len(costs):
        return
    files = [FileCost(f"{place}", 1, cost) for place, cost in enumerate(costs)]

    def score(ends):
        runs = [sum(costs[start:end]) for start, end in itertools.pairwise((0, *ends, len(costs)))]
        return max(runs), sum(run * run for run in runs)

    best = min(score(ends) for ends in itertools.combinations(range(1, len(costs)), parts - 1))
    found = cut_files(files, parts)
    assert [cost.file for part in found for cost in part] == [cost.file for cost in files]
    assert score(tuple(itertools.accumulate(map(len, found[:-1])))) == best


def test_a_large_suite_is_cut_in_seconds():
    files = [FileCost(f"{place}", 1, (place * 7919) % 1000 + 1) for place in range(2_000)]
    found = cut_files(files, 20)
    assert len(found) == 20
    assert max(sum(cost.cost_us for cost in part) for part in found) <= sum(f.cost_us for f in files) / 20 + 1001
