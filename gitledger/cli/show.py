"""`git ledger show`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, with_json
from gitledger.errors import UsageError

if TYPE_CHECKING:
    from gitledger.workflows.browse import CommitEntry
    from gitledger.workflows.session import Session


@click.command("show", short_help="Evidence of one commit, or one record")
@click.argument("what", default="HEAD", metavar="[COMMIT|RECORD]")
@click.option("--tests", is_flag=True, help="List the test results of shard receipts.")
@click.option("--failed", is_flag=True, help="Only tests that failed or erred.")
@click.option("--raw", is_flag=True, help="The stored lines, and nothing else.")
@with_json
@click.pass_obj
def command(output: Output, what: str, tests: bool, failed: bool, raw: bool, as_json: bool) -> int:
    r"""Show the records of a commit, or one record by its id (8 digits or more).

    \b
    git ledger show --tests --failed
    git ledger show 1f3a9c0b --json
    """
    if raw and as_json:
        raise UsageError("usage", "--raw and --json are two documents, and stdout takes one", "leave one out")
    session = enter(output)
    entry = _find(session, what)
    if raw:
        for record in entry.records:
            output.result(record.line.decode("utf-8", "backslashreplace"))
    elif as_json:
        output.document(_document(session, entry, with_tests=tests or failed, failed=failed))
    else:
        output.result(_text(session, entry, with_tests=tests or failed, failed=failed, color=output.color))
    return 0


def _find(session: Session, what: str) -> CommitEntry:
    from dataclasses import replace

    from gitledger.workflows.browse import find_record, show_commit

    try:
        return show_commit(session, session.repo.resolve(what))
    except UsageError:
        found = find_record(session, what)
        if found is None:
            raise
        entry = show_commit(session, found[0].id)
        return replace(entry, records=(found[1],))


def _document(session: Session, entry: CommitEntry, *, with_tests: bool, failed: bool) -> object:
    from gitledger.trust.verified import Rejected, open_record
    from gitledger.workflows.browse import tests_of

    document = entry.encode()
    for shown, record in zip(document["records"], entry.records, strict=True):
        opened = open_record(record.line)
        if not isinstance(opened, Rejected):
            shown["statement"] = json.loads(opened.statement.raw)
        if with_tests:
            shown["tests"] = [
                {
                    "attempts": item.attempts,
                    "duration_ns": item.duration_ns,
                    "node_id": item.node_id,
                    "outcome": item.outcome.value,
                    "phase": item.phase,
                }
                for item in tests_of(session, record)
                if item.outcome.is_bad or not failed
            ]
    return document


def _text(session: Session, entry: CommitEntry, *, with_tests: bool, failed: bool, color: bool) -> str:
    from gitledger.records.capability_record import CapabilityRecord
    from gitledger.report.lanes import evidence_lines
    from gitledger.report.listing import commit_lines, record_row, test_lines
    from gitledger.workflows.browse import tests_of

    rows = [
        record_row(item.id, item.claim, item.signer or item.key or "unsigned", item.fault)
        for item in entry.records
    ]
    head, *lines = commit_lines(entry.commit.id, entry.commit.summary, rows, color=color)
    shown = [head]
    for line, record in zip(lines, entry.records, strict=True):
        shown.append(line)
        if isinstance(record.claim, CapabilityRecord):
            shown += evidence_lines(record.claim.report)
        if with_tests:
            shown += test_lines(tests_of(session, record), failed_only=failed, color=color)
    if not entry.records:
        shown.append("  no evidence; `git ledger record --shard N` makes some")
    return "\n".join(shown) + "\n"
