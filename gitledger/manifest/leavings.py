"""What tests and their tools leave behind in a work tree, and the lines of `.gitignore` that let it be."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from gitledger.wording import few

__all__ = ["EGG_INFO", "MEND", "OF_TESTS", "ignoring_line", "mend_dirt"]

MEND = "commit them, or let .gitignore name them"
"""What to do about any dirt. Nobody's own ignore file will do: a run looks at the tree's alone."""
OF_TESTS = {"__pycache__/": "__pycache__/a.pyc", ".coverage": ".coverage"}
"""What nearly every test suite in Python leaves: the line that ignores it, and a path that it must cover."""
EGG_INFO = "*.egg-info/"
"""The line for what `pip install -e .` leaves behind with setuptools, beside the packages."""
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
_FOLDER = rf"(?:\A|/)({'|'.join(map(re.escape, _FOLDERS))})/"
_KEY_NAME = r"(?i)(?:\A|/)id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?\Z|(?:\.pem|\.key|[-_.]key|\Akey|/key)\Z"
"""Names that private keys have."""
_EGG_INFO = r"[^/]\.egg-info/"


def ignoring_line(path: str) -> str:
    """Return the line of `.gitignore` for an untracked path that tests or their tools leave; "" for any other."""
    folder = re.search(_FOLDER, path)
    if folder is not None:
        return f"{folder.group(1)}/"
    if re.search(_EGG_INFO, path):
        return EGG_INFO
    name = path.rpartition("/")[2]
    if name == ".coverage":
        return ".coverage"
    if name.startswith(".coverage."):
        return ".coverage.*"
    return "*.pyc" if name.endswith(".pyc") else ""


def mend_dirt(
    paths: Collection[str], *, changed: Collection[str] | None = None, keys: Collection[str] = ()
) -> str:
    """Return what to do about dirty paths: the very lines for `.gitignore` where tests have left them.

    `changed` are those that are tracked, which no `.gitignore` helps; None where nobody knows any more. `keys` are
    private keys: nobody is told to commit one, and of a name that may be one's it is said that it may.
    """
    rest = [path for path in paths if path not in keys]
    doubtful = [path for path in rest if changed is None and re.search(_KEY_NAME, path)]
    rest = [path for path in rest if path not in doubtful]
    ways = []
    if keys:
        them = "it is a private key" if len(keys) == 1 else "they are private keys"
        ways.append(f"move {_shown(keys)} out of the work tree ({them}, never to be committed)")
    if doubtful:
        ways.append(f"move {_shown(doubtful)} out of the work tree where that is a private key, else commit it")
    if rest:
        ways.append(f"{'the rest: ' if ways else ''}{_mend(rest, changed)}")
    return "; ".join(ways)


def _shown(paths: Collection[str]) -> str:
    return few([ascii(path)[1:-1] for path in paths])


def _mend(paths: Sequence[str], changed: Collection[str] | None) -> str:
    edited = [path for path in paths if path in (changed or ())]
    lines = [ignoring_line(path) for path in paths if path not in edited]
    if not lines:
        return "commit the edits, or undo them"
    named = " and ".join(f"`{line}`" for line in dict.fromkeys(lines) if line)
    if all(lines) and not edited:
        return f"add {named} to .gitignore and commit that"
    if edited:
        way = "commit them, or undo the edits and let .gitignore name the rest"
    else:
        way = MEND if changed is not None else "commit them, or let .gitignore name those that are untracked"
    return f"{way} ({named})" if named else way
