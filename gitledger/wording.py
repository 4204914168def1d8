"""How messages are worded: numbers with their nouns, and what to do next behind what is wrong."""

from __future__ import annotations

__all__ = ["ASIDES", "counted", "suggested"]

ASIDES = ("did you mean ", "known: ")
"""How hints begin that name what there is, and are nothing to type."""


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, `1 shard` and `2 shards`; `many` is the plural that no `s` makes."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def suggested(hint: str) -> str:
    """Return what stands behind a message: `; try: ` and what to type or to do, or an aside by itself."""
    if not hint:
        return ""
    return f"; {hint}" if hint.startswith(ASIDES) else f"; try: {hint}"
