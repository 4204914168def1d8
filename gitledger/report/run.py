"""What a run of shards came to, as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gitledger.records.ids import ShardKey
from gitledger.report.shards import below, remark_of, room_beside
from gitledger.report.text import escaped, finding_lines, paint, table
from gitledger.verdict.finding import Finding
from gitledger.verdict.union import Union
from gitledger.wording import few

__all__ = ["run_text"]

MAX_MESSAGE = 400


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
    width: int | None = None,
) -> str:
    """Return a line for each shard that was asked for, what a merge has against the whole, and the ending.

    `faults` are code and message by shard; a message that several share is told once. `width` are the columns of
    the window, None where there is none.
    """
    wanted = set(asked)
    choices = [choice for choice in union.choices if choice.shard.key in wanted]
    heads = []
    for choice in choices:
        name = str(choice.shard.key)
        number = ran.get(name, 0)
        fault = faults.get(name)
        has_run = number > 0 or (fault is not None and fault[0] == "not-recorded")
        how = f"ran {number} times" if number > 1 else "ran" if has_run else "not run"
        heads.append((name, choice.verdict, choice.reason, how))
    room = room_beside(heads, width)
    rows = [
        (*head, f"[{faults[head[0]][0]}]" if head[0] in faults else remark_of(choice, room))
        for head, choice in zip(heads, choices, strict=True)
    ]
    lines = [f"run of {commit[:12]}"]
    lines += [
        paint(line, choice.verdict, color=color)
        for line, choice in zip(table(rows, indent="  "), choices, strict=True)
    ]
    alike: dict[tuple[str, str], list[str]] = {}
    for name, fault in faults.items():
        alike.setdefault(fault, []).append(name)
    lines += [
        f"  {paint(f'✗ {few(names)}: {escaped(message, MAX_MESSAGE)}', 'failed', color=color)} [{code}]"
        for (code, message), names in alike.items()
    ]
    lines += below([item for item in choices if str(item.shard.key) not in faults], color=color, room=room)
    lines += finding_lines(findings, color=color)
    return "\n".join([*lines, escaped(ending, 400)]) + "\n"
