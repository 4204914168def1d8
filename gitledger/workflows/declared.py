"""Whether a command line is the declared one (DESIGN section 8: any other makes a receipt `other-command`)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from gitledger.config.command import pytest_arguments

__all__ = ["is_declared_command", "ran_as_declared"]

_COSMETIC = re.compile(
    r"\A(?:-v+|-q+|--verbose|--quiet|--tb=\w+|--verbosity=-?\d+|-r[a-zA-Z]*|-l|--showlocals|--no-showlocals"
    r"|--color=\w+|--no-header|--no-summary|--durations=\d+|--durations-min=[\d.]+|--full-trace|-s|--capture=\w+"
    r"|-pno:cacheprovider)\Z"
)
"""Flags that change what pytest prints, or keeps for its next run, and nothing of what it runs."""
_ADDED = "PYTEST_ADDOPTS"
_UNDECLARED = ("PYTEST_PLUGINS", "PYTHONOPTIMIZE")
_WITH_VALUE = frozenset({"--tb", "--verbosity", "-r", "--color", "--durations", "--durations-min", "--capture"})


def _essence(command: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command without what only changes its looks; other programs are taken literally."""
    arguments = pytest_arguments(command)
    if arguments is None:
        return tuple(command)
    head = tuple(command[: len(command) - len(arguments)])
    return head + _plain(arguments)


def _plain(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return pytest's arguments without those that only change its looks."""
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif word == "-p":
            value = next(words, None)
            kept += [] if value == "no:cacheprovider" else [word, *([] if value is None else [value])]
        elif not _COSMETIC.match(word):
            kept.append(word)
    return tuple(kept)


def _adds_words(environ: Mapping[str, str]) -> bool:
    """Tell whether the variable that pytest takes further arguments from holds more than looks."""
    try:
        return bool(_plain(shlex.split(environ.get(_ADDED, ""))))  # as pytest splits it
    except ValueError:
        return True


def is_declared_command(given: Sequence[str], declared: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Tell whether running `given` is running `declared`.

    Verbosity and traceback flags aside, the words must be the same, wherever pytest takes them from. Variables
    that change what pytest runs, or take assertions away, are words that nobody declared. That a command is not
    plainly pytest doesn't tell that none runs in it: `make test`, `tox`, a script.
    """
    if any(environ.get(name, "").strip() for name in _UNDECLARED) or _adds_words(environ):
        return False
    return _essence(given) == _essence(declared)


def ran_as_declared(told: Sequence[str] | None, declared: Sequence[str]) -> bool:
    """Tell whether the arguments that pytest itself was started with are the declared ones.

    A wrapper of that name on PATH may add some. What pytest did not tell (`told` None), or a command that is not
    plainly pytest, is not held against it.
    """
    arguments = pytest_arguments(declared)
    if told is None or arguments is None:
        return True
    return _essence(("pytest", *told)) == _essence(("pytest", *arguments))
