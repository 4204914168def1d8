"""The shard receipt: what one run of one shard claims (DESIGN section 3).

A receipt that contradicts itself, one that says `passed` beside a failed test, an unfinished session or a reason
against it, can be neither encoded by us nor decoded from whoever signed one.
"""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.records.bodies import BodyRef
from gitledger.records.decode import Reader, fail, format_time
from gitledger.records.environment import Environment
from gitledger.records.ids import CommitId, Digest, ShardKey, TreeId, digest, object_id, shard_word
from gitledger.records.outcomes import Counts, Outcome
from gitledger.records.statement import (
    SHARD_RECEIPT,
    SignerClaim,
    Statement,
    Subject,
    encode_statement,
    readable,
)

__all__ = [
    "RECORD_VERSION",
    "CollectionClaim",
    "ExtraClaim",
    "ManifestClaim",
    "RepoClaim",
    "SessionClaim",
    "ShardClaim",
    "ShardReceipt",
    "Split",
]

RECORD_VERSION = 1
"""Version of the receipts that this code writes; `policy.min_record_version` speaks of it."""
MODES = ("local", "ci", "ci-gpu")
_PATHS = 4_000
_BODIES = ("tests", "coverage", "inputs", "log")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Part `index` of `total`, counted from one."""

    index: int
    total: int

    @classmethod
    def decode(cls, reader: Reader) -> Split:
        """Return the split at `reader`; raises `DecodeError`."""
        total = reader.integer("total", low=1, high=100_000)
        return cls(index=reader.integer("index", low=1, high=total), total=total)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardClaim:
    """Which shard ran. `attempt` is as its writer counted; order is decided by times (DESIGN section 6)."""

    key: ShardKey
    attempt: int
    split: Split | None
    definition_digest: Digest

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        split = {"index": self.split.index, "total": self.split.total} if self.split else None
        return {
            "attempt": self.attempt,
            "definition_digest": self.definition_digest,
            "name": self.key.name,
            "split": split,
            "variant": self.key.variant,
        }

    @classmethod
    def decode(cls, reader: Reader) -> ShardClaim:
        """Return the claim at `reader`; raises `DecodeError`."""
        split = reader.opt_child("split")
        return cls(
            key=ShardKey.of(reader.parsed("name", shard_word), reader.opt_parsed("variant", shard_word)),
            attempt=reader.integer("attempt", low=1, high=1_000_000),
            split=Split.decode(split) if split else None,
            definition_digest=reader.parsed("definition_digest", digest),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionClaim:
    """The collection before any cut (`full_*`) and what was selected to run, as digests over node ids."""

    full_digest: Digest
    full_count: int
    selected_digest: Digest

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "full_count": self.full_count,
            "full_digest": self.full_digest,
            "selected_digest": self.selected_digest,
        }

    @classmethod
    def decode(cls, reader: Reader) -> CollectionClaim:
        """Return the claim at `reader`; raises `DecodeError`."""
        return cls(
            full_digest=reader.parsed("full_digest", digest),
            full_count=reader.integer("full_count"),
            selected_digest=reader.parsed("selected_digest", digest),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraClaim:
    """One ignored or generated input: its path, git file mode, and the SHA-256 of its content."""

    path: str
    mode: int
    sha256: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestClaim:
    """The inputs that the result depends on (DESIGN section 5).

    `extra` are the inputs that no git object holds; `outside` are inputs that the run was seen to read outside
    the declared scope (None where it was not observed).
    """

    digest: Digest
    paths: tuple[str, ...]
    extra_paths: tuple[str, ...] = ()
    excluded_paths: tuple[str, ...] = ()
    extra: tuple[ExtraClaim, ...] = ()
    outside: tuple[str, ...] | None = None

    def encode(self) -> dict[str, Any]:
        """Return the JSON object; what few receipts have is left out where there is none."""
        value: dict[str, Any] = {
            "digest": self.digest,
            "excluded_paths": list(self.excluded_paths),
            "extra_paths": list(self.extra_paths),
            "paths": list(self.paths),
        }
        if self.extra:
            value["extra"] = [{"mode": item.mode, "path": item.path, "sha256": item.sha256} for item in self.extra]
        if self.outside is not None:
            value["outside"] = list(self.outside)
        return value

    @classmethod
    def decode(cls, reader: Reader) -> ManifestClaim:
        """Return the claim at `reader`; raises `DecodeError`."""
        extra = tuple(
            ExtraClaim(
                path=item.text("path"),
                mode=item.integer("mode", high=0o200000),
                sha256=item.parsed("sha256", digest),
            )
            for item in (reader.children("extra", limit=_PATHS) if reader.has("extra") else ())
        )
        return cls(
            digest=reader.parsed("digest", digest),
            paths=reader.texts("paths", limit=_PATHS),
            extra_paths=reader.texts("extra_paths", limit=_PATHS),
            excluded_paths=reader.texts("excluded_paths", limit=_PATHS),
            extra=extra,
            outside=reader.texts("outside", limit=_PATHS) if reader.has("outside") else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoClaim:
    """Where it ran. `dirty_paths` and `created` are bounded lists for people; `dirty` is what counts."""

    commit: CommitId
    tree: TreeId
    branch: str | None
    remote: str | None
    dirty: bool
    dirty_paths: tuple[str, ...] = ()
    created: tuple[str, ...] = ()

    def encode(self) -> dict[str, Any]:
        """Return the JSON object; a clean run's has no lists."""
        value: dict[str, Any] = {
            "branch": self.branch,
            "commit": self.commit,
            "dirty": self.dirty,
            "remote": self.remote,
            "tree": self.tree,
        }
        if self.created:
            value["created"] = list(self.created)
        if self.dirty_paths:
            value["dirty_paths"] = list(self.dirty_paths)
        return value

    @classmethod
    def decode(cls, reader: Reader, subject: Subject) -> RepoClaim:
        """Return the claim at `reader`; raises `DecodeError`, also where it disagrees with the subject."""
        claim = cls(
            commit=CommitId(reader.parsed("commit", object_id)),
            tree=TreeId(reader.parsed("tree", object_id)),
            branch=reader.opt_text("branch"),
            remote=reader.opt_text("remote"),
            dirty=reader.boolean("dirty"),
            dirty_paths=reader.opt_texts("dirty_paths", limit=_PATHS),
            created=reader.opt_texts("created", limit=_PATHS),
        )
        if (claim.commit, claim.tree) != (subject.commit, subject.tree):
            fail(reader.path, "commit and tree are not the subject's")
        return claim


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClaim:
    """How it ran, as the recorder saw it from outside.

    `finished`: the test session was seen to end by itself. `witnessed`: the recorder ran the command itself.
    """

    started_at: datetime
    ended_at: datetime
    argv: tuple[str, ...]
    exit_status: int | None
    signal: int | None
    mode: str
    workers: int | None
    finished: bool
    witnessed: bool

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "argv": list(self.argv),
            "ended_at": format_time(self.ended_at),
            "exit_status": self.exit_status,
            "finished": self.finished,
            "mode": self.mode,
            "signal": self.signal,
            "started_at": format_time(self.started_at),
            "witnessed": self.witnessed,
            "workers": self.workers,
        }

    @classmethod
    def decode(cls, reader: Reader) -> SessionClaim:
        """Return the claim at `reader`; raises `DecodeError`."""
        claim = cls(
            started_at=reader.time("started_at"),
            ended_at=reader.time("ended_at"),
            argv=reader.texts("argv", limit=_PATHS),
            exit_status=reader.opt_integer("exit_status", low=-(1 << 31)),
            signal=reader.opt_integer("signal", high=255),
            mode=reader.text("mode"),
            workers=reader.opt_integer("workers", high=100_000),
            finished=reader.boolean("finished"),
            witnessed=reader.boolean("witnessed"),
        )
        if claim.ended_at < claim.started_at:
            fail(f"{reader.path}.ended_at", "lies before started_at")
        if claim.mode not in MODES:
            fail(f"{reader.path}.mode", f"expected one of {', '.join(MODES)}")
        return claim


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardReceipt:
    """One run of one shard on one commit. `reasons` say why it is not complete or not green (DESIGN section 8)."""

    repository: str
    shard: ShardClaim
    outcome: Outcome
    reasons: tuple[str, ...]
    counts: Counts
    collection: CollectionClaim
    manifest: ManifestClaim
    repo: RepoClaim
    session: SessionClaim
    environment: Environment
    signer: SignerClaim | None
    bodies: dict[str, BodyRef] = field(default_factory=dict)
    version: int = RECORD_VERSION

    @property
    def key(self) -> ShardKey:
        """The shard and variant."""
        return self.shard.key

    @property
    def is_green(self) -> bool:
        """Tell whether the run passed."""
        return self.outcome is Outcome.PASSED

    def encode(self) -> bytes:
        """Return the payload to be signed; raises `DecodeError` for a claim that readers would refuse."""
        predicate = {
            "bodies": {name: ref.encode() for name, ref in self.bodies.items()},
            "collection": self.collection.encode(),
            "counts": self.counts.encode(),
            "environment": self.environment.encode(),
            "manifest": self.manifest.encode(),
            "outcome": self.outcome.value,
            "reasons": list(self.reasons),
            "record_version": self.version,
            "repo": self.repo.encode(),
            "repository": self.repository,
            "session": self.session.encode(),
            "shard": self.shard.encode(),
            "signer": self.signer.encode() if self.signer else None,
        }
        subject = Subject(commit=self.repo.commit, tree=self.repo.tree)
        raw = encode_statement(subject=subject, predicate_type=SHARD_RECEIPT, predicate=predicate)
        return readable(raw, ShardReceipt.decode)

    @classmethod
    def decode(cls, statement: Statement) -> ShardReceipt:
        """Return the receipt that a statement holds; raises `DecodeError` naming the field's path.

        Refuses claims that contradict themselves: see the module's docstring.
        """
        reader = statement.predicate
        if statement.predicate_type != SHARD_RECEIPT:
            fail("$.predicateType", "not a shard receipt")
        receipt = cls(
            version=reader.integer("record_version", low=1, high=RECORD_VERSION),
            repository=reader.text("repository"),
            shard=ShardClaim.decode(reader.child("shard")),
            outcome=reader.choice("outcome", Outcome),
            reasons=reader.texts("reasons", limit=50),
            counts=Counts.decode(reader.child("counts")),
            collection=CollectionClaim.decode(reader.child("collection")),
            manifest=ManifestClaim.decode(reader.child("manifest")),
            repo=RepoClaim.decode(reader.child("repo"), statement.subject),
            session=SessionClaim.decode(reader.child("session")),
            environment=Environment.decode(reader.child("environment")),
            signer=statement.signer,
            bodies=_bodies(reader.child("bodies")),
        )
        _consistent(receipt, reader)
        return receipt


def _bodies(reader: Reader) -> dict[str, BodyRef]:
    return {name: BodyRef.decode(reader.child(name)) for name in _BODIES if reader.has(name)}


def _consistent(receipt: ShardReceipt, reader: Reader) -> None:
    counts, session = receipt.counts, receipt.session
    if counts.collected > receipt.collection.full_count:
        fail(f"{reader.path}.counts.collected", "more than the full collection")
    if receipt.repo.dirty_paths and not receipt.repo.dirty:
        fail(f"{reader.path}.repo.dirty", "false, beside dirty paths")
    if not receipt.is_green:
        return
    faults = {
        "a reason against it": bool(receipt.reasons),
        "failed tests": counts.failed + counts.error > 0,
        "no tests": counts.collected == 0,
        "tests that never ended": counts.ended != counts.collected,
        "an unfinished session": not session.finished,
        "a signal": session.signal is not None,
        "no test results": "tests" not in receipt.bodies,
        "an exit status that is not 0": session.exit_status not in ((0,) if session.witnessed else (0, None)),
    }
    for fault, present in faults.items():
        if present:
            fail(f"{reader.path}.outcome", f"passed, with {fault}")
