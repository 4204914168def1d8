"""What of the ledger of this clone has not been published yet; answered without any network."""

from __future__ import annotations

from gitledger.store.remote import remote_names
from gitledger.workflows.session import Session

__all__ = ["unpublished"]


def unpublished(session: Session) -> dict[str, int]:
    """Return, for each remote, how many records of this clone it was not seen to have."""
    names = remote_names(session.repo)
    return {name: sum(map(len, session.ledger.local_only(name).values())) for name in names}
