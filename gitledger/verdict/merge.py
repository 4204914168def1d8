"""Merge: the union as one signed snapshot (DESIGN sections 3 and 7)."""

from __future__ import annotations

from datetime import datetime

from gitledger.dataclass import replace
from gitledger.records.environment import Environment
from gitledger.records.merged import CarriedClaim, MergedReceipt, MergedShard
from gitledger.records.outcomes import Counts, Outcome
from gitledger.records.receipt import RepoClaim
from gitledger.records.statement import SignerClaim
from gitledger.verdict.field import Candidate
from gitledger.verdict.select import Choice
from gitledger.verdict.situation import Situation
from gitledger.verdict.union import Union

__all__ = ["merge_union"]


def merge_union(
    union: Union,
    situation: Situation,
    *,
    repo: RepoClaim,
    signer: SignerClaim | None,
    merged_at: datetime,
    inputs_verified: bool = False,
) -> MergedReceipt:
    """Return the merged receipt of a union without faults.

    A shard that failed does not stop it: the outcome says so. `repo.dirty` is the OR of the inputs; the session
    spans them; GPU data is that of the first shard, in configuration order, that has it.
    """
    if union.faults or not union.results:
        raise ValueError("a union with faults, or of nothing, can't be merged")
    shards = tuple(_entry(choice) for choice in union.results)
    coverage = union.coverage.claim
    is_enough = coverage is None or coverage.passed is not False
    return MergedReceipt(
        repository=situation.config.repository,
        shards=shards,
        outcome=Outcome.PASSED if is_enough and _all_passed(shards) else Outcome.FAILED,
        counts=sum((shard.counts for shard in shards), Counts()),
        started_at=min(shard.started_at for shard in shards),
        ended_at=max(shard.ended_at for shard in shards),
        merged_at=merged_at,
        repo=replace(repo, dirty=any(shard.dirty for shard in shards)),
        environment=_environment(union),
        coverage=coverage,
        inputs_verified=inputs_verified,
        signer=signer,
    )


def _all_passed(shards: tuple[MergedShard, ...]) -> bool:
    return all(shard.outcome is Outcome.PASSED for shard in shards)


def _entry(choice: Choice) -> MergedShard:
    result = _result(choice)
    held = result.held
    return MergedShard(
        key=choice.shard.key,
        record=held.id,
        commit=held.commit,
        outcome=held.receipt.outcome,
        dirty=held.receipt.repo.dirty,
        counts=held.receipt.counts,
        started_at=held.started_at,
        ended_at=held.ended_at,
        signer=result.acceptance.principal,
        key_fingerprint=held.key,
        carried=_carried(result, choice.distance) if choice.verdict == "carryable" else None,
    )


def _result(choice: Choice) -> Candidate:
    if choice.result is None:
        raise ValueError(f"nothing stands for {choice.shard.key}")
    return choice.result


def _carried(result: Candidate, distance: int | None) -> CarriedClaim:
    return CarriedClaim(
        original_commit=result.commit,
        original_dirty=result.held.receipt.repo.dirty,
        original_ended_at=result.held.ended_at,
        original_signer=result.acceptance.principal,
        distance=distance,
    )


def _environment(union: Union) -> Environment:
    environments = [_result(choice).held.receipt.environment for choice in union.results]
    gpu = next((item.gpu for item in environments if item.gpu is not None), None)
    tests = next((item for item in environments if item.pytest is not None), environments[0])
    return replace(tests, gpu=gpu)
