"""The files that CI runs, laid into a work tree as they are; what is there already stays."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from gitledger.errors import StoreError
from gitledger.workflows.init import Step
from gitledger.workflows.session import Session
from gitledger.workflows.target import no_work_tree

__all__ = ["PLACES", "lay_ci_file"]

PLACES = {
    "github": ("github/git-ledger.yml", ".github/workflows/git-ledger.yml"),
    "gitlab": ("gitlab/git-ledger.yml", ".gitlab/git-ledger.yml"),
    "shell": ("gate.sh", "ci/git-ledger-gate.sh"),
}
"""For each kind of CI: the template, and where it goes in the work tree."""


def lay_ci_file(session: Session, kind: str) -> Step:
    """Return what was done about the template of a kind of `PLACES`; a file that is there is never written over.

    Raises `UsageError` `no-work-tree` in a bare repository, `StoreError` where it can't be written.
    """
    root = session.repo.worktree
    if root is None:
        raise no_work_tree(session.repo, "there is nothing to write to")
    template, place = PLACES[kind]
    path = root / place
    if path.exists():
        return Step("ci", False, f"{place} is there")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_template(template).read_text("utf-8"), "utf-8")
        if place.endswith(".sh"):
            path.chmod(0o755)
    except OSError as error:
        raise StoreError(
            "file-unwritable", f"{path} can't be written: {error.strerror}", "check the folder"
        ) from error
    return Step("ci", True, f"wrote {place}; what it needs is said at its top, and by `git ledger help gate`")


def _template(name: str) -> Traversable:
    """Return a template: packaged with us, or in a clone that of `hooks/`."""
    packaged = files("gitledger") / "_hooks" / name
    return packaged if packaged.is_file() else Path(__file__).parents[2] / "hooks" / name
