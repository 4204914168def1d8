"""The page that the figures are written to."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

from bench_tools import PEER
from figure import Figure

__all__ = ["page"]

_HEAD = """\
# Benchmarks

What git-ledger costs, as ratios taken in one run, with pytest-gpu-proof
measured beside it. `make bench` measures anew and writes this page; `tests/bench/bench.py --only c,d` a part of it.

Commands that are compared run in turns, A B A B, after one run of each that doesn't count; of each the quickest of
{rounds} runs or more is taken. *Ratio* is of wall times (or bytes), *CPU* of user and system time of the whole
process tree. A verdict is on the wall times. The peer's questions to its forge are answered from a file, so its
network costs it nothing here.

{machine}

"""
_FOOT = """
## What bounds the figures that are missed

CPU time on the machine above, of which others used the rest; it is for the proportions.

`plan` is one process of half a second. About 140 ms pass before a line of git-ledger runs: the interpreter,
`dataclasses`, click, YAML, cryptography, and libgit2 with 57 ms alone. Loading our own modules takes about 180 ms, of
which making their dataclasses is more than half (Python 3.13 makes them faster). The plan itself takes about 240 ms:
377 objects read, 200 scopes resolved, 100 signatures checked, 10,000 results decoded. Beside it git looks at 50,000
files for uncommitted edits, 100 ms. So loading alone is the time that a plan seven times faster than the peer's would
have in all.

`record` loads about as much, and asks git before and after the run how the 50,000 files stand: `git status` and two
lists of untracked files, 140 ms each time, which is what nothing less than git's own look can prove. The observed child
takes about 100 ms longer than a plain one for its keeper, its journal and the note of what it read.

A plain pytest run where git-ledger is installed makes 0.05% more calls than one where it is not (10,000 tests, by
cProfile); whatever else is measured there is the machine.
"""
_TABLE = "| | what | ours | beside it | ratio | CPU | goal | |\n|---|---|--:|--:|--:|--:|--:|---|\n"


def page(figures: Sequence[Figure], *, rounds: int, today: date) -> str:
    """Return the page as Markdown."""
    rows = "".join(_row(figure) for figure in figures)
    return _HEAD.format(rounds=rounds, machine=_machine(today)) + _TABLE + rows + _FOOT


def _row(figure: Figure) -> str:
    cpu = "" if figure.cpu_ratio is None else f"{figure.cpu_ratio:.3g}"
    goal = "" if figure.goal is None else str(figure.goal)
    cells = (
        figure.letter,
        figure.what,
        figure.ours,
        figure.other,
        f"{figure.ratio:.3g}",
        cpu,
        goal,
        figure.verdict,
    )
    return f"| {' | '.join(cells)} |\n"


def _machine(today: date) -> str:
    load = os.getloadavg()[0]
    return (
        f"Measured {today.isoformat()} on {_processor()}, {os.cpu_count()} CPUs, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}, pytest {version('pytest')}, "
        f"git-ledger {version('git-ledger')}, {PEER.replace('==', ' ')}; load average at the end {load:.1f}."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
