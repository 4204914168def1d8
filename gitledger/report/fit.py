"""Rows fitted into a window: one that a terminal breaks is two rows to the eye. Pipes and files get all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gitledger.wording import shortened

__all__ = ["Row", "columns_beside", "fitted", "narrowed", "wrapped"]

Row = tuple[str, ...]
Shorter = Callable[[Sequence[Row], int], list[Row]]
"""Makes rows narrower by so many columns, as far as it can."""
INDENT = 2
GAP = 2
LEAST_REMARK = 24
"""So much of the last cell is worth making others shorter for."""


def fitted(
    rows: Iterable[Row], width: int | None, shorter: Iterable[Shorter] = (), *, least: int = LEAST_REMARK
) -> list[Row]:
    """Return rows that fit a window of `width` columns as a table indented by two, as far as they can.

    The last cell of each is cut (`…`) to what the others leave; where that is too little, `shorter` makes those
    shorter first, one after the other as long as it has no `least` columns. `width` None: nobody looks, and
    nothing is cut.
    """
    found = list(rows)
    if width is None or not found:
        return found
    wanted = min(least, max(len(row[-1]) for row in found))
    for narrower in shorter:
        lacking = wanted - _room(found, width)
        if lacking <= 0:
            break
        found = narrower(found, lacking)
    room = max(_room(found, width), min(wanted, LEAST_REMARK // 2))
    return [(*row[:-1], shortened(row[-1], room)) for row in found]


def narrowed(column: int, least: int, *, keep_end: bool = False) -> Shorter:
    """Return what cuts one column to no less than `least`; `keep_end` where the end tells more, as of a path."""

    def make(rows: Sequence[Row], lacking: int) -> list[Row]:
        limit = max(least, max(len(row[column]) for row in rows) - lacking)
        return [(*row[:column], _cut(row[column], limit, keep_end=keep_end), *row[column + 1 :]) for row in rows]

    return make


def wrapped(line: str, width: int | None, *, indent: str) -> list[str]:
    """Return a line as lines of a window's width, broken between words; those that follow are indented."""
    if width is None or len(line) <= width:
        return [line]
    from textwrap import wrap

    return wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _room(rows: Sequence[Row], width: int) -> int:
    return columns_beside([row[:-1] for row in rows], width)


def columns_beside(heads: Sequence[Row], width: int) -> int:
    """Return how many of `width` columns the first cells of a table leave for one more; less than 0 for none."""
    taken = sum(max(len(head[column]) for head in heads) + GAP for column in range(len(heads[0])))
    return width - INDENT - taken


def _cut(text: str, limit: int, *, keep_end: bool) -> str:
    if len(text) <= limit:
        return text
    return f"…{text[1 - limit :]}" if keep_end else f"{text[: limit - 1]}…"
