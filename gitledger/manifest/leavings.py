"""What tests and their tools leave behind in a work tree, and the lines of `.gitignore` that let it be."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["MEND", "OF_TESTS", "ignoring_line", "mend_dirt"]

MEND = "commit them, or let .gitignore name them"
"""What to do about any dirt. Nobody's own ignore file will do: a run looks at the tree's alone."""
OF_TESTS = {"__pycache__/": "__pycache__/a.pyc", ".coverage": ".coverage"}
"""What nearly every test suite in Python leaves: the line that ignores it, and a path that it must cover."""
_FOLDERS = (
    "__pycache__",
    ".pytest_cache",
    ".hypothesis",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    ".nox",
    ".venv",
    "venv",
    "htmlcov",
)
_FOLDER = re.compile(rf"(?:\A|/)({'|'.join(map(re.escape, _FOLDERS))})/")
_EGG_INFO = re.compile(r"[^/]\.egg-info/")


def ignoring_line(path: str) -> str:
    """Return the line of `.gitignore` for an untracked path that tests or their tools leave; "" for any other."""
    folder = _FOLDER.search(path)
    if folder is not None:
        return f"{folder.group(1)}/"
    if _EGG_INFO.search(path):
        return "*.egg-info/"
    name = path.rpartition("/")[2]
    if name == ".coverage":
        return ".coverage"
    if name.startswith(".coverage."):
        return ".coverage.*"
    return "*.pyc" if name.endswith(".pyc") else ""


def mend_dirt(paths: Iterable[str]) -> str:
    """Return what to do about dirty paths: the very lines for `.gitignore` where tests have left them."""
    lines = {path: ignoring_line(path) for path in paths}
    named = " and ".join(f"`{line}`" for line in dict.fromkeys(lines.values()) if line)
    if not named:
        return MEND
    return f"add {named} to .gitignore and commit that" if all(lines.values()) else f"{MEND} ({named})"
