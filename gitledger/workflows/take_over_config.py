"""The settings and the policy of pytest-gpu-proof 0.4 as a configuration of ours, checked before it is shown."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from gitledger.config.document import read_document
from gitledger.config.load import load_config
from gitledger.dataclass import dataclass
from gitledger.errors import ConfigError, LedgerError, UsageError
from gitledger.records.decode import load_json
from gitledger.wording import counted
from gitledger.workflows.session import Session

__all__ = ["Translated", "translate"]

MAX_POLICY_BYTES = 1 << 20
SKIPS_PATH = ".gitledger/expected_skips"
_DEFAULT_OUTPUT = "gpu-proof.json"
_DEFAULT_MARKER = "gpu_proof"
_SETTINGS = {
    "fingerprint_extra_paths",
    "fingerprint_excluded_paths",
    "fingerprint_paths",
    "max_age_days",
    "output",
    "record_gpu_uuid",
    "require_gpu",
    "required_marker",
    "shard_fingerprint_extra_paths",
    "shard_fingerprint_paths",
    "shard_name",
}
_UNNEEDED = {
    "best_effort": "it is an option of `record` here",
    "fail_on_skip": "a skipped test blocks a verdict unless policy expects it",
    "github_username": "`git config gitledger.user github:NAME` says so for one clone",
    "key_path": "`git config gitledger.signingKey PATH` says so for one clone",
    "mode": "it is `record --mode` here, or the variable GITLEDGER_MODE",
    "signing_backend": "any SSH key signs here",
}
_POLICY = {
    "allow_carried",
    "allow_dirty",
    "allowed_key_fingerprints",
    "allowed_signers",
    "carried_max_age_days",
    "max_age_days",
    "require_mode",
    "required_fingerprint_excluded_paths",
    "required_fingerprint_extra_paths",
    "required_fingerprint_paths",
    "required_shard_fingerprints",
    "required_test_manifest",
    "signer_mode",
}


_LISTS = {"allowed_key_fingerprints", "allowed_signers"}
_PATHS = {name for name in _SETTINGS | _POLICY if name.endswith("_paths")} | {
    "paths",
    "extra_paths",
    "excluded_paths",
}
_TEXTS = {"output", "require_mode", "required_marker", "required_test_manifest", "shard_name", "signer_mode"}
_SWITCHES = {"allow_carried", "allow_dirty", "record_gpu_uuid"}
_NUMBERS = {"carried_max_age_days", "max_age_days"}


@dataclass(frozen=True, slots=True)
class Translated:
    """The text of a configuration that loads, and what a person still has to see to."""

    text: str
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Draft:
    """A configuration under construction; `notes` say what could not be taken over."""

    shards: dict[str, dict[str, Any]] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def translate(session: Session, policy: Path | None) -> Translated:
    """Return the configuration that says what `[tool.gpu_proof]` of the work tree and a policy file say.

    What has no counterpart is named in the notes, never dropped in silence. Raises `UsageError`
    `import-unreadable` for a file that can't be read, or holds something else than that tool takes.
    """
    root = session.repo.worktree or Path()
    project = root / "pyproject.toml"
    settings = _shaped(_settings(project), f"{project}: tool.gpu_proof")
    rules = _shaped(_rules(policy), str(policy)) if policy else {}
    draft = _Draft()
    try:
        _take_settings(settings, draft)
        _take_rules(rules, draft)
        _take_shards(settings, rules, draft)
        text = _spell(_repository(session), draft)
        load_config(text.encode(), source="the translated configuration")
    except ConfigError as error:  # a value that we don't take
        text = f"these settings can't be translated: {error.message}"
        raise UsageError("import-unreadable", text, error.hint or "mend the value") from error
    return Translated(text, tuple(draft.notes))


def _settings(path: Path) -> Mapping[str, Any]:
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(path, error) from error
    except ValueError as error:
        raise UsageError("import-unreadable", f"{path} is no TOML: {error}", f"mend {path}") from error
    tools = _table(document.get("tool", {}), f"{path}: tool")
    return _table(tools.get("gpu_proof", {}), f"{path}: tool.gpu_proof")


def _rules(path: Path) -> Mapping[str, Any]:
    try:
        data = path.read_bytes()
        if path.suffix == ".json":
            found: object = load_json(data, limit=MAX_POLICY_BYTES)
        else:
            found = read_document(data, source=str(path)).root
    except OSError as error:
        raise _unreadable(path, error) from error
    except LedgerError as error:
        raise UsageError("import-unreadable", f"{path} is no policy: {error.message}", f"mend {path}") from error
    return _table(found, str(path))


def _unreadable(path: Path, error: OSError) -> UsageError:
    """Return the error of a file that is not there, a folder, or not ours to read."""
    if isinstance(error, FileNotFoundError):
        return UsageError("import-unreadable", f"there is no file {path}", "name the policy file that there is")
    return UsageError("import-unreadable", f"{path} can't be read: {error.strerror}", "name another file")


def _table(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _misshapen(where, "a mapping", value)
    return value


def _misshapen(where: str, wanted: str, value: object) -> UsageError:
    kinds = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false", type(None): "nothing"}
    found = kinds.get(type(value), "a number" if isinstance(value, int | float) else "a date or time")
    return UsageError("import-unreadable", f"{where}: expected {wanted}, and it is {found}", "mend the file")


def _shaped(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the values that say something (not null); raises where one has another type than that tool takes."""
    kept = {str(name): value for name, value in values.items() if value is not None}
    for name, value in kept.items():
        at = f"{where}: {name}" if not where.endswith("tool.gpu_proof") else f"{where}.{name}"
        if name in _LISTS and not isinstance(value, list):
            raise _misshapen(at, "a list of texts", value)
        if name in _PATHS | {"expected_skips"} and not isinstance(value, list | str):
            raise _misshapen(at, "a list of texts, or one text", value)
        if name in _LISTS | _PATHS | {"expected_skips"} and isinstance(value, list):
            for number, item in enumerate(value):
                if not isinstance(item, str):
                    raise _misshapen(f"{at}[{number}]", "a text", item)
        if name in _TEXTS and not isinstance(value, str):
            raise _misshapen(at, "a text", value)
        if name in _SWITCHES and not isinstance(value, bool):
            raise _misshapen(at, "true or false", value)
        if name in _NUMBERS and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise _misshapen(at, "a number", value)
        if name == "required_shard_fingerprints":
            scopes = _table(value, at).items()
            kept[name] = {key: _shaped(_table(scope, f"{at}.{key}"), f"{at}.{key}") for key, scope in scopes}
    return kept


def _take_settings(settings: Mapping[str, Any], draft: _Draft) -> None:
    draft.record["marker"] = settings.get("required_marker", _DEFAULT_MARKER)
    if "record_gpu_uuid" in settings:
        draft.record["gpu_uuid"] = settings["record_gpu_uuid"]
    for name in ("max_age_days", "require_gpu"):
        if name in settings:
            draft.policy[name] = settings[name]
    skips = settings.get("expected_skips")
    if isinstance(skips, str):
        draft.policy["expected_skips"] = skips
    elif skips:
        draft.policy["expected_skips"] = SKIPS_PATH
        draft.notes.append(
            f"write the {counted(len(skips), 'id')} of expected_skips into {SKIPS_PATH}, one a line"
        )
    for name in sorted(set(settings) - _SETTINGS - {"expected_skips"}):
        draft.notes.append(f"[tool.gpu_proof] {name} is left out: {_UNNEEDED.get(name, 'it is not known')}")


def _take_rules(rules: Mapping[str, Any], draft: _Draft) -> None:
    for name in ("allow_carried", "allow_dirty", "carried_max_age_days", "max_age_days", "require_mode"):
        if name in rules:
            draft.policy[name] = rules[name]
    # Their default is open: whoever names an account whose key it is.
    draft.policy["signer_mode"] = rules.get("signer_mode", "open")
    if rules.get("allowed_signers") and draft.policy["signer_mode"] == "restricted":
        draft.policy["allowed_signers"] = [f"github:{name}" for name in rules["allowed_signers"]]
    keys = rules.get("allowed_key_fingerprints") or []
    if keys and draft.policy["signer_mode"] == "restricted":
        draft.policy["allowed_key_fingerprints"] = list(keys)
        if not rules.get("allowed_signers"):
            draft.notes.append(
                "allowed_key_fingerprints stood alone: give the keys' owners in policy.allowed_signers, "
                "or their keys in .gitledger/allowed_signers"
            )
    if keys and rules.get("require_mode") == "ci-gpu":
        draft.policy["ci_key_fingerprints"] = list(keys)
    elif rules.get("require_mode") == "ci-gpu":
        draft.notes.append("list the runners' keys in policy.ci_key_fingerprints: ci-gpu counts by no other")
    if draft.policy["signer_mode"] == "open" and rules.get("require_mode") == "ci-gpu":
        draft.notes.append("signer_mode: open can't satisfy require_mode: ci-gpu here; use restricted")
    if "required_test_manifest" in rules:
        draft.policy["required_tests"] = rules["required_test_manifest"]
    if "min_schema" in rules:
        draft.notes.append("min_schema is left out: receipts of another tool never count here")
    for name in sorted(set(rules) - _POLICY - {"min_schema"}):
        draft.notes.append(f"policy {name} is left out: it is not known")


def _take_shards(settings: Mapping[str, Any], rules: Mapping[str, Any], draft: _Draft) -> None:
    artifact = settings.get("output", _DEFAULT_OUTPUT)
    scopes = rules.get("required_shard_fingerprints") or {}
    if not scopes and settings.get("shard_name"):
        scopes = {
            settings["shard_name"]: {
                "paths": settings.get("shard_fingerprint_paths") or settings.get("fingerprint_paths", ["."]),
                "extra_paths": settings.get("shard_fingerprint_extra_paths")
                or settings.get("fingerprint_extra_paths", []),
            }
        }
    if not scopes:
        scopes = {
            "gpu": {
                "paths": rules.get("required_fingerprint_paths") or settings.get("fingerprint_paths", ["."]),
                "extra_paths": rules.get("required_fingerprint_extra_paths")
                or settings.get("fingerprint_extra_paths", []),
                "excluded_paths": rules.get("required_fingerprint_excluded_paths")
                or settings.get("fingerprint_excluded_paths", []),
            }
        }
    for name, scope in scopes.items():
        draft.shards[str(name)] = _shard(scope, artifact)
    tests = "the tests of each shard" if len(scopes) > 1 else "the tests"
    draft.notes.append(f"give each command {tests} as arguments: `command: pytest` runs all that are marked")


def _shard(scope: Mapping[str, Any], artifact: str) -> dict[str, Any]:
    shard: dict[str, Any] = {"command": "pytest"}
    for name in ("paths", "extra_paths", "excluded_paths"):
        paths = _paths(scope.get(name, []))
        # The receipt is no file of the tree any more.
        kept = [path for path in paths if name != "excluded_paths" or path not in (artifact, _DEFAULT_OUTPUT)]
        if kept:
            shard[name] = kept
    return shard


def _paths(value: object) -> list[str]:
    if isinstance(value, str):
        return [item.strip() for item in value.split(",") if item.strip()]
    return [str(item) for item in value] if isinstance(value, list) else []


def _repository(session: Session) -> str:
    """Return an id for the repository: of its first commit, so that every clone translates alike."""
    done = session.repo.git.run("rev-list", "--max-parents=0", "HEAD", statuses=frozenset({0, 128}))
    roots = "\n".join(sorted(done.text.split()))
    return hashlib.sha256(b"git-ledger repository\0" + roots.encode()).hexdigest()[:32]


def _spell(repository: str, draft: _Draft) -> str:
    """Return the document; JSON's flow style is YAML, and needs no quoting rules of its own."""
    flow: Callable[[Any], str] = lambda value: json.dumps(value, default=str)  # noqa: E731
    lines = ["version: 1", f"repository: {flow(repository)}", "shards:"]
    lines += [f"  {flow(name)}: {flow(shard)}" for name, shard in draft.shards.items()]
    for name, section in (("record", draft.record), ("policy", draft.policy)):
        lines += [f"{name}:", *(f"  {key}: {flow(value)}" for key, value in section.items())] if section else []
    return "\n".join(lines) + "\n"
