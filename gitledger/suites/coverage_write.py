"""Writes united coverage through coverage.py's own interface: a data file, or a report over given sources.

Run as a script (`python coverage_write.py REQUEST`) in the folder that the sources lie in, since coverage names
files by the folder that it starts in. The request: `kind` (`coverage`, `coverage-xml` or `lcov`), `output`,
`branch`, `files` (name, executed lines, taken branches).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["KINDS", "version", "write_data"]

KINDS = ("coverage", "coverage-xml", "lcov")
_DATA_FILE = "united-coverage-data"

Row = Sequence[Any]
"""A file: its name, its executed lines, its taken branches."""


def version() -> str:
    """Return the version of the coverage that writes."""
    from importlib.metadata import version as installed

    return installed("coverage")


def write_data(path: Path, files: Iterable[Row], *, branch: bool) -> None:
    """Write coverage's data file, anew.

    With branches an executed line is told as a step from itself to itself, which is no branch of it.
    """
    from coverage import CoverageData

    path.unlink(missing_ok=True)
    data = CoverageData(basename=str(path))
    rows = list(files)
    if branch:
        data.add_arcs(
            {name: [*map(tuple, taken), *((line, line) for line in lines)] for name, lines, taken in rows}
        )
    else:
        data.add_lines({name: list(lines) for name, lines, _ in rows})
    data.touch_files([name for name, _, _ in rows])
    data.write()


def main(request: dict[str, Any]) -> None:
    """Write what was asked for; raises what coverage raises."""
    import coverage

    folder = Path.cwd()
    cov = coverage.Coverage(data_file=str(folder / _DATA_FILE), config_file=True)
    base = Path() if cov.get_option("run:relative_files") else folder  # as coverage looks them up
    rows = [(str(base / name), lines, taken) for name, lines, taken in request["files"]]
    write_data(folder / _DATA_FILE, rows, branch=request["branch"])
    cov.load()
    report = {"coverage-xml": cov.xml_report, "lcov": cov.lcov_report}[request["kind"]]
    report(morfs=[name for name, _, _ in rows], outfile=request["output"])


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="ascii")))
