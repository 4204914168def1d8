"""Report files that a runner writes: whether this run wrote them, and their bytes within limits."""

from __future__ import annotations

import re
import stat
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from gitledger.config.schema import ResultsConfig
from gitledger.dataclass import dataclass, replace
from gitledger.errors import DecodeError
from gitledger.machine.child import ChildExit
from gitledger.records.bodies import TestResult
from gitledger.records.decode import shown
from gitledger.suites.result import SuiteResult, child_reasons, conclude, exit_reasons, outcome_reasons

__all__ = [
    "MAX_REPORT_BYTES",
    "MAX_REPORT_FILES",
    "FileStamp",
    "is_written_between",
    "may_meet",
    "read_report",
    "read_reports",
    "report_files",
    "report_less",
    "stamp",
    "stamp_all",
    "summarise_reported",
]

MAX_REPORT_BYTES = 256 << 20
"""One report file, or all that a pattern matches."""
MAX_REPORT_FILES = 20_000


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What tells one state of a file from another: it changes with every write, even of the same bytes.

    `changed_ns` changes with names and permissions as well.
    """

    device: int
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int


def stamp(path: Path) -> FileStamp | None:
    """Return the stamp of the file at `path`, or None where there is none (or something that is no file)."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return FileStamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def report_files(root: Path, results: ResultsConfig) -> tuple[Path, ...]:
    """Return the report files that a declaration names, in order of their names; for one file, that file.

    Raises `DecodeError` for more than the limit.
    """
    file = results.file or ""
    if not results.is_pattern:
        return (root / file,)
    found = sorted(path for path in root.glob(file) if path.is_file())
    if len(found) > MAX_REPORT_FILES:
        raise DecodeError(
            "report-too-large", f"{file} matches more than {MAX_REPORT_FILES} files", "narrow the pattern"
        )
    return tuple(found)


def may_meet(one: str, other: str) -> bool:
    """Tell whether two declared report files or patterns may name one file; in doubt they may.

    What stands before the first wildcard decides: `out/a-*.xml` and `out/b-*.xml` never meet.
    """
    sure, sure_too = _before_wildcards(one), _before_wildcards(other)
    if sure == one and sure_too == other:
        return one == other
    if sure == one:
        return one.startswith(sure_too)
    return sure_too.startswith(sure) or (sure_too != other and sure.startswith(sure_too))


def _before_wildcards(pattern: str) -> str:
    return re.split(r"[*?\[]", pattern, maxsplit=1)[0]


def stamp_all(paths: Sequence[Path]) -> FileStamp | None:
    """Return one stamp of several files, None of none: how many there are, and the newest of their times.

    A file that was written since has later times than any of the files had before: the kernel sets the time of
    change at every write, and no program can set it back.
    """
    stamps = [found for path in paths if (found := stamp(path)) is not None]
    if not stamps:
        return None
    newest_ns = max(found.changed_ns for found in stamps)
    return FileStamp(0, 0, len(stamps), max(found.modified_ns for found in stamps), newest_ns)


def is_written_between(before: FileStamp | None, after: FileStamp | None) -> bool:
    """Tell whether the file was written between the two stamps; a file left over from an earlier run was not.

    A new time of change alone is no writing: `chmod -R a+rX build` after a runner that crashed gives one as well.
    """
    if before is None or after is None:
        return after is not None
    return replace(after, changed_ns=0) != replace(before, changed_ns=0)


def read_report(path: Path) -> bytes:
    """Return the bytes of the report at `path`; raises `DecodeError` where it is too large or unreadable."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_REPORT_BYTES + 1)
    except OSError as error:
        raise DecodeError(
            "report-unreadable",
            f"the report {path} can't be read: {error.strerror}",
            "check the command's report option",
        ) from error
    if len(data) > MAX_REPORT_BYTES:
        raise DecodeError(
            "report-too-large", f"the report {path} exceeds {MAX_REPORT_BYTES} bytes", "split the shard"
        )
    return data


def read_reports(paths: Sequence[Path]) -> list[bytes]:
    """Return the bytes of each report; raises `DecodeError` where they are too large, or one unreadable."""
    documents: list[bytes] = []
    room = MAX_REPORT_BYTES
    for path in paths:
        documents.append(read_report(path))
        room -= len(documents[-1])
        if room < 0:
            raise DecodeError(
                "report-too-large", f"the reports exceed {MAX_REPORT_BYTES} bytes", "split the shard"
            )
    return documents


def report_less(reason: str, end: ChildExit, *, note: str = "") -> SuiteResult:
    """Return the result of a run whose report is missing, an earlier run's, or no report: nothing is known."""
    reasons = {reason} | child_reasons(end, finished=False)
    reasons |= exit_reasons(end.status, reasons)
    return conclude(reasons=reasons, results=(), full_ids=(), selected_ids=(), notes=[note] if note else [])


def summarise_reported(results: Sequence[TestResult], end: ChildExit) -> SuiteResult:
    """Return the result of a run from what its report says of each test; the reported tests are the collection.

    An id that stands for several tests fails, and no tests are no pass.
    """
    ids = [result.node_id for result in results]
    reasons = set() if results else {"no-tests"}
    twice = next((node_id for node_id, count in Counter(ids).items() if count > 1), None)
    notes = []
    if twice is not None:
        reasons.add("duplicate-id")
        notes.append(f"one id stands for several tests: {shown(twice)}")
    reasons |= outcome_reasons(results) | child_reasons(end, finished=bool(results))
    reasons |= exit_reasons(end.status, reasons)
    return conclude(
        reasons=reasons,
        results=results,
        full_ids=ids,
        selected_ids=ids,
        finished=bool(results),
        notes=notes,
    )
