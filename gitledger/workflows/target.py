"""Which commit a command speaks of."""

from __future__ import annotations

from gitledger.errors import UsageError
from gitledger.records.ids import CommitId
from gitledger.workflows.session import Session

__all__ = ["head_of", "target_of"]


def target_of(session: Session, revision: str) -> CommitId:
    """Return the commit that a person means; raises `UsageError`, `no-commit` for HEAD before the first one."""
    if revision == "HEAD":
        head = head_of(session)
        if session.repo.objects.read_parents(head) is not None:  # readable: git need not be asked
            return head
    return session.repo.resolve(revision)


def head_of(session: Session) -> CommitId:
    """Return the commit that is checked out; raises `UsageError` `no-commit` before the first one."""
    head = session.repo.head()
    if head is None:
        raise UsageError("no-commit", "this repository has no commits, and a receipt speaks of one", "git commit")
    return head
