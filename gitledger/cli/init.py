"""`git ledger init`."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, signer_of, user_name, with_key
from gitledger.dataclass import replace
from gitledger.wording import from_top

if TYPE_CHECKING:
    from gitledger.trust.find_key import KeyChoice
    from gitledger.trust.signer import Signer
    from gitledger.workflows.session import Session


@click.command("init", short_help="Set up configuration, signer, fetch refspecs and hooks")
@click.option("--uninstall", is_flag=True, help="Take hook and fetch refspecs back; the ledger stays.")
@click.option(
    "--principal", metavar="NAME", default=None, help="Your name in allowed_signers (default: user.email)."
)
@click.option(
    "--ci",
    type=click.Choice(["github", "gitlab", "shell"]),
    default=None,
    help="Also write the gate that CI runs, as a file of that kind.",
)
@with_key
@click.pass_obj
def command(output: Output, uninstall: bool, principal: str | None, ci: str | None, key: str | None) -> int:
    r"""Write a configuration, your key, fetch refspecs and a pre-push hook. Safe to repeat.

    \b
    git ledger init
    git ledger init --ci github
    git ledger init --key ~/.ssh/id_lab --principal lab-runner
    git ledger init --uninstall
    """
    from gitledger.workflows.ci_files import PLACES, lay_ci_file
    from gitledger.workflows.dirt import dirt_beside, will_be_left
    from gitledger.workflows.init import initialise
    from gitledger.workflows.init import uninstall as take_back

    session = enter(output)
    if uninstall:
        steps = take_back(session)
    else:
        signer = signer_of(output, session, key)
        steps = initialise(session, signer, principal=principal or user_name(session), python=sys.executable)
        steps += [] if ci is None else [lay_ci_file(session, ci)]
        steps += [*dirt_beside(session.repo), *will_be_left(session.repo)]
    for step in steps:
        output.message(f"{'✓' if step.changed else '·'} {step.what}: {step.text}")
    has_key = any(
        step.what == "dirty" and ".gitledger/" in step.text for step in steps
    )  # ours to commit otherwise
    if not (uninstall or has_key) and any(
        step.changed and step.what in ("configuration", "signer", "ci") for step in steps
    ):
        new = from_top(".gitledger", *([] if ci is None else [PLACES[ci][1]]))
        output.message(f"next: look at .gitledger/config.yaml, then `git add {new} && git commit`")
    if not uninstall and key is not None and (line := _keeping(output, session, signer, key)):
        output.message(f"next: this key was used but once; to sign with it in this clone: {line}")
    return 0


def _keeping(output: Output, session: Session, signer: Signer, key: str) -> str:
    """Return the command after which other commands find the key that `--key` named; nothing where they do anyway.

    No passphrase is asked for to see that. A key that was handed over as text is not printed.
    """
    from gitledger.errors import TrustError
    from gitledger.trust.find_key import KEY_VARIABLE, find_key
    from gitledger.trust.open_signer import open_signer

    def chosen(explicit: str | None) -> KeyChoice:
        found = find_key(explicit, environ=output.environ, config=session.repo.config, home=session.home)
        return found if found.path is None else replace(found, path=(output.directory / found.path).absolute())

    named = chosen(key)
    try:
        usual = chosen(None)
        if usual.path is not None and usual.path == named.path:
            return ""  # also where it is locked
        if open_signer(usual, environ=output.environ).key.blob == signer.key.blob:
            return ""
    except TrustError:
        pass  # none is named, or it is locked, or it can't be used
    if named.private_text is not None:
        return ""
    value = shlex.quote(str(named.path) if named.path is not None else f"key::{named.public_line}")
    if output.environ.get(KEY_VARIABLE):
        return f"export {KEY_VARIABLE}={value}"
    return f"git config gitledger.signingKey {value}"
