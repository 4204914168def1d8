"""Plan and verify: one union, asked two questions. `merge` asks the third."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gitledger.dataclass import dataclass, replace
from gitledger.errors import ManifestError
from gitledger.manifest.touched import touched
from gitledger.records.ids import CommitId, ShardKey
from gitledger.store.edits import Edits
from gitledger.store.worktree import Survey, WorkTreeState
from gitledger.verdict.finding import Finding, Verdict
from gitledger.verdict.pins import judge_pins
from gitledger.verdict.plan import describe_choice, summarise
from gitledger.verdict.union import Union, form_union
from gitledger.workflows.gather import Case, gather
from gitledger.workflows.known import Known
from gitledger.workflows.session import Session
from gitledger.workflows.trusted import read_lists
from gitledger.workflows.uncommitted import edits_of, found_beside

if TYPE_CHECKING:
    from gitledger.verdict.verify import Ignored

__all__ = [
    "Plan",
    "Uncommitted",
    "Verified",
    "coverage_of",
    "judged",
    "pins_of",
    "plan",
    "planned",
    "policy_of",
    "verify",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncommitted:
    """A shard that uncommitted edits of the work tree would make stale."""

    key: ShardKey
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is fresh, what carries, what is stale."""

    case: Case
    union: Union
    uncommitted: tuple[Uncommitted, ...]
    beside: WorkTreeState | None = None
    """What is not committed at all, where anybody looked: beside it every run is dirty."""

    @property
    def is_covered(self) -> bool:
        """Tell whether a merge would be written and green: nothing stale, no fault; no shards cover nothing."""
        counts = summarise(self.union)
        return bool(self.union.choices) and counts["stale"] == 0 and not self.union.faults

    def encode(self) -> dict[str, Any]:
        """Return the document of `plan --json` (DESIGN section 10)."""
        return {
            "commit": self.case.situation.commit,
            "policy": policy_of(self.case),
            "shards": [describe_choice(choice) for choice in self.union.choices],
            "summary": summarise(self.union),
            "uncommitted": [
                {"name": item.key.name, "paths": list(item.paths), "variant": item.key.variant}
                for item in self.uncommitted
            ],
        }


def policy_of(case: Case) -> dict[str, Any]:
    """Return where policy came from, as every document says it."""
    trusted = case.trusted
    return {"commit": trusted.commit, "digest": trusted.digest, "from": trusted.source}


def coverage_of(union: Union) -> dict[str, Any] | None:
    """Return the united coverage as every document says it, None where there is no number to be believed."""
    claim = union.coverage.claim
    return None if claim is None else claim.encode()


def plan(session: Session, target: CommitId, *, policy_from: str | None = None, carry: bool | None = None) -> Plan:
    """Return the dry run of the union for a commit; raises what `gather` raises."""
    with edits_of(session, target) as edits:
        return planned(session, target, edits, policy_from=policy_from, carry=carry)


def planned(
    session: Session,
    target: CommitId,
    edits: Edits | None,
    *,
    policy_from: str | None = None,
    carry: bool | None = None,
) -> Plan:
    """Return what `plan` returns, with edits that are being looked for since `edits_of`."""
    case = gather(session, target, policy_from=policy_from, carry=carry)
    union = form_union(case.situation)
    if session.kept_signatures is not None:
        session.kept_signatures.keep()
    if edits is None:
        return Plan(case=case, union=union, uncommitted=())
    survey = found_beside(session.repo, target, edits)
    return Plan(case=case, union=union, uncommitted=tuple(_uncommitted(case, survey)), beside=survey.seen)


def _uncommitted(case: Case, survey: Survey) -> Iterator[Uncommitted]:
    """Yield the shards that uncommitted edits would make stale, were they committed."""
    inputs = case.inputs
    may_differ = survey.seen.dirty or survey.self_ignored
    for key in inputs.config.shard_keys() if may_differ else ():
        manifest = inputs.manifest(inputs.target, key)
        if isinstance(manifest, ManifestError):
            continue
        state = survey.edits(manifest.definition.paths)
        paths = touched(manifest, sorted({*state.changed, *state.untracked}))
        if paths:
            yield Uncommitted(key=key, paths=paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A verdict with all that it rests on."""

    case: Case
    union: Union
    verdict: Verdict
    ignored: tuple[Ignored, ...]

    def encode(self) -> dict[str, Any]:
        """Return the document of `verify --json` (DESIGN section 10)."""
        return {
            "commit": self.case.situation.commit,
            "coverage": coverage_of(self.union),
            "findings": [finding.encode() for finding in self.verdict.findings],
            "ignored": [item.encode() for item in self.ignored],
            "policy": policy_of(self.case),
            "shards": [describe_choice(choice) for choice in self.union.choices],
            "verdict": "passed" if self.verdict.passed else "failed",
        }


def verify(
    session: Session,
    target: CommitId,
    *,
    policy_from: str | None = None,
    at: str | None = None,
    accept_shards: bool = False,
    allow_skipped: bool = False,
    known: Known | None = None,
) -> Verified:
    """Return the verdict on a commit's evidence as it stands now; raises where it can't be judged.

    `known` is shared by whoever judges many commits.
    """
    case = gather(session, target, policy_from=policy_from, at=at, accept_shards=accept_shards, known=known)
    union = form_union(case.situation)
    return judged(session, case, union, accept_shards=accept_shards, allow_skipped=allow_skipped)


def judged(
    session: Session, case: Case, union: Union, *, accept_shards: bool = False, allow_skipped: bool = False
) -> Verified:
    """Return the verdict on a union that is formed already; a plan's is the one that `verify` forms.

    `accept_shards` is what the case was gathered with, and the plan's carrying policy's own.
    """
    from gitledger.verdict.verify import ignored_records, judge  # a plan has no verdict

    lists = read_lists(session.repo, case.trusted, allow_skipped=allow_skipped)
    if _is_pinned(case) and not accept_shards:
        lists = replace(lists, pinned=frozenset(case.pinned))
    findings = (*pins_of(case, accept_shards=accept_shards), *case.limits)
    verdict = judge(union, case.situation, lists, findings)
    return Verified(case=case, union=union, verdict=verdict, ignored=ignored_records(union, case.situation))


def pins_of(case: Case, *, accept_shards: bool) -> tuple[Finding, ...]:
    """Return what pinned definitions have against the judged commit's shards."""
    pinned, source = _is_pinned(case), case.trusted.source
    return tuple(judge_pins(case.judged, case.pinned, pinned=pinned, accepted=accept_shards, source=source))


def _is_pinned(case: Case) -> bool:
    return case.trusted.config.policy.pin_shards and not case.trusted.is_self
