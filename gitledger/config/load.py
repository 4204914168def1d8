"""Strict loading: text to `Config`, or one error that names file, line and key."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gitledger.config.document import Document, read_document
from gitledger.config.load_lanes import load_lanes
from gitledger.config.load_shards import duration, load_shards
from gitledger.config.schema import (
    CarryConfig,
    Config,
    CoverageConfig,
    HooksConfig,
    MergeConfig,
    NotesConfig,
    PolicyConfig,
    RecordConfig,
)
from gitledger.config.section import Section, kind
from gitledger.errors import ConfigError
from gitledger.records.ids import key_fingerprint

if TYPE_CHECKING:
    from gitledger.config.document import Value

__all__ = ["SUPPORTED_VERSION", "config_of", "load_config"]

SUPPORTED_VERSION = 1
ENVIRONMENT_KEYS = (
    "python",
    "platform",
    "platform.system",
    "platform.machine",
    "platform.libc",
    "pytest",
    "gitledger",
    "coverage",
    "gpu",
    "gpu.vendor",
    "gpu.names",
    "gpu.uuids",
    "gpu.memory_bytes",
    "gpu.driver",
    "gpu.runtime",
)
_ROOT = (
    "version",
    "repository",
    "shards",
    "coverage",
    "merge",
    "carry",
    "hooks",
    "record",
    "forges",
    "notes",
    "policy",
    "lanes",
)
_REPOSITORY = re.compile(r"\A[0-9A-Za-z][0-9A-Za-z._-]{0,127}\Z")
_FORGE = re.compile(r"\A[a-z][a-z0-9-]{0,62}\Z")
_AUTHOR = re.compile(r"\A[^<>\n]*[^<>\s][^<>\n]* <[^<>\s]+>\Z")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def load_config(text: bytes, *, source: str) -> Config:
    """Return the configuration that UTF-8 YAML `text` spells; `source` names it in messages.

    Raises `ConfigError`: what `read_document` and `config_of` raise.
    """
    return config_of(read_document(text, source=source))


def config_of(document: Document) -> Config:
    """Return the configuration that a document spells.

    Raises `ConfigError`: `config-version`, `unknown-key`, `config-value`, `results-unclear`, `reserved-name`,
    `split-unsupported`.
    """
    _check_version(document)
    root = Section(document, document.root, "", _ROOT)
    if not root.has("repository"):
        raise ConfigError(
            "config-value",
            f"{document.source}: repository: missing",
            "write `repository: NAME`, any name of your project",
        )
    return Config(
        version=SUPPORTED_VERSION,
        repository=_repository(root),
        shards=load_shards(root.child("shards", None)),
        coverage=_coverage(root.child("coverage", ("fail_under", "precision"))),
        merge=_merge(root.child("merge", ("environment",))),
        carry=_carry(root.child("carry", ("from", "environment"))),
        hooks=_hooks(root.child("hooks", ("pre_push", "protect", "timeout"))),
        record=_record(root.child("record", ("marker", "gpu_uuid"))),
        forges=_forges(root.child("forges", None)),
        notes=_notes(root.child("notes", ("author", "message"))),
        policy=_policy(root.child("policy", tuple(PolicyConfig.__dataclass_fields__))),
        lanes=load_lanes(root.child("lanes", None)),
        given=frozenset(_given(document.root, "")),
    )


def _check_version(document: Document) -> None:
    """Look at the version before anything else: a newer file may hold keys that we can't know."""
    root = Section(document, document.root, "", None)
    version = root.raw("version")
    if version == SUPPORTED_VERSION and isinstance(version, int) and not isinstance(version, bool):
        return
    where = document.where("version")
    if version is None:
        raise ConfigError("config-version", f"{where}: version: missing", "write `version: 1` as the first line")
    if isinstance(version, int) and version > SUPPORTED_VERSION:
        raise ConfigError(
            "config-version",
            f"{where}: version {version} is newer than this git-ledger reads ({SUPPORTED_VERSION})",
            "upgrade git-ledger",
        )
    raise ConfigError(
        "config-version", f"{where}: version: expected 1, found {kind(version)}", "write `version: 1`"
    )


def _given(value: Value, path: str) -> list[str]:
    if not isinstance(value, dict):
        return []
    found = []
    for key, item in value.items():
        at = f"{path}.{key}" if path else key
        found.append(at)
        found.extend(_given(item, at))
    return found


def _repository(root: Section) -> str:
    value = root.raw("repository")
    # An id of digits alone is a YAML integer; without a leading zero its text is the same.
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else root.text("repository")
    if not _REPOSITORY.match(text):
        root.fail(
            "repository", "expected an id of letters, digits, '.', '_' and '-', as `git ledger init` makes it"
        )
    return text


def _coverage(section: Section) -> CoverageConfig:
    return CoverageConfig(
        fail_under=section.or_default("fail_under", lambda key: _threshold(section, key), None),
        precision=section.or_default("precision", lambda key: section.integer(key, high=9), None),
    )


def _threshold(section: Section, key: str) -> str:
    value = section.raw(key)
    if value is None or isinstance(value, bool | str | list | dict):
        section.fail(key, f"expected a number, found {kind(value)}")
    if not 0 < value <= 100:
        section.fail(key, f"expected more than 0 and at most 100, found {value}")
    return str(value) if isinstance(value, int) else format(value, "f")


def _merge(section: Section) -> MergeConfig:
    default = MergeConfig()
    return MergeConfig(
        environment=section.or_default(
            "environment",
            lambda key: section.choice(key, ("per-variant", "strict", "off")),
            default.environment,
        )
    )


def _carry(section: Section) -> CarryConfig:
    default = CarryConfig()
    return CarryConfig(
        from_=section.or_default(
            "from", lambda key: section.choice(key, ("policy-ref", "ancestors", "same-manifest")), default.from_
        ),
        environment=section.or_default(
            "environment", lambda key: section.texts(key, _environment_key), default.environment
        ),
    )


def _environment_key(text: str) -> str:
    if text not in ENVIRONMENT_KEYS:
        raise ValueError(f"expected one of {', '.join(ENVIRONMENT_KEYS)}")
    return text


def _hooks(section: Section) -> HooksConfig:
    default = HooksConfig()
    return HooksConfig(
        pre_push=section.or_default(
            "pre_push", lambda key: section.choice(key, ("block", "warn", "run", "off")), default.pre_push
        ),
        protect=section.or_default("protect", lambda key: section.texts(key, str), ()),
        timeout=section.or_default("timeout", lambda key: duration(section, key), default.timeout),
    )


def _record(section: Section) -> RecordConfig:
    return RecordConfig(
        marker=section.or_default("marker", lambda key: section.parsed(key, _marker), None),
        gpu_uuid=section.or_default("gpu_uuid", section.boolean, True),
    )


def _marker(text: str) -> str:
    if not text.isidentifier():
        raise ValueError("expected the name of a pytest marker, not an expression")
    return text


def _forges(section: Section) -> dict[str, str]:
    forges = {}
    for name in section.names():
        if not _FORGE.match(name):
            section.fail(name, "a forge's name is of lower-case letters, digits and '-'")
        forges[name] = section.parsed(name, _forge_url)
    return forges


def _forge_url(text: str) -> str:
    url = urlsplit(text)  # raises ValueError for a broken host
    if text.count("{user}") != 1 or "{user}" in url.netloc or set(text.replace("{user}", "")) & set("{}"):
        raise ValueError("expected {user} once, behind the host")
    if not url.hostname or url.username is not None:
        raise ValueError("expected a host, and no credentials")
    if url.scheme != "https" and not (url.scheme == "http" and url.hostname in _LOOPBACK):
        raise ValueError("expected an https URL (http on loopback only)")
    return text


def _notes(section: Section) -> NotesConfig:
    default = NotesConfig()
    return NotesConfig(
        author=section.or_default("author", lambda key: section.parsed(key, _author), None),
        message=section.or_default("message", lambda key: section.parsed(key, _message), default.message),
    )


def _author(text: str) -> str:
    if not _AUTHOR.match(text):
        raise ValueError("expected Name <mail>")
    return text


def _message(text: str) -> str:
    if set(text.replace("{n}", "")) & set("{}"):
        raise ValueError("{n} is the only placeholder")
    return text


def _policy(section: Section) -> PolicyConfig:
    booleans = (
        "require_gpu",
        "require_merged",
        "require_observed_scope",
        "pin_shards",
        "allow_carried",
        "allow_dirty",
        "allow_unsigned",
        "allow_unwitnessed",
        "allow_no_touch",
    )
    default = PolicyConfig()
    values: dict[str, Any] = {
        name: section.or_default(name, section.boolean, getattr(default, name)) for name in booleans
    }
    for name in ("allowed_key_fingerprints", "ci_key_fingerprints"):
        values[name] = section.texts(name, key_fingerprint) if section.has(name) else ()
    for name in ("expected_skips", "required_tests"):
        values[name] = section.or_default(name, section.text, None)
    return PolicyConfig(
        signer_mode=section.or_default(
            "signer_mode", lambda key: section.choice(key, ("restricted", "open")), default.signer_mode
        ),
        allowed_signers=section.or_default("allowed_signers", lambda key: section.texts(key, str), None),
        revokers=section.or_default("revokers", lambda key: section.texts(key, str), ()),
        max_age_days=section.or_default("max_age_days", section.integer, default.max_age_days),
        require_mode=section.or_default(
            "require_mode", lambda key: section.choice(key, ("local", "ci", "ci-gpu")), None
        ),
        carried_max_age_days=section.or_default("carried_max_age_days", section.integer, None),
        max_attempts=section.or_default("max_attempts", lambda key: section.integer(key, low=1), None),
        min_record_version=section.or_default(
            "min_record_version", lambda key: section.integer(key, low=1), default.min_record_version
        ),
        **values,
    )
