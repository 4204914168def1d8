"""What would make the next run dirty, said before it is started: the very look that `record` takes."""

from __future__ import annotations

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


def dirt_beside(repo: Repository) -> list[Step]:
    """Return a step that names what would make runs dirty, but for what `init` wrote itself; none without."""
    ours = (".gitledger/", *(place for _, place in PLACES.values()))
    found = [path for path in dirt_of(repo) if not path.startswith(ours)]
    return [Step("dirty", False, f"{named(found)}: runs beside them count for nothing; {MEND}")] if found else []


def named(paths: list[str]) -> str:
    """Return the first of some paths, each folder once, and how many there are more."""
    tops = list(dict.fromkeys(f"{path.partition('/')[0]}/" if "/" in path else path for path in paths))
    more = f" and {len(tops) - MAX_NAMED} more" if len(tops) > MAX_NAMED else ""
    return ", ".join(ascii(path)[1:-1] for path in tops[:MAX_NAMED]) + more
