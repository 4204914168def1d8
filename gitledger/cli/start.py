"""Where the command starts: what has to wait for git lets it begin before anything else is loaded."""

from __future__ import annotations

import os
import sys

from gitledger.store.early_look import look_early

TYPE_CHECKING = False  # to load `typing` takes as long as all that is needed here
if TYPE_CHECKING:
    from typing import NoReturn

    from gitledger.store.early_look import EarlyLook

__all__ = ["main"]

_LOOKERS = frozenset({"plan", "record"})
"""Commands that look at the whole work tree of the folder that they are started in."""
_ELSEWHERE = ("-C", "-h", "--help", "--capability")
"""Beginnings of words by which they may do anything else; behind `--` as well, which only costs time."""


def main() -> NoReturn:
    """Run the command line and exit."""
    early = _early(sys.argv[1:])
    try:
        from gitledger.cli.loading import collect_seldom, defer_seldom_used

        collect_seldom()
        defer_seldom_used()
        from gitledger.cli.app import main as run

        run(early=early)
    finally:
        if early is not None:
            early.abandon()  # nothing where it was heard


def _early(words: list[str]) -> EarlyLook | None:
    is_plain = words[:1] and words[0] in _LOOKERS and not any(word.startswith(_ELSEWHERE) for word in words)
    return look_early(os.environ) if is_plain else None
