"""A verdict as others show it: Markdown for job summaries, JUnit XML for dashboards, a page for people."""

from __future__ import annotations

from gitledger.records.ids import CommitId
from gitledger.report.coverage import coverage_lines
from gitledger.report.junit import junit_xml
from gitledger.report.summary import summary_text
from gitledger.workflows.export_html import html_report
from gitledger.workflows.export_tests import slowest_tests
from gitledger.workflows.judge import verify
from gitledger.workflows.session import Session

__all__ = ["html", "junit", "markdown"]

SLOWEST = 10
"""Tests that a summary lists."""


def html(session: Session, target: CommitId, policy_from: str | None, commits: int) -> bytes:
    """Return a page of the commit and of those before it that carry evidence, `commits` in all."""
    return html_report(session, target, policy_from=policy_from, limit=commits).encode("utf-8")


def markdown(session: Session, target: CommitId, policy_from: str | None) -> bytes:
    """Return what `gate` writes into a job's summary, and the slowest tests."""
    found = verify(session, target, policy_from=policy_from)
    document = {**found.encode(), "judged": session.repo.commit(target).summary}
    text = summary_text(
        document,
        found.verdict.findings,
        coverage=coverage_lines(found.union.coverage, color=False),
        slowest=slowest_tests(found.union, limit=SLOWEST),
    )
    return text.encode("utf-8", "backslashreplace")


def junit(session: Session, target: CommitId, policy_from: str | None) -> bytes:
    """Return the verdict as JUnit XML, a suite a shard."""
    found = verify(session, target, policy_from=policy_from)
    return junit_xml(target, found.union.choices, found.verdict.findings)
