"""`git ledger lanes`."""

from __future__ import annotations

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, with_json, with_offline, with_policy
from gitledger.errors import EXIT_NO, EXIT_YES


@click.command("lanes", short_help="What each hardware lane has been shown to do")
@click.argument("commit", default="HEAD")
@with_policy
@click.option("--at", metavar="TIME", default=None, help="Judge as of this time (RFC 3339, UTC).")
@with_offline
@with_json
@click.pass_obj
def command(
    output: Output, commit: str, policy_from: str | None, at: str | None, offline: bool, as_json: bool
) -> int:
    r"""Show for each lane, model, layers and recipe what its reports on a commit come to.

    A cell is passed, failed, inconclusive, skipped, missing, stale (passed only on another commit, or too long
    ago) or mismatched (made on another machine than the lane declares). Below them stands each lane's record:
    hardware, torch build, model, recipe and date, out of the reports alone. It runs nothing, and needs no torch.

    Exits with 0 where every required cell passed, else with 1; `verify --lanes` judges the shards as well.

    \b
    git ledger lanes v1.2.0
    git ledger lanes --policy-from origin/main --json
    """
    from gitledger.report.lanes import lanes_text
    from gitledger.workflows.lanes import judge_release
    from gitledger.workflows.target import target_of

    session = enter(output, offline=offline)
    found = judge_release(session, target_of(session, commit), policy_from=policy_from, at=at)
    if as_json:
        output.document(found.encode())
    else:
        policy = f"{found.trusted.source} ({found.trusted.commit[:12]})"
        output.result(lanes_text(found.release, policy=policy, color=output.color, width=output.width))
    return EXIT_YES if found.release.verdict.passed else EXIT_NO
