"""Results that don't come from our own journal: report files that a runner wrote, and bare exit statuses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from gitledger.config.schema import ResultsConfig
from gitledger.errors import DecodeError
from gitledger.machine.child import ChildExit
from gitledger.records.ids import ShardKey
from gitledger.suites.ctrf import summarise_ctrf
from gitledger.suites.exit_status import summarise_exit_status
from gitledger.suites.junit import summarise_junit
from gitledger.suites.report_file import FileStamp, is_written_between, read_report, stamp
from gitledger.suites.reportlog import summarise_reportlog
from gitledger.suites.result import SuiteResult, conclude

__all__ = ["look_at_report", "result_of_leftover", "result_of_run"]


def look_at_report(results: ResultsConfig, root: Path) -> FileStamp | None:
    """Return the state of the report file before the run, None where there is none or none is declared."""
    return stamp(root / results.file) if results.file is not None else None


def result_of_run(
    results: ResultsConfig, root: Path, key: ShardKey, ended: ChildExit, earlier: FileStamp | None
) -> SuiteResult:
    """Return the result that a run's report file or exit status gives; raises nothing for what the file holds.

    A report must have been written by the run; one that was there before it, unchanged, is `report-stale`.
    """
    if results.kind == "exit-status":
        return summarise_exit_status(key, ended)
    path = root / (results.file or "")
    now = stamp(path)
    if now is None:
        return _READERS[results.kind](None, ended)
    return _read(results, path, ended, is_fresh=is_written_between(earlier, now))


def result_of_leftover(report: ResultsConfig, root: Path, now: datetime) -> SuiteResult:
    """Return the result that a report gives by itself: nothing ran, nothing is known but what the file says."""
    path = root / (report.file or "")
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
    if stamp(path) is None:
        return _READERS[report.kind](None, over)
    return _read(report, path, over, is_fresh=True)


_READERS: dict[str, Callable[..., SuiteResult]] = {
    "ctrf": summarise_ctrf,
    "junit": summarise_junit,
    "reportlog": summarise_reportlog,
}


def _read(report: ResultsConfig, path: Path, ended: ChildExit, *, is_fresh: bool) -> SuiteResult:
    try:
        return _READERS[report.kind](read_report(path), ended, is_fresh=is_fresh)
    except DecodeError as error:
        return conclude(
            reasons=["report-malformed"], results=(), full_ids=(), selected_ids=(), notes=[error.message]
        )
