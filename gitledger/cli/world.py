"""The world handed to workflows: clock, environment, home, and the person's key. Nothing below this room asks."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gitledger.cli.output import Output

if TYPE_CHECKING:
    from gitledger.trust.signer import Signer
    from gitledger.workflows.session import Session

__all__ = ["enter", "now", "signer_of", "user_name", "with_json", "with_key", "with_policy"]

F = TypeVar("F", bound=Callable[..., Any])

with_json = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
with_policy = click.option(
    "--policy-from", metavar="REF", default=None, help="Take policy, signers and pins from REF."
)
with_key = click.option("--key", metavar="PATH", default=None, help="Sign with this key.")


def now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


def enter(output: Output) -> Session:
    """Return the session of the repository that the command works in."""
    from gitledger.workflows.session import open_session

    home = Path(output.environ.get("HOME") or Path.home())
    return open_session(output.directory, environ=output.environ, home=home, now=now)


def signer_of(output: Output, session: Session, key: str | None) -> Signer:
    """Return who signs; asks for a passphrase at most once, on the terminal; raises `TrustError`."""
    from gitledger.trust.find_key import find_key
    from gitledger.trust.open_signer import open_signer

    choice = find_key(key, environ=output.environ, config=session.repo.config, home=session.home)
    program = session.repo.config("gpg.ssh.program") or "ssh-keygen"
    asked: list[bytes] = []

    def passphrase(where: str) -> bytes | None:
        if not asked and sys.stdin.isatty():
            asked.append(getpass.getpass(f"Passphrase for {where}: ", stream=sys.stderr).encode())
        return asked[0] if asked else None

    return open_signer(choice, environ=output.environ, passphrase=passphrase, program=program)


def user_name(session: Session) -> str:
    """Return the person's own word for themselves: git's address, else nothing."""
    return session.repo.config("user.email") or session.environ.get("GIT_AUTHOR_EMAIL", "")
