"""`git ledger verify`."""

from __future__ import annotations

from functools import partial

import click

from gitledger.cli.output import Output
from gitledger.cli.world import (
    beside_edits,
    enter,
    run_by,
    say_what_is_missing,
    with_json,
    with_offline,
    with_policy,
)
from gitledger.errors import EXIT_NO, EXIT_YES


@click.command("verify", short_help="Judge a commit's evidence by policy")
@click.argument("commit", default="HEAD")
@with_policy
@click.option("--at", metavar="TIME", default=None, help="Judge as of this time (RFC 3339, UTC).")
@click.option("--lanes", is_flag=True, help="The release check: every required hardware lane passed, too.")
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
    lanes: bool,
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
    git ledger verify v1.2.0 --lanes
    """
    from gitledger.workflows.judge import policy_of, verify
    from gitledger.workflows.target import target_of

    session = enter(output, offline=offline)
    target = target_of(session, commit)
    with beside_edits(output, session, target):
        found = verify(
            session,
            target,
            policy_from=policy_from,
            at=at,
            accept_shards=accept_shards,
            allow_skipped=allow_skipped,
        )
    judged, verdict, document = None, found.verdict, found.encode
    if lanes:
        from gitledger.workflows.lanes import judge_release, united, united_document

        judged = judge_release(session, target, policy_from=policy_from, at=at)
        verdict = united(found, judged)
        document = partial(united_document, found, judged, verdict)
    if as_json:
        output.document(document())
    else:
        from gitledger.report.coverage import coverage_lines
        from gitledger.report.shards import verdict_text

        policy = policy_of(found.case)
        ignored = dict.fromkeys((*found.ignored, *(judged.release.ignored if judged else ())))
        if judged is not None and judged.release.cells:
            from gitledger.report.lanes import cell_lines

            cells = cell_lines(judged.release.cells, color=output.color, width=output.width)
            output.result("\n".join(["lanes", *cells]))
        output.result(
            verdict_text(
                passed=verdict.passed,
                commit=found.case.situation.commit,
                policy=f"{policy['from']} ({policy['commit'][:12]})",
                union=found.union,
                findings=verdict.findings,
                ignored=[((item.record or "a line")[:12], item.reason) for item in ignored],
                color=output.color,
                coverage=coverage_lines(found.union.coverage, color=output.color),
                width=output.width,
                run=run_by(policy_from),
            )
        )
    if not verdict.passed:
        say_what_is_missing(output, session)
    return EXIT_YES if verdict.passed else EXIT_NO
