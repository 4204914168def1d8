"""What would make the next run dirty, said before it is started: the very look that `record` takes."""

from __future__ import annotations

from collections.abc import Sequence

from gitledger.manifest.leavings import EGG_INFO, OF_TESTS, ignoring_line
from gitledger.store.repository import Repository
from gitledger.store.worktree import work_tree_state
from gitledger.workflows.ci_files import PLACES
from gitledger.workflows.init import Step
from gitledger.workflows.mend import private_keys_among, to_mend_dirt

__all__ = ["dirt_beside", "dirt_of", "named", "will_be_left"]

MAX_NAMED = 5
"""So many files and folders are named."""


def dirt_of(repo: Repository) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what is changed, and what is untracked (folders end in `/`); nothing in a bare repository."""
    if repo.worktree is None:
        return (), ()
    state = work_tree_state(repo.git)
    return state.changed, state.untracked


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
    changed, untracked = (_of_others(repo, paths, ours) for paths in dirt_of(repo))
    found = [*changed, *untracked]
    if not found:
        return []
    mend = to_mend_dirt(repo, changed, untracked)
    return [Step("dirty", False, f"{named(repo, found)}: runs beside them count for nothing; {mend}")]


def _of_others(repo: Repository, paths: Sequence[str], ours: tuple[str, ...]) -> list[str]:
    """Return what `init` has not written itself; a private key among that is none of it."""
    keys = private_keys_among(repo, [path for path in paths if path.startswith(ours)])
    return [path for path in paths if path in keys or not path.startswith(ours)]


def will_be_left(repo: Repository) -> list[Step]:
    """Return a step that names lines that `.gitignore` lacks for what tests, and installing, leave behind.

    Nothing is said where no Python is tracked or lies at hand, nor of what is dirt already and named as such.
    """
    if repo.worktree is None or not _has_python(repo):
        return []
    lines = dict(OF_TESTS)
    if any((repo.worktree / name).is_file() for name in ("pyproject.toml", "setup.py")):
        lines[EGG_INFO] = ("src/" if (repo.worktree / "src").is_dir() else "") + "a.egg-info/PKG-INFO"
    asked = repo.git.run(
        "check-ignore",
        "--no-index",
        "--verbose",
        "--non-matching",
        "--stdin",
        "-z",
        stdin="\0".join(lines.values()).encode(),
        statuses=frozenset({0, 1}),
    )
    fields = asked.stdout.decode("utf-8", "surrogateescape").split("\0")
    ignored = {
        path
        for source, _, pattern, path in zip(*[iter(fields)] * 4, strict=False)
        if source.endswith(".gitignore") and not pattern.startswith("!")
    }
    named_already = set(map(ignoring_line, dirt_of(repo)[1]))
    left = [line for line, path in lines.items() if path not in ignored and line not in named_already]
    if not left:
        return []
    lacking = " and ".join(f"`{line}`" for line in left)
    who = "tests and `pip install -e .` leave" if EGG_INFO in left else "tests leave"
    return [Step("leavings", False, f"add {lacking} to .gitignore: what {who} makes the next run dirty")]


def _has_python(repo: Repository) -> bool:
    return bool(repo.git.run("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.py").stdout)


def named(repo: Repository, paths: Sequence[str]) -> str:
    """Return the first of some paths, and how many there are more."""
    tops = _folded(repo, paths)
    more = f" and {len(tops) - MAX_NAMED} more" if len(tops) > MAX_NAMED else ""
    return ", ".join(ascii(path)[1:-1] for path in tops[:MAX_NAMED]) + more
