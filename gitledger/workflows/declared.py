"""Whether a command line is the declared one (DESIGN section 8: any other makes a receipt `other-command`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gitledger.config.command import pytest_arguments

__all__ = ["is_declared_command"]

_COSMETIC = re.compile(
    r"\A(?:-v+|-q+|--verbose|--quiet|--tb=\w+|--verbosity=-?\d+|-r[a-zA-Z]*|-l|--showlocals|--no-showlocals"
    r"|--color=\w+|--no-header|--no-summary|--durations=\d+|--durations-min=[\d.]+|--full-trace|-s|--capture=\w+)\Z"
)
"""Flags that change what pytest prints and nothing of what it runs."""
_WITH_VALUE = frozenset({"--tb", "--verbosity", "-r", "--color", "--durations", "--durations-min", "--capture"})


def _essence(command: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command without what only changes its looks; other programs are taken literally."""
    arguments = pytest_arguments(command)
    if arguments is None:
        return tuple(command)
    head = tuple(command[: len(command) - len(arguments)])
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif not _COSMETIC.match(word):
            kept.append(word)
    return head + tuple(kept)


def is_declared_command(given: Sequence[str], declared: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Tell whether running `given` is running `declared`.

    Verbosity and traceback flags aside, the words must be the same; `PYTEST_ADDOPTS` adds words that nobody
    declared.
    """
    if environ.get("PYTEST_ADDOPTS", "").strip() and pytest_arguments(given) is not None:
        return False
    return _essence(given) == _essence(declared)
