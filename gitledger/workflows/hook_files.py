"""The pre-push hook as a file: installed beside what exists, removed without a trace."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.errors import StoreError
from gitledger.store.repository import Repository

__all__ = ["CHAINED", "HookFile", "hooks_folder", "install_hook", "is_installed", "uninstall_hook"]

NAME = "pre-push"
CHAINED = "pre-push.before-git-ledger"
"""Where a hook that was there first is kept; ours runs it first, with the same input."""
_MARK = "# git ledger hook pre-push: "
"""What the stub says of itself; a hook by hand that calls ours says it otherwise, and is left alone."""


@dataclass(frozen=True, slots=True)
class HookFile:
    """Where the hook lies, and what was done: `installed`, `present`, `removed`, `absent`."""

    path: Path
    done: str
    chained: bool


def hook_text(python: str) -> str:
    """Return the packaged stub, with the interpreter to fall back on where git-ledger is not on PATH."""
    packaged = files("gitledger") / "_hooks" / NAME
    source = packaged if packaged.is_file() else Path(__file__).parents[2] / "hooks" / NAME
    return source.read_text("utf-8").replace("@PYTHON@", python)


def hooks_folder(repo: Repository) -> Path:
    """Return the folder that git runs hooks from, `core.hooksPath` respected."""
    found = Path(repo.git.run("rev-parse", "--git-path", "hooks").text)
    return found if found.is_absolute() else (repo.worktree or repo.git_dir) / found


def is_installed(repo: Repository) -> bool:
    """Tell whether git would run our hook before a push."""
    try:
        return _MARK in (hooks_folder(repo) / NAME).read_text("utf-8", "replace")
    except OSError:
        return False


def install_hook(repo: Repository, python: str) -> HookFile:
    """Return what was done; a foreign hook is moved aside and chained. Raises `StoreError` `hook-unwritable`."""
    folder = hooks_folder(repo)
    path, chained = folder / NAME, folder / CHAINED
    text = hook_text(python)
    try:
        if path.exists():
            if path.read_text("utf-8", "replace") == text:
                return HookFile(path, "present", chained.exists())
            if _MARK not in path.read_text("utf-8", "replace"):
                path.rename(chained)
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        path.chmod(0o755)
    except OSError as error:
        raise _unwritable(path, error) from error
    return HookFile(path, "installed", chained.exists())


def uninstall_hook(repo: Repository) -> HookFile:
    """Return what was done; the hook that was there first is back in its place, a foreign one is left alone."""
    folder = hooks_folder(repo)
    path, chained = folder / NAME, folder / CHAINED
    try:
        if not path.exists() or _MARK not in path.read_text("utf-8", "replace"):
            return HookFile(path, "absent", False)
        path.unlink()
        if chained.exists():
            chained.rename(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    return HookFile(path, "removed", False)


def _unwritable(path: Path, error: OSError) -> StoreError:
    return StoreError("hook-unwritable", f"the hook {path} can't be written: {error.strerror}", "git ledger init")
