"""Record the capability reports of a file: signed by whoever vouches for them, on the commits that they name."""

from __future__ import annotations

from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.errors import EXIT_NO, EXIT_YES, DecodeError, UsageError
from gitledger.records.capability import MAX_REPORT_BYTES, CapabilityReport, decode_reports
from gitledger.records.ids import RecordId
from gitledger.store.repository import Repository
from gitledger.trust.signer import Signer
from gitledger.verdict.finding import Finding
from gitledger.workflows.doctor import DoctorRequest, exit_status, store_reports
from gitledger.workflows.lane_standing import standing_of
from gitledger.workflows.session import Session

__all__ = ["RecordedReports", "record_reports"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedReports:
    """The reports of a file, the records that were stored of them, and what keeps any of them from counting.

    `exit_status` is what the worst report exits with; where all passed, and not one of them counts, it is 1.
    """

    reports: tuple[CapabilityReport, ...]
    records: tuple[RecordId, ...]
    findings: tuple[Finding, ...]
    exit_status: int


def record_reports(session: Session, file: Path, request: DoctorRequest, signer: Signer) -> RecordedReports:
    """Return what was stored; all of a file's reports, or none. Failures are kept like passes.

    Raises `UsageError`: `capability-unreadable`, `capability-malformed`, `report-elsewhere` for a report on a
    commit that this repository does not have; and `StoreError`.
    """
    reports = _read(file)
    for report in reports:
        _must_be_here(session.repo, report)
    records = store_reports(session, request, reports, signer)
    standing = standing_of(session, list(zip(reports, records, strict=True)))
    status = exit_status(reports)
    return RecordedReports(
        reports=reports,
        records=tuple(records),
        findings=standing.findings,
        exit_status=EXIT_NO if status == EXIT_YES and not standing.counting else status,
    )


def _read(file: Path) -> tuple[CapabilityReport, ...]:
    try:
        with file.open("rb") as handle:
            data = handle.read(MAX_REPORT_BYTES * 64 + 1)
    except OSError as error:
        raise UsageError(
            "capability-unreadable", f"{file} can't be read: {error.strerror}", "--capability FILE"
        ) from error
    try:
        return decode_reports(data)
    except DecodeError as error:
        raise UsageError(
            "capability-malformed", f"{file}: {error.message}", "git ledger doctor --report FILE"
        ) from error


def _must_be_here(repo: Repository, report: CapabilityReport) -> None:
    info = repo.objects.read_commit(report.repo.commit)
    if info is None or info.tree != report.repo.tree:
        text = f"the report is about commit {report.repo.commit[:12]}, which this repository does not have so"
        raise UsageError("report-elsewhere", text, "record it in the repository that it was made in, or git fetch")
