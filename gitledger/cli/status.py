"""`git ledger status`."""

from __future__ import annotations

import click

from gitledger.cli.output import Output
from gitledger.cli.world import beside_edits, enter, say_what_is_missing, with_json


@click.command("status", short_help="One screen: recorded, unpublished, stale, what next")
@with_json
@click.pass_obj
def command(output: Output, as_json: bool) -> int:
    r"""Say what HEAD's evidence covers, what is not published yet, and what to type next.

    \b
    git ledger status
    git ledger status --json | jq .summary
    """
    from gitledger.report.next_step import status_text
    from gitledger.report.shards import plan_text
    from gitledger.workflows.absent import absent_commands, pushes_the_ledger
    from gitledger.workflows.config_at_hand import config_at_hand
    from gitledger.workflows.dirt import dirt_of, named
    from gitledger.workflows.judge import judged, plan
    from gitledger.workflows.mend import to_mend_dirt
    from gitledger.workflows.missing import unfetched_remote
    from gitledger.workflows.target import head_of
    from gitledger.workflows.unpublished import unpublished

    session = enter(output)
    head = head_of(session)
    with beside_edits(output, session, head):
        found = plan(session, head)
    waiting = unpublished(session)
    stale = [choice for choice in found.union.choices if choice.verdict == "stale"]
    if stale:
        say_what_is_missing(output, session)
    if as_json:
        output.document({**found.encode(), "unpublished": waiting})
        return 0
    edits = [(str(item.key), item.paths) for item in found.uncommitted]
    text = plan_text(found.union, edits, commit=head, color=output.color, width=output.width)
    changed, untracked = dirt_of(session.repo)
    dirt = [*changed, *untracked]
    told = f"{named(session.repo, dirt)}: {to_mend_dirt(session.repo, changed, untracked)}" if dirt else ""
    passed = not stale and not any(waiting.values()) and judged(session, found.case, found.union).verdict.passed
    unfetched = unfetched_remote(session) if stale else ""
    at_hand = config_at_hand(session.repo, head) if dirt else None
    broken = "" if at_hand is None or at_hand.error is None else at_hand.error.code
    ending = status_text(
        stale,
        waiting,
        passed=passed,
        dirt=told,
        unfetched=unfetched,
        absent=absent_commands(session, found.case.inputs.config, [choice.shard.key for choice in stale]),
        push=pushes_the_ledger(session.repo),
        broken=broken and f"mend .gitledger/config.yaml, which is edited and broken: git ledger explain {broken}",
    )
    output.result(text + ending)
    return 0
