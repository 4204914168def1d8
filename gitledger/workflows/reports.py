"""Results that don't come from our own journal: report files that a runner wrote, and bare exit statuses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from gitledger.config.schema import ResultsConfig
from gitledger.errors import DecodeError, UsageError
from gitledger.machine.child import ChildExit
from gitledger.records.ids import ShardKey
from gitledger.suites.ctrf import summarise_ctrf
from gitledger.suites.exit_status import summarise_exit_status
from gitledger.suites.junit import summarise_junit
from gitledger.suites.report_file import (
    FileStamp,
    is_written_between,
    read_reports,
    report_files,
    stamp,
    stamp_all,
)
from gitledger.suites.reportlog import summarise_reportlog
from gitledger.suites.result import SuiteResult, conclude

__all__ = ["expect_leftover", "look_at_report", "report_changed_ns", "result_of_leftover", "result_of_run"]


def look_at_report(results: ResultsConfig, root: Path) -> FileStamp | None:
    """Return the state of the report before the run, None where there is none or none is declared."""
    if results.file is None:
        return None
    if results.is_pattern:
        return stamp_all(report_files(root, results))
    return stamp(root / results.file)


def report_changed_ns(results: ResultsConfig, root: Path) -> int:
    """Return when the report was last changed in any way; 0 where there is none, or none is declared."""
    found = look_at_report(results, root)
    return found.changed_ns if found is not None else 0


def result_of_run(
    results: ResultsConfig, root: Path, key: ShardKey, ended: ChildExit, earlier: FileStamp | None
) -> SuiteResult:
    """Return the result that a run's report file or exit status gives; raises nothing for what the file holds.

    A report must have been written by the run; one that was there before it, unchanged, is `report-stale`. Of
    a pattern every file must have been: what an earlier run left of a class that is gone would speak for this one.
    """
    if results.kind == "exit-status":
        return summarise_exit_status(key, ended)

    def is_fresh(path: Path) -> bool:
        now = stamp(path)
        if earlier is not None and results.is_pattern:
            return (
                now is not None and now.changed_ns > earlier.changed_ns and now.modified_ns > earlier.modified_ns
            )
        return is_written_between(earlier, now)

    return _read(results, root, ended, is_fresh)


def expect_leftover(report: ResultsConfig, root: Path) -> None:
    """Raise `UsageError` `report-missing` where no report lies there: a misspelt name is no red run.

    Of a run that has ended a missing report says something; of one that nobody has watched it says nothing.
    """
    if not any(stamp(path) is not None for path in report_files(root, report)):
        raise UsageError(
            "report-missing",
            f"--{report.kind} {report.file!a}: there is no such file below the work tree's top folder",
            "name the report that the run has left, from the top folder on",
        )


def result_of_leftover(report: ResultsConfig, root: Path, now: datetime) -> SuiteResult:
    """Return the result that a report gives by itself: nothing ran, nothing is known but what the file says."""
    over = ChildExit(
        status=0,
        signal=None,
        timed_out=False,
        interrupted=False,
        stalled=False,
        oom=None,
        started_at=now,
        ended_at=now,
        duration_ns=0,
        max_rss_bytes=None,
        leftovers=0,
    )
    return _read(report, root, over, lambda _: True)


def _read(report: ResultsConfig, root: Path, ended: ChildExit, is_fresh: Callable[[Path], bool]) -> SuiteResult:
    try:
        paths = [path for path in report_files(root, report) if stamp(path) is not None]
        fresh = all(is_fresh(path) for path in paths)
        documents = read_reports(paths)
    except DecodeError as error:
        return conclude(
            reasons=["report-malformed"], results=(), full_ids=(), selected_ids=(), notes=[error.message]
        )
    match report.kind:
        case "junit":
            return summarise_junit(documents or None, ended, is_fresh=fresh)
        case "ctrf":
            return summarise_ctrf(documents[0] if documents else None, ended, is_fresh=fresh, root=root)
        case _:
            return summarise_reportlog(documents[0] if documents else None, ended, is_fresh=fresh)
