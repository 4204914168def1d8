"""Sync: the ledger of this clone united with a remote's."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any

from gitledger.dataclass import dataclass
from gitledger.errors import ConfigError, StoreError
from gitledger.store.objects import Identity
from gitledger.store.refs import TRACKING_PREFIX, Tips, tracking_prefix
from gitledger.store.remote import choose_remote, remote_names
from gitledger.store.ssh_sharing import one_connection
from gitledger.store.sync import NETWORK_TIMEOUT_S, PublishResult, Sync, fetch, publish
from gitledger.workflows.session import Session
from gitledger.workflows.unpublished import unpublished_to

if TYPE_CHECKING:
    from gitledger.config.schema import NotesConfig

__all__ = ["Synced", "sync_with"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What a sync came to; `published` is None where it only fetched.

    `elsewhere` counts records that were fetched from other remotes and that this one lacks, by remote: a sync
    takes up what was recorded here, and what its own remote has. `is_there`: the remote has a ledger; `is_here`:
    so has this clone.
    """

    remote: str
    published: PublishResult | None
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    is_there: bool = True
    is_here: bool = True

    def lines(self) -> list[str]:
        """Return in words what was done, and how the rest can be published."""
        done = self.published
        if done is None:
            said = self._fetched()
        elif done.lines:
            said = f"published {done.lines} record{'s' * (done.lines != 1)} to {self.remote} ({done.via})"
        elif done.bodies:
            bodies = f"{done.bodies} {'body' if done.bodies == 1 else 'bodies'}"
            said = f"published {bodies} to {self.remote} ({done.via}), which had the records"
        elif done.via == "nothing":
            said = f"{self.remote} has everything that was recorded here"
        else:
            said = f"{self.remote} had all records; the notes there are united now"
        others = [
            f"{count} fetched from {other} {'is' if count == 1 else 'are'} not at {self.remote}: "
            f"git ledger sync {other} && git ledger sync {self.remote}"
            for other, count in self.elsewhere.items()
        ]
        return [said, *others]

    def _fetched(self) -> str:
        if self.is_there:
            return f"fetched the ledger of {self.remote}"
        mine = f"; git ledger sync {self.remote} publishes what is recorded here" if self.is_here else ""
        return f"{self.remote} has no ledger yet: nobody has published one there{mine}"

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
    push_first: bool = False,
) -> Synced:
    """Return what uniting with a remote came to; whatever it takes goes over one ssh connection where that can be.

    `push_first`: publish without looking first what the remote has by now.

    Raises `UsageError` `no-remote`, and `StoreError` where it could not be fetched or published (exit 3).
    """
    name = choose_remote(session.repo, remote)
    with one_connection(session.repo, name) as repo:
        sync = Sync(
            repository=repo,
            ledger=session.ledger,
            remote=name,
            by=cache(lambda: _by(session, name)),
            timeout_s=timeout_s,
            interactive=interactive,
            push_first=push_first,
        )
        if fetch_only:
            fetch(sync)
            return Synced(
                remote=name,
                published=None,
                is_there=session.ledger.tracking_tips(name) != Tips(),
                is_here=session.ledger.local_tips() != Tips(),
            )
        published = publish(sync)
    return Synced(remote=name, published=published, elsewhere=_elsewhere(session, name))


def _elsewhere(session: Session, remote: str) -> dict[str, int]:
    """Count what was fetched from other remotes only; one whose refs can't be read fails no sync with this one."""
    found = {}
    tracked = session.repo.objects.list_refs(TRACKING_PREFIX)
    if all(ref.startswith(tracking_prefix(remote)) for ref in tracked):
        return {}  # without asking git for its remotes
    for other in remote_names(session.repo):
        if other != remote:
            with suppress(StoreError):
                found[other] = sum(map(len, session.ledger.fetched_only(other, remote).values()))
    return {other: count for other, count in found.items() if count}


def _by(session: Session, remote: str) -> tuple[Identity, str]:
    """Return author and message of the commits that unite ledgers: a server may demand a pattern of them, too."""
    from gitledger.workflows.notes_author import notes_identity, notes_message

    waiting = sum(map(len, unpublished_to(session, remote).values()))
    notes = _notes(session)
    return notes_identity(session, notes), notes_message(notes, waiting)


def _notes(session: Session) -> NotesConfig:
    """Return how notes commits are to be written; a repository without configuration can sync all the same."""
    from gitledger.config.schema import NotesConfig
    from gitledger.workflows.trusted import read_config

    head = session.repo.head()
    if head is None:
        return NotesConfig()
    try:
        return read_config(session.repo, head).notes
    except ConfigError:
        return NotesConfig()
