"""`git ledger scope`."""

from __future__ import annotations

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, with_json

DEFAULT_RUNS = 20


@click.command("scope", short_help="Propose a scope from what runs were seen to read")
@click.argument("shard", metavar="SHARD[@VARIANT]")
@click.option("--runs", type=click.IntRange(1, 1000), default=DEFAULT_RUNS, help="Newest runs to look at (20).")
@with_json
@click.pass_obj
def command(output: Output, shard: str, runs: int, as_json: bool) -> int:
    r"""Propose the narrowest scope that binds all that the green runs of a shard were seen to read.

    Nothing is changed: paste what it prints into .gitledger/config.yaml where you agree.

    \b
    git ledger scope unit
    git ledger scope unit --json | jq '.outside'
    """
    from gitledger.errors import UsageError
    from gitledger.records.ids import ShardKey
    from gitledger.report.scope import scope_text
    from gitledger.workflows.scope import propose_scope

    try:
        key = ShardKey.parse(shard)
    except ValueError as error:
        raise UsageError("bad-shard-name", f"{shard!a}: {error}", "git ledger plan") from error
    proposal = propose_scope(enter(output), key, runs=runs)
    if as_json:
        output.document(proposal.encode())
    else:
        output.result(scope_text(proposal.encode()))
    return 0
