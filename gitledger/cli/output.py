"""Where words go: results to stdout, messages to stderr, colour only where somebody looks."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from gitledger.dataclass import dataclass
from gitledger.errors import UsageError
from gitledger.wording import suggested

if TYPE_CHECKING:
    from gitledger.store.early_look import EarlyLook

__all__ = ["Output", "show_error", "wants_color"]

MAX_SHOWN = 800
"""Characters of a message, and of a hint, that are shown."""


def wants_color(stream: TextIO, environ: Mapping[str, str], *, no_color: bool) -> bool:
    """Tell whether `stream` gets colour.

    `--no-color`, then a non-empty `NO_COLOR`, then `FORCE_COLOR`, then git's pager, then a terminal that is not
    dumb (no-color.org; force-color.org).
    """
    if no_color or environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    if environ.get("GIT_PAGER_IN_USE") == "true":
        return True
    return stream.isatty() and environ.get("TERM", "dumb") != "dumb"


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """How this process speaks. `directory` is where it works (`-C`); `environ` is its environment.

    `early` is a look at the work tree of the folder that it was started in, where one has begun.
    """

    directory: Path
    environ: Mapping[str, str]
    quiet: bool
    verbose: bool
    color: bool
    early: EarlyLook | None = None

    @classmethod
    def of(
        cls, environ: Mapping[str, str], *, directory: str | None, quiet: bool, verbose: bool, no_color: bool
    ) -> Output:
        """Return the output that options and environment ask for; raises `UsageError` without a current folder."""
        try:
            folder = Path(directory or ".").resolve()
        except (OSError, ValueError) as error:
            raise UsageError(
                "not-a-folder", "the current folder is not there any more", "cd to one that is"
            ) from error
        return cls(
            directory=folder,
            environ=environ,
            quiet=quiet,
            verbose=verbose,
            color=wants_color(sys.stdout, environ, no_color=no_color),
        )

    @property
    def width(self) -> int | None:
        """The columns of the terminal that results go to (`COLUMNS` first, as everywhere); None where none is."""
        if not sys.stdout.isatty():
            return None
        from shutil import get_terminal_size

        return get_terminal_size().columns

    def result(self, text: str) -> None:
        """Write what was asked for to stdout."""
        sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")

    def document(self, value: Any) -> None:
        """Write one JSON document to stdout."""
        sys.stdout.write(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=True) + "\n")

    def message(self, text: str) -> None:
        """Write a message to stderr, unless asked to be quiet."""
        if not self.quiet:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def detail(self, text: str) -> None:
        """Write a message to stderr where more was asked for."""
        if self.verbose:
            self.message(text)


def show_error(code: str, message: str, hint: str, status: int, *, as_json: bool) -> int:
    """Write one line to stderr (and, for machines, one document to stdout) and return the exit status.

    What a message quotes is cut in the middle where it is long: the code and the hint are always in sight.
    """
    line = f"error: {_short(_printable(' '.join(message.split())))} [{code}]"
    line += suggested(_short(_printable(" ".join(hint.split()))))
    sys.stderr.write(line + "\n")
    if as_json:
        document = {"error": {"code": code, "exit_status": status, "hint": hint, "message": message}}
        sys.stdout.write(json.dumps(document, sort_keys=True) + "\n")
    sys.stdout.flush()
    return status


def _short(text: str) -> str:
    half = MAX_SHOWN // 2
    return text if len(text) <= MAX_SHOWN else f"{text[:half]} … {text[-half:]}"


def _printable(text: str) -> str:
    """Return `text` with control and direction characters escaped: what others wrote must not drive a terminal."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
