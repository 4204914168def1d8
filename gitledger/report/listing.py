"""Log and show as text: a commit, and a line a record below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from gitledger.dataclass import dataclass
from gitledger.records.bodies import TestResult
from gitledger.records.capability import layers_text
from gitledger.records.capability_record import CapabilityRecord
from gitledger.records.decode import format_time
from gitledger.records.imported import ImportedReceipt
from gitledger.records.merged import MergedReceipt
from gitledger.records.receipt import ShardReceipt
from gitledger.records.revocation import Revocation
from gitledger.report.fit import Row, fitted, narrowed
from gitledger.report.progress import clock_text
from gitledger.report.states import GLYPHS
from gitledger.report.text import escaped, paint, table
from gitledger.wording import counted

if TYPE_CHECKING:
    from gitledger.records.fragments import Fragment

__all__ = [
    "RecordRow",
    "commit_head",
    "commit_lines",
    "coverage_file_lines",
    "cut_remarks",
    "oneline_text",
    "receipt_lines",
    "record_lines",
    "record_row",
    "signer_text",
    "test_lines",
]

UNSIGNED = "unsigned"
NO_SIGNER = "(no signer)"
_SAID_OF_SIGNERS = frozenset({"unsigned", "unknown-signer"})
Claim = ShardReceipt | MergedReceipt | Revocation | ImportedReceipt | CapabilityRecord
_PLAIN = "·", "dim"
_ENDS = {
    "passed": (GLYPHS["passed"], "passed"),
    "failed": (GLYPHS["failed"], "failed"),
    "error": (GLYPHS["error"], "failed"),
    "incomplete": (GLYPHS["incomplete"], "stale"),
    "inconclusive": (GLYPHS["unknown"], "stale"),
}
_BARRED = GLYPHS["rejected"], "stale"
_ID, _NAME, _WHEN = 0, 1, 4


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One record: how it is marked and painted; its cells: id, kind or shard, outcome, numbers, when, remark."""

    mark: str
    style: str
    cells: Row

    @property
    def marked(self) -> Row:
        """The cells of a table."""
        return (f"{self.mark} {self.cells[_ID]}", *self.cells[1:])


def record_row(
    record: str | None, claim: Claim | None, who: str, fault: str, against: Sequence[str] = ("not-judged",)
) -> RecordRow:
    """Return the row of one record: what its claim says, and by whom, or what is wrong with the line.

    `against` are words for what policy has against it: a pass that has any does not count, and is never green.
    """
    name = (record or "-")[:12]
    match claim:
        case ShardReceipt() as receipt:
            numbers = f"{receipt.counts.passed}/{receipt.counts.collected}"
            cells = str(receipt.key), receipt.outcome.value, numbers, _when(receipt.session.ended_at)
            return _ended(name, cells, _words(receipt), against, who)
        case MergedReceipt() as merged:
            numbers = f"{merged.counts.passed}/{merged.counts.collected}"
            carried = sum(shard.carried is not None for shard in merged.shards)
            text = f"{who} ({counted(len(merged.shards), 'shard')}, {carried} carried)"
            cells = "merged", merged.outcome.value, numbers, _when(merged.merged_at)
            return _ended(name, cells, ["dirty"] if merged.repo.dirty else [], against, text)
        case Revocation() as revocation:
            text = f"{who} revokes {revocation.record[:12]}: {escaped(revocation.reason, 60)}"
            return RecordRow(*_PLAIN, (name, "revocation", "-", "-", _when(revocation.revoked_at), text))
        case ImportedReceipt() as imported:  # history of another tool, which never counts
            numbers = f"{imported.counts.passed}/{imported.counts.collected}"
            text = f"history of {escaped(imported.origin.tool, 40)}, imported by {who}"
            cells = "imported", imported.outcome.value, numbers, _when(imported.ended_at)
            return RecordRow(*_PLAIN, (name, *cells, text))
        case CapabilityRecord(report=report):
            lane = escaped(report.lane.id or "no lane", 40)
            model = escaped(report.model.requested or "no model", 60)
            why = f" {report.reason.code}" if report.reason else ""
            text = f"{who}: {model} {layers_text(report)} by {report.recipe.id}{why}"
            cells = f"lane {lane}", report.status.value, "-", _when(report.timing.finished_at)
            return _ended(name, cells, ["dirty"] if report.repo.dirty else [], against, text)
    return RecordRow(*_PLAIN, (name, "-", "ignored", "-", "-", escaped(fault)))


def _when(at: datetime) -> str:
    return format_time(at)[:19] + "Z"


def _words(receipt: ShardReceipt) -> list[str]:
    """Return what a receipt says of itself that may keep it from counting."""
    words = [escaped(reason, 60) for reason in receipt.reasons]
    words += ["dirty"] if receipt.repo.dirty else []
    return words if receipt.session.witnessed else [*words, "unwitnessed"]


def _ended(
    record: str, cells: tuple[str, str, str, str], words: Sequence[str], against: Sequence[str], who: str
) -> RecordRow:
    """Return the row of what ended in some way. What a narrow window must not cut comes first."""
    bars = ", ".join(against)
    is_barred = cells[1] == "passed" and bool(bars)
    mark, style = _BARRED if is_barred else _ENDS.get(cells[1], _PLAIN)
    said = [f"does not count: {bars}"] if is_barred else []
    rest = [word for word in words if word not in against] if is_barred else [*words, *against]
    others = [word for word in dict.fromkeys(rest) if word not in _SAID_OF_SIGNERS]
    said += [", ".join(others)] if others else []
    said += [] if who == UNSIGNED and is_barred and UNSIGNED in against else [who]
    return RecordRow(mark, style, (record, *cells, "; ".join(said)))


def signer_text(signer: str | None, key: str | None) -> str:
    """Return who signed, as far as HEAD's allowed_signers know: a key that is nobody's there is said to be."""
    return escaped(signer) if signer else f"{key} {NO_SIGNER}" if key else UNSIGNED


def commit_lines(
    commit: str,
    summary: str,
    rows: Sequence[RecordRow],
    *,
    color: bool,
    at: datetime | None = None,
    width: int | None = None,
) -> list[str]:
    """Return a commit's head line, with the day of the commit where that is given, and its records, aligned."""
    day = "" if at is None else format_time(at)[:10]
    room = _MAX_SUMMARY if width is None else width - 12 - len(day) - 2
    painted = f" {paint(day, 'dim', color=color)}" if day else ""
    head = (
        f"{paint(commit[:12], 'stale', color=color)}{painted} {escaped(summary, min(max(room, 20), _MAX_SUMMARY))}"
    )
    return [head, *record_lines(rows, color=color, width=width)]


def record_lines(rows: Sequence[RecordRow], *, color: bool, width: int | None = None) -> list[str]:
    """Return a line a record, aligned; marks and words say what the colours say. Green is what nothing bars.

    `width` are the columns of the window, None where there is none.
    """
    lines = table(fitted([row.marked for row in rows], width, _SHORTER), indent="  ")
    return [paint(line, row.style, color=color) for row, line in zip(rows, lines, strict=True)]


def cut_remarks(rows: Sequence[RecordRow], width: int | None) -> list[str]:
    """Return for each row what `record_lines` cuts off its remark, whole, "" where it cuts nothing."""
    shown = fitted([row.marked for row in rows], width, _SHORTER)
    return ["" if cells[-1] == row.cells[-1] else row.cells[-1] for row, cells in zip(rows, shown, strict=True)]


def _day_only(rows: Sequence[Row], _: int) -> list[Row]:
    return [(*row[:_WHEN], row[_WHEN][:10], *row[_WHEN + 1 :]) for row in rows]


def _eight_digits(rows: Sequence[Row], _: int) -> list[Row]:
    """Return rows with ids of as many digits as name a record."""
    return [(row[_ID][: len("✓ ") + 8], *row[1:]) for row in rows]


_SHORTER = (_day_only, _eight_digits, narrowed(_NAME, 8))
_MAX_SUMMARY = 80


def commit_head(commit: str, at: datetime, summary: str, *, color: bool) -> list[str]:
    """Return the lines above a commit's records, as `git show` has them."""
    head = paint(f"commit {commit}", "stale", color=color)
    return [head, f"Date:   {format_time(at)[:19]}Z", "", f"    {escaped(summary, 200)}", ""]


def oneline_text(
    commit: str,
    summary: str,
    records: Sequence[tuple[Claim | None, bool, Sequence[str]]],
    *,
    color: bool,
    width: int | None = None,
) -> str:
    """Return one line for a commit: how many shard receipts ended how, and what else there is.

    `records` are claims, each with whether its key is a signer's, and what policy has against it: what is nobody's
    is counted apart, and so is a pass that does not count.
    """
    counts = Counter(_end(claim, is_known=is_known, against=against) for claim, is_known, against in records)
    ends = sorted(counts.items(), key=_rank)
    parts = [f"{mark} {number} {what}" for (mark, _, what), number in ends]
    room = _MAX_ONELINE if width is None else width - 12 - 4 - len(", ".join(parts) or "nothing")
    painted = [paint(part, style, color=color) for part, ((_, style, _), _) in zip(parts, ends, strict=True)]
    text = escaped(summary, min(max(room, 20), _MAX_ONELINE))
    return f"{paint(commit[:12], 'stale', color=color)} {text} ({', '.join(painted) or 'nothing'})"


_MAX_ONELINE = 60
_ORDER = ("failed", "error", "incomplete", "passed")


def _end(claim: Claim | None, *, is_known: bool, against: Sequence[str]) -> tuple[str, str, str]:
    """Return mark, style and words for how a record ended."""
    if claim is None:
        return *_PLAIN, "ignored"
    if not is_known and against:
        return *_BARRED, "by no signer"
    match claim:
        case Revocation():
            return *_PLAIN, "revoked"
        case ImportedReceipt():
            return *_PLAIN, "imported"
        case ShardReceipt():
            kind, end = "", claim.outcome.value
        case MergedReceipt():
            kind, end = "merged ", claim.outcome.value
        case CapabilityRecord(report=report):
            kind, end = "lane ", report.status.value
    if end == "passed" and against:
        return *_BARRED, f"{kind}passed but {against[0]}"
    return *_ENDS.get(end, _PLAIN), f"{kind}{end}"


def _rank(item: tuple[tuple[str, str, str], int]) -> tuple[int, str]:
    word = item[0][2]
    return (_ORDER.index(word) if word in _ORDER else len(_ORDER), word)


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
        "on": escaped(", ".join(filter(None, [f"{platform.system} {platform.machine}", versions])) + gpu, 300),
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
