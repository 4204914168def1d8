"""Our cut against pytest-split's, over random suites: how long the longest part is.

    PYTHONPATH=. python tests/bench/split_cut.py [SUITES]

Run on demand, in an environment that has pytest-split; nothing is written. Three kinds of suites:

* one test a file: both tools cut at the same places, so ours can never be longer;
* many tests a file, theirs rounded to whole files: what users who need files together get;
* many tests a file, theirs free to cut inside of files: what whole files cost.

The last two once more against `least_duration`, which deals tests out in no order: what contiguous runs cost.
"""

from __future__ import annotations

import random
import sys
from collections import namedtuple

from pytest_split.algorithms import DurationBasedChunksAlgorithm, LeastDurationAlgorithm

from gitledger.suites.cut import Durations, file_costs, file_of, files_of_part

Item = namedtuple("Item", "nodeid")


def make(rng: random.Random, *, per_file: int) -> tuple[list[str], dict[str, float], int]:
    """Return ids, seconds and a number of parts: long-tailed times, as suites have them."""
    files = rng.randint(4, 80)
    shape = rng.choice(("flat", "exponential", "pareto"))
    seconds = {}
    for file in range(files):
        for test in range(rng.randint(1, per_file)):
            time = {
                "flat": rng.uniform(0.1, 10),
                "exponential": rng.expovariate(1),
                "pareto": min(rng.paretovariate(1.2) / 10, 300),
            }[shape]
            seconds[f"t/test_{file:03}.py::test_{test:03}"] = round(time, 6)
    return list(seconds), seconds, rng.randint(2, min(files, 12))


def ours(ids: list[str], seconds: dict[str, float], parts: int) -> tuple[float, int]:
    """Return our longest part in seconds, and how many parts are empty."""
    durations = Durations({name: round(value * 10**6) for name, value in seconds.items()})
    lengths = []
    for index in range(1, parts + 1):
        files = files_of_part(ids, index, parts, durations)
        lengths.append(sum(seconds[name] for name in ids if file_of(name) in files))
    assert len(file_costs(ids, durations)) >= parts
    return max(lengths), sum(not length for length in lengths)


def theirs(ids: list[str], seconds: dict[str, float], parts: int, *, dealt: bool = False) -> tuple[float, int]:
    """Return pytest-split's longest part in seconds, and how many parts are empty."""
    algorithm = LeastDurationAlgorithm() if dealt else DurationBasedChunksAlgorithm()
    groups = algorithm(parts, [Item(name) for name in ids], seconds)
    lengths = [sum(seconds[item.nodeid] for item in group.selected) for group in groups]
    return max(lengths), sum(not group.selected for group in groups)


def by_file(ids: list[str], seconds: dict[str, float]) -> tuple[list[str], dict[str, float]]:
    """Return the suite with each file as one test."""
    whole: dict[str, float] = {}
    for name in ids:
        file = f"{file_of(name)}::all"
        whole[file] = whole.get(file, 0.0) + seconds[name]
    return list(whole), whole


def compare(name: str, suites: int, *, per_file: int, whole: bool, dealt: bool = False) -> None:
    """Print one kind of suites."""
    rng = random.Random(20260131)
    gains, longer, empty, worst = [], 0, 0, 0.0
    for _ in range(suites):
        ids, seconds, parts = make(rng, per_file=per_file)
        mine, none = ours(ids, seconds, parts)
        assert none == 0, "an empty part"
        other, gaps = theirs(*(by_file(ids, seconds) if whole else (ids, seconds)), parts, dealt=dealt)
        gains.append(1 - mine / other)
        longer += mine > other * (1 + 1e-9)
        empty += gaps > 0
        worst = max(worst, mine / other)
    mean = 100 * sum(gains) / len(gains)
    print(
        f"{name}: {suites} suites; ours on average {abs(mean):.1f}% {'shorter' if mean >= 0 else 'longer'}, "
        f"at best {100 * max(gains):.0f}% shorter; longer in {longer} (worst {100 * (worst - 1):+.2f}%); "
        f"theirs with an empty part in {empty}, ours in 0"
    )


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    compare("one test a file", number, per_file=1, whole=False)
    compare("many tests a file, whole files in both", number, per_file=30, whole=True)
    compare("many tests a file, theirs inside files too", number, per_file=30, whole=False)
    compare(
        "many tests a file, whole files in both, theirs dealt out", number, per_file=30, whole=True, dealt=True
    )
    compare("many tests a file, theirs dealt out inside files too", number, per_file=30, whole=False, dealt=True)
