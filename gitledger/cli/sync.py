"""`git ledger sync`."""

from __future__ import annotations

import sys

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, with_json


@click.command("sync", short_help="Unite the ledger with a remote's")
@click.argument("remote", required=False)
@click.option("--fetch-only", is_flag=True, help="Bring the remote's ledger here, publish nothing.")
@with_json
@click.pass_obj
def command(output: Output, remote: str | None, fetch_only: bool, as_json: bool) -> int:
    """Fetch a remote's ledger, unite it with this clone's, and publish what it lacks. Never forces anything.

    REMOTE is the branch's remote unless given. Exits with 3 where nothing could be published; nothing is lost.
    """
    from gitledger.workflows.publish import sync_with

    session = enter(output)
    done = sync_with(session, remote, fetch_only=fetch_only, interactive=sys.stdin.isatty())
    if as_json:
        output.document(done.encode())
    elif done.published is None:
        output.result(f"fetched the ledger of {done.remote}")
    elif done.published.via == "nothing":
        output.result(f"{done.remote} has everything")
    else:
        output.result(f"published {done.published.lines} records to {done.remote} ({done.published.via})")
    return 0
