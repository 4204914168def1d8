"""The page that the figures are written to."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

from bench_tools import PEER
from figure import Figure

__all__ = ["page"]

_HEAD = """\
# Benchmarks

What git-ledger costs, as ratios taken in one run, with pytest-gpu-proof
measured beside it. `make bench` measures anew and writes this page; `tests/bench/bench.py --only c,d` measures those
rows and leaves the others as they are. *On* is the day on which a row was measured, *load* the load average then.

Commands that are compared run in turns, A B A B, after one run of each that doesn't count; of each the quickest of
five runs or more is taken. *Ratio* is of wall times (or bytes), *CPU* of user and system time of the whole
process tree. A verdict is on the wall times. The peer's questions to its forge are answered from a file, so its
network costs it nothing here.

{machine}

"""
_FOOT_HEADING = "## What bounds the figures that are missed"
_TABLE = (
    "| | what | ours | beside it | ratio | CPU | goal | | on | load |\n|---|---|--:|--:|--:|--:|--:|---|---|--:|\n"
)
_FULL_RUN = re.compile(r"^Measured (\S+) on .* load average at the end ([0-9.]+)\.$", re.MULTILINE)
"""What an older page says of all of its rows."""


def page(figures: Sequence[Figure], *, today: date, before: str = "") -> str:
    """Return the page as Markdown: these figures, and of the page as it was `before` the rows of other letters.

    Of a page that was measured on another processor nothing is kept but what is written by hand.
    """
    measured = {figure.letter for figure in figures}
    load = os.getloadavg()[0]
    rows = [(figure.letter, _row(figure, today.isoformat(), f"{load:.1f}")) for figure in figures]
    kept = _rows_of(before) if _processor() in before else ()
    rows += [(letter, row) for letter, row in kept if letter not in measured]
    rows.sort(key=lambda row: row[0])
    return _HEAD.format(machine=_machine()) + _TABLE + "".join(row for _, row in rows) + _foot_of(before)


def _rows_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield the rows of a page, each with its letter."""
    old = _FULL_RUN.search(text)
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells[0]) == 1 and cells[0].isalpha():
            if old is not None:
                line = f"{line.rstrip()} {old[1]} | {old[2]} |"
            yield cells[0], line + "\n"


def _foot_of(text: str) -> str:
    """Return what a page says of its figures, which is written by hand."""
    _, heading, rest = text.partition(_FOOT_HEADING)
    return f"\n{heading}{rest}" if heading else ""


def _row(figure: Figure, day: str, load: str) -> str:
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
        day,
        load,
    )
    return f"| {' | '.join(cells)} |\n"


def _machine() -> str:
    return (
        f"The machine: {_processor()}, {os.cpu_count()} CPUs, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}, pytest {version('pytest')}, "
        f"git-ledger {version('git-ledger')}, {PEER.replace('==', ' ')}."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
