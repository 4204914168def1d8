"""Whether this clone has a ledger at all: without one it looks as if nothing had been recorded."""

from __future__ import annotations

from gitledger.store.refs import RECORDS_REF
from gitledger.store.remote import remote_names
from gitledger.workflows.session import Session

__all__ = ["not_fetched", "unfetched_remote"]


def unfetched_remote(session: Session) -> str:
    """Return the remote that a clone without a ledger may get one from; "" where it has one, or no remote."""
    names = remote_names(session.repo)
    if not names:
        return ""
    found = session.repo.git.run("for-each-ref", "--count=1", RECORDS_REF, "refs/gitledger/")
    if found.text:
        return ""
    return "origin" if "origin" in names else names[0]


def not_fetched(session: Session) -> str:
    """Return a sentence that says how the ledger gets here; nothing where there is one, or no remote to ask."""
    remote = unfetched_remote(session)
    if not remote:
        return ""
    return f"git ledger: this clone has no ledger; `git ledger sync --fetch-only {remote}` brings that of {remote}"
