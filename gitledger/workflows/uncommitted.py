"""The look for uncommitted edits that a plan needs: git's share of the work, begun before ours is even loaded."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from gitledger.records.ids import CommitId
from gitledger.store.edits import Edits
from gitledger.workflows.session import Session

__all__ = ["edits_of"]


def edits_of(session: Session, target: CommitId) -> AbstractContextManager[Edits | None]:
    """Return what looks for uncommitted edits from `with` on; they matter only where `target` is checked out."""
    repo = session.repo
    if repo.worktree is None or repo.head() != target:
        return nullcontext()
    return Edits(repo.git)
