"""`git ledger verify`."""

from __future__ import annotations

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, with_json, with_offline, with_policy
from gitledger.errors import EXIT_NO, EXIT_YES


@click.command("verify", short_help="Judge a commit's evidence by policy")
@click.argument("commit", default="HEAD")
@with_policy
@click.option("--at", metavar="TIME", default=None, help="Judge as of this time (RFC 3339, UTC).")
@click.option("--accept-shards", is_flag=True, help="Accept shards removed or redefined against REF.")
@click.option("--allow-skipped", is_flag=True, help="Let skipped tests pass.")
@with_offline
@with_json
@click.pass_obj
def command(
    output: Output,
    commit: str,
    policy_from: str | None,
    at: str | None,
    accept_shards: bool,
    allow_skipped: bool,
    offline: bool,
    as_json: bool,
) -> int:
    r"""Judge the evidence of a commit as it stands now.

    It needs no key and runs no test; only for forge users in policy (`github:alice`) does it ask their forge.

    Exits with 0 for passed, 1 for failed, 2 where it can't be judged.

    \b
    git ledger verify --policy-from origin/main
    git ledger verify v1.2.0 --json
    """
    from gitledger.report.coverage import coverage_lines
    from gitledger.report.text import verdict_text
    from gitledger.workflows.judge import policy_of, verify
    from gitledger.workflows.target import target_of

    session = enter(output, offline=offline)
    found = verify(
        session,
        target_of(session, commit),
        policy_from=policy_from,
        at=at,
        accept_shards=accept_shards,
        allow_skipped=allow_skipped,
    )
    if as_json:
        output.document(found.encode())
    else:
        policy = policy_of(found.case)
        output.result(
            verdict_text(
                passed=found.verdict.passed,
                commit=found.case.situation.commit,
                policy=f"{policy['from']} ({policy['commit'][:12]})",
                union=found.union,
                findings=found.verdict.findings,
                ignored=[((item.record or "a line")[:12], item.reason) for item in found.ignored],
                color=output.color,
                coverage=coverage_lines(found.union.coverage, color=output.color),
            )
        )
    return EXIT_YES if found.verdict.passed else EXIT_NO
