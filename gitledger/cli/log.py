"""`git ledger log`."""

from __future__ import annotations

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, with_json


@click.command("log", short_help="Evidence along the history")
@click.argument("revisions", default="HEAD", metavar="[RANGE]")
@click.option(
    "-n", "limit", type=click.IntRange(1), default=20, show_default=True, help="At most this many commits."
)
@with_json
@click.pass_obj
def command(output: Output, revisions: str, limit: int, as_json: bool) -> int:
    r"""List commits that carry evidence, newest first, and their records.

    \b
    git ledger log
    git ledger log main~20..main --json
    """
    from gitledger.report.listing import commit_lines, record_row
    from gitledger.workflows.browse import log

    session = enter(output)
    entries = log(session, revisions, limit=limit)
    if as_json:
        output.document([entry.encode() for entry in entries])
        return 0
    for entry in entries:
        rows = [
            record_row(item.id, item.claim, item.signer or item.key or "unsigned", item.fault)
            for item in entry.records
        ]
        output.result("\n".join(commit_lines(entry.commit.id, entry.commit.summary, rows, color=output.color)))
    if not entries:
        output.message("no evidence in this range; `git ledger record --shard N` makes some")
    return 0
