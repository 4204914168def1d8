"""Shards as rows of a plan, a verdict, a merge or a run: short, and what many of them share told once below."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from gitledger.report.fit import Row, columns_beside
from gitledger.report.text import escaped, finding_lines, paint, table, uncommitted_lines
from gitledger.report.together import RUN
from gitledger.wording import counted, few, shortened

if TYPE_CHECKING:
    from gitledger.records.ids import ShardKey
    from gitledger.verdict.finding import Finding
    from gitledger.verdict.select import Choice
    from gitledger.verdict.union import Union

__all__ = ["below", "merge_text", "plan_text", "remark_of", "room_beside", "verdict_text"]

_MARKS = {"fresh": "●", "carryable": "○", "stale": "✗"}
MAX_PATHS = 3
ROOM = 120
"""How long a remark may be where nobody says how wide the window is: in a file, in a pipe."""
LEAST_ROOM = 24
LEAST_PATH = 12
MAX_GIST = 400


def plan_text(
    union: Union,
    uncommitted: Iterable[tuple[str, Sequence[str]]],
    *,
    commit: str,
    color: bool,
    width: int | None = None,
) -> str:
    """Return a plan: a line a shard with its verdict, reason and what explains it.

    `width` are the columns of the window, None where there is none.
    """
    from gitledger.verdict.plan import summarise

    heads, room = _heads(union.choices, width)
    lines = [f"plan for {commit[:12]}", *_shard_lines(union.choices, heads, room, color=color)]
    lines += below(union.choices, color=color, room=room)
    counts = summarise(union)
    lines.append(", ".join(f"{number} {verdict}" for verdict, number in counts.items()))
    return "\n".join([*lines, *uncommitted_lines(uncommitted)]) + "\n"


def verdict_text(
    *,
    passed: bool,
    commit: str,
    policy: str,
    union: Union,
    findings: Sequence[Finding],
    ignored: Sequence[tuple[str, str]],
    color: bool,
    coverage: Sequence[str] = (),
    width: int | None = None,
    run: str = RUN,
) -> str:
    """Return a verdict: the shards, lines on coverage, every finding, what was ignored, and the answer last.

    What a finding says of a shard is not said in its row as well. `run` is the command that runs what is stale by
    the policy that judged.
    """
    heads, room = _heads(union.choices, width)
    told = _told(union, findings)
    lines = [f"verify {commit[:12]} by policy {policy}"]
    lines += _shard_lines(union.choices, heads, room, color=color, told=told)
    lines += below(_untold(union, told), color=color, room=room)
    lines += [*coverage, *finding_lines(findings, color=color, run=run)]
    by_reason: dict[str, list[str]] = {}
    for name, reason in ignored:
        by_reason.setdefault(reason, []).append(name)
    lines += [f"  · ignored {few(names)}: {escaped(reason)}" for reason, names in by_reason.items()]
    word = "passed" if passed else "failed"
    lines.append(paint(f"verdict: {word}", word, color=color))
    return "\n".join(lines) + "\n"


def merge_text(
    *,
    union: Union,
    outcome: str,
    commit: str,
    record: str | None,
    findings: Sequence[Finding],
    color: bool,
    coverage: Sequence[str] = (),
    is_new: bool = True,
    width: int | None = None,
    run: str = RUN,
) -> str:
    """Return what a merge came to: its inputs, lines on coverage, every fault, and what it wrote, if anything.

    `is_new`: the record was written now, and did not stand there.
    """
    heads, room = _heads(union.choices, width)
    told = _told(union, findings)
    lines = [f"merge {commit[:12]}", *_shard_lines(union.choices, heads, room, color=color, told=told)]
    lines += below(_untold(union, told), color=color, room=room)
    lines += [*coverage, *finding_lines(findings, color=color, run=run)]
    word = "passed" if outcome == "passed" else "failed"
    wrote = f"merged receipt {record[:12]}" if record else "nothing was written"
    wrote = wrote if is_new else f"nothing new to merge since {wrote}"
    lines.append(f"{paint(f'merge: {outcome}', word, color=color)}, {wrote}")
    return "\n".join(lines) + "\n"


def _told(union: Union, findings: Iterable[Finding]) -> frozenset[ShardKey]:
    """Return the shards whose reason a finding explains."""
    said = {(finding.subject, finding.code) for finding in findings if finding.blocks}
    return frozenset(item.shard.key for item in union.choices if (str(item.shard.key), item.reason) in said)


def _untold(union: Union, told: Collection[ShardKey]) -> list[Choice]:
    return [choice for choice in union.choices if choice.shard.key not in told]


def _heads(choices: Iterable[Choice], width: int | None) -> tuple[list[tuple[str, str, str]], int]:
    """Return the first cells of rows, and how much room they leave for remarks."""
    heads = [(f"{_MARKS[item.verdict]} {item.shard.key}", item.verdict, item.reason) for item in choices]
    return heads, room_beside(heads, width)


def _shard_lines(
    choices: Sequence[Choice],
    heads: Sequence[tuple[str, str, str]],
    room: int,
    *,
    color: bool,
    told: Collection[ShardKey] = (),
) -> list[str]:
    rows = [
        (*head, remark_of(choice, room, told=choice.shard.key in told))
        for head, choice in zip(heads, choices, strict=True)
    ]
    return [
        paint(line, choice.verdict, color=color)
        for choice, line in zip(choices, table(rows, indent="  "), strict=True)
    ]


def room_beside(heads: Sequence[Row], width: int | None) -> int:
    """Return how many columns are left for a remark beside these cells in a window of `width` columns."""
    if width is None or not heads:
        return ROOM
    return max(columns_beside(heads, width), LEAST_ROOM)


def remark_of(choice: Choice, room: int, *, told: bool = False) -> str:
    """Return what a row says of a shard beside its reason, in `room` columns or hardly more.

    `told`: a finding says the rest; only what is the shard's own is left.
    """
    whole = _remark(choice, _origin(choice), room, told=told)
    if len(whole) <= room or not (choice.changed_paths or choice.remark or choice.detail):
        return whole
    return _remark(choice, "", room, told=told)  # in a narrow window, what is wrong before where it was right


def _remark(choice: Choice, origin: str, room: int, *, told: bool) -> str:
    runs = _attempts(choice)
    left = room - sum(len(part) + 2 for part in (origin, runs) if part)
    paths = "" if told else _paths(choice.changed_paths, left)
    left -= len(paths) + 2 if paths else 0
    own = choice.remark or ("" if told else choice.detail)
    detail = shortened(escaped(own), max(left, LEAST_ROOM))
    return "; ".join(filter(None, [origin, paths, detail, runs]))


def below(choices: Iterable[Choice], *, color: bool, room: int) -> list[str]:
    """Return what rows with `room` for their remarks leave out, once for all shards of which it holds."""
    shared: dict[tuple[str, str], list[str]] = {}
    for choice in choices:
        gist = choice.gist or choice.detail
        if choice.gist or (gist and escaped(gist) not in remark_of(choice, room)):
            shared.setdefault((choice.reason, gist), []).append(str(choice.shard.key))
    return [
        f"  {paint(f'· {few(names)}: {escaped(gist, MAX_GIST)}', 'dim', color=color)} [{reason}]"
        for (reason, gist), names in shared.items()
    ]


def _origin(choice: Choice) -> str:
    """Return where the receipt lies that the row speaks of, "" where it is the commit itself or none."""
    about = choice.result or choice.about
    if about is None or about.fresh:
        return ""
    return f"from {about.commit[:12]}" + ("" if choice.distance is None else f", {choice.distance} back")


def _attempts(choice: Choice) -> str:
    if len(choice.attempts) < 2:
        return ""
    from gitledger.verdict.attempts import attempts_used

    uncounted = len(choice.attempts) - attempts_used(choice.attempts)
    aside = f" ({uncounted} interrupted)" if uncounted else ""
    return f"{counted(len(choice.attempts), 'attempt')}{aside}"


def _paths(paths: Sequence[str], room: int) -> str:
    """Return as many paths as there is room for, at least the first and its end, and how many there are more."""
    shown = [escaped(path) for path in paths[:MAX_PATHS]]
    while len(shown) > 1 and len(few(shown + list(paths[len(shown) :]), len(shown))) > room:
        shown.pop()
    text = few(shown + list(paths[len(shown) :]), len(shown)) if shown else ""
    if len(text) <= room or not shown:
        return text
    cut = max(room - (len(text) - len(shown[0])), LEAST_PATH)
    return text if len(shown[0]) <= cut else f"…{shown[0][1 - cut :]}{text[len(shown[0]) :]}"
