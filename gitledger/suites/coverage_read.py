"""Reads what a run measured, in the interpreter that measured it, and writes it down as JSON.

A script, started once more after the run by the child's own interpreter: coverage analyses sources by the version
of Python that runs it. It needs the standard library and the project's coverage alone (Python 3.8, coverage 7.0
and later), and uses coverage's documented interface.

Data files are united exactly, by `CoverageData.update`, never by `combine`: that guesses at paths, skips what it
can't read, and deletes. One file that can't be read is an error.

    python coverage_read.py REQUEST ANSWER

The request: `data` (a folder, every file in which is a data file), `config_file`, `cwd` (what relative names are
relative to), `root` (of the repository), `tracked` (a file: the commit's paths, NUL after each), `own` (a folder
of the recorder's, which is nobody's source), `scratch` (an empty folder). The answer: `version`, `branch`,
`files`, `outside`, or `error`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main(request_path: str, answer_path: str) -> None:
    """Answer one request; whatever goes wrong is the answer."""
    with open(request_path, encoding="ascii") as file:  # noqa: PTH123
        request = json.load(file)
    try:
        answer = read(request)
    except Exception as error:  # whatever a project's coverage, its plugins or their sources raise
        answer = {"error": f"{type(error).__name__}: {error}"}
    with open(answer_path, "w", encoding="ascii") as file:  # noqa: PTH123
        json.dump(answer, file)


def read(request: dict[str, Any]) -> dict[str, Any]:
    """Return what the data files hold of the repository's files."""
    import coverage

    scratch = request["scratch"]
    merged = _united(request["data"], os.path.join(scratch, "united"))  # noqa: PTH118
    cov = coverage.Coverage(data_file=merged, config_file=request["config_file"] or False)
    cov.load()
    data = cov.get_data()
    inside, outside = _sorted_out(data.measured_files(), request)
    files = _analysed(cov, inside, request, os.path.join(scratch, "report.json"))  # noqa: PTH118
    return {
        "branch": data.has_arcs() if inside else None,
        "files": files,
        "outside": sorted(outside)[:50],
        "outside_count": len(outside),
        "version": coverage.__version__,
    }


def _united(folder: str, path: str) -> str:
    from coverage import CoverageData

    found = sorted(name for name in os.listdir(folder) if not name.endswith(("-journal", "-wal", "-shm")))  # noqa: PTH208
    target = CoverageData(basename=path)
    for name in found:
        one = os.path.join(folder, name)  # noqa: PTH118
        if os.path.getsize(one) == 0:  # noqa: PTH202
            raise ValueError("an empty data file: " + name)
        data = CoverageData(basename=one)
        data.read()
        target.update(data)
    target.write()
    return path


def _sorted_out(measured: Any, request: dict[str, Any]) -> tuple[dict[str, str], set[str]]:
    """Return the path from the root of each measured name that is a file of the commit, and the other names."""
    root, own = os.path.realpath(request["root"]), os.path.realpath(request["own"])
    with open(request["tracked"], "rb") as file:  # noqa: PTH123
        tracked = {os.fsdecode(path) for path in file.read().split(b"\0")}
    inside, outside = {}, set()
    for name in measured:
        real = os.path.realpath(os.path.join(request["cwd"], name))  # noqa: PTH118
        path = os.path.relpath(real, root)
        if path in tracked and os.path.isfile(real):  # noqa: PTH113
            inside[name] = path
        elif not real.startswith(os.path.join(own, "")):  # noqa: PTH118
            outside.add(str(name))
    return inside, outside


def _analysed(cov: Any, inside: dict[str, str], request: dict[str, Any], report: str) -> list[dict[str, Any]]:
    """Return statements, executed lines and branches of each file, as `coverage json` has them."""
    from coverage.exceptions import NoDataError

    if not inside:
        return []
    try:
        cov.json_report(morfs=sorted(inside), outfile=report, pretty_print=False, show_contexts=False)
    except NoDataError:  # everything is omitted
        return []
    with open(report, encoding="utf-8") as file:  # noqa: PTH123
        found = json.load(file)["files"]
    root = os.path.realpath(request["root"])
    files = []
    for name, entry in found.items():
        real = os.path.realpath(os.path.join(request["cwd"], name))  # noqa: PTH118
        files.append(
            {
                "branches": entry["summary"].get("num_branches", 0),
                "executed": entry["executed_lines"],
                "missing": entry["missing_lines"],
                "path": os.path.relpath(real, root),
                "taken": entry.get("executed_branches") or [],
                "untaken": entry.get("missing_branches") or [],
                "covered": [entry["summary"]["covered_lines"], entry["summary"].get("covered_branches", 0)],
            }
        )
    return files


if __name__ == "__main__":
    os.chdir(json.load(open(sys.argv[1], encoding="ascii"))["cwd"])  # noqa: PTH123, SIM115
    main(sys.argv[1], sys.argv[2])
