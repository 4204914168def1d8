"""`git ledger merge`."""

from __future__ import annotations

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, run_by, signer_of, user_name, with_json, with_key, with_offline, with_policy
from gitledger.errors import EXIT_NO, EXIT_YES


@click.command("merge", short_help="Sign a snapshot of the receipts that cover a commit")
@click.argument("commit", default="HEAD")
@with_policy
@click.option("--carry/--no-carry", default=None, help="Carry unchanged shards, or don't, whatever policy says.")
@click.option("--verify-inputs", is_flag=True, help="Ask forges for the present keys; refuse unsigned inputs.")
@click.option("--accept-shards", is_flag=True, help="Accept shards removed or redefined against REF.")
@click.option("--unsigned", is_flag=True, help="Don't sign (counts only where policy allows it).")
@with_key
@with_offline
@with_json
@click.pass_obj
def command(
    output: Output,
    commit: str,
    policy_from: str | None,
    carry: bool | None,
    verify_inputs: bool,
    accept_shards: bool,
    unsigned: bool,
    key: str | None,
    offline: bool,
    as_json: bool,
) -> int:
    r"""Write the union of a commit's receipts as one merged receipt, signed by you.

    A shard that failed does not stop it: the receipt says failed, and the exit status is 1. A union with a fault
    (a shard without evidence, inputs that disagree, a test in two shards) writes nothing.

    \b
    git ledger merge --carry
    """
    from gitledger.report.coverage import coverage_lines
    from gitledger.report.shards import merge_text
    from gitledger.workflows.merge import merge
    from gitledger.workflows.target import target_of

    session = enter(output, offline=offline)
    signer = None if unsigned else signer_of(output, session, key)
    found = merge(
        session,
        target_of(session, commit),
        signer,
        user=user_name(session),
        policy_from=policy_from,
        carry=carry,
        verify_inputs=verify_inputs,
        accept_shards=accept_shards,
    )
    if as_json:
        output.document(found.encode())
    else:
        output.result(
            merge_text(
                union=found.union,
                outcome=found.outcome,
                commit=found.case.situation.commit,
                record=found.record,
                findings=found.findings,
                color=output.color,
                coverage=coverage_lines(found.union.coverage, color=output.color),
                is_new=found.is_new,
                width=output.width,
                run=run_by(policy_from),
            )
        )
    return EXIT_YES if found.is_green else EXIT_NO
