"""What every command works with: one repository, its ledger, a clock, an environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gitledger.store.ledger import Ledger
from gitledger.store.repository import Repository, open_repository

__all__ = ["Session", "open_session"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One command's world. `now` gives aware UTC times; `home` is where a user's keys lie."""

    repo: Repository
    ledger: Ledger
    environ: Mapping[str, str]
    home: Path
    now: Callable[[], datetime]


def open_session(folder: Path, *, environ: Mapping[str, str], home: Path, now: Callable[[], datetime]) -> Session:
    """Return the session for the repository that `folder` lies in.

    Raises `UsageError` where there is none, or where it can't be opened.
    """
    repo = open_repository(folder, env=environ)
    return Session(
        repo=repo,
        ledger=Ledger(repo.objects),
        environ=environ,
        home=home,
        now=now,
    )
