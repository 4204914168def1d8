"""Everything that a judgement stands on, handed in: the rules themselves open no repository, file or clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from datetime import datetime

from gitledger.config.schema import Config
from gitledger.dataclass import dataclass
from gitledger.records.bodies import BodyRef
from gitledger.records.ids import BlobId, CommitId, Digest, RecordId, ShardKey, TreeId
from gitledger.records.receipt import ExtraClaim, Split
from gitledger.verdict.acceptance import Signatories
from gitledger.verdict.evidence import Evidence, Held, HeldMerged
from gitledger.verdict.memory import Memory
from gitledger.verdict.revoked import revoked_records

__all__ = ["CoverageRule", "Facts", "Situation", "Station", "TargetShard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageRule:
    """The one threshold, as its file spells it (None: there is none), and the decimals to compare at."""

    threshold: str | None = None
    precision: int = 0


def _no_blob(_: str) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetShard:
    """One declared shard or variant as it stands at the judged commit.

    `digest_with` gives the manifest digest at the target for given extra inputs; `extra_now` are those inputs as
    they lie in the work tree, None where they can't be seen here. `fault` says why the scope can't be resolved
    ("" where it can). `redefined`: it differs from the trusted ref's definition and is not accepted. `measured`: a
    threshold on coverage asks it for a fragment.
    """

    key: ShardKey
    definition: Digest
    digest_with: Callable[[tuple[ExtraClaim, ...]], Digest]
    has_extra: bool = False
    extra_now: tuple[ExtraClaim, ...] | None = ()
    split: Split | None = None
    fault: str = ""
    redefined: bool = False
    measured: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """One commit that carries evidence. `distance` is the least number of parent edges, None for no ancestor.

    `from_ref`: reachable from the policy's ref (`carry.from: policy-ref`). Whatever stands here and is not about
    this very commit and tree is set apart at once, so no rule can forget to ask. `present`: this clone has the
    commit; the tree of one that it lacks is what its records say.
    """

    commit: CommitId
    tree: TreeId
    committed_at: datetime
    distance: int | None
    evidence: Evidence
    from_ref: bool = False
    present: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", self.evidence.placed(self.commit, self.tree))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Look-ups into content-addressed data: pure functions of their arguments, however they are served.

    `body`: a body's bytes by reference, or None where it is missing. `changed`: the inputs of a shard that differ
    between a commit and the target. `digest_at`: a shard's manifest digest at a commit for given extra inputs,
    None where it can't be resolved there, which bars a carry. `blob_at`: the blob of a regular file at the target,
    by its path, None where there is none.
    """

    body: Callable[[BodyRef], bytes | None]
    changed: Callable[[CommitId, ShardKey], tuple[str, ...]]
    digest_at: Callable[[CommitId, ShardKey, tuple[ExtraClaim, ...]], Digest | None]
    blob_at: Callable[[str], BlobId | None] = _no_blob


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One commit to be judged at one moment under one configuration.

    `config` is the trusted one (policy, carry, merge); `shards` come from the judged commit. `stations` hold the
    target itself first (distance 0), then outwards. `carry` overrides `policy.allow_carried` (True for `--carry`,
    False for `--no-carry`). `ended_threshold` names the policy's ref, as a person would type it, where that has a
    threshold on coverage and the judged commit has none any more. `memory` may be one that other situations of the
    same policy share.
    """

    commit: CommitId
    tree: TreeId
    committed_at: datetime
    now: datetime
    config: Config
    shards: tuple[TargetShard, ...]
    stations: tuple[Station, ...]
    signatories: Signatories
    facts: Facts
    history_cut: bool = False
    carry: bool | None = None
    coverage: CoverageRule = CoverageRule()
    ended_threshold: str = ""
    memory: Memory = field(default_factory=Memory, compare=False, repr=False)

    @property
    def may_carry(self) -> bool:
        """Tell whether older receipts may stand for unchanged shards."""
        return self.config.policy.allow_carried if self.carry is None else self.carry

    @property
    def here(self) -> Evidence:
        """The evidence on the target commit itself."""
        return next((item.evidence for item in self.stations if item.commit == self.commit), Evidence())

    def receipts(self) -> dict[ShardKey, list[tuple[Station, Held]]]:
        """Return the shard receipts of all stations by shard, in the order of the stations."""
        found: dict[ShardKey, list[tuple[Station, Held]]] = {}
        for station in self.stations:
            for held in station.evidence.shards:
                found.setdefault(held.receipt.key, []).append((station, held))
        return found

    @property
    def revoked(self) -> frozenset[RecordId]:
        """The ids of all records that a revocation which counts names."""
        return revoked_records((item.evidence for item in self.stations), self.signatories.is_revoker)

    @property
    def snapshots(self) -> list[HeldMerged]:
        """The merged receipts of the target whose signers count and that are of the past, the newest first.

        Revoked ones are among them: they fail whoever leans on them, and make room for no other.
        """
        found = {
            (held.id, held.key): held
            for held in self.here.merged
            if held.receipt.merged_at <= self.now
            and self.signatories.judge(held.opened, held.receipt.merged_at).accepted
        }
        return sorted(found.values(), key=lambda held: (held.receipt.merged_at, held.id), reverse=True)
