"""`git ledger init`."""

from __future__ import annotations

import sys

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, signer_of, user_name, with_key


@click.command("init", short_help="Set up configuration, signer, fetch refspecs and hooks")
@click.option("--uninstall", is_flag=True, help="Take hook and fetch refspecs back; the ledger stays.")
@click.option(
    "--principal", metavar="NAME", default=None, help="Your name in allowed_signers (default: user.email)."
)
@with_key
@click.pass_obj
def command(output: Output, uninstall: bool, principal: str | None, key: str | None) -> int:
    r"""Write a configuration, your key, fetch refspecs and a pre-push hook. Safe to repeat.

    \b
    git ledger init
    git ledger init --key ~/.ssh/id_lab --principal lab-runner
    git ledger init --uninstall
    """
    from gitledger.workflows.init import initialise
    from gitledger.workflows.init import uninstall as take_back

    session = enter(output)
    if uninstall:
        steps = take_back(session)
    else:
        signer = signer_of(output, session, key)
        steps = initialise(session, signer, principal=principal or user_name(session), python=sys.executable)
    for step in steps:
        output.message(f"{'✓' if step.changed else '·'} {step.what}: {step.text}")
    if not uninstall and any(step.changed and step.what in ("configuration", "signer") for step in steps):
        output.message("next: look at .gitledger/config.yaml, then `git add .gitledger && git commit`")
    return 0
