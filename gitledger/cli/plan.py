"""`git ledger plan`."""

from __future__ import annotations

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, with_json, with_offline, with_policy
from gitledger.errors import EXIT_NO, EXIT_YES


@click.command("plan", short_help="Say what is fresh, what carries, what must run")
@click.argument("commit", default="HEAD")
@with_policy
@click.option("--carry/--no-carry", default=None, help="Carry unchanged shards, or don't, whatever policy says.")
@click.option("--exit-code", is_flag=True, help="Exit with 1 where something has to run.")
@with_offline
@with_json
@click.pass_obj
def command(
    output: Output,
    commit: str,
    policy_from: str | None,
    carry: bool | None,
    exit_code: bool,
    offline: bool,
    as_json: bool,
) -> int:
    r"""Say for each shard whether its evidence is fresh, carries from an older commit, or must be made anew.

    \b
    git ledger plan                     what would a merge of HEAD take?
    git ledger plan --exit-code         1 where a shard has to run
    git ledger plan --json | jq -r '.shards[] | select(.verdict == "stale").name'
    """
    from gitledger.report.text import plan_text
    from gitledger.workflows.judge import plan
    from gitledger.workflows.publish import unpublished
    from gitledger.workflows.target import target_of

    session = enter(output, offline=offline)
    found = plan(session, target_of(session, commit), policy_from=policy_from, carry=carry)
    waiting = unpublished(session)
    if as_json:
        output.document({**found.encode(), "unpublished": waiting})
    else:
        edits = [(str(item.key), item.paths) for item in found.uncommitted]
        output.result(plan_text(found.union, edits, commit=found.case.situation.commit, color=output.color))
    for remote, number in waiting.items():
        if number:
            output.message(
                f"{number} records not published to {remote}; `git ledger sync {remote}` publishes them"
            )
    return EXIT_NO if exit_code and not found.is_covered else EXIT_YES
