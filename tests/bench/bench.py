"""`make bench`: every figure of the goals, as a ratio with the peer beside it. Writes docs/benchmarks.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import figures_judging
import figures_merging
import figures_real
import figures_recording
import figures_running
import figures_scale
import figures_store
from bench_tools import ROOT, Tools, make_tools
from figure import Figure
from page import page

MEASURES: dict[str, Callable[[Tools, int], Iterator[Figure]]] = {
    "a": figures_recording.overhead,
    "b": figures_recording.added,
    "c": figures_judging.plan,
    "d": figures_judging.verify,
    "e": figures_recording.bytes_stored,
    "f": figures_store.append,
    "g": figures_store.start_up,
    "h": figures_recording.installed,
    "i": figures_judging.signature,
    "j": figures_merging.merge,
    "m": figures_real.observed,
    "k": figures_scale.storing,
    "l": figures_scale.judging,
    "n": figures_running.running,
}


FEWEST_ROUNDS = 5
"""Of fewer no page is written: one disturbed run would be too much of it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="LETTERS", default="", help=f"of {','.join(MEASURES)}: these rows alone")
    parser.add_argument(
        "--rounds",
        type=int,
        default=FEWEST_ROUNDS,
        help=f"runs of each command ({FEWEST_ROUNDS}); fewer write no page",
    )
    parser.add_argument("--quick", action="store_true", help="two runs of each command; writes no page")
    options = parser.parse_args()
    letters = [letter for letter in options.only.replace(",", "") if letter.strip()] or list(MEASURES)
    unknown = [letter for letter in letters if letter not in MEASURES]
    if unknown:
        parser.error(f"--only: no figure {', '.join(unknown)}")
    rounds = 2 if options.quick else options.rounds
    tools = make_tools(ROOT / ".bench")
    figures = []
    for letter in letters:
        for figure in MEASURES[letter](tools, rounds):
            print(
                f"({figure.letter}) {figure.what}: {figure.ratio:.3g} {figure.verdict}",
                file=sys.stderr,
                flush=True,
            )
            figures.append(figure)
    place = ROOT / "docs" / "benchmarks.md"
    text = page(figures, today=datetime.now(UTC).date(), before=place.read_text())
    print(text)
    if rounds >= FEWEST_ROUNDS:
        place.write_text(text)
    return 0 if all(figure.goal is None or figure.goal.is_met(figure.ratio) for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
