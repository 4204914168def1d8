"""`git ledger log`."""

from __future__ import annotations

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, say_what_is_missing, with_json

DEFAULT_COMMITS = 20


@click.command("log", short_help="Evidence along the history")
@click.argument("revisions", default="HEAD", metavar="[RANGE]")
@click.option(
    "-n",
    "--max-count",
    "limit",
    type=click.IntRange(1),
    default=DEFAULT_COMMITS,
    show_default=True,
    help="At most this many commits.",
)
@click.option("--oneline", is_flag=True, help="A line a commit: how many of its records ended how.")
@click.option("--no-pager", is_flag=True, help="Write straight to the terminal.")
@with_json
@click.pass_obj
def command(output: Output, revisions: str, limit: int, oneline: bool, no_pager: bool, as_json: bool) -> int:
    r"""List commits that carry evidence, newest first, and their records.

    It shows what was recorded, whose key signed it, and what HEAD's policy has against a record by itself: a pass
    that is dirty, unwitnessed or nobody's is not green. What the whole is worth, `verify` says. On a terminal it
    uses the pager that git would (core.pager, GIT_PAGER, PAGER), and cuts rows to the window.

    \b
    git ledger log
    git ledger log --oneline -n 100
    git ledger log main~20..main --json
    """
    from gitledger.cli.pager import page
    from gitledger.report.listing import commit_lines, oneline_text, record_row, signer_text
    from gitledger.workflows.browse import log

    session = enter(output)
    found = log(session, revisions, limit=limit + 1)
    entries = found[:limit]
    if as_json:
        output.document([entry.encode() for entry in entries])
        return 0
    lines: list[str] = []
    for entry in entries:
        if oneline:
            ends = [(item.claim, item.signer is not None, item.against) for item in entry.records]
            line = oneline_text(
                entry.commit.id, entry.commit.summary, ends, color=output.color, width=output.width
            )
            lines.append(line)
            continue
        rows = [
            record_row(item.id, item.claim, signer_text(item.signer, item.key), item.fault, item.against)
            for item in entry.records
        ]
        commit = entry.commit
        lines += commit_lines(
            commit.id, commit.summary, rows, color=output.color, at=commit.committed_at, width=output.width
        )
    if lines:
        page(output, session, "\n".join(lines), no_pager=no_pager)
    else:
        output.message("no evidence in this range; `git ledger record --shard N` makes some")
        say_what_is_missing(output, session)
    if len(found) > limit:
        output.message(f"git ledger: older commits carry evidence too: -n {limit * 5} shows more of them")
    return 0
