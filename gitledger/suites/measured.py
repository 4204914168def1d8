"""From what a child measured to a fragment: its facts, the reading by its own interpreter, strict decoding."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.records.decode import Reader, shown
from gitledger.records.fragments import MAX_LINE, Arc, FileCoverage, Fragment, bits_of
from gitledger.records.ids import BlobId

__all__ = ["MeasureError", "Measurement", "facts_of", "fragment_from", "prepare_reading", "read_answer"]

MAX_ANSWER_BYTES = 512 << 20
_MAX_FACTS_BYTES = 1 << 20


class MeasureError(DecodeError):
    """What was measured can't be told; the run stands without a fragment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """How coverage measured in the child, by its own word."""

    executable: str
    cwd: str
    config_file: str | None
    data_file: str
    branch: bool
    core: str | None
    version: str


def facts_of(folder: Path) -> Measurement | None:
    """Return how the run measured, None where it did not.

    `folder` is the companion's. Raises `MeasureError` where its word is malformed, or names another data file: one
    that earlier runs may have written to.
    """
    path = folder / "measured"
    if not path.exists():
        return None
    try:
        reader = Reader(json.loads(_bounded(path, _MAX_FACTS_BYTES).decode("ascii")))
        found = Measurement(
            executable=reader.text("executable"),
            cwd=reader.text("cwd"),
            config_file=reader.opt_text("config_file"),
            data_file=reader.text("data_file"),
            branch=reader.boolean("branch"),
            core=reader.opt_text("core"),
            version=reader.text("version"),
        )
    except (ValueError, RecursionError, OSError, DecodeError) as error:
        raise MeasureError(
            "coverage-unreadable", f"what the run says of coverage can't be read: {error}"
        ) from error
    if Path(found.data_file).parent != folder / "coverage":
        raise MeasureError(
            "coverage-elsewhere",
            f"the command names its own data file, {shown(found.data_file)}, which other runs may have written",
            "leave --data-file out of the command",
        )
    return found


def _bounded(path: Path, limit: int) -> bytes:
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"more than {limit} bytes")
    return data


def prepare_reading(
    found: Measurement, folder: Path, *, root: Path, tracked: Collection[str]
) -> tuple[tuple[str, ...], Path] | None:
    """Return the command that reads the data and the file of its answer; None where nothing was saved."""
    data = folder / "coverage"
    if not any(data.iterdir()):
        return None
    work = folder / "reading"
    work.mkdir()
    (work / "scratch").mkdir()
    script = work / "coverage_read.py"
    shutil.copyfile(Path(__file__).with_name("coverage_read.py"), script)
    (work / "tracked").write_bytes(b"\0".join(map(os.fsencode, tracked)))
    request = {
        "config_file": found.config_file,
        "cwd": found.cwd,
        "data": str(data),
        "own": str(folder.parent),
        "root": str(root),
        "scratch": str(work / "scratch"),
        "tracked": str(work / "tracked"),
    }
    (work / "request").write_text(json.dumps(request), encoding="ascii")
    answer = work / "answer"
    return (found.executable, str(script), str(work / "request"), str(answer)), answer


def read_answer(path: Path) -> Mapping[str, Any]:
    """Return the reader's answer; raises `MeasureError` where it has none, or answers with an error."""
    try:
        found = json.loads(_bounded(path, MAX_ANSWER_BYTES).decode("ascii"))
    except (OSError, ValueError, RecursionError) as error:
        raise MeasureError(
            "coverage-unreadable", "the run's interpreter could not read its coverage data"
        ) from error
    if not isinstance(found, dict) or "error" in found:
        text = found.get("error") if isinstance(found, dict) else found
        raise MeasureError("coverage-unreadable", f"the run's coverage can't be read: {shown(text)}")
    return found


def fragment_from(
    answer: Mapping[str, Any], found: Measurement, blob_of: Callable[[list[str]], Mapping[str, BlobId]]
) -> Fragment:
    """Return the fragment; `blob_of` gives the git blobs of paths as their files stand now.

    Raises `MeasureError` for an answer that contradicts itself or the run's facts.
    """
    try:
        rows = [_Row.of(item) for item in answer["files"]]
        united: dict[str, _Row] = {}
        for row in rows:
            united[row.path] = united[row.path].united(row) if row.path in united else row
        blobs = blob_of(sorted(united))
        _same_kind(answer, found)
        return Fragment(
            version=found.version,
            core=found.core,
            branch=found.branch,
            files=tuple(united[path].file(blobs[path]) for path in sorted(united)),
            outside=tuple(str(name) for name in answer["outside"]),
            outside_count=int(answer["outside_count"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise MeasureError("coverage-unreadable", f"the run's coverage contradicts itself: {error}") from error


def _same_kind(answer: Mapping[str, Any], found: Measurement) -> None:
    if answer["version"] != found.version or answer["branch"] not in (None, found.branch):
        raise ValueError("other coverage, or another kind of it, than the run's")


@dataclass(frozen=True, slots=True)
class _Row:
    """One file of the answer. One file measured under two names (a symlink on the way) is one file."""

    path: str
    statements: int
    executed: int
    branches: int
    taken: frozenset[Arc]
    untaken: frozenset[Arc]

    @classmethod
    def of(cls, item: Mapping[str, Any]) -> _Row:
        executed, missing = bits_of(map(_line, item["executed"])), bits_of(map(_line, item["missing"]))
        if executed & missing:
            raise ValueError(f"{shown(item['path'])}: a line executed and missing")
        row = cls(
            path=str(item["path"]),
            statements=executed | missing,
            executed=executed,
            branches=_line(item["branches"]),
            taken=frozenset(map(_arc, item["taken"])),
            untaken=frozenset(map(_arc, item["untaken"])),
        )
        if item["covered"] != [row.executed.bit_count(), row.branches - len(row.untaken)]:
            raise ValueError(f"{shown(row.path)}: coverage counts otherwise than its lines and branches do")
        return row

    def united(self, other: _Row) -> _Row:
        if (self.statements, self.branches) != (other.statements, other.branches):
            raise ValueError(f"{shown(self.path)}: measured under two names, with other statements")
        taken = self.taken | other.taken
        untaken = (self.untaken | other.untaken) - taken
        return _Row(self.path, self.statements, self.executed | other.executed, self.branches, taken, untaken)

    def file(self, blob: BlobId) -> FileCoverage:
        return FileCoverage(
            path=self.path,
            blob=blob,
            statements=self.statements,
            executed=self.executed,
            branches=self.branches,
            taken=self.taken,
            untaken=self.untaken,
        )


def _line(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_LINE:
        raise ValueError(f"{shown(value)} is no line")
    return value


def _arc(value: Any) -> Arc:
    start, end = value
    if not all(type(number) is int and -MAX_LINE <= number <= MAX_LINE for number in (start, end)):
        raise ValueError(f"{shown(value)} is no branch")
    return start, end
