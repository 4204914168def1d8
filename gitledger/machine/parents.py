"""The command lines of the processes above this one, nearest first, where there is a /proc to read them from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice

from gitledger.machine.keeper import read_file, state_and_parent

__all__ = ["ancestors", "commands_above"]

MAX_LEVELS = 32
"""So many generations are looked at: a hook manager puts a few between git and us."""


def ancestors() -> Iterator[int]:
    """Yield the processes above this one, the nearest first, but for the first of all."""
    seen, pid = set[int](), os.getppid()
    while pid > 1 and pid not in seen:
        seen.add(pid)
        yield pid
        pid = state_and_parent(pid)[1]


def commands_above() -> Iterator[tuple[str, ...]]:
    """Yield the words of each ancestor's command (proc(5) `cmdline`), but of those that can't be read."""
    for pid in islice(ancestors(), MAX_LEVELS):
        words = read_file(f"/proc/{pid}/cmdline").decode("utf-8", "replace").split("\0")[:-1]
        if words:
            yield tuple(words)
