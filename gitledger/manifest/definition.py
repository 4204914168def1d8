"""The definition of a shard: what makes it this shard, whatever stands in its inputs (DESIGN section 1).

GPUs, memory and time-outs say where and how long it may run and are no part of it. Of the declared variants
only its own belongs to a shard: to add another one redefines nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import field
from typing import Literal

from gitledger.config.schema import Config, ResultsConfig
from gitledger.dataclass import dataclass
from gitledger.manifest.pattern import canonical_text
from gitledger.records.ids import Digest, ShardKey
from gitledger.records.receipt import Split

__all__ = ["DEFINITION_VERSION", "Definition"]

DEFINITION_VERSION = 1
_PYTEST = ResultsConfig("pytest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A shard's definition; patterns are canonical, sorted and unique, so their order means nothing.

    `marker`: the pytest marker that selects the suite (`record.marker`); None: all that is collected is the suite.
    """

    key: ShardKey
    paths: tuple[str, ...]
    extra_paths: tuple[str, ...] = ()
    excluded_paths: tuple[str, ...] = ()
    command: tuple[str, ...] | None = None
    results: ResultsConfig = _PYTEST
    coverage: Literal["none"] | None = None
    split: Split | None = None
    marker: str | None = None
    canonical: bytes = field(init=False, compare=False, repr=False)
    """The canonical form: one JSON object, keys sorted, no white space, ASCII; `marker` where one is set."""

    def __post_init__(self) -> None:
        for patterns in (self.paths, self.extra_paths, self.excluded_paths):
            if patterns != _canonical(patterns):
                raise ValueError("patterns must be canonical, sorted and unique; use `of` or `undeclared`")
        object.__setattr__(
            self, "canonical", self._canonical_form()
        )  # asked for once by itself, once by a manifest

    @classmethod
    def of(cls, config: Config, key: ShardKey) -> Definition:
        """Return the definition of a declared shard; raises `ConfigError` (`unknown-shard`)."""
        shard = config.shard(key)
        return cls(
            key=key,
            paths=_canonical(shard.paths),
            extra_paths=_canonical(shard.extra_paths),
            excluded_paths=_canonical(shard.excluded_paths),
            command=shard.command,
            results=shard.results,
            coverage=shard.coverage,
            split=config.split_of(key),
            marker=config.record.marker if shard.results.kind == "pytest" else None,
        )

    @classmethod
    def undeclared(
        cls,
        key: ShardKey,
        *,
        command: Sequence[str] | None,
        paths: Sequence[str] = (".",),
        extra_paths: Sequence[str] = (),
        excluded_paths: Sequence[str] = (),
        results: ResultsConfig = _PYTEST,
        marker: str | None = None,
    ) -> Definition:
        """Return the definition of a shard that only a command line declares (`record --paths …`)."""
        return cls(
            key=key,
            paths=_canonical(paths),
            extra_paths=_canonical(extra_paths),
            excluded_paths=_canonical(excluded_paths),
            command=None if command is None else tuple(command),
            results=results,
            marker=marker if results.kind == "pytest" else None,
        )

    def _canonical_form(self) -> bytes:
        document: dict[str, object] = {
            "command": None if self.command is None else list(self.command),
            "coverage": self.coverage,
            "definition": DEFINITION_VERSION,
            "excluded_paths": list(self.excluded_paths),
            "extra_paths": list(self.extra_paths),
            "name": self.key.name,
            "paths": list(self.paths),
            "results": {"file": self.results.file, "kind": self.results.kind},
            "split": {"index": self.split.index, "total": self.split.total} if self.split else None,
            "variant": self.key.variant,
        }
        if self.marker is not None:
            document["marker"] = self.marker
        return json.dumps(document, separators=(",", ":"), sort_keys=True).encode("ascii")

    @property
    def digest(self) -> Digest:
        """SHA-256 of the canonical form."""
        return Digest(hashlib.sha256(self.canonical).hexdigest())


def _canonical(patterns: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({canonical_text(pattern) for pattern in patterns}))
