"""Whether reports that were just stored count for anything: asked of the release check itself, and said at once.

Evidence that can't count is kept like any other. But whoever recorded it with a key that no lane knows, or on a
machine whose clock is wrong, should not learn so from a release that does not come.
"""

from __future__ import annotations

from collections.abc import Sequence

from gitledger.dataclass import dataclass
from gitledger.errors import LedgerError
from gitledger.records.capability import CapabilityReport
from gitledger.records.ids import CommitId, RecordId
from gitledger.verdict.finding import Finding, note
from gitledger.verdict.lane_cells import CellStatus
from gitledger.verdict.release import CellVerdict, Release
from gitledger.workflows.lanes import judge_release
from gitledger.workflows.session import Session

__all__ = ["Standing", "standing_of"]

_LATER = (CellStatus.MISMATCHED, CellStatus.STALE)


@dataclass(frozen=True, slots=True)
class Standing:
    """What keeps stored reports from counting, a finding each; `counting` tells how many nothing keeps."""

    findings: tuple[Finding, ...]
    counting: int


def standing_of(session: Session, stored: Sequence[tuple[CapabilityReport, RecordId]]) -> Standing:
    """Return how stored reports stand on their own commits, by the configuration that stands there.

    Where that can't be told (no configuration there, a forge that does not answer), the finding says so, and the
    report is taken for one that counts: nothing is known against it.
    """
    findings, counting = [], 0
    judged: dict[CommitId, Release | LedgerError] = {}
    for report, record in stored:
        commit = report.repo.commit
        if commit not in judged:
            try:
                judged[commit] = judge_release(session, commit, here_only=True).release
            except LedgerError as error:
                judged[commit] = error
        found = judged[commit]
        if isinstance(found, LedgerError):
            findings.append(_finding(record, f"can't be told: {found.message} [{found.code}]", found.hint))
            counting += 1
        elif why := _why_not(found, report, record):
            findings.append(_finding(record, *why))
        else:
            counting += 1
    return Standing(tuple(findings), counting)


def _why_not(release: Release, report: CapabilityReport, record: RecordId) -> tuple[str, str] | None:
    """Return why a report counts for nothing and what mends it, None where nothing keeps it from counting."""
    reasons = {item.record: item.reason for item in release.ignored}
    if record in reasons:
        return reasons[record], f"git ledger explain {reasons[record].partition(':')[0]}"
    if report.lane.id is None:
        return (
            "made under no lane: it shows what a machine can do, and certifies none",
            "git ledger doctor --lane L",
        )
    asked = [cell for cell in release.cells if cell.cell.is_asked(report)]
    if not asked:
        return (
            f"no lane declares such a run: {report.lane.id}, {report.model.requested}, {report.recipe.id}",
            "git ledger explain lane-unexpected",
        )
    held = [cell for cell in asked if cell.held is not None and cell.held.id == record]
    late = next((cell for cell in held if cell.status in _LATER), None)
    return None if late is None else _late(late)


def _late(cell: CellVerdict) -> tuple[str, str]:
    return f"{cell.status}: {cell.detail}", f"git ledger explain lane-{cell.status}"


def _finding(record: RecordId, found: str, remedy: str) -> Finding:
    return note(
        "report-uncounted",
        "9",
        record[:12],
        expected="a report that counts for a lane of its commit",
        found=found,
        remedy=remedy,
    )
