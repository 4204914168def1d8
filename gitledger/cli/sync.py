"""`git ledger sync`."""

from __future__ import annotations

import sys

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, with_json, with_policy
from gitledger.errors import UsageError
from gitledger.wording import counted


@click.command("sync", short_help="Unite the ledger with a remote's")
@click.argument("remote", required=False)
@click.option("--fetch-only", is_flag=True, help="Bring the remote's ledger here, publish nothing.")
@click.option("--from", "source", metavar="URL|BUNDLE", help="Take the records of a fork that verify, no others.")
@click.option("--commits", metavar="A..B", help="With --from: only records of these commits.")
@with_policy
@with_json
@click.pass_obj
def command(
    output: Output,
    remote: str | None,
    fetch_only: bool,
    source: str | None,
    commits: str | None,
    policy_from: str | None,
    as_json: bool,
) -> int:
    r"""Fetch a remote's ledger, unite it with this clone's, and publish what it lacks. Never forces anything.

    REMOTE is the branch's remote unless given. Exits with 3 where nothing could be published; nothing is lost.

    \b
    git ledger sync
    git ledger sync --from https://example.org/fork.git --commits main..topic --policy-from main
    """
    if source is None and (commits is not None or policy_from is not None):
        raise UsageError("bad-options", "--commits and --policy-from go with --from", "git ledger sync --from URL")
    if source is not None and (remote is not None or fetch_only):
        raise UsageError(
            "bad-options", "--from takes neither a remote nor --fetch-only", "git ledger sync --from URL"
        )
    if source is not None:
        return _receive(output, source, commits, policy_from, as_json=as_json)
    from gitledger.workflows.publish import sync_with

    session = enter(output)
    done = sync_with(session, remote, fetch_only=fetch_only, interactive=sys.stdin.isatty())
    if as_json:
        output.document(done.encode())
    else:
        from gitledger.report.text import escaped

        output.result("\n".join(map(escaped, done.lines())))
    return 0


def _receive(output: Output, source: str, commits: str | None, policy_from: str | None, *, as_json: bool) -> int:
    from gitledger.report.text import escaped
    from gitledger.workflows.receive import receive

    local = output.directory / source
    where = str(local) if source and local.exists() else source
    done = receive(enter(output), where, commits=commits, policy_from=policy_from)
    if as_json:
        output.document(done.encode())
        return 0
    for item in done.refused:
        name = (item.record or "a line")[:12]
        output.message(f"refused {escaped(name)} on {item.commit[:12]}: {escaped(item.reason)}")
    output.result(
        f"took {counted(len(done.taken), 'record')}, {done.known} here already, {len(done.refused)} refused "
        f"(signers of {done.policy[:12]})"
    )
    return 0
