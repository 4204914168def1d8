"""The three standard streams, made fit to use whatever state they were handed over in.

A closed one would be a trap: the next file that is opened takes its number, and what is printed goes there. Text
that the locale can't spell is escaped, not refused. Where results can't be written that is an error and never
silence: who reads an exit status of 0 may rely on having been told everything.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

__all__ = ["PLAIN", "OutputError", "abandon_stdout", "open_streams"]

PLAIN = {
    "●": "*",
    "○": "o",
    "✗": "x",
    "✓": "+",
    "·": "-",
    "◐": "%",
    "⊘": "/",
    "…": "...",
    "–": "-",
    "—": "--",
    "→": "->",
    "×": "x",
    "≥": ">=",
    "≤": "<=",
    "µ": "u",
    "─": "-",
    "❌": "x",
    "✅": "+",
    "−": "-",
    "÷": "/",
    "’": "'",
}
"""What stands for our own signs where the encoding has none; the words beside them say the same."""
_PLAIN_LOCALES = ("C", "POSIX")
_ERRORS = "gitledger-spelt"


class OutputError(Exception):
    """Standard output can't be written. No `OSError`: click takes EPIPE for itself, and exits with 1 for "no"."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or "unknown reason")
        self.is_reader_gone = isinstance(error, BrokenPipeError)


class _Stdout(io.FileIO):
    """Standard output whose faults are told from those of any other file."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputError(error) from error


class _Stderr(io.FileIO):
    """Standard error, which nobody has to read: a message that can't be written stops nothing."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def open_streams() -> None:
    """Give this process three usable streams. A standard output that was closed refuses all that is written."""
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # the lowest free number is this one
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - a descriptor, kept open
    sys.stdout = _text(_Stdout, 1, sys.stdout)
    sys.stderr = _text(_Stderr, 2, sys.stderr)


def _text(kind: Callable[..., io.FileIO], number: int, before: object) -> io.TextIOWrapper:
    """Return a text stream on a descriptor, in the encoding of the one `before` it."""
    raw = kind(number, "w", closefd=False)
    encoding = getattr(before, "encoding", None) or "utf-8"
    if os.environ.get("LC_ALL") in _PLAIN_LOCALES and raw.isatty():  # Python writes UTF-8 there, whoever looks
        encoding = "ascii"
    is_chatty = number == 2 or raw.isatty()
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, errors=_ERRORS, line_buffering=is_chatty)


def _spell(error: UnicodeError) -> tuple[str, int]:
    """Return what is written in place of what an encoding lacks, and where it goes on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    shown = (PLAIN.get(char) or char.encode("ascii", "backslashreplace").decode("ascii") for char in lacking)
    return "".join(shown), error.end


codecs.register_error(_ERRORS, _spell)


def abandon_stdout() -> None:
    """Let whatever is still to be written to standard output go nowhere: nobody can read it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
