"""What one part more or less would bring: the time of a part is a fixed cost and a share of what divides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import linear_regression

from gitledger.dataclass import dataclass
from gitledger.suites.cut import Durations, TooManyPartsError, cut_files, file_costs

__all__ = ["Advice", "Fit", "advise", "fit"]


_MIN_SPREAD = 0.05
"""How much the runs must differ in tests, as a share of the time that they take, to be told apart from noise."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Microseconds: `fixed_us` that every part pays, and `slope`, how long a microsecond of tests takes."""

    fixed_us: int
    slope: float

    def predict(self, tests_us: int) -> int:
        """Return how long a part with so much of tests takes as a whole."""
        return self.fixed_us + round(self.slope * tests_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """How long the longest part takes by the number of parts, in microseconds, and what that follows from."""

    fit: Fit
    divisible_us: int
    runs: int
    longest_us: dict[int, int]
    files: int = 0
    """How many files its tests lie in: there are no more parts than that."""


def fit(points: Iterable[tuple[int, int]]) -> Fit:
    """Return the line through (time of tests, time as a whole): least squares, neither constant below zero.

    Where every run had about as much of tests, no slope can be told from noise: a microsecond of tests is taken to
    take one, and the rest for fixed.
    """
    found = list(points)
    if not found:
        raise ValueError("no runs to learn from")
    tests, walls = [point[0] for point in found], [point[1] for point in found]
    if max(tests) - min(tests) > _MIN_SPREAD * sum(walls) / len(walls):
        slope, fixed = linear_regression(tests, walls)
        if fixed >= 0 and slope >= 0:
            return Fit(round(fixed), slope)
        total = sum(tests)
        if fixed < 0 and total:
            return Fit(0, sum(walls) / total)
        return Fit(round(sum(walls) / len(walls)), 0.0)
    rest = [wall - test for test, wall in found]
    if min(rest) >= 0:
        return Fit(round(sum(rest) / len(rest)), 1.0)
    return Fit(0, sum(walls) / sum(tests))


def advise(node_ids: Sequence[str], parts: int, durations: Durations, points: Sequence[tuple[int, int]]) -> Advice:
    """Return what the longest part takes in as many parts as there are, one less and one more."""
    line = fit(points)
    costs = file_costs(node_ids, durations)
    longest = {}
    for number in (parts - 1, parts, parts + 1):
        try:
            runs = cut_files(costs, number)
        except TooManyPartsError:
            continue
        longest[number] = line.predict(max(sum(cost.cost_us for cost in run) for run in runs))
    divisible = round(line.slope * sum(cost.cost_us for cost in costs))
    return Advice(fit=line, divisible_us=divisible, runs=len(points), longest_us=longest, files=len(costs))
