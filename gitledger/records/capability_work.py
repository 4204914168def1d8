"""What a recipe did, as a capability report says it: with which model and layers, how, and what came out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.records.capability_status import ReasonCode
from gitledger.records.closed import child, closed, exact_time, opt_real, real, word
from gitledger.records.decode import Reader, fail, format_time
from gitledger.records.ids import Digest, digest, shard_word

__all__ = [
    "FileClaim",
    "ForwardClaim",
    "LayersClaim",
    "ModelClaim",
    "QuantizationClaim",
    "ReasonClaim",
    "RecipeClaim",
    "ReferenceClaim",
    "TimingClaim",
    "model_digest",
]

MAX_MODEL_FILES = 1_000
MAX_STAGES = 20
MAX_DIMENSIONS = 32
MAX_LAYERS = 1_000_000
_METRIC = "relative-l2"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeClaim:
    """Which way of executing a model: its id, version, and the digest of what was executed."""

    id: str
    version: str
    digest: Digest

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"digest": self.digest, "id": self.id, "version": self.version}

    @classmethod
    def decode(cls, parent: Reader, key: str = "recipe") -> RecipeClaim:
        """Return the claim at `key`; raises `DecodeError`."""
        reader = child(parent, key, ("digest", "id", "version"))
        return cls(
            id=reader.parsed("id", shard_word),
            version=reader.parsed("version", shard_word),
            digest=reader.parsed("digest", digest),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileClaim:
    """One file of a model: its name below the model's folder, and what it held."""

    name: str
    sha256: Digest
    size: int

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"name": self.name, "sha256": self.sha256, "size": self.size}

    @classmethod
    def decode(cls, value: object, path: str) -> FileClaim:
        """Return the claim that `value` spells; raises `DecodeError`."""
        reader = closed(value, path, ("name", "sha256", "size"))
        return cls(
            name=reader.text("name", limit=1024),
            sha256=reader.parsed("sha256", digest),
            size=reader.integer("size"),
        )


def model_digest(files: Iterable[FileClaim]) -> Digest:
    """Return the digest of a model: SHA-256 over its files by name, as `name NUL sha256 NUL size LF`."""
    hasher = hashlib.sha256()
    for file in sorted(files, key=lambda item: item.name.encode("utf-8", "surrogatepass")):
        name = file.name.encode("utf-8", "surrogatepass")
        hasher.update(b"%s\0%s\0%d\n" % (name, file.sha256.encode(), file.size))
    return digest(hasher.hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelClaim:
    """Which model was asked for, which one was found, and the files that were read of it, by name."""

    requested: str | None
    resolved: str | None
    files: tuple[FileClaim, ...]
    digest: Digest | None

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "digest": self.digest,
            "files": [file.encode() for file in self.files],
            "requested": self.requested,
            "resolved": self.resolved,
        }

    @classmethod
    def decode(cls, parent: Reader, key: str = "model") -> ModelClaim:
        """Return the claim at `key`; raises `DecodeError`, also where the digest is not that of the files."""
        reader = child(parent, key, ("digest", "files", "requested", "resolved"))
        listed = reader.items("files", limit=MAX_MODEL_FILES)
        files = tuple(FileClaim.decode(item, f"{reader.path}.files[{i}]") for i, item in enumerate(listed))
        names = [file.name for file in files]
        if names != sorted(set(names)):
            fail(f"{reader.path}.files", "expected each file once, sorted by name")
        found = reader.opt_parsed("digest", digest)
        if found != (model_digest(files) if files else None):
            fail(f"{reader.path}.digest", "not the digest of the files")
        return cls(
            requested=reader.opt_text("requested", limit=1024),
            resolved=reader.opt_text("resolved", limit=1024),
            files=files,
            digest=found,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersClaim:
    """The layers that were executed, `start` to `end`, both inclusive, of `total`; None what was not resolved."""

    start: int
    end: int | None
    total: int | None

    def encode(self) -> dict[str, Any]:
        """Return the JSON object; it says in words that the end is included, since most tools mean the other."""
        return {"end": self.end, "end_inclusive": True, "start": self.start, "total": self.total}

    @classmethod
    def decode(cls, parent: Reader, key: str = "layers") -> LayersClaim:
        """Return the claim at `key`; raises `DecodeError` for a half-open or an empty range."""
        reader = child(parent, key, ("end", "end_inclusive", "start", "total"))
        if reader.boolean("end_inclusive") is not True:
            fail(f"{reader.path}.end_inclusive", "false: a half-open range; layers are inclusive at both ends")
        claim = cls(
            start=reader.integer("start", high=MAX_LAYERS),
            end=reader.opt_integer("end", high=MAX_LAYERS),
            total=reader.opt_integer("total", low=1, high=MAX_LAYERS),
        )
        if claim.end is not None and claim.end < claim.start:
            fail(f"{reader.path}.end", f"{claim.end} lies before start {claim.start}")
        return claim


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationClaim:
    """What was asked for, what it came to (never `auto`), and the type that was computed in."""

    requested: str
    resolved: str | None
    compute_dtype: str | None

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "compute_dtype": self.compute_dtype,
            "requested": self.requested,
            "resolved": self.resolved,
        }

    @classmethod
    def decode(cls, parent: Reader, key: str = "quantization") -> QuantizationClaim:
        """Return the claim at `key`; raises `DecodeError`."""
        reader = child(parent, key, ("compute_dtype", "requested", "resolved"))
        claim = cls(
            requested=reader.text("requested", limit=100),
            resolved=reader.opt_text("resolved", limit=100),
            compute_dtype=reader.opt_text("compute_dtype", limit=100),
        )
        if claim.resolved == "auto":
            fail(f"{reader.path}.resolved", "auto is a question, not an answer")
        return claim


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingClaim:
    """When it ran; `duration_ms` is the measured forward, taken after the device was synchronised.

    `stages` are milliseconds by stage (`import`, `load`, `reference`, `prepare`, `forward`).
    """

    started_at: datetime
    finished_at: datetime
    duration_ms: float | None
    stages: dict[str, float]

    @property
    def span_ms(self) -> float:
        """Milliseconds from start to finish."""
        return (self.finished_at - self.started_at).total_seconds() * 1000

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "duration_ms": self.duration_ms,
            "finished_at": format_time(self.finished_at),
            "stages": dict(self.stages),
            "started_at": format_time(self.started_at),
        }

    @classmethod
    def decode(cls, parent: Reader, key: str = "timing") -> TimingClaim:
        """Return the claim at `key`; raises `DecodeError`."""
        reader = child(parent, key, ("duration_ms", "finished_at", "stages", "started_at"))
        stages = reader.raw("stages")
        if not isinstance(stages, dict) or len(stages) > MAX_STAGES:
            fail(f"{reader.path}.stages", f"expected an object of at most {MAX_STAGES} stages")
        times = Reader(stages, f"{reader.path}.stages")
        claim = cls(
            started_at=exact_time(reader, "started_at"),
            finished_at=exact_time(reader, "finished_at"),
            duration_ms=opt_real(reader, "duration_ms"),
            stages={name: real(times, name) for name in stages},
        )
        if claim.finished_at < claim.started_at:
            fail(f"{reader.path}.finished_at", "lies before started_at")
        return claim


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceClaim:
    """What the output was held against: the same layers, inputs and seed, on the CPU in float32.

    `error` is |output - reference| / |reference| by the Euclidean norm, None where the two can't be compared;
    `tolerance` is the recipe's.
    """

    seed: int
    inputs_digest: Digest
    output_digest: Digest
    error: float | None
    tolerance: float

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "device": "cpu",
            "dtype": "float32",
            "error": self.error,
            "inputs_digest": self.inputs_digest,
            "metric": _METRIC,
            "output_digest": self.output_digest,
            "seed": self.seed,
            "tolerance": self.tolerance,
        }

    @classmethod
    def decode(cls, parent: Reader, key: str = "reference") -> ReferenceClaim:
        """Return the claim at `key`; raises `DecodeError`."""
        keys = ("device", "dtype", "error", "inputs_digest", "metric", "output_digest", "seed", "tolerance")
        reader = child(parent, key, keys)
        for name, only in (("device", "cpu"), ("dtype", "float32"), ("metric", _METRIC)):
            word(reader, name, (only,))
        return cls(
            seed=reader.integer("seed"),
            inputs_digest=reader.parsed("inputs_digest", digest),
            output_digest=reader.parsed("output_digest", digest),
            error=opt_real(reader, "error"),
            tolerance=real(reader, "tolerance"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardClaim:
    """The measured forward. `executed`: it ran to its end and its device was synchronised."""

    executed: bool
    output_shape: tuple[int, ...] | None
    output_dtype: str | None
    output_device: str | None
    finite: bool | None
    output_digest: Digest | None
    reference: ReferenceClaim | None

    @classmethod
    def none(cls) -> ForwardClaim:
        """Return the claim of a run in which no forward was executed."""
        return cls(
            executed=False,
            output_shape=None,
            output_dtype=None,
            output_device=None,
            finite=None,
            output_digest=None,
            reference=None,
        )

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "executed": self.executed,
            "finite": self.finite,
            "output_device": self.output_device,
            "output_digest": self.output_digest,
            "output_dtype": self.output_dtype,
            "output_shape": None if self.output_shape is None else list(self.output_shape),
            "reference": self.reference.encode() if self.reference else None,
        }

    @classmethod
    def decode(cls, parent: Reader, key: str = "forward") -> ForwardClaim:
        """Return the claim at `key`; raises `DecodeError`."""
        keys = (
            "executed",
            "finite",
            "output_device",
            "output_digest",
            "output_dtype",
            "output_shape",
            "reference",
        )
        reader = child(parent, key, keys)
        shape = reader.integers("output_shape", limit=MAX_DIMENSIONS) if reader.has("output_shape") else None
        return cls(
            executed=reader.boolean("executed"),
            output_shape=shape,
            output_dtype=reader.opt_text("output_dtype", limit=100),
            output_device=reader.opt_text("output_device", limit=100),
            finite=reader.opt_boolean("finite"),
            output_digest=reader.opt_parsed("output_digest", digest),
            reference=ReferenceClaim.decode(reader) if reader.has("reference") else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonClaim:
    """Why it did not pass, in a code of the closed list; `stage` is where the run stood."""

    code: ReasonCode
    message: str
    stage: str

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"code": self.code.value, "message": self.message, "stage": self.stage}

    @classmethod
    def decode(cls, parent: Reader, key: str = "reason") -> ReasonClaim:
        """Return the claim at `key`; raises `DecodeError`."""
        reader = child(parent, key, ("code", "message", "stage"))
        return cls(
            code=reader.choice("code", ReasonCode),
            message=reader.text("message"),
            stage=reader.text("stage", limit=100),
        )
