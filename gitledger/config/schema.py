"""The configuration as values: what `.gitledger/config.yaml` says, with every default filled in.

Attribute names are the keys of the file (DESIGN section 11); `from` is `from_`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import chain
from typing import Literal

from gitledger.dataclass import dataclass
from gitledger.errors import ConfigError
from gitledger.records.ids import KeyFingerprint, ShardKey
from gitledger.records.receipt import Split

__all__ = [
    "CONFIG_PATH",
    "DURATIONS_PATH",
    "MAX_CARRIED_AGE_DAYS",
    "CarryConfig",
    "Config",
    "CoverageConfig",
    "HooksConfig",
    "LaneConfig",
    "LaneRun",
    "MergeConfig",
    "NotesConfig",
    "PolicyConfig",
    "RecordConfig",
    "ResultsConfig",
    "ShardConfig",
    "Split",
]

CONFIG_PATH = ".gitledger/config.yaml"
DURATIONS_PATH = ".gitledger/durations.json"
MAX_CARRIED_AGE_DAYS = 30
"""What `carried_max_age_days: null` allows at most (DESIGN section 11)."""


@dataclass(frozen=True, slots=True)
class ResultsConfig:
    """Where a shard's results come from; `file` (from the repository root) for the report formats only."""

    kind: Literal["pytest", "exit-status", "junit", "reportlog", "ctrf"]
    file: str | None = None

    @property
    def is_pattern(self) -> bool:
        """Whether `file` is a pattern of files (`build/test-results/**/*.xml`) and not one file."""
        return any(letter in (self.file or "") for letter in "*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardConfig:
    """One declared shard; `command` is its words, `command_text` what the file (or `shlex.join`) spells."""

    name: str
    paths: tuple[str, ...] = (".",)
    extra_paths: tuple[str, ...] = ()
    excluded_paths: tuple[str, ...] = ()
    command: tuple[str, ...] | None = None
    command_text: str | None = None
    results: ResultsConfig = ResultsConfig("pytest")
    coverage: Literal["none"] | None = None
    split: int | None = None
    variants: tuple[str, ...] = ()
    gpus: int = 0
    memory: int | None = None
    """Bytes."""
    timeout: float | None = None
    """Seconds."""

    def identities(self) -> Iterator[tuple[ShardKey, Split | None]]:
        """Yield each identity of this shard with its part: variants in order, the parts within each."""
        for variant in self.variants or (None,):
            if self.split is None:
                yield ShardKey.of(self.name, variant), None
                continue
            for index in range(1, self.split + 1):
                key = ShardKey.of(f"{self.name}-{index}-of-{self.split}", variant)
                yield key, Split(index=index, total=self.split)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageConfig:
    """The threshold as the file spells it (`55`, `55.50`), and the decimals to compare at.

    None leaves either to coverage's own configuration.
    """

    fail_under: str | None = None
    precision: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeConfig:
    """How far the environments of fresh inputs must agree."""

    environment: Literal["per-variant", "strict", "off"] = "per-variant"


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryConfig:
    """From which commits receipts may be carried, and which keys of the environment must agree."""

    from_: Literal["policy-ref", "ancestors", "same-manifest"] = "ancestors"
    environment: tuple[str, ...] = ("python", "platform")


@dataclass(frozen=True, slots=True, kw_only=True)
class HooksConfig:
    """What the pre-push hook does; `timeout` in seconds."""

    pre_push: Literal["block", "warn", "run", "off"] = "warn"
    protect: tuple[str, ...] = ()
    timeout: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordConfig:
    """What recording leaves out."""

    marker: str | None = None
    gpu_uuid: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesConfig:
    """Author (`Name <mail>`) and message of notes commits; `{n}` in the message is the number of records."""

    author: str | None = None
    message: str = "ledger: {n} records"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyConfig:
    """What the repository demands of evidence; ages in days."""

    signer_mode: Literal["restricted", "open"] = "restricted"
    allowed_signers: tuple[str, ...] | None = None
    """None: every principal of the allowed_signers file. Empty: nobody."""
    allowed_key_fingerprints: tuple[KeyFingerprint, ...] = ()
    """Empty: no further restriction."""
    ci_key_fingerprints: tuple[KeyFingerprint, ...] = ()
    revokers: tuple[str, ...] = ()
    max_age_days: int = 30
    require_mode: Literal["local", "ci", "ci-gpu"] | None = None
    require_gpu: bool = False
    require_merged: bool = False
    require_observed_scope: bool = False
    pin_shards: bool = True
    allow_carried: bool = False
    carried_max_age_days: int | None = None
    allow_dirty: bool = False
    allow_unsigned: bool = False
    allow_unwitnessed: bool = False
    allow_no_touch: bool = False
    max_attempts: int | None = None
    expected_skips: str | None = None
    required_tests: str | None = None
    min_record_version: int = 1

    @property
    def accepts_unsigned(self) -> bool:
        """Tell whether unsigned records may count: never in restricted mode, whatever the file says."""
        return self.allow_unsigned and self.signer_mode == "open"

    @property
    def carried_age_limit_days(self) -> int:
        """The age at which a receipt is too old to be carried."""
        if self.carried_max_age_days is not None:
            return self.carried_max_age_days
        return min(self.max_age_days, MAX_CARRIED_AGE_DAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRun:
    """One model on a lane: `layers` (first and last, inclusive; None: the whole model) by each recipe."""

    model: str
    layers: tuple[int, int] | None = None
    quantization: str = "auto"
    recipes: tuple[str, ...] = ("torch-eager",)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneConfig:
    """One hardware lane; `signers` None: policy's. `match` holds dotted report fields and their text."""

    name: str
    required: bool = True
    signers: tuple[str, ...] | None = None
    match: Mapping[str, str] = field(default_factory=dict)
    runs: tuple[LaneRun, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole file. `given` holds the dotted keys that it spells (`policy.max_age_days`)."""

    version: int
    repository: str
    shards: Mapping[str, ShardConfig] = field(default_factory=dict)
    coverage: CoverageConfig = CoverageConfig()
    merge: MergeConfig = MergeConfig()
    carry: CarryConfig = CarryConfig()
    hooks: HooksConfig = HooksConfig()
    record: RecordConfig = RecordConfig()
    forges: Mapping[str, str] = field(default_factory=dict)
    notes: NotesConfig = NotesConfig()
    policy: PolicyConfig = PolicyConfig()
    lanes: Mapping[str, LaneConfig] = field(default_factory=dict)
    given: frozenset[str] = frozenset()

    def shard_keys(self) -> tuple[ShardKey, ...]:
        """Return every identity that must be covered, in file order."""
        return tuple(key for shard in self.shards.values() for key, _ in shard.identities())

    def shard(self, key: ShardKey) -> ShardConfig:
        """Return the declaration that `key` belongs to; raises `ConfigError` (`unknown-shard`)."""
        return self._find(key)[0]

    def split_of(self, key: ShardKey) -> Split | None:
        """Return the part that `key` is, None where its shard isn't split; raises as `shard` does."""
        return self._find(key)[1]

    def keys_named(self, text: str) -> tuple[ShardKey, ...]:
        """Return the identities that `text` asks for: `l1` all its variants and parts, `l1@a100` one.

        Raises `ConfigError` (`unknown-shard`), naming the nearest.
        """
        name, at, variant = text.partition("@")
        wanted = []
        for shard in self.shards.values():
            for key, _ in shard.identities():
                if name in (shard.name, key.name) and (not at or key.variant == variant):
                    wanted.append(key)
        return tuple(wanted) if wanted else self._unknown(text)

    def _find(self, key: ShardKey) -> tuple[ShardConfig, Split | None]:
        namesake = self.shards.get(key.name)  # whose it mostly is; else it is a part of a split
        for shard in chain([namesake] if namesake else [], self.shards.values()):
            if key.name.startswith(shard.name):
                for candidate, split in shard.identities():
                    if candidate == key:
                        return shard, split
        self._unknown(str(key))
        raise AssertionError  # pragma: no cover - _unknown always raises

    def _unknown(self, text: str) -> tuple[ShardKey, ...]:
        from difflib import get_close_matches  # for errors alone

        name, at, _ = text.partition("@")
        variants = [
            str(key) for shard in self.shards.values() for key, _ in shard.identities() if key.name == name
        ]
        if at and variants:
            if variants == [name]:
                raise ConfigError("unknown-shard", f"shard {name!a} has no variants", f"name it as {name}")
            hint = f"known: {', '.join(variants[:10])}"
            raise ConfigError("unknown-shard", f"shard {name!a} has no variant {text[len(name) + 1 :]!a}", hint)
        known = [str(key) for key in self.shard_keys()]
        near = get_close_matches(text, [*known, *self.shards], n=1)
        names = ", ".join(known[:10]) or "none"
        hint = f"did you mean {near[0]}?" if near else f"known: {names}"
        raise ConfigError("unknown-shard", f"no shard {text!a} is declared", hint)
