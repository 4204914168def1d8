"""Plan, verify and merge: one union, asked three questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gitledger.errors import ConfigError, ManifestError
from gitledger.machine.redact import redact_url
from gitledger.records.envelope import Envelope
from gitledger.records.ids import CommitId, RecordId, ShardKey
from gitledger.records.merged import MergedReceipt
from gitledger.records.outcomes import Outcome
from gitledger.records.receipt import RepoClaim
from gitledger.store.worktree import work_tree_state
from gitledger.trust.sign import claim_of, sign_payload
from gitledger.trust.signer import Signer
from gitledger.verdict.finding import Finding, Verdict, blocking
from gitledger.verdict.merge import merge_union
from gitledger.verdict.pins import judge_pins
from gitledger.verdict.plan import describe_choice, summarise
from gitledger.verdict.union import Union, form_union
from gitledger.verdict.verify import Ignored, ignored_records, judge
from gitledger.workflows.gather import Case, gather
from gitledger.workflows.inputs import Inputs
from gitledger.workflows.notes_author import notes_identity, notes_message
from gitledger.workflows.session import Session
from gitledger.workflows.trusted import read_config, read_lists

__all__ = ["Merged", "Plan", "Uncommitted", "Verified", "merge", "plan", "verify"]


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

    @property
    def is_covered(self) -> bool:
        """Tell whether nothing has to run; a plan of no shards covers nothing."""
        counts = summarise(self.union)
        return bool(self.union.choices) and counts["stale"] == 0

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
    case = gather(session, target, policy_from=policy_from, carry=carry)
    union = form_union(case.situation)
    return Plan(case=case, union=union, uncommitted=tuple(_uncommitted(session, case)))


def _uncommitted(session: Session, case: Case) -> Iterator[Uncommitted]:
    """Yield what uncommitted edits would make stale; only where the plan is of the commit that is checked out."""
    repo, target = session.repo, case.situation.commit
    if repo.worktree is None or repo.head() != target:
        return
    config = read_config(repo, target)
    inputs = Inputs(repo, config, target)
    state = work_tree_state(repo.git)
    edits = (*state.changed, *state.untracked)
    for key in config.shard_keys() if edits else ():
        manifest = inputs.manifest(target, key)
        if isinstance(manifest, ManifestError):
            continue
        paths = tuple(path for path in edits if manifest.covers(path.rstrip("/")))
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
) -> Verified:
    """Return the verdict on a commit's evidence as it stands now; raises where it can't be judged."""
    case = gather(session, target, policy_from=policy_from, at=at, accept_shards=accept_shards)
    lists = read_lists(session.repo, case.trusted, allow_skipped=allow_skipped)
    union = form_union(case.situation)
    findings = (*_pins(case, accept_shards=accept_shards), *case.limits)
    verdict = judge(union, case.situation, lists, findings)
    return Verified(case=case, union=union, verdict=verdict, ignored=ignored_records(union, case.situation))


def _pins(case: Case, *, accept_shards: bool) -> tuple[Finding, ...]:
    pinned = case.trusted.config.policy.pin_shards and not case.trusted.is_self
    return tuple(judge_pins(case.judged, case.pinned, pinned=pinned, accepted=accept_shards))


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge came to. `receipt` is None where it was refused; then `findings` say all that is wrong."""

    case: Case
    union: Union
    receipt: MergedReceipt | None
    record: RecordId | None
    findings: tuple[Finding, ...]

    @property
    def outcome(self) -> str:
        """`refused`, or the merged receipt's outcome."""
        return "refused" if self.receipt is None else self.receipt.outcome.value

    @property
    def is_green(self) -> bool:
        """Tell whether a merged receipt was written and passed."""
        return self.receipt is not None and self.receipt.outcome is Outcome.PASSED

    def encode(self) -> dict[str, Any]:
        """Return the document of `merge --json` (DESIGN section 10)."""
        return {
            "coverage": coverage_of(self.union),
            "findings": [finding.encode() for finding in self.findings],
            "outcome": self.outcome,
            "record": self.record,
            "shards": [
                {
                    "carried": choice.verdict == "carryable",
                    "name": choice.shard.key.name,
                    "outcome": choice.result.held.receipt.outcome.value,
                    "record": choice.result.held.id,
                    "variant": choice.shard.key.variant,
                }
                for choice in self.union.results
                if choice.result is not None
            ],
        }


def merge(
    session: Session,
    target: CommitId,
    signer: Signer | None,
    *,
    user: str,
    policy_from: str | None = None,
    carry: bool | None = None,
    verify_inputs: bool = False,
    accept_shards: bool = False,
) -> Merged:
    """Return the merged receipt of a commit, stored, or every reason why there can be none.

    Raises what `gather` raises, `StoreError` where it could not be stored, and `ConfigError` where it may not be
    unsigned.
    """
    case = gather(
        session,
        target,
        policy_from=policy_from,
        carry=carry,
        accept_shards=accept_shards,
        current_keys=verify_inputs,
    )
    union = form_union(case.situation)
    pins = _pins(case, accept_shards=accept_shards)
    beside = (*pins, *case.limits)
    refusals = [*union.faults, *(item for item in beside if item.blocks)]
    if verify_inputs:
        refusals += _unsigned_inputs(union)
    notes = (*union.notes, *(item for item in beside if not item.blocks))
    if refusals or not union.results:
        findings = (*(refusals or [_nothing()]), *notes)
        return Merged(case=case, union=union, receipt=None, record=None, findings=findings)
    if signer is None and not case.trusted.config.policy.accepts_unsigned:
        raise ConfigError("unsigned", "policy counts no unsigned merged receipt", "give a key: --key PATH")
    receipt = merge_union(
        union,
        case.situation,
        repo=_repo(session, case),
        signer=None if signer is None else claim_of(signer, user=user),
        merged_at=session.now(),
        inputs_verified=verify_inputs,
    )
    payload = receipt.encode()
    envelope = Envelope(payload=payload, signature=None) if signer is None else sign_payload(payload, signer)
    session.ledger.append(
        {target: [envelope.encode()]},
        [],
        identity=notes_identity(session, case.trusted.config.notes),
        message=notes_message(case.trusted.config.notes, 1),
    )
    return Merged(case=case, union=union, receipt=receipt, record=envelope.id, findings=notes)


def _repo(session: Session, case: Case) -> RepoClaim:
    """Return what a merged receipt says of its commit; whether it is dirty, its inputs decide."""
    repo, situation = session.repo, case.situation
    remote = repo.config("remote.origin.url")
    return RepoClaim(
        commit=situation.commit,
        tree=situation.tree,
        branch=repo.branch() if repo.head() == situation.commit else None,
        remote=redact_url(remote) if remote else None,
        dirty=False,
    )


def _unsigned_inputs(union: Union) -> Iterator[Finding]:
    """Yield the inputs that nobody signed: `--verify-inputs` refuses them whatever policy allows."""
    for choice in union.results:
        if choice.result is not None and choice.result.held.key is None:
            yield blocking(
                "unsigned-input",
                "7",
                choice.shard.key,
                expected="a signed receipt (--verify-inputs)",
                found="an unsigned one",
                remedy=f"git ledger record --shard {choice.shard.key}",
            )


def _nothing() -> Finding:
    return blocking("no-shards", "7", "configuration", expected="at least one declared shard", found="none")
