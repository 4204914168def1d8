"""Doctor reports and the release check as text. Strings from outside are always escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gitledger.records.capability import CapabilityReport, layers_text
from gitledger.records.capability_status import Status
from gitledger.records.decode import format_time
from gitledger.report.fit import Row, fitted, narrowed, wrapped
from gitledger.report.text import escaped, finding_lines, paint, table
from gitledger.verdict.lane_cells import CellStatus
from gitledger.verdict.release import CellVerdict, Release
from gitledger.wording import few

__all__ = ["cell_lines", "doctor_lines", "doctor_summary", "evidence_lines", "lanes_text"]

MAX_LOG_LINES = 20
_STYLES = {"passed": "passed", "failed": "failed", "mismatched": "failed"}


def doctor_lines(report: CapabilityReport, *, color: bool) -> list[str]:
    """Return what a person should know of one report: what ran where, and why it did not pass."""
    word = paint(f"{report.status.value:12}", _STYLES.get(report.status, "stale"), color=color)
    lane = "" if report.lane.id is None else f"{report.lane.id}: "
    head = (
        f"{word} {lane}{escaped(report.model.requested or 'no model')} {layers_text(report)} by {report.recipe.id}"
    )
    if report.status is Status.PASSED:
        return [f"{head}: {_proof(report)}"]
    reason = report.reason
    return [head, f"             {reason.code}: {escaped(reason.message, 400)}"] if reason else [head]


def evidence_lines(report: CapabilityReport) -> list[str]:
    """Return what a stored report says beside its outcome: hardware, proof or reason, and the end of its log."""
    lines = [f"    {_hardware(report)}"]
    if report.status is Status.PASSED:
        lines.append(f"    {_proof(report)}")
    if report.reason is not None:
        lines.append(
            f"    {report.reason.code} in {escaped(report.reason.stage)}: {escaped(report.reason.message, 600)}"
        )
    return [*lines, *(f"    | {escaped(line)}" for line in report.log_excerpt.splitlines()[-MAX_LOG_LINES:])]


def doctor_summary(reports: Sequence[CapabilityReport]) -> str:
    """Return the counts of all four statuses, so that none can be overlooked."""
    counts = Counter(report.status for report in reports)
    return ", ".join(f"{counts[status]} {status.value}" for status in Status)


def lanes_text(release: Release, *, policy: str, color: bool, width: int | None = None) -> str:
    """Return the release check: a line a cell, the lanes' record, every finding, and the answer last.

    `width` are the columns of the window, None where there is none.
    """
    lines = [f"lanes of {release.commit[:12]} by policy {policy}"]
    lines += cell_lines(release.cells, color=color, width=width)
    lines += [
        part for line in _record_lines(release.cells) for part in wrapped(line, width, indent=_margin(line) + "  ")
    ]
    of_cells = {f"lane-{status}" for status in CellStatus}  # the table says them already
    others = [finding for finding in release.verdict.findings if finding.code not in of_cells]
    lines += finding_lines(others, color=color)
    remedies = [finding.remedy for finding in release.verdict.findings if finding.code in of_cells]
    lines += [f"  try: {remedy}" for remedy in dict.fromkeys(remedies)]
    lines += [f"  · ignored {(item.record or 'a line')[:12]}: {escaped(item.reason)}" for item in release.ignored]
    word = "passed" if release.verdict.passed else "failed"
    lines.append(paint(f"lanes: {word}", word, color=color))
    return "\n".join(lines) + "\n"


def cell_lines(cells: Sequence[CellVerdict], *, color: bool, width: int | None = None) -> list[str]:
    """Return a line a cell: lane, model, layers, quantization, recipe, status, and why.

    `width` are the columns of the window, None where there is none. What a row has no room for stands below them.
    """
    rows = [_row(verdict) for verdict in cells]
    shown = fitted(rows, width, _SHORTER, least=_LEAST_DETAIL)
    lines = [
        paint(line, _STYLES.get(verdict.status, "stale"), color=color)
        for verdict, line in zip(cells, table(shown, indent="  "), strict=True)
    ]
    cut: dict[str, list[str]] = {}
    for verdict, whole, row in zip(cells, rows, shown, strict=True):
        if row[-1] != whole[-1]:
            cut.setdefault(whole[-1], []).append(escaped(str(verdict.cell)))
    return [*lines, *(paint(f"  · {few(names)}: {why}", "dim", color=color) for why, names in cut.items())]


def _need_where_advisory(rows: Sequence[Row], _: int) -> list[Row]:
    """Return rows that leave out that a cell is required: most are, and of the others it is said."""
    return [(*row[:6], "" if row[6] == "required" else row[6], *row[7:]) for row in rows]


_SHORTER = (
    _need_where_advisory,
    narrowed(1, 16, keep_end=True),
    narrowed(0, 10),
    narrowed(4, 8),
    narrowed(1, 8, keep_end=True),
)
"""First the model, of which the end tells most, then the lane, the recipe, and the model once more."""
_LEAST_DETAIL = 12
"""What is cut is told below, so that the other cells come first."""


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _row(verdict: CellVerdict) -> tuple[str, ...]:
    cell = verdict.cell
    layers = "whole" if cell.layers is None else f"{cell.layers[0]}-{cell.layers[1]}"
    need = "required" if verdict.required else "advisory"
    where = (cell.lane.name, escaped(cell.model), layers, escaped(cell.quantization), cell.recipe)
    return (*where, verdict.status.value, need, escaped(verdict.detail))


def _record_lines(cells: Sequence[CellVerdict]) -> Iterator[str]:
    """Yield the record of each lane, made of nothing but its reports: what it supports, and since when."""
    passed = [verdict for verdict in cells if verdict.status is CellStatus.PASSED and verdict.held]
    for lane in dict.fromkeys(verdict.cell.lane.name for verdict in passed):
        yield f"  record of {lane}"
        shown = ""
        for verdict in passed:
            if verdict.cell.lane.name == lane and verdict.held is not None:
                report = verdict.held.report
                signer = escaped(verdict.signer or "unsigned")
                when = format_time(report.timing.finished_at)[:10]
                if _hardware(report) != shown:
                    shown = _hardware(report)
                    yield f"    {shown}"
                yield (
                    f"      {escaped(report.model.requested or '')} {layers_text(report)} by {report.recipe.id} "
                    f"{report.recipe.version}: {_proof(report)}; {when}, {signer}, record {verdict.held.id[:12]}"
                )


def _hardware(report: CapabilityReport) -> str:
    device, torch, os = report.device, report.torch, report.os
    build = f"hip {torch.hip}" if torch.hip else f"cuda {torch.cuda}" if torch.cuda else "no GPU build"
    driver = f", driver {report.driver}" if report.driver else ""
    where = f"{os.name} {os.version or ''} {os.kernel} {os.machine}"
    what = "device unknown" if device.kind is None else f"{device.name} ({device.arch})"
    version = "torch unknown" if torch.version is None else f"torch {torch.version} ({build})"
    return escaped(f"{what}, {version}{driver}, {where}", 300)


def _proof(report: CapabilityReport) -> str:
    reference = report.forward.reference
    error = "" if reference is None or reference.error is None else f", error {reference.error:.2g}"
    bound = "" if reference is None else f" of {reference.tolerance:g}"
    how = report.quantization.resolved or report.quantization.requested
    return escaped(f"{how} on {report.device.used}, {report.timing.duration_ms or 0:.1f} ms{error}{bound}")
