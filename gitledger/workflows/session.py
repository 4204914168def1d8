"""What every command works with: one repository, its ledger, a clock, an environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.errors import UsageError
from gitledger.records.decode import parse_time
from gitledger.store.inbox import TellAside
from gitledger.store.kept_file import kept_path
from gitledger.store.ledger import Ledger
from gitledger.store.repository import Repository, open_repository
from gitledger.workflows.kept_signatures import KeptSignatures

__all__ = ["Session", "moment", "open_session"]

OFFLINE_VARIABLE = "GITLEDGER_OFFLINE"
OFFLINE_KEY = "gitledger.offline"
_UNSET = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One command's world. `now` gives aware UTC times; `home` is where a user's keys lie.

    `offline`: forges are not asked; what they answered lately has to do. `kept_configs` and `kept_signatures`:
    where configurations are kept that were read before, and which signatures were good; None for whoever judges.
    """

    repo: Repository
    ledger: Ledger
    environ: Mapping[str, str]
    home: Path
    now: Callable[[], datetime]
    offline: bool = False
    kept_configs: Path | None = None
    kept_signatures: KeptSignatures | None = None


def open_session(
    folder: Path,
    *,
    environ: Mapping[str, str],
    home: Path,
    now: Callable[[], datetime],
    offline: bool = False,
    aside: TellAside = lambda _: None,
    repo: Repository | None = None,
    keeps: bool = False,
) -> Session:
    """Return the session for the repository that `folder` lies in.

    `repo` is that repository, where it is open already. `aside` is told of records that are kept beside the notes,
    since those could not be written. `keeps`: what was read and checked before will do.

    It is offline where it is told to be, by `GITLEDGER_OFFLINE`, or by `git config gitledger.offline`.
    Raises `UsageError` where there is no repository, or where it can't be opened.
    """
    repo = open_repository(folder, env=environ) if repo is None else repo
    return Session(
        repo=repo,
        ledger=Ledger(repo.objects, aside=aside),
        environ=environ,
        home=home,
        now=now,
        kept_configs=kept_path(repo.common_dir, "configurations") if keeps else None,
        kept_signatures=KeptSignatures(kept_path(repo.common_dir, "signatures")) if keeps else None,
        offline=offline or _is_set(environ.get(OFFLINE_VARIABLE)) or _is_set(repo.config(OFFLINE_KEY)),
    )


def _is_set(value: str | None) -> bool:
    return (value or "").strip().lower() not in _UNSET


def moment(session: Session, at: str | None) -> datetime:
    """Return the time that `--at` names, else now; raises `UsageError` `bad-time`."""
    if at is None:
        return session.now()
    try:
        return parse_time(at)
    except ValueError as error:
        raise UsageError("bad-time", f"--at {at!a}: {error}", "--at 2026-01-31T12:00:00Z") from error
