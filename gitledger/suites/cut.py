"""How a suite is cut into parts: contiguous runs of whole files, the longest part as short as it can be.

A pure function of the collection, the number of parts and the durations, and of nothing else: every job and every
retry cuts alike, in whatever order a runner shuffled. This one file is copied beside the plugin into environments
that have no git-ledger, so it needs nothing but the standard library (Python 3.8).

Times are integers of microseconds, so that the optimum is exact.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = [
    "DEFAULT_FIXED_US",
    "MAX_DURATION_US",
    "Durations",
    "FileCost",
    "TooManyPartsError",
    "cut_files",
    "file_costs",
    "file_of",
    "files_of_part",
    "read_durations",
]

DEFAULT_FIXED_US = 1_000
"""What a file costs beside its tests, where the durations say nothing else."""
MAX_DURATION_US = 86_400 * 10**6
"""A test that took longer than a day is taken for a broken clock."""
_UNKNOWN_US = 10**6
"""What a test counts where no duration of the suite is known: all are equal then."""


class TooManyPartsError(ValueError):
    """A split into more parts than the collection has files."""


class FileCost(NamedTuple):
    """One file of a collection: how many tests it has, and what it is expected to take, in microseconds."""

    file: str
    tests: int
    cost_us: int


class Durations(NamedTuple):
    """What is known of tests' durations by node id, and of a file's cost; `warnings` say what was ignored."""

    tests_us: Mapping[str, int]
    fixed_us: int = DEFAULT_FIXED_US
    warnings: Sequence[str] = ()


def read_durations(text: bytes | None) -> Durations:
    """Return the durations that a file holds (None: there is none); whatever is no duration is ignored, and said.

    Seconds by node id, either under `tests` of an object with a `version`, or as pytest-split writes them: an
    object of nothing else. Raises nothing: a damaged file costs balance, never a partition.
    """
    if text is None:
        return Durations({})
    try:
        found = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        return Durations({}, warnings=("the durations are not JSON and are ignored",))
    if not isinstance(found, dict):
        return Durations({}, warnings=("the durations are no JSON object and are ignored",))
    if "version" in found and found["version"] != 1:
        return Durations({}, warnings=("the durations are of another version and are ignored",))
    tests = found.get("tests") if "version" in found else found
    if not isinstance(tests, dict):
        return Durations({}, warnings=("the durations name no tests and are ignored",))
    known = {node_id: microseconds(seconds) for node_id, seconds in tests.items()}
    good = {node_id: value for node_id, value in known.items() if value is not None}
    fixed = microseconds(found.get("fixed_per_file")) if "version" in found else None
    warnings = []
    if len(good) < len(known):
        ignored = len(known) - len(good)
        warnings.append(
            f"ignored {ignored} duration{'' if ignored == 1 else 's'}: no number, negative or longer than a day"
        )
    if "version" in found and len(set(map(str, found.get("workers") or ()))) > 1:
        warnings.append("the durations were taken under different numbers of xdist workers")
    return Durations(good, DEFAULT_FIXED_US if fixed is None else fixed, tuple(warnings))


def microseconds(seconds: Any) -> int | None:
    """Return a duration in microseconds, or None for what is none: NaN, negative, absurd, or no number."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return None
    if not math.isfinite(seconds) or not 0 <= seconds * 10**6 <= MAX_DURATION_US:
        return None
    return round(seconds * 10**6)


def file_of(node_id: str) -> str:
    """Return the file that a node id begins with."""
    return node_id.partition("::")[0]


def file_costs(node_ids: Iterable[str], durations: Durations) -> list[FileCost]:
    """Return the files of a collection with their costs, in canonical order: by the components of their paths.

    That is the order in which pytest collects folders. A test without a duration counts as the mean of its file's
    known tests, else of the suite's.
    """
    files: dict[str, list[int | None]] = {}
    for node_id in node_ids:
        files.setdefault(file_of(node_id), []).append(durations.tests_us.get(node_id))
    everything = [known for tests in files.values() for known in tests if known is not None]
    suite_mean = sum(everything) // len(everything) if everything else _UNKNOWN_US
    costs = []
    for file, tests in sorted(files.items(), key=lambda item: item[0].split("/")):
        known = [duration for duration in tests if duration is not None]
        mean = sum(known) // len(known) if known else suite_mean
        cost = durations.fixed_us + sum(known) + mean * (len(tests) - len(known))
        costs.append(FileCost(file, len(tests), cost))
    return costs


def cut_files(costs: Sequence[FileCost], total: int) -> list[list[FileCost]]:
    """Return `total` contiguous runs of files, none of them empty.

    The longest is as short as any such cut allows; among those cuts the most even one is taken (the least sum of
    squares), and among equals the one that cuts earliest. Raises `TooManyPartsError` where files don't suffice.
    """
    if not 1 <= total <= len(costs):
        raise TooManyPartsError(
            f"{total} parts of {len(costs)} file{'' if len(costs) == 1 else 's'}: a part would be empty"
        )
    sums = [0]
    for cost in costs:
        sums.append(sums[-1] + cost.cost_us)
    ends = _most_even(sums, total, _shortest_longest([cost.cost_us for cost in costs], total))
    return [list(costs[start:end]) for start, end in zip([0] + ends, ends)]  # noqa: B905, RUF005 - Python 3.8


def files_of_part(node_ids: Iterable[str], index: int, total: int, durations: Durations) -> frozenset[str]:
    """Return the files of part `index` (from one) of `total`; raises `TooManyPartsError`."""
    parts = cut_files(file_costs(node_ids, durations), total)
    return frozenset(cost.file for cost in parts[index - 1])


def _shortest_longest(costs: Sequence[int], total: int) -> int:
    """Return the least length that the longest of `total` runs can have: the least limit that they can keep."""

    def fits(limit: int) -> bool:
        runs, length = 1, 0
        for cost in costs:
            length += cost
            if length > limit:
                runs, length = runs + 1, cost
        return runs <= total

    low, high = max(costs), sum(costs)
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _most_even(sums: Sequence[int], total: int, limit: int) -> list[int]:
    """Return the ends of `total` runs, none longer than `limit`, whose lengths have the least sum of squares.

    The cost of a run is a convex function of its length, so the best last cut never moves back as the end moves
    on; each row is filled by halving (Galil and Park, "Dynamic programming with convexity, concavity and
    sparsity", 1992), in total * n * log n steps.
    """
    count, everything = len(sums) - 1, sums[-1]
    penalty = everything * everything + 1

    def cost(start: int, end: int) -> int:
        length = sums[end] - sums[start]
        return length * length + (penalty * (length - limit) if length > limit else 0)

    best = [cost(0, end) if end else 0 for end in range(count + 1)]
    cuts: list[list[int]] = []
    for runs in range(2, total + 1):
        row, cut = [0] * (count + 1), [0] * (count + 1)
        todo = [(runs, count, runs - 1, count - 1)]
        while todo:
            first, last, low, high = todo.pop()
            if first > last:
                continue
            end = (first + last) // 2
            row[end], cut[end] = min(
                (best[start] + cost(start, end), start) for start in range(low, min(high, end - 1) + 1)
            )
            todo.append((first, end - 1, low, cut[end]))
            todo.append((end + 1, last, cut[end], high))
        best = row
        cuts.append(cut)
    ends = [count]
    for cut in reversed(cuts):
        ends.append(cut[ends[-1]])
    return ends[::-1]
