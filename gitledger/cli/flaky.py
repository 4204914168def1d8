"""`git ledger flaky`."""

from __future__ import annotations

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, with_json, with_policy
from gitledger.errors import EXIT_NO, EXIT_YES
from gitledger.wording import counted


@click.command("flaky", short_help="Tests whose outcome changed while their inputs did not")
@with_policy
@click.option("--exit-code", is_flag=True, help="Exit with 1 where there are any.")
@with_json
@click.pass_obj
def command(output: Output, policy_from: str | None, exit_code: bool, as_json: bool) -> int:
    r"""Name the tests that ended in different ways under one manifest, and those that passed on a later attempt.

    Every receipt of the ledger is looked at; only those of one shard, one definition and the same inputs are
    compared.

    \b
    git ledger flaky
    git ledger flaky --json | jq -r '.[].node_id'
    """
    from gitledger.report.text import escaped, table
    from gitledger.workflows.flaky import flaky_tests
    from gitledger.workflows.target import head_of

    session = enter(output)
    found = flaky_tests(session, head_of(session), policy_from=policy_from)
    if as_json:
        output.document([test.encode() for test in found])
    else:
        rows = []
        for test in found:
            ends = ", ".join(f"{count} {outcome}" for outcome, count in sorted(test.outcomes.items()))
            again = f", {counted(test.reruns, 'rerun')}" if test.reruns else ""
            rows.append((str(test.key), ends + again, escaped(test.node_id)))
        output.result("\n".join(table(rows)) or "no test changed its outcome under one manifest")
    return EXIT_NO if exit_code and found else EXIT_YES
