"""Pattern lists as OpenSSH matches them (openssh-portable, match.c and ssh_config(5) PATTERNS)."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["list_matches", "literal_names"]

MAX_PATTERN_BYTES = 1023
"""match.c: a longer pattern makes the whole list match nothing."""


def list_matches(name: str, patterns: str) -> bool:
    """Tell whether `name` matches a comma-separated list: some pattern of it, and none behind a `!`."""
    positive = False
    name = _bytewise(name)
    for item in _bytewise(patterns).split(","):
        negated = item.startswith("!")
        pattern = item[1:] if negated else item
        if len(pattern) > MAX_PATTERN_BYTES:
            return False
        if _compiled(pattern).fullmatch(name):
            if negated:
                return False
            positive = True
    return positive


def _bytewise(text: str) -> str:
    """Return a character per byte: OpenSSH's `?` stands for one byte."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Runs of `*` are one `*`, and each becomes an atomic, lazy step to the next literal: no backtracking blow-up.
    pieces = [re.escape(piece).replace(r"\?", ".") for piece in re.split(r"\*+", pattern)]
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL)
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1] if piece)
    return re.compile(f"{pieces[0]}{middle}.*{pieces[-1]}", re.DOTALL)


@lru_cache(maxsize=256)
def literal_names(patterns: str) -> frozenset[str]:
    """Return the entries of a list that stand for themselves: what it grants, as far as it can be listed.

    Patterns (`*@example.org`) are returned as they are spelled; they are labels to show, and match no name but
    through `list_matches`.
    """
    items = [item for item in patterns.split(",") if item and not item.startswith("!")]
    return frozenset(item for item in items if set(item) & {"*", "?"} or list_matches(item, patterns))
