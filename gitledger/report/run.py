"""What a run of shards came to, as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gitledger.records.ids import ShardKey
from gitledger.report.text import escaped, finding_lines, paint, table
from gitledger.verdict.finding import Finding
from gitledger.verdict.union import Union

__all__ = ["run_text"]


def run_text(
    union: Union,
    *,
    asked: Sequence[ShardKey],
    commit: str,
    ran: Mapping[str, int],
    faults: Mapping[str, tuple[str, str]],
    ending: str,
    findings: Sequence[Finding],
    color: bool,
) -> str:
    """Return a line for each shard that was asked for, what a merge has against the whole, and the ending."""
    wanted = set(asked)
    choices = [choice for choice in union.choices if choice.shard.key in wanted]
    rows, styles = [], []
    for choice in choices:
        name = str(choice.shard.key)
        number = ran.get(name, 0)
        fault = faults.get(name)
        has_run = number > 0 or (fault is not None and fault[0] == "not-recorded")
        how = f"ran {number} times" if number > 1 else "ran" if has_run else "not run"
        why = f"{escaped(fault[1])} [{fault[0]}]" if fault else escaped(choice.detail)
        rows.append((name, choice.verdict, choice.reason, how, why))
        styles.append(choice.verdict)
    lines = [f"run of {commit[:12]}"]
    lines += [
        paint(line, style, color=color) for line, style in zip(table(rows, indent="  "), styles, strict=True)
    ]
    lines += finding_lines(findings, color=color)
    return "\n".join([*lines, escaped(ending, 400)]) + "\n"
