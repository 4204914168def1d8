"""Log and show as text: a commit, and a line a record below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from gitledger.records.bodies import TestResult
from gitledger.records.capability import layers_text
from gitledger.records.capability_record import CapabilityRecord
from gitledger.records.decode import format_time
from gitledger.records.imported import ImportedReceipt
from gitledger.records.merged import MergedReceipt
from gitledger.records.receipt import ShardReceipt
from gitledger.records.revocation import Revocation
from gitledger.report.progress import clock_text
from gitledger.report.text import escaped, paint, table
from gitledger.wording import counted

if TYPE_CHECKING:
    from gitledger.records.fragments import Fragment

__all__ = [
    "RecordRow",
    "commit_head",
    "commit_lines",
    "coverage_file_lines",
    "oneline_text",
    "receipt_lines",
    "record_lines",
    "record_row",
    "signer_text",
    "test_lines",
]

UNSIGNED = "unsigned"
NO_SIGNER = "(no signer)"
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
            text = f"{who} ({counted(len(merged.shards), 'shard')}, {carried} carried)"
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


def signer_text(signer: str | None, key: str | None) -> str:
    """Return who signed, as far as HEAD's allowed_signers know: a key that is nobody's there is said to be."""
    return escaped(signer) if signer else f"{key} {NO_SIGNER}" if key else UNSIGNED


def commit_lines(
    commit: str, summary: str, rows: Sequence[RecordRow], *, color: bool, at: datetime | None = None
) -> list[str]:
    """Return a commit's head line, with the day of the commit where that is given, and its records, aligned."""
    day = f" {paint(format_time(at)[:10], 'dim', color=color)}" if at is not None else ""
    head = f"{paint(commit[:12], 'stale', color=color)}{day} {escaped(summary, 80)}"
    return [head, *record_lines(rows, color=color)]


def record_lines(rows: Sequence[RecordRow], *, color: bool) -> list[str]:
    """Return a line a record, aligned; the words say what the colours say. What nobody signed is never green."""
    lines = table(rows, indent="  ")
    return [paint(line, _style(row), color=color) for row, line in zip(rows, lines, strict=True)]


def _style(row: RecordRow) -> str:
    style = _STYLES.get(row[2], "dim")
    is_known = NO_SIGNER not in row[5] and not row[5].startswith(UNSIGNED)
    return style if is_known or style != "passed" else "dim"


_STYLES = {
    "passed": "passed",
    "failed": "failed",
    "error": "failed",
    "incomplete": "stale",
    "inconclusive": "stale",
}


def commit_head(commit: str, at: datetime, summary: str, *, color: bool) -> list[str]:
    """Return the lines above a commit's records, as `git show` has them."""
    head = paint(f"commit {commit}", "stale", color=color)
    return [head, f"Date:   {format_time(at)[:19]}Z", "", f"    {escaped(summary, 200)}", ""]


def oneline_text(commit: str, summary: str, ends: Sequence[tuple[Claim | None, bool]], *, color: bool) -> str:
    """Return one line for a commit: how many shard receipts ended how, and what else there is.

    `ends` are the records, each with whether its key is a signer's; what is nobody's is counted apart.
    """
    counts: Counter[str] = Counter()
    for claim, is_known in ends:
        match claim:
            case ShardReceipt() if is_known:
                counts[claim.outcome.value] += 1
            case MergedReceipt() if is_known:
                counts[f"merged {claim.outcome.value}"] += 1
            case CapabilityRecord(report=report) if is_known:
                counts[f"lane {report.status.value}"] += 1
            case Revocation() if is_known:
                counts["revoked"] += 1
            case ImportedReceipt() if is_known:
                counts["imported"] += 1
            case _:
                counts["by no signer" if claim is not None else "ignored"] += 1
    parts = [
        paint(f"{number} {what}", _style_of(what), color=color)
        for what, number in sorted(counts.items(), key=_rank)
    ]
    return f"{paint(commit[:12], 'stale', color=color)} {escaped(summary, 60)} ({', '.join(parts) or 'nothing'})"


_ORDER = ("failed", "error", "incomplete", "passed")


def _rank(item: tuple[str, int]) -> tuple[int, str]:
    word = item[0]
    return (_ORDER.index(word) if word in _ORDER else len(_ORDER), word)


def _style_of(what: str) -> str:
    return _STYLES.get(what.split()[-1], "dim")


def receipt_lines(receipt: ShardReceipt) -> list[str]:
    """Return what a shard receipt says beside its row: command, time, tests, environment, inputs."""
    session, counts, environment = receipt.session, receipt.counts, receipt.environment
    seconds = (session.ended_at - session.started_at).total_seconds()
    ends = {name: number for name, number in counts.encode().items() if number and name != "collected"}
    gpu = f", GPU {', '.join(environment.gpu.names)}" if environment.gpu and environment.gpu.names else ""
    platform = environment.platform
    tools = [("Python", environment.python), ("pytest", environment.pytest), ("coverage", environment.coverage)]
    versions = ", ".join(f"{name} {version}" for name, version in tools if version)
    rows = {
        "command": escaped(" ".join(session.argv), 300),
        "took": f"{clock_text(seconds)}, mode {session.mode}" + ("" if session.witnessed else ", not witnessed"),
        "tests": f"{counts.collected} collected: "
        + ", ".join(f"{number} {name}" for name, number in ends.items()),
        "on": escaped(f"{platform.system} {platform.machine}, {versions}{gpu}", 300),
        "inputs": escaped(", ".join(receipt.manifest.paths), 300),
        "branch": escaped(receipt.repo.branch or "", 100),
    }
    return [f"    {name:8} {text}" for name, text in rows.items() if text]


def coverage_file_lines(fragment: Fragment) -> list[str]:
    """Return a line a measured file, the least covered first: percentage, covered of total, path."""
    files = sorted(fragment.files, key=lambda file: (file.covered / file.total if file.total else 1, file.path))
    rows = [
        (
            f"{100 * file.covered // file.total}%" if file.total else "-",
            f"{file.covered}/{file.total}",
            escaped(file.path),
        )
        for file in files
    ]
    return table(rows, indent="    ")


def test_lines(results: Iterable[TestResult], *, failed_only: bool, color: bool) -> list[str]:
    """Return a line a test: outcome, seconds, id (escaped), attempts where there were several."""
    lines = []
    for result in results:
        if failed_only and not result.outcome.is_bad:
            continue
        style = "failed" if result.outcome.is_bad else "passed"
        where = f" in {result.phase}" if result.outcome.is_bad and result.phase else ""
        again = f" ({counted(result.attempts, 'attempt')})" if result.attempts > 1 else ""
        seconds = f"{result.duration_ns / 1e9:8.3f}s"
        word = paint(f"{result.outcome.value:8}", style, color=color)
        lines.append(f"  {word} {seconds} {escaped(result.node_id)}{where}{again}")
    return lines
