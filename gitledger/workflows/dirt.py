"""What would make the next run dirty, said before it is started: the very look that `record` takes."""

from __future__ import annotations

from collections.abc import Sequence

from gitledger.store.repository import Repository
from gitledger.store.worktree import work_tree_state
from gitledger.workflows.ci_files import PLACES
from gitledger.workflows.init import Step

__all__ = ["MEND", "dirt_beside", "dirt_of", "named"]

MEND = "commit them, or let .gitignore name them"
"""What to do about it. Nobody's own ignore file will do: a run looks at the tree's alone."""
MAX_NAMED = 5
"""So many files and folders are named."""


def dirt_of(repo: Repository) -> list[str]:
    """Return what is changed or untracked (folders end in `/`); [] in a bare repository."""
    if repo.worktree is None:
        return []
    state = work_tree_state(repo.git)
    return [*state.changed, *state.untracked]


def _folded(repo: Repository, paths: Sequence[str]) -> list[str]:
    """Return paths, those below a folder that holds nothing tracked as that folder, once.

    A folder that holds tracked files is never named: who lets `.gitignore` name `tests/` hides tests to come.
    """
    if not any("/" in path for path in paths):
        return list(paths)
    files = (
        repo.git.run("ls-files", "-z", "--full-name", ":/").stdout.decode("utf-8", "surrogateescape").split("\0")
    )
    holders = {f"{path.rpartition('/')[0]}/" for path in files if "/" in path}
    tracked = {folder for holder in holders for folder in _folders(holder)}
    folded = (next((top for top in _folders(path) if top not in tracked), path) for path in paths)
    return list(dict.fromkeys(folded))


def _folders(path: str) -> list[str]:
    """Return the folders above a path, the outermost first, each with its slash."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) + "/" for depth in range(1, len(parts))]


def dirt_beside(repo: Repository) -> list[Step]:
    """Return a step that names what would make runs dirty, but for what `init` wrote itself; none without."""
    ours = (".gitledger/", *(place for _, place in PLACES.values()))
    found = [path for path in dirt_of(repo) if not path.startswith(ours)]
    return (
        [Step("dirty", False, f"{named(repo, found)}: runs beside them count for nothing; {MEND}")]
        if found
        else []
    )


def named(repo: Repository, paths: Sequence[str]) -> str:
    """Return the first of some paths, and how many there are more."""
    tops = _folded(repo, paths)
    more = f" and {len(tops) - MAX_NAMED} more" if len(tops) > MAX_NAMED else ""
    return ", ".join(ascii(path)[1:-1] for path in tops[:MAX_NAMED]) + more
