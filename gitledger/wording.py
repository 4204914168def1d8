"""How messages are worded: numbers with their nouns, and what to do next behind what is wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["ASIDES", "counted", "few", "from_top", "shell_word", "shortened", "suggested", "to_paste"]

ASIDES = ("did you mean ", "known: ")
"""How hints begin that name what there is, and are nothing to type."""
_PROGRAMS = (
    "cd|chmod|chown|command|df|eval|export|git|kill|ls|mkdir|mv|pip|python|rm|ssh-add|ssh-keygen|sudo|unset"
)
_COMMAND = rf"\A(?P<command>(?:[A-Z_]+=\S+ )*(?:{_PROGRAMS})\b[^()]*[^() ]) \((?P<aside>.*)\)\Z"
"""A command, and what is said of it in parentheses behind."""


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, `1 shard` and `2 shards`; `many` is the plural that no `s` makes."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def few(names: Sequence[str], limit: int = 3) -> str:
    """Return the first of some names, and how many there are more: `a, b, c and 37 more`."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def suggested(hint: str) -> str:
    """Return what stands behind a message: `; try: ` and what to type or to do, or an aside by itself."""
    if not hint:
        return ""
    return f"; {hint}" if hint.startswith(ASIDES) else f"; try: {to_paste(hint)}"


def to_paste(hint: str) -> str:
    """Return a hint that runs as it is pasted into a shell: what is said of a command becomes a comment."""
    return re.sub(_COMMAND, _commented, hint)


def _commented(found: re.Match[str]) -> str:
    return f"{found['command']}  # {found['aside']}"


def from_top(*paths: str) -> str:
    """Return paths of the repository as git takes them in any of its folders, quoted for a shell."""
    return " ".join(shell_word(f":/{path}") for path in paths)


def shell_word(text: object) -> str:
    """Return a text as one word of a command line; nothing is quoted that need not be."""
    from shlex import quote

    return quote(str(text))


def shortened(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text, `…` behind what was cut.

    An id in which the cut would fall keeps twelve digits, the fewest that we print;
    the text may be by so much longer.
    """
    if len(text) <= limit:
        return text
    end = limit - 1
    for found in re.finditer(r"(?<![0-9a-z])[0-9a-f]{12,64}(?![0-9a-z])", text[max(0, end - 64) : end + 64]):
        start = max(0, end - 64) + found.start()
        if start < end < start + 12:
            end = start + 12
    return text if end >= len(text) else text[:end] + "…"
