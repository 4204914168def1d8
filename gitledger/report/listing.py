"""Log and show as text: a commit, and a line a record below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gitledger.records.bodies import TestResult
from gitledger.records.capability import layers_text
from gitledger.records.capability_record import CapabilityRecord
from gitledger.records.decode import format_time
from gitledger.records.imported import ImportedReceipt
from gitledger.records.merged import MergedReceipt
from gitledger.records.receipt import ShardReceipt
from gitledger.records.revocation import Revocation
from gitledger.report.text import escaped, paint, table

__all__ = ["RecordRow", "commit_lines", "record_row", "test_lines"]

Claim = ShardReceipt | MergedReceipt | Revocation | ImportedReceipt | CapabilityRecord
RecordRow = tuple[str, str, str, str, str, str]


def record_row(record: str | None, claim: Claim | None, who: str, fault: str) -> RecordRow:
    """Return the cells of one record: id, kind or shard, outcome, numbers, when, who or what is wrong."""
    name = (record or "-")[:12]
    match claim:
        case ShardReceipt() as receipt:
            counts = receipt.counts
            numbers = f"{counts.passed}/{counts.collected}"
            marks = "".join(
                [" dirty" if receipt.repo.dirty else "", *(f" {reason}" for reason in receipt.reasons)]
            )
            when = format_time(receipt.session.ended_at)[:19] + "Z"
            return name, str(receipt.key), receipt.outcome.value, numbers, when, who + escaped(marks)
        case MergedReceipt() as merged:
            numbers = f"{merged.counts.passed}/{merged.counts.collected}"
            carried = sum(shard.carried is not None for shard in merged.shards)
            text = f"{who} ({len(merged.shards)} shards, {carried} carried)"
            return name, "merged", merged.outcome.value, numbers, format_time(merged.merged_at)[:19] + "Z", text
        case Revocation() as revocation:
            text = f"{who} revokes {revocation.record[:12]}: {escaped(revocation.reason, 60)}"
            return name, "revocation", "-", "-", format_time(revocation.revoked_at)[:19] + "Z", text
        case ImportedReceipt() as imported:
            numbers = f"{imported.counts.passed}/{imported.counts.collected}"
            text = f"history of {escaped(imported.origin.tool, 40)}, imported by {who}"
            return (
                name,
                "imported",
                imported.outcome.value,
                numbers,
                format_time(imported.ended_at)[:19] + "Z",
                text,
            )
        case CapabilityRecord(report=report):
            lane = escaped(report.lane.id or "no lane", 40)
            what = (
                f"{escaped(report.model.requested or 'no model', 60)} {layers_text(report)} by {report.recipe.id}"
            )
            why = f" {report.reason.code}" if report.reason else ""
            when = format_time(report.timing.finished_at)[:19] + "Z"
            return name, f"lane {lane}", report.status.value, "-", when, f"{who}: {what}{why}"
    return name, "-", "ignored", "-", "-", escaped(fault)


def commit_lines(commit: str, summary: str, rows: Sequence[RecordRow], *, color: bool) -> list[str]:
    """Return a commit's head line and its records, aligned."""
    head = f"{paint(commit[:12], 'stale', color=color)} {escaped(summary, 80)}"
    lines = table(rows, indent="  ")
    styled = [
        paint(line, row[2] if row[2] in ("passed", "failed") else "dim", color=color)
        for row, line in zip(rows, lines, strict=True)
    ]
    return [head, *styled]


def test_lines(results: Iterable[TestResult], *, failed_only: bool, color: bool) -> list[str]:
    """Return a line a test: outcome, seconds, id (escaped), attempts where there were several."""
    lines = []
    for result in results:
        if failed_only and not result.outcome.is_bad:
            continue
        style = "failed" if result.outcome.is_bad else "passed"
        where = f" in {result.phase}" if result.outcome.is_bad and result.phase else ""
        again = f" ({result.attempts} attempts)" if result.attempts > 1 else ""
        seconds = f"{result.duration_ns / 1e9:8.3f}s"
        word = paint(f"{result.outcome.value:8}", style, color=color)
        lines.append(f"  {word} {seconds} {escaped(result.node_id)}{where}{again}")
    return lines
