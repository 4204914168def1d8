"""Who signs the notes commits (not the records): the configuration's author, else git's."""

from __future__ import annotations

import re

from gitledger.config.schema import NotesConfig
from gitledger.errors import ConfigError
from gitledger.store.objects import Identity
from gitledger.workflows.session import Session

__all__ = ["notes_identity", "notes_message"]

_AUTHOR = re.compile(r"\A\s*([^<>\n]+?)\s*<([^<>\s]+)>\s*\Z")


def notes_identity(session: Session, notes: NotesConfig) -> Identity:
    """Return the author of notes commits; raises `ConfigError` `bad-author`, `UsageError` `no-identity`."""
    if notes.author is None:
        return session.repo.identity(session.environ)
    match = _AUTHOR.match(notes.author)
    if match is None:
        raise ConfigError(
            "bad-author", f"notes.author is {notes.author!a}, expected Name <mail>", "mend .gitledger/config.yaml"
        )
    return Identity(name=match.group(1), email=match.group(2))


def notes_message(notes: NotesConfig, records: int) -> str:
    """Return the message of a notes commit that adds `records` records."""
    return notes.message.replace("{n}", str(records))
