"""What a command or a call costs: wall time, and the CPU time of its whole process tree.

Whatever is compared runs in turns, A B A B, after one run of each that doesn't count, and the least cost of each
is kept: on a machine that others use as well, the least is what they disturbed least.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Cost", "in_turns", "run", "timed"]


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on the wall, and seconds of CPU (user and system, children included)."""

    wall_s: float
    cpu_s: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.wall_s - other.wall_s, self.cpu_s - other.cpu_s)

    def __truediv__(self, count: int) -> Cost:
        return Cost(self.wall_s / count, self.cpu_s / count)


def run(argv: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str], expect: int = 0) -> Cost:
    """Return the cost of one command, its children and theirs; fails where it ends otherwise than expected."""
    words = [str(word) for word in argv]
    log = cwd.parent / f"{cwd.name}.log"
    with log.open("wb") as sink:
        began = time.perf_counter()
        child = subprocess.Popen(words, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != expect:
        raise SystemExit(f"{' '.join(words)} -> {child.returncode}\n{log.read_text(errors='replace')[-3000:]}")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime)


def timed(call: Callable[[], object]) -> Cost:
    """Return the cost of one call in this process, its threads included."""
    began, cpu_began = time.perf_counter(), time.process_time()
    call()
    return Cost(time.perf_counter() - began, time.process_time() - cpu_began)


def in_turns(tasks: Mapping[str, Callable[[], Cost]], rounds: int) -> dict[str, Cost]:
    """Return the least cost of each task; they run in turns, and their first turn doesn't count."""
    seen: dict[str, list[Cost]] = {name: [] for name in tasks}
    for number in range(rounds + 1):
        for name, task in tasks.items():
            cost = task()
            if number:
                seen[name].append(cost)
    return {
        name: Cost(min(cost.wall_s for cost in costs), min(cost.cpu_s for cost in costs))
        for name, costs in seen.items()
    }
