"""Lanes: the release check of a commit, by the lanes, policy and signers of a trusted place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gitledger.dataclass import dataclass, replace
from gitledger.records.ids import CommitId
from gitledger.store.view import LedgerView
from gitledger.trust.verified import open_record
from gitledger.verdict.evidence import Evidence, sort_records
from gitledger.verdict.finding import Finding, Verdict, blocking
from gitledger.verdict.lane_cells import CellStatus
from gitledger.verdict.lane_signers import signatories_by_lane
from gitledger.verdict.release import LaneSituation, Release, judge_lanes
from gitledger.workflows.doctor_tasks import check_lanes
from gitledger.workflows.forge_users import ask_forges
from gitledger.workflows.judge import Verified
from gitledger.workflows.relevance import may_be_capability
from gitledger.workflows.session import Session, moment
from gitledger.workflows.trusted import Trusted, load_trusted

__all__ = ["LanesJudged", "judge_release", "united", "united_document"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LanesJudged:
    """The release check's answer, and by whose word."""

    release: Release
    trusted: Trusted

    def encode(self) -> dict[str, Any]:
        """Return the document of `lanes --json` (DESIGN section 10)."""
        policy = {"commit": self.trusted.commit, "digest": self.trusted.digest, "from": self.trusted.source}
        return {**self.release.encode(), "policy": policy}


def judge_release(
    session: Session,
    target: CommitId,
    *,
    policy_from: str | None = None,
    at: str | None = None,
    here_only: bool = False,
) -> LanesJudged:
    """Return the release check of a commit; raises `ConfigError`, `UsageError`, `TrustError`, `StoreError`.

    Lanes, policy and signers are those of `policy_from`, else of the commit itself. `here_only`: other commits are
    not looked at, which tell `stale` from `missing` and no more.
    """
    trusted = load_trusted(session.repo, target, policy_from)
    config = trusted.config
    check_lanes(config)
    info = session.repo.commit(target)
    view = session.ledger.view()
    here = _evidence(view, target, config.repository).placed(target, info.tree)
    now = moment(session, at)
    keys = ask_forges(session, config, trusted.signers, now, [here], reports=True)
    situation = LaneSituation(
        commit=target,
        committed_at=info.committed_at,
        now=now,
        lanes=config.lanes,
        policy=config.policy,
        signatories=signatories_by_lane(config, trusted.signers, now, [here], forges=keys.answers),
        here=here,
    )
    release = judge_lanes(situation)
    if not here_only and any(cell.status is CellStatus.MISSING for cell in release.cells):
        elsewhere = tuple(_elsewhere(session, view, target, config.repository))
        release = judge_lanes(replace(situation, elsewhere=elsewhere))
    more = [*keys.notes, *_limits(view, target)]
    verdict = Verdict.over(release.verdict.judged, [*release.verdict.findings, *more])
    return LanesJudged(release=replace(release, verdict=verdict), trusted=trusted)


def united(verified: Verified, lanes: LanesJudged) -> Verdict:
    """Return the verdict of `verify --lanes`: every finding of both, and a pass only where both pass.

    A configuration that declares no shards at all is judged by its lanes, unless the trusted one declares some: a
    change that takes all shards away does not get rid of them.
    """
    findings = [*verified.verdict.findings, *lanes.release.verdict.findings]
    judged = min(verified.verdict.judged, lanes.release.verdict.judged)
    declares_none = not verified.union.choices and not verified.case.pinned
    if declares_none and lanes.release.verdict.judged:
        findings = [finding for finding in findings if finding.code != "no-shards"]
        judged = lanes.release.verdict.judged
    return Verdict.over(judged, dict.fromkeys(findings))


def united_document(verified: Verified, lanes: LanesJudged, verdict: Verdict) -> dict[str, Any]:
    """Return the document of `verify --lanes --json`: that of `verify`, and the cells of the lanes."""
    ignored = dict.fromkeys((*verified.ignored, *lanes.release.ignored))
    return {
        **verified.encode(),
        "findings": [finding.encode() for finding in verdict.findings],
        "ignored": [item.encode() for item in ignored],
        "lanes": [cell.encode() for cell in lanes.release.cells],
        "verdict": "passed" if verdict.passed else "failed",
    }


def _evidence(view: LedgerView, commit: CommitId, repository: str) -> Evidence:
    opened = [open_record(line, commit=commit) for line in view.lines(commit)]
    return sort_records(opened, repository=repository)


def _elsewhere(session: Session, view: LedgerView, target: CommitId, repository: str) -> Iterator[Evidence]:
    """Yield the reports of other commits that this clone has: they tell `stale` from `missing`, and no more."""
    for commit in sorted(view.commits() - {target}):
        lines = [line for line in view.lines(commit) if may_be_capability(line)]
        info = session.repo.objects.read_commit(commit) if lines else None
        if info is not None:
            opened = [open_record(line, commit=commit) for line in lines]
            yield sort_records(opened, repository=repository).placed(commit, info.tree)


def _limits(view: LedgerView, target: CommitId) -> Iterator[Finding]:
    """Yield the limits that the commit's notes exceed: what can't be read may hide a failure, so it blocks."""
    for fault in view.faults(target):
        yield blocking(
            fault.code,
            "2",
            target[:12],
            expected="notes within the limits of docs/reference/formats.md",
            found=fault.text,
            remedy="git ledger fsck",
        )
