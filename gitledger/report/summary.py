"""A verdict as Markdown for the summary of a CI job, within the size that the forge keeps.

GitHub drops the whole summary of a step that exceeds 1 MiB ("Workflow commands"); so it is cut
here, and says how much was left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gitledger.report.together import RUN, together
from gitledger.verdict.finding import Finding
from gitledger.wording import counted, few, shortened, suggested

__all__ = ["MAX_SUMMARY_BYTES", "summary_text"]

MAX_SUMMARY_BYTES = 900 << 10
"""What is written at most, in bytes; the rest of the 1 MiB is left to others that write into the same step."""
_MAX_CELL = 200
_SPECIAL = frozenset("\\`*_[]<>|~&#!@")


def cell(text: str, limit: int = _MAX_CELL) -> str:
    """Return a string from outside as Markdown that shows it and does nothing else."""
    short = shortened(text, limit)
    plain = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in short)
    return "".join(_spelt(char) for char in plain)


def _spelt(char: str) -> str:
    """Return a character that can't be Markdown; names and numbers after `@` and `#` are mentions of nothing."""
    if char not in _SPECIAL:
        return char
    return f"&#{ord(char)};" + ("&#8203;" if char in "@#" else "")


def summary_text(
    document: dict[str, Any],
    findings: Sequence[Finding],
    *,
    coverage: Sequence[str] = (),
    slowest: Sequence[tuple[float, object, str]] = (),
    limit: int = MAX_SUMMARY_BYTES,
    run: str = RUN,
) -> str:
    """Return the summary of a `gate --json` document, at most `limit` bytes of it.

    `slowest` are seconds, shard and id of tests to be listed. `run` is the command that runs what is stale by the
    policy that judged.
    """
    passed = document["verdict"] == "passed"
    blocking = [finding for finding in findings if finding.blocks]
    notes = [finding for finding in findings if not finding.blocks]
    policy = document["policy"]
    about = f"Commit `{document['commit'][:12]}`, {cell(document['judged'])}"
    head = [
        f"## {'✅' if passed else '❌'} git ledger: {'passed' if passed else 'failed'}",
        "",
        f"{about}; policy of {cell(policy['from'])} (`{policy['commit'][:12]}`).",
        "",
    ]
    blocks = [f"### {len(blocking)} {'reason' if len(blocking) == 1 else 'reasons'} against it", ""]
    parts = [
        ("findings", [*blocks, *_findings(blocking, run), ""] if blocking else []),
        ("coverage lines", [*(cell(line.strip()) for line in coverage), ""] if coverage else []),
        (
            "shards",
            ["| shard | verdict | reason | outcome | from |", "|---|---|---|---|---|", *_rows(document["shards"])],
        ),
        ("tests", _slowest(slowest)),
        ("notes", ["", f"<details><summary>{counted(len(notes), 'note')}</summary>", "", *_findings(notes, run)]),
    ]
    lines, left = list(head), limit - _size(head) - 200
    for name, part in parts if notes else parts[:-1]:
        taken = _within(part, left)
        lines += part[:taken]
        left -= _size(part[:taken])
        if taken < len(part):
            lines += ["", f"… {counted(len(part) - taken, 'more line')} of {name}: `git ledger verify` shows all"]
    if notes:
        lines += ["", "</details>"]
    return "\n".join([*lines, "", ""])


def _rows(shards: Iterable[dict[str, Any]]) -> list[str]:
    rows = []
    for row in shards:
        name = row["name"] if row["variant"] is None else f"{row['name']}@{row['variant']}"
        mark = {"fresh": "●", "carryable": "○"}.get(row["verdict"], "✗")
        rows.append(
            f"| {cell(name)} | {mark} {row['verdict']} | {cell(row['reason'])} | {row['outcome'] or '–'} "
            f"| {_origin(row)} |"
        )
    return rows


def _origin(row: dict[str, Any]) -> str:
    """Return where the receipt lies that the row speaks of, if it lies elsewhere."""
    if row.get("from_commit") is None or row.get("distance") == 0:
        return ""
    away = "" if row["distance"] is None else f", {row['distance']} back"
    return f"`{row['from_commit'][:12]}`{away}"


def _slowest(tests: Sequence[tuple[float, object, str]]) -> list[str]:
    if not tests:
        return []
    head = ["", "<details><summary>slowest tests</summary>", "", "| seconds | test | shard |", "|---:|---|---|"]
    rows = [f"| {seconds:.2f} | {cell(node_id)} | {cell(str(key))} |" for seconds, key, node_id in tests]
    return [*head, *rows, "", "</details>"]


def _findings(findings: Iterable[Finding], run: str) -> list[str]:
    """Return an item for all that was found alike; what mends several is an item below them."""
    lines = []
    for item in together(findings, run=run):
        for found, subjects in item.found:
            lines.append(f"- **{item.code}** {few([cell(name) for name in subjects])}: {cell(found)}")
        if item.blocks:
            mending = f"expected {cell(item.expected)}{suggested(cell(item.remedy))}"
            if len(item.found) == 1:
                lines[-1] += f"; {mending}"
            else:
                lines.append(f"  - of each of these: {mending}")
    return lines


def _within(lines: Sequence[str], left: int) -> int:
    """Return how many of the lines fit."""
    for count, line in enumerate(lines):
        left -= _size([line])
        if left < 0:
            return count
    return len(lines)


def _size(lines: Iterable[str]) -> int:
    return sum(len(line.encode("utf-8", "backslashreplace")) + 1 for line in lines)
