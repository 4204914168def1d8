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
_TABLE = "| | what | ours | beside it | ratio | CPU | goal | |\n|---|---|--:|--:|--:|--:|--:|---|\n"


def page(figures: Sequence[Figure], *, rounds: int, today: date) -> str:
    """Return the page as Markdown."""
    rows = "".join(_row(figure) for figure in figures)
    return _HEAD.format(rounds=rounds, machine=_machine(today)) + _TABLE + rows


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
