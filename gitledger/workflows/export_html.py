"""The document of an HTML report: verdicts along a history as plain values, small enough to be put into a page.

A shard that nothing happened to has the same cell at many commits, so cells are numbered and each is said once.
All text from outside is escaped here as a terminal would get it; the page shows it as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from gitledger import __version__
from gitledger.dataclass import dataclass
from gitledger.errors import LedgerError
from gitledger.records.decode import format_time
from gitledger.records.ids import CommitId, KeyFingerprint, RecordId, ShardKey
from gitledger.report.coverage import coverage_lines
from gitledger.report.html.page import html_page
from gitledger.report.states import GLYPHS, blocking_codes, cell_state
from gitledger.report.text import escaped
from gitledger.verdict.evidence import Held
from gitledger.verdict.finding import Finding
from gitledger.verdict.select import Choice
from gitledger.workflows.export_tests import slowest_tests
from gitledger.workflows.flaky import flaky_tests
from gitledger.workflows.history import Column, History, look_along
from gitledger.workflows.judge import Verified, policy_of
from gitledger.workflows.lanes import judge_release
from gitledger.workflows.session import Session

__all__ = ["history_document", "html_report"]

MAX_CHANGED = 5
"""Changed paths that a cell names."""
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
    drawing = _Drawing()
    first: Verified | None = None
    for place, column in enumerate(history.columns()):
        if place == 0:
            first = column.found or _again(history, target)
        drawing.add(column)
    if first is None:
        raise ValueError("a history has at least one commit")
    folder = session.repo.worktree or session.repo.common_dir
    return {
        **drawing.encode(),
        **_judged(first),
        "commit": target,
        "flaky": _flaky(session, target, policy_from),
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


def _again(history: History, target: CommitId) -> Verified:
    """Judge the target once more, for the error that it raises."""
    from gitledger.workflows.judge import verify

    return verify(history.session, target, policy_from=history.policy_from)


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


def _flaky(session: Session, target: CommitId, policy_from: str | None) -> list[dict[str, Any]]:
    """Return flaky tests, each once whatever inputs it had, those with the most bad ends first."""
    found: dict[tuple[ShardKey, str], dict[str, Any]] = {}
    for test in flaky_tests(session, target, policy_from=policy_from):
        told = test.encode()
        known = found.setdefault((test.key, test.node_id), {**told, "outcomes": {}, "reruns": 0})
        for outcome, number in told["outcomes"].items():
            known["outcomes"][outcome] = known["outcomes"].get(outcome, 0) + number
        known["reruns"] += told["reruns"]
        known["last_seen"] = max(known["last_seen"], told["last_seen"])
    rows = sorted(found.items(), key=lambda item: (-_bad_ends(item[1]), item[0]))
    return [{**row, "node_id": escaped(row["node_id"], _TEXT)} for _, row in rows[:MAX_FLAKY]]


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


@dataclass(slots=True)
class _Numbered:
    """Values that are said once and then called by their numbers, in the order in which they came."""

    values: list[Any] = field(default_factory=list)
    _places: dict[Any, int] = field(default_factory=dict)

    def place(self, key: object) -> int | None:
        return self._places.get(key)

    def add(self, key: object, value: Any) -> int:
        self._places[key] = len(self.values)
        self.values.append(value)
        return self._places[key]


@dataclass(slots=True)
class _Drawing:
    """The matrix as it grows, commit by commit."""

    columns: list[dict[str, Any]] = field(default_factory=list)
    shards: dict[ShardKey, int] = field(default_factory=dict)
    cells: list[dict[int, tuple[int, int | None]]] = field(default_factory=list)
    kinds: _Numbered = field(default_factory=_Numbered)
    records: _Numbered = field(default_factory=_Numbered)
    signers: dict[tuple[KeyFingerprint | None, str], dict[str, Any]] = field(default_factory=dict)
    _signer_places: dict[tuple[KeyFingerprint | None, str], int] = field(default_factory=dict)

    def add(self, column: Column) -> None:
        """Add a commit."""
        found = column.found
        self.columns.append(
            {
                "at": format_time(column.commit.committed_at),
                "commit": column.commit.id,
                "coverage": _percentage(found),
                "fault": escaped(column.fault, _TEXT),
                "findings": [] if found is None else _codes(found.verdict.findings),
                "summary": escaped(column.commit.summary, 120),
                "verdict": "unknown" if found is None else "passed" if found.verdict.passed else "failed",
            }
        )
        row: dict[int, tuple[int, int | None]] = {}
        if found is not None:
            against = blocking_codes(found.union.choices, found.verdict.findings)
            for choice in found.union.choices:
                key = choice.shard.key
                place = self.shards.setdefault(key, len(self.shards))
                about = choice.result or choice.about
                distance = about.distance if about else None
                row[place] = (self._kind(choice, against.get(key, ())), distance)
            for one in found.union.fields:
                for candidate in one.candidates:
                    self._record(candidate.held, candidate.acceptance.principal, "")
                for held, why in one.untrusted:
                    self._record(held, None, why)
        self.cells.append(row)

    def _kind(self, choice: Choice, against: Sequence[str]) -> int:
        about = choice.result or choice.about
        attempts = tuple((item.held.id, item.held.key) for item in choice.attempts)
        record = (about.held.id, about.held.key) if about else None
        shown = (choice.verdict, choice.reason, choice.detail, choice.changed_paths, attempts, record, *against)
        key = (choice.shard.key, shown)
        place = self.kinds.place(key)
        if place is not None:
            return place
        for item in choice.attempts:
            self._record(item.held, item.acceptance.principal, "")
        value = {
            "against": list(against),
            "attempts": [self._record(item.held, item.acceptance.principal, "") for item in choice.attempts],
            "changed": [escaped(path, _TEXT) for path in choice.changed_paths[:MAX_CHANGED]],
            "detail": escaped(choice.detail, _TEXT),
            "reason": choice.reason,
            "record": self._record(about.held, about.acceptance.principal, "") if about else None,
            "state": cell_state(choice, against),
            "verdict": choice.verdict,
        }
        return self.kinds.add(key, value)

    def _record(self, held: Held, principal: str | None, why: str) -> int:
        """Return the number of a receipt; `why` its signature does not count, "" where it does."""
        identity: tuple[RecordId, KeyFingerprint | None] = (held.id, held.key)
        place = self.records.place(identity)
        if place is not None:
            return place
        receipt = held.receipt
        counts = receipt.counts
        return self.records.add(
            identity,
            {
                "commit": held.commit,
                "counts": [counts.passed, counts.collected, counts.failed + counts.error, counts.skipped],
                "ended_at": format_time(held.ended_at),
                "id": held.id,
                "outcome": receipt.outcome.value,
                "reasons": [escaped(reason, 60) for reason in receipt.reasons],
                "seconds": round((held.ended_at - held.started_at).total_seconds(), 3),
                "shard": str(receipt.key),
                "signer": self._signer(held.key, principal, why, held),
                "dirty": receipt.repo.dirty,
                "mode": receipt.session.mode,
            },
        )

    def _signer(self, key: KeyFingerprint | None, principal: str | None, why: str, held: Held) -> int:
        name = escaped(principal or "", 100)
        claim = held.receipt.signer
        identity = (key, name)
        if identity not in self.signers:
            self._signer_places[identity] = len(self.signers)
            self.signers[identity] = {
                "key": key,
                "last": "",
                "name": name,
                "records": 0,
                "says": escaped(claim.user, 100) if claim else "",
                "why": escaped(why, 60),
            }
        known = self.signers[identity]
        known["records"] += 1
        known["last"] = max(known["last"], format_time(held.ended_at))
        known["why"] = known["why"] or escaped(why, 60)
        return self._signer_places[identity]

    def encode(self) -> dict[str, Any]:
        """Return the matrix: for each shard a number and a distance a commit, -1 where it is not declared."""
        return {
            "cells": [
                [row[place][0] if place in row else -1 for row in self.cells] for place in self.shards.values()
            ],
            "columns": self.columns,
            "distances": [
                [row[place][1] if place in row else None for row in self.cells] for place in self.shards.values()
            ],
            "glyphs": GLYPHS,
            "kinds": self.kinds.values,
            "records": self.records.values,
            "shards": [{"name": key.name, "variant": key.variant} for key in self.shards],
            "signers": list(self.signers.values()),
        }


def _percentage(found: Verified | None) -> list[Any] | None:
    claim = found.union.coverage.claim if found is not None else None
    return None if claim is None else [claim.covered, claim.total, claim.passed]


def _codes(findings: Iterable[Finding]) -> list[str]:
    """Return what blocks, by code, each with the number of times."""
    counts: dict[str, int] = {}
    for finding in findings:
        if finding.blocks:
            counts[finding.code] = counts.get(finding.code, 0) + 1
    return [code if number == 1 else f"{code} ×{number}" for code, number in counts.items()]
