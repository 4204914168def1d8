"""The release check: every required cell passed on the commit, by reports whose signers count (DESIGN section 9).

For each cell the newest conclusive report on the commit decides, and a tie fails. Nothing here is decided by a
lane's silence: a cell without a report is `missing`, and no required cell at all is no pass.

What keeps a report from counting, in the order in which it is asked:

1. Its signer is none of the lane's (`signers`, else policy's).
2. It was made with uncommitted changes, and policy does not allow that.
3. A pass that is dated in the future, or starts before its commit existed.
4. A pass by a version of a built-in recipe that is not known here.

Only the first two weaken a failure, too: an oddly dated one still blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from gitledger.config.schema import LaneConfig, PolicyConfig
from gitledger.dataclass import dataclass
from gitledger.records.capability_recipes import BUILT_IN
from gitledger.records.capability_status import Status
from gitledger.records.decode import format_time
from gitledger.records.ids import CommitId, RecordId
from gitledger.verdict.acceptance import CLOCK_TOLERANCE, Acceptance, Signatories
from gitledger.verdict.evidence import Evidence, HeldReport
from gitledger.verdict.finding import Finding, Verdict, blocking, note
from gitledger.verdict.lane_cells import Cell, CellStatus, cells_of, mismatches
from gitledger.verdict.revoked import revoked_records
from gitledger.verdict.verify import Ignored
from gitledger.wording import counted

__all__ = ["CellVerdict", "LaneSituation", "Release", "judge_lanes", "report_bar"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneSituation:
    """One commit to be judged at one moment. `signatories` are policy's view of keys for each lane, by name.

    `here` is what stands on the commit and is about it, `elsewhere` what stands on others.
    """

    commit: CommitId
    committed_at: datetime
    now: datetime
    lanes: Mapping[str, LaneConfig]
    policy: PolicyConfig
    signatories: Mapping[str, Signatories]
    here: Evidence
    elsewhere: Sequence[Evidence] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CellVerdict:
    """What stands for a cell: the report that decided, None where there is none, and why in words."""

    cell: Cell
    status: CellStatus
    held: HeldReport | None = None
    signer: str | None = None
    detail: str = ""

    @property
    def required(self) -> bool:
        """Tell whether a release needs it."""
        return self.cell.lane.required

    def encode(self) -> dict[str, Any]:
        """Return the JSON object of `lanes --json`."""
        return {
            "detail": self.detail,
            "evidence": self._evidence(),
            "lane": self.cell.lane.name,
            "layers": None if self.cell.layers is None else list(self.cell.layers),
            "model": self.cell.model,
            "quantization": self.cell.quantization,
            "recipe": self.cell.recipe,
            "record": self.held.id if self.held else None,
            "required": self.required,
            "status": self.status.value,
        }

    def _evidence(self) -> dict[str, Any] | None:
        """Return the lane's record: what the claim of support rests on, and nothing that was typed by hand."""
        if self.held is None:
            return None
        report = self.held.report
        return {
            "commit": report.repo.commit,
            "device": report.device.encode(),
            "driver": report.driver,
            "duration_ms": report.timing.duration_ms,
            "finished_at": format_time(report.timing.finished_at),
            "layers": report.layers.encode(),
            "model": {"digest": report.model.digest, "resolved": report.model.resolved},
            "os": report.os.encode(),
            "quantization": report.quantization.encode(),
            "recipe": report.recipe.encode(),
            "signer": self.signer,
            "torch": report.torch.encode(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Every cell, every finding, and every report that counts for nothing."""

    commit: CommitId
    cells: tuple[CellVerdict, ...]
    verdict: Verdict
    ignored: tuple[Ignored, ...]

    def encode(self) -> dict[str, Any]:
        """Return the document of `lanes --json` (DESIGN section 10)."""
        return {
            "cells": [cell.encode() for cell in self.cells],
            "commit": self.commit,
            "findings": [finding.encode() for finding in self.verdict.findings],
            "ignored": [item.encode() for item in self.ignored],
            "verdict": "passed" if self.verdict.passed else "failed",
        }


@dataclass(frozen=True, slots=True)
class _Trusted:
    """A report whose signer counts for its lane."""

    held: HeldReport
    signer: str | None

    @property
    def status(self) -> Status:
        return self.held.report.status

    def order(self, revoked: frozenset[RecordId] = frozenset()) -> tuple[datetime, bool, RecordId]:
        """Return what sorts the newest last, and of a tie what is no pass: a failure, or one that was revoked.

        Who signs a report of another again makes a second record of the same run, which nobody revoked.
        """
        is_red = self.status is Status.FAILED or self.held.id in revoked
        return self.held.report.timing.finished_at, is_red, self.held.id


def judge_lanes(situation: LaneSituation) -> Release:
    """Return the release check's answer. It fails closed: no required cell, or no report, is never a pass."""
    ignored: dict[RecordId, str] = {}
    counted = _counting(situation, situation.here, ignored)
    others = [_counting(situation, pile, {}, foreign=True) for pile in situation.elsewhere]
    cells = tuple(cells_of(situation.lanes))
    revoked = _revoked(situation)
    verdicts = tuple(_judge_cell(cell, situation, counted, others, revoked) for cell in cells)
    findings = [
        *_nothing(verdicts),
        *(_finding(verdict) for verdict in verdicts if verdict.status is not CellStatus.PASSED),
        *_different_models(verdicts),
        *_unexpected(cells, situation.here),
        *_undecodable(situation),
    ]
    judged = sum(verdict.required for verdict in verdicts)
    reasons = tuple(Ignored(record, reason) for record, reason in ignored.items())
    return Release(
        commit=situation.commit,
        cells=verdicts,
        verdict=Verdict.over(judged, findings),
        ignored=(*reasons, *_not_read(situation.here)),
    )


def _counting(
    situation: LaneSituation, pile: Evidence, ignored: dict[RecordId, str], *, foreign: bool = False
) -> list[_Trusted]:
    """Return the reports of declared lanes that count; why the others don't goes into `ignored`.

    A record counts if any of its lines does. `foreign`: of another commit, whose date is not looked at.
    """
    found: dict[RecordId, _Trusted] = {}
    for held in pile.reports:
        keys = situation.signatories.get(held.report.lane.id or "")
        if keys is None:
            continue
        acceptance = keys.judge(held.opened, held.report.timing.finished_at)
        if acceptance.accepted:
            made_at = None if foreign else situation.committed_at
            acceptance = report_bar(held, acceptance, situation.policy, situation.now, made_at)
        if acceptance.accepted:
            found.setdefault(held.id, _Trusted(held, acceptance.principal))
        else:
            ignored.setdefault(held.id, acceptance.reason)
    for record in found:
        ignored.pop(record, None)
    return list(found.values())


def report_bar(
    held: HeldReport, by_signer: Acceptance, policy: PolicyConfig, now: datetime, committed_at: datetime | None
) -> Acceptance:
    """Return whether a report with a signer that counts does so itself (rules 2 to 4 above).

    `committed_at` is when its commit was made, None where its date is not to be looked at.
    """
    report = held.report
    if report.repo.dirty and not policy.allow_dirty:
        return Acceptance(False, by_signer.principal, "dirty")
    if report.status is not Status.PASSED:
        return by_signer
    if report.timing.finished_at > now:
        return Acceptance(False, by_signer.principal, "future")
    if committed_at is not None and report.timing.started_at < committed_at - CLOCK_TOLERANCE:
        return Acceptance(False, by_signer.principal, "before-commit")
    versions = BUILT_IN.get(report.recipe.id)
    if versions is not None and report.recipe.version not in versions:
        return Acceptance(False, by_signer.principal, "unknown-recipe-version")
    return by_signer


def _revoked(situation: LaneSituation) -> frozenset[RecordId]:
    """Return the reports that a revocation takes away, by their own key, by a revoker of policy."""
    found: frozenset[RecordId] = frozenset()
    for keys in situation.signatories.values():
        found |= revoked_records([situation.here], keys.is_revoker)
    return found


def _judge_cell(
    cell: Cell,
    situation: LaneSituation,
    counted: Iterable[_Trusted],
    others: Iterable[Iterable[_Trusted]],
    revoked: frozenset[RecordId],
) -> CellVerdict:
    """Return what stands for a cell."""
    mine = sorted(
        (item for item in counted if cell.is_asked(item.held.report)), key=lambda item: item.order(revoked)
    )
    conclusive = [item for item in mine if item.status.is_conclusive]
    if conclusive:
        return _decided(cell, situation, conclusive[-1], revoked)
    if mine:
        last = mine[-1]
        return _verdict(cell, CellStatus(last.status.value), last, _why(last))
    return _from_elsewhere(cell, others)


def _decided(cell: Cell, situation: LaneSituation, newest: _Trusted, revoked: frozenset[RecordId]) -> CellVerdict:
    if newest.status is Status.FAILED:
        return _verdict(cell, CellStatus.FAILED, newest, _why(newest))
    if newest.held.id in revoked:
        return _verdict(cell, CellStatus.FAILED, newest, "its pass was revoked")
    faults = mismatches(cell.lane, newest.held.report)
    if faults:
        return _verdict(cell, CellStatus.MISMATCHED, newest, "; ".join(faults))
    days = situation.policy.max_age_days
    if situation.now - newest.held.report.timing.finished_at > timedelta(days=days):
        return _verdict(cell, CellStatus.STALE, newest, f"older than {counted(days, 'day')}")
    return _verdict(cell, CellStatus.PASSED, newest, "")


def _from_elsewhere(cell: Cell, others: Iterable[Iterable[_Trusted]]) -> CellVerdict:
    """Return `stale` where the cell passed on another commit, else `missing`."""
    passes = [
        item
        for pile in others
        for item in pile
        if item.status is Status.PASSED
        and cell.is_asked(item.held.report)
        and not mismatches(cell.lane, item.held.report)
    ]
    if not passes:
        return CellVerdict(cell=cell, status=CellStatus.MISSING, detail="no report on this commit")
    last = max(passes, key=_Trusted.order)
    detail = f"passed only on {last.held.report.repo.commit[:12]}, not on this commit"
    return _verdict(cell, CellStatus.STALE, last, detail)


def _verdict(cell: Cell, status: CellStatus, by: _Trusted, detail: str) -> CellVerdict:
    return CellVerdict(cell=cell, status=status, held=by.held, signer=by.signer, detail=detail)


def _why(item: _Trusted) -> str:
    reason = item.held.report.reason
    return "" if reason is None else f"{reason.code}: {reason.message}"


def _nothing(verdicts: Sequence[CellVerdict]) -> Iterator[Finding]:
    if not any(verdict.required for verdict in verdicts):
        yield blocking(
            "no-lanes",
            "9",
            "lanes",
            expected="at least one required lane",
            found="only advisory lanes" if verdicts else "none",
            remedy="declare lanes in .gitledger/config.yaml",
        )


_HINTS = {
    "lane-failed": "git ledger show {record}",
    "lane-inconclusive": "git ledger doctor --lane {lane} --record",
    "lane-skipped": "git ledger doctor --lane {lane} --record",
    "lane-missing": "git ledger doctor --lane {lane} --record",
    "lane-stale": "git ledger doctor --lane {lane} --record",
    "lane-mismatched": "git ledger doctor --lane {lane} --record, on the declared lane",
}


def _finding(verdict: CellVerdict) -> Finding:
    """Return the finding of a cell that did not pass; of an advisory lane it blocks nothing."""
    make = blocking if verdict.required else note
    code = f"lane-{verdict.status}"
    record = verdict.held.id[:12] if verdict.held else ""
    return make(
        code,
        "9",
        verdict.cell,
        expected="a passed report on this commit, on the declared lane",
        found=f"{verdict.status}: {verdict.detail}" if verdict.detail else verdict.status.value,
        remedy=_HINTS[code].format(lane=verdict.cell.lane.name, record=record),
    )


def _different_models(verdicts: Sequence[CellVerdict]) -> Iterator[Finding]:
    """Yield the models that are several under one name.

    In one lane, parts of different ones certify neither; of several lanes, one may have run something smaller.
    """
    seen: dict[str, dict[str, list[CellVerdict]]] = {}
    for verdict in verdicts:
        if verdict.status is CellStatus.PASSED:
            by_lane = seen.setdefault(verdict.cell.model, {})
            by_lane.setdefault(verdict.cell.lane.name, []).append(verdict)
    for model, by_lane in seen.items():
        torn = [lane for lane, cells in by_lane.items() if len(_models(cells)) > 1]
        for lane in torn:
            is_required = any(verdict.required for verdict in by_lane[lane])
            yield _models_differ(f"{lane}: {model}", by_lane[lane], lane, blocks=is_required)
        cells = [verdict for lane, found in by_lane.items() if lane not in torn for verdict in found]
        if len(_models(cells)) > 1:
            required = _models(verdict for verdict in cells if verdict.required)
            lanes = ", ".join(dict.fromkeys(verdict.cell.lane.name for verdict in cells))
            *_, odd = _models(cells).values()
            yield _models_differ(f"{lanes}: {model}", cells, odd.cell.lane.name, blocks=len(required) > 1)


def _models(verdicts: Iterable[CellVerdict]) -> dict[tuple[Any, Any], CellVerdict]:
    """Return the models that passed, by the digest of their files and their depth."""
    found: dict[tuple[Any, Any], CellVerdict] = {}
    for verdict in verdicts:
        if verdict.held is not None:
            report = verdict.held.report
            found.setdefault((report.model.digest, report.layers.total), verdict)
    return found


def _models_differ(subject: str, verdicts: Iterable[CellVerdict], lane: str, *, blocks: bool) -> Finding:
    make = blocking if blocks else note
    return make(
        "lane-model-differs",
        "9",
        subject,
        expected="one model under one name, in all reports",
        found=", ".join(f"{str(digest)[:12]} of {counted(total, 'layer')}" for digest, total in _models(verdicts)),
        remedy=f"git ledger doctor --lane {lane} --record",
    )


def _unexpected(cells: Sequence[Cell], here: Evidence) -> Iterator[Finding]:
    """Yield the reports of lanes that answer nothing that was asked: never in silence."""
    for held in {held.id: held for held in here.reports if held.report.lane.id}.values():
        report = held.report
        if not any(cell.is_asked(report) for cell in cells):
            layers = report.layers
            yield note(
                "lane-unexpected",
                "9",
                held.id[:12],
                expected="reports of declared lanes, models, layers, quantizations and recipes",
                found=f"{report.lane.id}: {report.model.requested} layers {layers.start}-{layers.end} "
                f"{report.quantization.requested} by {report.recipe.id}, {report.status}",
            )


def _undecodable(situation: LaneSituation) -> Iterator[Finding]:
    """Yield what a key that counts signed and we can't read: it may be a failure, so it blocks."""
    for item in situation.here.undecodable:
        if any(keys.trusts(item) for keys in situation.signatories.values()):
            yield blocking(
                "undecodable",
                "2",
                item.id[:12],
                expected="a record that this version can read",
                found=item.detail,
                remedy="upgrade git-ledger",
            )


def _not_read(here: Evidence) -> Iterator[Ignored]:
    yield from (Ignored(item.record, f"{item.reason}: {item.detail}") for item in here.rejected)
    yield from (Ignored(record, "other-repository") for record in here.foreign)
    yield from (Ignored(record, "misplaced") for record in here.misplaced)
