"""The world handed to workflows: clock, environment, home, and the person's key. Nothing below this room asks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gitledger.cli.output import Output
from gitledger.errors import ConfigError, UsageError
from gitledger.wording import shell_word, suggested

if TYPE_CHECKING:
    from gitledger.records.ids import CommitId
    from gitledger.store.edits import Edits
    from gitledger.store.inbox import Aside
    from gitledger.store.repository import Repository
    from gitledger.trust.signer import Signer
    from gitledger.workflows.session import Session

__all__ = [
    "BegunLook",
    "beside_edits",
    "enter",
    "now",
    "opened",
    "run_by",
    "say_what_is_missing",
    "signer_of",
    "user_name",
    "warn_of_stranger",
    "with_json",
    "with_key",
    "with_offline",
    "with_policy",
]

F = TypeVar("F", bound=Callable[..., Any])

with_json = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
with_policy = click.option(
    "--policy-from", metavar="REF", default=None, help="Take policy, signers and pins from REF."
)
with_offline = click.option(
    "--offline", is_flag=True, help="Ask no forge; judge by what it answered lately (also: GITLEDGER_OFFLINE)."
)
with_key = click.option("--key", metavar="PATH", default=None, help="Sign with this key.")


def now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


def opened(output: Output) -> Repository:
    """Return the repository that the command works in, for whoever has git begin with something at once."""
    from gitledger.store.repository import open_repository

    return open_repository(output.directory, env=output.environ, early=output.early)


def enter(
    output: Output, *, offline: bool = False, repo: Repository | None = None, keeps: bool = False
) -> Session:
    """Return the session of the repository that the command works in; `repo` is that, where it is `opened`.

    `keeps`: what was read and checked before is not read and checked again; not for whoever judges.
    """
    from gitledger.workflows.session import open_session

    home = Path(output.environ.get("HOME") or Path.home())

    def aside(kept: Aside) -> None:
        output.message(
            f"warning: the notes could not be written: {kept.error.message} [{kept.error.code}]"
            f"{suggested(kept.error.hint)}\n"
            f"git ledger: kept in {kept.ref}, where it counts; the next record or sync after that folds it in"
        )

    environ = output.environ
    return open_session(
        output.directory,
        environ=environ,
        home=home,
        now=now,
        offline=offline,
        aside=aside,
        repo=repo,
        keeps=keeps,
    )


def run_by(policy_from: str | None) -> str:
    """Return the command that runs what is stale by the policy of a ref, None for the commit's own."""
    return "git ledger run" if policy_from is None else f"git ledger run --policy-from {shell_word(policy_from)}"


class BegunLook:
    """A look for uncommitted edits, begun at once: git asks after every file while we load what else is needed."""

    LASTS_S = 1.0
    """A look that is older is made anew: a passphrase may have been asked for, and files have come, meanwhile."""

    def __init__(self, output: Output, repo: Repository) -> None:
        from gitledger.store.edits import Edits

        early = output.early
        self._began_s = time.monotonic() if early is None else early.began_s
        self._edits = None if repo.worktree is None else Edits(repo.git, early)

    def taken(self) -> Edits | None:
        """Return the look, None where it has to be made anew."""
        return self._edits if time.monotonic() - self._began_s < self.LASTS_S else None


@contextmanager
def beside_edits(
    output: Output, session: Session, commit: CommitId, shards: Sequence[str] = ()
) -> Generator[None]:
    """Say once, after the body, that the configuration is edited and not committed, if so.

    Where committing it would mend an error of the committed one (`shards` are those asked for), that error's hint
    says so instead.
    """
    from gitledger.workflows.config_at_hand import config_at_hand

    found = config_at_hand(session.repo, commit)
    try:
        yield
    except ConfigError as error:
        if found is not None:
            error.hint = found.hint(error, shards)
        raise
    except UsageError as error:
        if found is not None and error.code == "dirty-start":
            output.message(f"git ledger: {found.sentence}")
        raise
    if found is not None:
        output.message(f"git ledger: {found.sentence}")


def say_what_is_missing(output: Output, session: Session) -> None:
    """Say on stderr how the ledger gets here, where this clone has none."""
    from gitledger.workflows.missing import not_fetched

    if text := not_fetched(session):
        output.message(text)


def signer_of(output: Output, session: Session, key: str | None) -> Signer:
    """Return who signs; a relative path is one from where the command works (`-C`).

    A passphrase is asked for once for all that it signs, on the terminal or by `SSH_ASKPASS`. Raises `TrustError`.
    """
    from gitledger.dataclass import replace
    from gitledger.trust.askpass import asker
    from gitledger.trust.find_key import find_key
    from gitledger.trust.open_signer import open_signer

    choice = find_key(key, environ=output.environ, config=session.repo.config, home=session.home)
    if choice.path is not None:
        choice = replace(choice, path=output.directory / choice.path)
    passphrase = asker(output.environ, has_terminal=sys.stdin.isatty())
    program = session.repo.config("gpg.ssh.program") or "ssh-keygen"
    return open_signer(choice, environ=output.environ, passphrase=passphrase, program=program)


def warn_of_stranger(
    output: Output, session: Session, signer: Signer | None, *, policy_from: str | None = None
) -> None:
    """Say on stderr, before anything runs, that the policy in force won't count what `signer` signs."""
    from gitledger.workflows.stranger import why_it_will_not_count

    if signer is not None and (why := why_it_will_not_count(session, signer.key, policy_from=policy_from)):
        output.message(f"warning: {why}")


def user_name(session: Session) -> str:
    """Return the person's own word for themselves: `gitledger.user` (`github:alice`), git's address, else nothing.

    In open mode (`policy.signer_mode`) it is whose key the signature must be.
    """
    config = session.repo.config
    return config("gitledger.user") or config("user.email") or session.environ.get("GIT_AUTHOR_EMAIL", "")
