"""Merge: the union of a commit, written down as a signed snapshot (DESIGN section 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gitledger.dataclass import dataclass, replace
from gitledger.errors import ConfigError
from gitledger.machine.redact import redact_url
from gitledger.records.envelope import Envelope
from gitledger.records.ids import CommitId, RecordId
from gitledger.records.merged import MergedReceipt
from gitledger.records.outcomes import Outcome
from gitledger.records.receipt import RepoClaim
from gitledger.trust.sign import claim_of, sign_payload
from gitledger.trust.signer import Signer
from gitledger.verdict.evidence import HeldMerged
from gitledger.verdict.finding import Finding, blocking
from gitledger.verdict.merge import merge_union
from gitledger.verdict.union import Union, form_union
from gitledger.workflows.gather import Case, gather
from gitledger.workflows.judge import coverage_of, pins_of
from gitledger.workflows.notes_author import notes_identity, notes_message
from gitledger.workflows.session import Session

__all__ = ["Merged", "merge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge came to. `receipt` is None where it was refused; then `findings` say all that is wrong.

    `is_new`: it was written now. Else it stood there, and nothing has changed since.
    """

    case: Case
    union: Union
    receipt: MergedReceipt | None
    record: RecordId | None
    findings: tuple[Finding, ...]
    is_new: bool = True

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
            "commit": self.case.situation.commit,
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

    Where the same key has merged what stands now, and nothing is asked of it that it doesn't say, that receipt is
    returned and none is written. One by another key says something new: it vouches for keys that expire.

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
    pins = pins_of(case, accept_shards=accept_shards)
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
    standing = _standing(receipt, case, signer)
    if standing is not None:
        return Merged(
            case=case, union=union, receipt=standing.receipt, record=standing.id, findings=notes, is_new=False
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


def _standing(receipt: MergedReceipt, case: Case, signer: Signer | None) -> HeldMerged | None:
    """Return the newest merged receipt by this very key that counts and says all that a new one would.

    When it was made, from where, and that its inputs were verified once more, makes no difference.
    """
    key = None if signer is None else signer.fingerprint
    revoked = case.situation.revoked
    return next(
        (
            held
            for held in case.situation.snapshots
            if held.key == key and held.id not in revoked and _says_all(held.receipt, receipt)
        ),
        None,
    )


def _says_all(old: MergedReceipt, new: MergedReceipt) -> bool:
    if new.inputs_verified and not old.inputs_verified:
        return False
    again = replace(
        new,
        inputs_verified=old.inputs_verified,
        merged_at=old.merged_at,
        repo=replace(new.repo, branch=old.repo.branch, remote=old.repo.remote),
        signer=old.signer,
    )
    return again.encode() == old.encode()


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
