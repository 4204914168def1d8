"""Sync: the ledger of this clone united with a remote's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gitledger.config.schema import NotesConfig
from gitledger.errors import ConfigError
from gitledger.store.remote import choose_remote
from gitledger.store.sync import NETWORK_TIMEOUT_S, PublishResult, Sync, fetch, publish
from gitledger.workflows.notes_author import notes_identity, notes_message
from gitledger.workflows.session import Session
from gitledger.workflows.trusted import read_config

__all__ = ["Synced", "sync_with"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What a sync came to; `published` is None where it only fetched."""

    remote: str
    published: PublishResult | None

    def encode(self) -> dict[str, Any]:
        """Return the document of `sync --json`."""
        done = self.published
        if done is None:
            return {"remote": self.remote, "via": "fetch"}
        return {
            "bodies": done.bodies,
            "folded": done.folded,
            "lines": done.lines,
            "remote": done.remote,
            "via": done.via,
        }


def sync_with(
    session: Session,
    remote: str | None,
    *,
    fetch_only: bool = False,
    timeout_s: float = NETWORK_TIMEOUT_S,
    interactive: bool = False,
) -> Synced:
    """Return what uniting with a remote came to.

    Raises `UsageError` `no-remote`, and `StoreError` where it could not be fetched or published (exit 3).
    """
    name = choose_remote(session.repo, remote)
    notes = _notes(session)
    waiting = sum(map(len, session.ledger.local_only(name).values()))
    sync = Sync(
        repository=session.repo,
        ledger=session.ledger,
        remote=name,
        identity=notes_identity(session, notes),
        # A server may demand a pattern of the commits that unite ledgers, too.
        message=notes_message(notes, waiting),
        timeout_s=timeout_s,
        interactive=interactive,
    )
    if fetch_only:
        fetch(sync)
        return Synced(remote=name, published=None)
    return Synced(remote=name, published=publish(sync))


def _notes(session: Session) -> NotesConfig:
    """Return how notes commits are to be written; a repository without configuration can sync all the same."""
    head = session.repo.head()
    if head is None:
        return NotesConfig()
    try:
        return read_config(session.repo, head).notes
    except ConfigError:
        return NotesConfig()
