"""The look for uncommitted edits that a plan needs: git's share of the work, begun before ours is even loaded."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from gitledger.records.ids import CommitId
from gitledger.store.edits import Edits
from gitledger.store.repository import Repository
from gitledger.store.worktree import Survey, survey
from gitledger.workflows.session import Session

__all__ = ["edits_of", "found_beside"]


def edits_of(
    session: Session, target: CommitId, *, begun: Edits | None = None
) -> AbstractContextManager[Edits | None]:
    """Return what looks for uncommitted edits from `with` on; they matter only where `target` is checked out.

    `begun` is a look that the caller began with.
    """
    repo = session.repo
    if repo.worktree is None or repo.head() != target:
        return nullcontext()
    return begun or Edits(repo.git)


def found_beside(repo: Repository, head: CommitId, edits: Edits) -> Survey:
    """Return what was found; anew where somebody checked out something else than `head` since git was asked."""
    found = edits.survey()
    return found if found.seen.head == head else survey(repo.git)
