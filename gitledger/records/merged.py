"""The merged receipt: a signed snapshot of the shard receipts that cover a commit (DESIGN section 3).

It names its inputs by record id and so stays small; a carried shard names the original, never a chain.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.records.decode import Reader, fail, format_time
from gitledger.records.environment import Environment
from gitledger.records.ids import (
    CommitId,
    KeyFingerprint,
    RecordId,
    ShardKey,
    digest,
    key_fingerprint,
    object_id,
    shard_word,
)
from gitledger.records.outcomes import Counts, Outcome
from gitledger.records.receipt import RECORD_VERSION, RepoClaim
from gitledger.records.statement import (
    MERGED_RECEIPT,
    SignerClaim,
    Statement,
    Subject,
    encode_statement,
    readable,
)
from gitledger.records.threshold import meets

__all__ = ["CarriedClaim", "CoverageClaim", "MergedReceipt", "MergedShard"]

_SHARDS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedClaim:
    """Where a carried shard was recorded; `distance` is the least number of parent edges, None off ancestry."""

    original_commit: CommitId
    original_dirty: bool
    original_ended_at: datetime
    original_signer: str | None
    distance: int | None

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "distance": self.distance,
            "original_commit": self.original_commit,
            "original_dirty": self.original_dirty,
            "original_ended_at": format_time(self.original_ended_at),
            "original_signer": self.original_signer,
        }

    @classmethod
    def decode(cls, reader: Reader) -> CarriedClaim:
        """Return the claim at `reader`; raises `DecodeError`."""
        return cls(
            original_commit=CommitId(reader.parsed("original_commit", object_id)),
            original_dirty=reader.boolean("original_dirty"),
            original_ended_at=reader.time("original_ended_at"),
            original_signer=reader.opt_text("original_signer"),
            distance=reader.opt_integer("distance"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageClaim:
    """Exact integers of the union, and the rule applied: threshold as text, precision, verdict."""

    covered: int
    total: int
    threshold: str | None
    precision: int
    passed: bool | None

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "covered": self.covered,
            "passed": self.passed,
            "precision": self.precision,
            "threshold": self.threshold,
            "total": self.total,
        }

    @classmethod
    def decode(cls, reader: Reader) -> CoverageClaim:
        """Return the claim at `reader`; raises `DecodeError`."""
        total = reader.integer("total")
        claim = cls(
            covered=reader.integer("covered", high=total),
            total=total,
            threshold=reader.opt_text("threshold"),
            precision=reader.integer("precision", high=20),
            passed=reader.opt_boolean("passed"),
        )
        if claim.threshold is not None and claim.passed is not None:
            try:
                found = meets(claim.covered, total, claim.threshold, claim.precision)
            except ValueError as error:
                fail(f"{reader.path}.threshold", str(error))
            if found is not claim.passed:
                fail(f"{reader.path}.passed", "not what the integers and the threshold say")
        return claim


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedShard:
    """One input of the union."""

    key: ShardKey
    record: RecordId
    commit: CommitId
    outcome: Outcome
    dirty: bool
    counts: Counts
    started_at: datetime
    ended_at: datetime
    signer: str | None
    key_fingerprint: KeyFingerprint | None
    carried: CarriedClaim | None

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "carried": self.carried.encode() if self.carried else None,
            "commit": self.commit,
            "counts": self.counts.encode(),
            "dirty": self.dirty,
            "ended_at": format_time(self.ended_at),
            "key_fingerprint": self.key_fingerprint,
            "name": self.key.name,
            "outcome": self.outcome.value,
            "record": self.record,
            "signer": self.signer,
            "started_at": format_time(self.started_at),
            "variant": self.key.variant,
        }

    @classmethod
    def decode(cls, reader: Reader) -> MergedShard:
        """Return the entry at `reader`; raises `DecodeError`."""
        carried = reader.opt_child("carried")
        return cls(
            key=ShardKey.of(reader.parsed("name", shard_word), reader.opt_parsed("variant", shard_word)),
            record=RecordId(reader.parsed("record", digest)),
            commit=CommitId(reader.parsed("commit", object_id)),
            outcome=reader.choice("outcome", Outcome),
            dirty=reader.boolean("dirty"),
            counts=Counts.decode(reader.child("counts")),
            started_at=reader.time("started_at"),
            ended_at=reader.time("ended_at"),
            signer=reader.opt_text("signer"),
            key_fingerprint=reader.opt_parsed("key_fingerprint", key_fingerprint),
            carried=CarriedClaim.decode(carried) if carried else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedReceipt:
    """The union for one commit at one moment, signed by whoever merged."""

    repository: str
    shards: tuple[MergedShard, ...]
    outcome: Outcome
    counts: Counts
    started_at: datetime
    ended_at: datetime
    merged_at: datetime
    repo: RepoClaim
    environment: Environment
    coverage: CoverageClaim | None
    inputs_verified: bool
    signer: SignerClaim | None
    version: int = RECORD_VERSION

    def encode(self) -> bytes:
        """Return the payload to be signed; raises `DecodeError` for a claim that readers would refuse."""
        predicate = {
            "counts": self.counts.encode(),
            "coverage": self.coverage.encode() if self.coverage else None,
            "environment": self.environment.encode(),
            "inputs_verified": self.inputs_verified,
            "merged_at": format_time(self.merged_at),
            "outcome": self.outcome.value,
            "record_version": self.version,
            "repo": self.repo.encode(),
            "repository": self.repository,
            "session": {"ended_at": format_time(self.ended_at), "started_at": format_time(self.started_at)},
            "shards": [shard.encode() for shard in self.shards],
            "signer": self.signer.encode() if self.signer else None,
        }
        subject = Subject(commit=self.repo.commit, tree=self.repo.tree)
        raw = encode_statement(subject=subject, predicate_type=MERGED_RECEIPT, predicate=predicate)
        return readable(raw, MergedReceipt.decode)

    @classmethod
    def decode(cls, statement: Statement) -> MergedReceipt:
        """Return the merged receipt that a statement holds; raises `DecodeError` naming the field's path."""
        reader = statement.predicate
        if statement.predicate_type != MERGED_RECEIPT:
            fail("$.predicateType", "not a merged receipt")
        session = reader.child("session")
        coverage = reader.opt_child("coverage")
        shards = tuple(MergedShard.decode(item) for item in reader.children("shards", limit=_SHARDS))
        merged = cls(
            version=reader.integer("record_version", low=1, high=RECORD_VERSION),
            repository=reader.text("repository"),
            shards=shards,
            outcome=reader.choice("outcome", Outcome),
            counts=Counts.decode(reader.child("counts")),
            started_at=session.time("started_at"),
            ended_at=session.time("ended_at"),
            merged_at=reader.time("merged_at"),
            repo=RepoClaim.decode(reader.child("repo"), statement.subject),
            environment=Environment.decode(reader.child("environment")),
            coverage=CoverageClaim.decode(coverage) if coverage else None,
            inputs_verified=reader.boolean("inputs_verified"),
            signer=statement.signer,
        )
        _consistent(merged, reader)
        return merged


def _consistent(merged: MergedReceipt, reader: Reader) -> None:
    path, shards = reader.path, merged.shards
    if not shards:
        fail(f"{path}.shards", "no shards")
    if len({shard.key for shard in shards}) != len(shards):
        fail(f"{path}.shards", "a shard is named twice")
    for i, shard in enumerate(shards):
        _consistent_shard(shard, f"{path}.shards[{i}]")
    if merged.counts != sum((shard.counts for shard in shards), Counts()):
        fail(f"{path}.counts", "not the sum of the shards' counts")
    if merged.repo.dirty != any(shard.dirty for shard in shards):
        fail(f"{path}.repo.dirty", "not what the shards say together")
    if merged.outcome is Outcome.PASSED and any(shard.outcome is not Outcome.PASSED for shard in shards):
        fail(f"{path}.outcome", "passed, with a shard that did not")
    if merged.outcome is Outcome.PASSED and merged.coverage and merged.coverage.passed is False:
        fail(f"{path}.outcome", "passed, with coverage under its threshold")
    if merged.coverage and (merged.coverage.threshold is None) != (merged.coverage.passed is None):
        fail(f"{path}.coverage.passed", "a threshold and a verdict go together")
    if merged.ended_at < merged.started_at:
        fail(f"{path}.session.ended_at", "lies before started_at")


def _consistent_shard(shard: MergedShard, path: str) -> None:
    counts = shard.counts
    if shard.outcome is Outcome.PASSED and (
        counts.collected == 0 or counts.failed + counts.error > 0 or counts.ended != counts.collected
    ):
        fail(f"{path}.outcome", "passed, with no tests, failed tests or tests that never ended")
    if shard.ended_at < shard.started_at:
        fail(f"{path}.ended_at", "lies before started_at")
    if shard.carried and shard.carried.original_commit != shard.commit:
        fail(f"{path}.carried.original_commit", "not the commit that the record is about")
