"""What of the ledger of this clone has not been published yet; answered without any network."""

from __future__ import annotations

from collections.abc import Mapping

from gitledger.records.ids import CommitId
from gitledger.store.remote import remote_names
from gitledger.store.seen_at import last_sight
from gitledger.workflows.session import Session

__all__ = ["unpublished", "unpublished_to"]


def unpublished(session: Session) -> dict[str, int]:
    """Return, for each remote, how many records of this clone it was not seen to have."""
    names = remote_names(session.repo)
    return {name: sum(map(len, unpublished_to(session, name).values())) for name in names}


def unpublished_to(session: Session, remote: str) -> Mapping[CommitId, tuple[bytes, ...]]:
    """Return, by commit, the lines that one remote was not seen to have, at the place where it is now."""
    sight = last_sight(session.repo, remote)
    return session.ledger.local_only(remote, elsewhere=sight is not None and sight.is_elsewhere)
