"""Verdicts, plans and merges as text for people. Strings from outside are always escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gitledger.manifest.leavings import ignoring_line, mend_dirt
from gitledger.report.together import RUN, together
from gitledger.wording import counted, few, shortened, suggested

if TYPE_CHECKING:  # whoever records needs no judgement
    from gitledger.records.receipt import ShardReceipt
    from gitledger.verdict.finding import Finding

__all__ = [
    "escaped",
    "finding_lines",
    "paint",
    "record_lines",
    "table",
    "uncommitted_lines",
]

_STYLES = {
    "fresh": "32",
    "carryable": "36",
    "stale": "33",
    "passed": "32",
    "failed": "31",
    "dim": "2",
    "bold": "1",
}
MAX_FOUND = 400


def escaped(text: str, limit: int = 200) -> str:
    """Return `text` with everything that could drive a terminal escaped, cut to `limit` characters."""
    plain = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return shortened(plain, limit)


def paint(text: str, style: str, *, color: bool) -> str:
    """Return `text` in a style where colour is wanted; the words alone must say it too."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if color and style in _STYLES else text


def table(rows: Sequence[Sequence[str]], *, indent: str = "") -> list[str]:
    """Return rows as aligned columns, two spaces apart; the last column is not padded."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        lines.append(indent + "  ".join([*cells, row[-1]]).rstrip())
    return lines


def uncommitted_lines(uncommitted: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Return a line for each shard that uncommitted edits would make stale, and what lets leavings of tests be."""
    lines, left = [], []
    for name, paths in uncommitted:
        shown = ", ".join(escaped(path) for path in paths[:3])
        lines.append(f"uncommitted edits would make {name} stale: {shown}")
        left += [path for path in paths if ignoring_line(path)]
    return [*lines, f"tests leave these behind: {mend_dirt(left, changed=())}"] if left else lines


def finding_lines(findings: Iterable[Finding], *, color: bool, run: str = RUN) -> list[str]:
    """Return what was found against what was expected, and what to do: two lines a finding.

    What is the same for many subjects is said once for all of them, and so is what mends several: `run` is the
    command that runs what is stale.
    """
    lines = []
    for item in together(findings, run=run):
        mark, style = ("✗", "failed") if item.blocks else ("·", "dim")
        for found, subjects in item.found:
            head = f"{mark} {few([escaped(name) for name in subjects])}: {escaped(found, MAX_FOUND)}"
            lines.append(f"  {paint(head, style, color=color)} [{item.code}]")
        if item.blocks:
            lines.append(f"      expected {escaped(item.expected)}{suggested(escaped(item.remedy))}")
    return lines


def record_lines(
    receipt: ShardReceipt,
    missing: Sequence[str],
    last_started: str | None,
    notes: Sequence[str],
    *,
    mend: str = "",
) -> list[str]:
    """Return what a person should know of a run that was recorded: why it is not green, and what it stood on.

    `mend` is what to do about its dirt where that lies at hand.
    """
    lines = []
    if receipt.reasons:
        lines.append(f"not green: {', '.join(receipt.reasons)}")
    if last_started is not None:
        lines.append(f"under way when it broke off: {escaped(last_started)}")
    if missing:
        names = ", ".join(escaped(item) for item in missing[:3])
        lines.append(f"{counted(len(missing), 'test')} never ended: {names}{' …' if len(missing) > 3 else ''}")
    if receipt.manifest.outside:
        names = ", ".join(escaped(path) for path in receipt.manifest.outside[:5])
        more = " …" if len(receipt.manifest.outside) > 5 else ""
        hint = f"`git ledger scope {receipt.key}` proposes a scope"
        lines.append(f"leaky: read outside the declared scope: {names}{more}; {hint}")
    if receipt.repo.dirty:
        named = ", ".join(escaped(path) for path in receipt.repo.dirty_paths[:5])
        lines.append(f"dirty: {named}; {mend or mend_dirt(receipt.repo.dirty_paths)}")
    return [*lines, *notes]
