"""The document of an HTML report: verdicts along a history as plain values, small enough to be put into a page.

A shard that nothing happened to has the same cell at many commits, so cells are numbered and each is said once.
All text from outside is escaped here as a terminal would get it; the page shows it as text.
"""

from __future__ import annotations

from typing import Any

from gitledger import __version__
from gitledger.errors import LedgerError
from gitledger.records.decode import format_time
from gitledger.records.ids import CommitId, ShardKey
from gitledger.report.coverage import coverage_lines
from gitledger.report.html.page import html_page
from gitledger.report.text import escaped
from gitledger.verdict.finding import Finding
from gitledger.workflows.export_draw import draw
from gitledger.workflows.export_tests import slowest_tests
from gitledger.workflows.flaky import flaky_tests
from gitledger.workflows.history import History, look_along
from gitledger.workflows.judge import Verified, policy_of, verify
from gitledger.workflows.lanes import judge_release
from gitledger.workflows.session import Session

__all__ = ["history_document", "html_report"]

MAX_FLAKY = 50
_TEXT = 300


def html_report(
    session: Session,
    target: CommitId,
    *,
    policy_from: str | None = None,
    limit: int,
    title: str | None = None,
) -> str:
    """Return the page of a commit and those before it; raises where the commit itself can't be judged."""
    return html_page(history_document(session, target, policy_from=policy_from, limit=limit, title=title))


def history_document(
    session: Session,
    target: CommitId,
    *,
    policy_from: str | None = None,
    limit: int,
    title: str | None = None,
) -> dict[str, Any]:
    """Return what the page shows. Raises what `verify` raises for `target`; of others that is said instead."""
    history = look_along(session, target, limit=limit, policy_from=policy_from)
    first = verify(history.session, target, policy_from=policy_from, known=history.known)
    drawing = draw(history)
    folder = session.repo.worktree or session.repo.common_dir
    return {
        **drawing.encode(),
        **_judged(first),
        "commit": target,
        "flaky": _flaky(history, target),
        "lanes": _lanes(session, target, policy_from, first),
        "left_out": history.left_out,
        "made": {
            "at": format_time(history.session.now()),
            "by": f"git-ledger {__version__}",
            "verify": _command(target, policy_from),
        },
        "slowest": [
            {"shard": str(key), "seconds": seconds, "test": escaped(node_id, _TEXT)}
            for seconds, key, node_id in slowest_tests(first.union)
        ],
        "title": escaped(title or folder.name, 80),
    }


def _command(target: CommitId, policy_from: str | None) -> str:
    return f"git ledger verify {target[:12]}" + (f" --policy-from {policy_from}" if policy_from else "")


def _judged(found: Verified) -> dict[str, Any]:
    """Return the verdict on the newest commit, by the words that `verify` prints."""
    document = found.encode()
    return {
        "coverage": document["coverage"],
        "coverage_text": coverage_lines(found.union.coverage, color=False),
        "findings": [_finding(finding) for finding in found.verdict.findings],
        "ignored": [
            {"reason": escaped(item.reason, _TEXT), "record": item.record} for item in dict.fromkeys(found.ignored)
        ],
        "policy": {**policy_of(found.case), "from": escaped(str(policy_of(found.case)["from"]), 100)},
        "verdict": document["verdict"],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    shown = finding.encode()
    return {name: escaped(value, _TEXT) if isinstance(value, str) else value for name, value in shown.items()}


def _flaky(history: History, target: CommitId) -> list[dict[str, Any]]:
    """Return flaky tests, each once whatever inputs it had, those with the most bad ends first."""
    found: dict[tuple[ShardKey, str], dict[str, Any]] = {}
    flaky = flaky_tests(history.session, target, policy_from=history.policy_from, known=history.known)
    for test in flaky:
        told = test.encode()
        known = found.setdefault((test.key, test.node_id), {**told, "outcomes": {}, "reruns": 0})
        for outcome, number in told["outcomes"].items():
            known["outcomes"][outcome] = known["outcomes"].get(outcome, 0) + number
        known["reruns"] += told["reruns"]
        known["last_seen"] = max(known["last_seen"], told["last_seen"])
    rows = sorted(found.items(), key=lambda item: (-_bad_ends(item[1]), item[0]))
    return [
        {**row, "node_id": escaped(row["node_id"], _TEXT), "outcomes": dict(sorted(row["outcomes"].items()))}
        for _, row in rows[:MAX_FLAKY]
    ]


def _bad_ends(row: dict[str, Any]) -> int:
    outcomes = row["outcomes"]
    return int(row["reruns"] + outcomes.get("failed", 0) + outcomes.get("error", 0))


def _lanes(session: Session, target: CommitId, policy_from: str | None, found: Verified) -> dict[str, Any] | None:
    """Return the release check, or why there is none to be had; None where no lanes are declared."""
    if not found.case.trusted.config.lanes:
        return None
    try:
        release = judge_release(session, target, policy_from=policy_from).release
    except LedgerError as error:
        return {"cells": [], "fault": escaped(f"{error.code}: {error.message}", _TEXT), "verdict": "unknown"}
    cells = []
    for verdict in release.cells:
        shown = verdict.encode()
        held = verdict.held
        cells.append(
            {
                "detail": escaped(verdict.detail, _TEXT),
                "finished_at": format_time(held.report.timing.finished_at) if held else None,
                "hardware": escaped(_hardware(held.report), _TEXT) if held else "",
                "lane": escaped(shown["lane"], 100),
                "layers": shown["layers"],
                "model": escaped(shown["model"], 100),
                "quantization": escaped(shown["quantization"], 40),
                "recipe": escaped(shown["recipe"], 60),
                "record": shown["record"],
                "required": shown["required"],
                "signer": escaped(verdict.signer or "", 100),
                "status": shown["status"],
            }
        )
    return {"cells": cells, "fault": "", "verdict": release.encode()["verdict"]}


def _hardware(report: Any) -> str:
    device, torch = report.device, report.torch
    return ", ".join(filter(None, [device.name, device.arch, torch.version and f"torch {torch.version}"]))
