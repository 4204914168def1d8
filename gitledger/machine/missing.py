"""Why a command can't be started, as the system would say it."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from gitledger.wording import shell_word

__all__ = ["missing_command", "to_obtain"]


def missing_command(name: str, cwd: Path, env: Mapping[str, str]) -> int | None:
    """Return the errno that execvp(3) gives a command that can't be found or executed; None where it may be."""
    folders = [""] if "/" in name else env.get("PATH", os.defpath).split(os.pathsep)
    number = errno.ENOENT
    for folder in folders:
        path = cwd / folder / name
        if not path.is_file():
            continue
        if os.access(path, os.X_OK):
            return None
        number = errno.EACCES
    return number


def to_obtain(name: str) -> str:
    """Return what to do about a command that can't be found: tests mostly have an environment of their own."""
    if "/" in name:
        return f"ls -l {shell_word(name)} (its first line may name an interpreter that is not here)"
    if name == "pytest":
        return "python -m pip install pytest (or activate the environment of your tests)"
    return f"install {shell_word(name)}, or activate the environment that has it"
