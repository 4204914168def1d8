"""`git ledger show`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from gitledger.cli.output import Output
from gitledger.cli.world import enter, with_json
from gitledger.dataclass import dataclass
from gitledger.errors import UsageError

if TYPE_CHECKING:
    from gitledger.report.listing import RecordRow
    from gitledger.workflows.browse import CommitEntry, RecordEntry
    from gitledger.workflows.session import Session
    from gitledger.workflows.through_merge import Input


@click.command("show", short_help="Evidence of one commit, or one record")
@click.argument("what", default="HEAD", metavar="[COMMIT|RECORD]")
@click.option("--tests", is_flag=True, help="List the test results of shard receipts.")
@click.option("--failed", is_flag=True, help="Only tests that failed or erred.")
@click.option(
    "--coverage", is_flag=True, help="List the files that shard receipts measured, the least covered first."
)
@click.option("--raw", is_flag=True, help="The stored lines, and nothing else.")
@click.option("--no-pager", is_flag=True, help="Write straight to the terminal.")
@with_json
@click.pass_obj
def command(
    output: Output,
    what: str,
    tests: bool,
    failed: bool,
    coverage: bool,
    raw: bool,
    no_pager: bool,
    as_json: bool,
) -> int:
    r"""Show the records of a commit, or one record by its id (8 digits or more).

    It shows what was recorded, whose key signed it, and what HEAD's policy has against a record by itself. What
    the whole is worth, `verify` says. Tests and coverage of a merge are those of the receipts that it names, on
    whatever commit they were recorded.

    \b
    git ledger show --tests --failed
    git ledger show 1f3a9c0b --json
    """
    if raw and as_json:
        raise UsageError("usage", "--raw and --json are two documents, and stdout takes one", "leave one out")
    from gitledger.cli.pager import page

    session = enter(output)
    entry = _find(session, what)
    asked = _Asked(tests=tests or failed, failed=failed, coverage=coverage)
    if raw:
        for record in entry.records:
            output.result(record.line.decode("utf-8", "backslashreplace"))
    elif as_json:
        output.document(_document(session, entry, asked))
    else:
        page(
            output,
            session,
            _text(session, entry, asked, color=output.color, width=output.width),
            no_pager=no_pager,
        )
    return 0


_HEX = re.compile(r"[0-9a-f]{4,64}\Z")
"""What looks like the beginning of an id, and not like a branch or a tag."""


_ASIDE = len("  , on 0123456789ab")
"""What stands beside the row of a merge's input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is to be shown beside the records."""

    tests: bool
    failed: bool
    coverage: bool


def _find(session: Session, what: str) -> CommitEntry:
    from gitledger.dataclass import replace
    from gitledger.workflows.browse import LEAST_DIGITS, find_record, show_commit
    from gitledger.workflows.target import target_of

    try:
        return show_commit(session, target_of(session, what))
    except UsageError:
        found = find_record(session, what)
        if found is None and _HEX.match(what):
            text = f"no record or commit begins with {what!a}"
            if len(what) < LEAST_DIGITS:
                text = f"no commit begins with {what!a}, and a record is named by {LEAST_DIGITS} digits or more"
            hint = "git ledger log (it prints both; git ledger sync --fetch-only brings those of others)"
            raise UsageError("unknown-record", text, hint) from None
        if found is None:
            raise
        entry = show_commit(session, found[0].id)
        return replace(entry, records=tuple(record for record in entry.records if record.line == found[1].line))


def _document(session: Session, entry: CommitEntry, asked: _Asked) -> object:
    from gitledger.trust.verified import Rejected, open_record

    document = entry.encode()
    for shown, record in zip(document["records"], entry.records, strict=True):
        opened = open_record(record.line)
        if not isinstance(opened, Rejected):
            shown["statement"] = json.loads(opened.statement.raw)
        shown |= _contents(session, record, asked)
        if found := _inputs(session, entry, record, asked):
            shown["inputs"] = [
                {**item.entry.encode(), "commit": item.commit, **_contents(session, item.entry, asked)}
                for item in found
            ]
    return document


def _contents(session: Session, record: RecordEntry, asked: _Asked) -> dict[str, Any]:
    """Return what was asked for of one record's bodies, for its JSON object."""
    from gitledger.workflows.browse import fragment_of, tests_of

    found: dict[str, Any] = {}
    fragment = fragment_of(session, record) if asked.coverage else None
    if fragment is not None:
        found["coverage"] = [
            {"covered": file.covered, "path": file.path, "total": file.total} for file in fragment.files
        ]
    if asked.tests:
        found["tests"] = [
            {
                "attempts": item.attempts,
                "duration_ns": item.duration_ns,
                "node_id": item.node_id,
                "outcome": item.outcome.value,
                "phase": item.phase,
            }
            for item in tests_of(session, record)
            if item.outcome.is_bad or not asked.failed
        ]
    return found


def _inputs(session: Session, entry: CommitEntry, record: RecordEntry, asked: _Asked) -> list[Input]:
    """Return the receipts that a merge names and that are not shown themselves, where bodies are asked for."""
    if not (asked.tests or asked.coverage):
        return []
    from gitledger.workflows.through_merge import inputs_of

    shown = {(item.id, item.key) for item in entry.records}
    return [item for item in inputs_of(session, record) if (item.entry.id, item.entry.key) not in shown]


def _text(session: Session, entry: CommitEntry, asked: _Asked, *, color: bool, width: int | None) -> str:
    from gitledger.records.capability_record import CapabilityRecord
    from gitledger.records.receipt import ShardReceipt
    from gitledger.report.lanes import evidence_lines
    from gitledger.report.listing import commit_head, cut_remarks, receipt_lines, record_lines

    shown = commit_head(entry.commit.id, entry.commit.committed_at, entry.commit.summary, color=color)
    failed = 0
    rows = _rows(entry.records)
    lines = zip(record_lines(rows, color=color, width=width), cut_remarks(rows, width), strict=True)
    for (line, cut), record in zip(lines, entry.records, strict=True):
        shown += [line, f"    {cut}"] if cut else [line]
        if isinstance(record.claim, CapabilityRecord):
            shown += evidence_lines(record.claim.report)
        if isinstance(record.claim, ShardReceipt) and len(entry.records) == 1:
            shown += receipt_lines(record.claim)
        contents = _content_lines(session, record, asked, color=color)
        failed += len(contents)
        shown += contents
        inputs = _inputs(session, entry, record, asked)
        below = record_lines(_rows([item.entry for item in inputs]), color=color, width=width and width - _ASIDE)
        for row, item in zip(below, inputs, strict=True):
            contents = _content_lines(session, item.entry, asked, color=color)
            failed += len(contents)
            shown += [f"  {row}, on {item.commit[:12]}", *(f"  {text}" for text in contents)]
    if not entry.records:
        shown.append("  no evidence; `git ledger record --shard N` makes some")
    elif asked.failed and not asked.coverage and not failed:
        shown.append("  no test failed")
    return "\n".join(shown) + "\n"


def _rows(records: Sequence[RecordEntry]) -> list[RecordRow]:
    from gitledger.report.listing import record_row, signer_text

    return [
        record_row(item.id, item.claim, signer_text(item.signer, item.key), item.fault, item.against)
        for item in records
    ]


def _content_lines(session: Session, record: RecordEntry, asked: _Asked, *, color: bool) -> list[str]:
    """Return what was asked for of one record's bodies, as lines."""
    from gitledger.report.listing import coverage_file_lines, test_lines
    from gitledger.workflows.browse import fragment_of, tests_of

    fragment = fragment_of(session, record) if asked.coverage else None
    lines = [] if fragment is None else coverage_file_lines(fragment)
    if asked.tests:
        lines += test_lines(tests_of(session, record), failed_only=asked.failed, color=color)
    return lines
