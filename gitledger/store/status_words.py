"""How git is asked for the state of a work tree: with nothing left on that only hides an edit.

It loads next to nothing, so that git can be started before all else.
"""

from __future__ import annotations

import os

__all__ = ["NO_LOCKS", "settings_for", "status_words"]

NO_LOCKS = {"GIT_OPTIONAL_LOCKS": "0"}
"""In git's environment: a look writes nothing."""
_HIDES_NOTHING = (
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "core.ignoreStat=false"),
    *("-c", "core.trustctime=true"),
    *("-c", "core.checkStat=default"),
    *("-c", "core.splitIndex=false"),
    *("-c", "core.symlinks=true"),
)
"""No hooks, and settings under which an unchanged size and mtime alone never pass for unchanged content.

Nor does a file that holds a link's target pass for the link.
"""
_TELLS_CASES_APART = ("-c", "core.ignoreCase=false")

_STATUS = (
    "status",
    "--porcelain=v2",
    "-z",
    "--branch",
    "--no-ahead-behind",
    "--no-renames",
    "--ignore-submodules=dirty",
)
_WITHOUT_UNTRACKED = ("--untracked-files=no",)
_WITH_UNTRACKED = ("--untracked-files=all", "--ignored=matching")
_NO_PERSONAL_RULES = ("-c", f"core.excludesFile={os.devnull}")
_FEW_CORES = 2
_ALONE = ("-c", "core.preloadIndex=false", "-c", "index.threads=1")
"""git looks at files from up to twenty threads: that would take both cores from whoever goes on meanwhile."""


def settings_for(folder: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the settings that git is asked with in a work tree.

    `core.ignoreCase` describes the file system. Where it tells `.git` from `.GIT`, that would only hide what is
    untracked behind a tracked name or an ignored one.
    """
    return _HIDES_NOTHING if _is_one(folder, ".git", ".GIT") else (*_HIDES_NOTHING, *_TELLS_CASES_APART)


def _is_one(folder: str | os.PathLike[str], name: str, other: str) -> bool:
    try:
        return os.path.samestat(os.lstat(os.path.join(folder, name)), os.lstat(os.path.join(folder, other)))
    except OSError:
        return False


def status_words(folder: str | os.PathLike[str], *, walk: bool, aside: bool = False) -> tuple[str, ...]:
    """Return the arguments of git by which it compares a work tree, and with `walk` lists what is untracked.

    `aside`: it has time, and something else needs the machine meanwhile.
    """
    threads = _ALONE if aside and (os.cpu_count() or 1) <= _FEW_CORES else ()
    rules, untracked = (_NO_PERSONAL_RULES, _WITH_UNTRACKED) if walk else ((), _WITHOUT_UNTRACKED)
    return (*settings_for(folder), *threads, *rules, *_STATUS, *untracked)
