"""The configuration that a judgement trusts: from a ref, or from the judged commit itself (DESIGN section 4)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from gitledger.config.load import load_config
from gitledger.config.schema import CONFIG_PATH, Config
from gitledger.dataclass import dataclass
from gitledger.errors import ConfigError
from gitledger.records.ids import CommitId, Digest
from gitledger.store.repository import Repository
from gitledger.workflows.forge_names import check_forge_users

if TYPE_CHECKING:  # whoever records reads the configuration, and needs no judgement
    from gitledger.trust.signers import Signers
    from gitledger.verdict.tests_policy import TestLists

__all__ = ["SIGNERS_PATH", "Trusted", "load_trusted", "read_config", "read_lists", "read_signers"]

SIGNERS_PATH = ".gitledger/allowed_signers"
REVOKED_PATH = ".gitledger/revoked_keys"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trusted:
    """Policy and signers, and where they come from.

    `is_self`: the judged commit judges itself, and nothing is pinned. `source` is the ref as given, or `self`;
    `commit` is what it was resolved to. `digest` names the policy's text.
    """

    config: Config
    signers: Signers
    is_self: bool
    source: str
    commit: CommitId
    digest: Digest


def read_config(repo: Repository, commit: CommitId, kept: Path | None = None) -> Config:
    """Return the configuration of a commit; `kept` is a session's, where it has one (`workflows.kept_config`).

    Raises `ConfigError`: `no-config`, and whatever loading raises.
    """
    text = repo.file_at(commit, CONFIG_PATH)
    if text is None:
        top = repo.worktree
        is_written = top is not None and commit == repo.head() and (top / CONFIG_PATH).exists()
        way = (
            "git add :/.gitledger && git commit"
            if is_written
            else "git ledger init && git add :/.gitledger && git commit"
        )
        raise ConfigError("no-config", f"commit {commit[:12]} has no {CONFIG_PATH}", way)
    return _loaded(text, f"{commit[:12]}:{CONFIG_PATH}", kept)


@lru_cache(maxsize=4)
def _loaded(text: bytes, source: str, kept: Path | None) -> Config:
    """Return what one text says; several steps of a command ask for the same one."""
    if kept is None:
        config = load_config(text, source=source)
    else:
        from gitledger.workflows.kept_config import load_config_kept

        config = load_config_kept(text, source=source, path=kept)
    check_forge_users(config)
    return config


def read_signers(repo: Repository, commit: CommitId) -> Signers:
    """Return the signers and revoked keys that a commit names; raises `ConfigError` where they can't be read."""
    from gitledger.trust.signers import Signers

    where = f"{commit[:12]}:"
    return Signers.parse(
        repo.file_at(commit, SIGNERS_PATH) or b"",
        repo.file_at(commit, REVOKED_PATH) or b"",
        allowed_source=where + SIGNERS_PATH,
        revoked_source=where + REVOKED_PATH,
    )


def load_trusted(repo: Repository, target: CommitId, policy_from: str | None, kept: Path | None = None) -> Trusted:
    """Return policy and signers of `policy_from` resolved to one commit, else of the target itself.

    `kept` is for `read_config`.

    Raises `UsageError` for an unknown ref, `ConfigError` where there is no configuration.
    """
    commit = target if policy_from is None else repo.resolve(policy_from)
    return Trusted(
        config=read_config(repo, commit, kept),
        signers=read_signers(repo, commit),
        is_self=policy_from is None,
        source="self" if policy_from is None else policy_from,
        commit=commit,
        digest=_digest(repo, commit),
    )


def _digest(repo: Repository, commit: CommitId) -> Digest:
    import hashlib

    hasher = hashlib.sha256()
    for path in (CONFIG_PATH, SIGNERS_PATH, REVOKED_PATH):
        text = repo.file_at(commit, path)
        hasher.update(b"-" if text is None else b"%d:" % len(text) + text)
    return Digest(hasher.hexdigest())


def read_lists(repo: Repository, trusted: Trusted, *, allow_skipped: bool) -> TestLists:
    """Return the lists of tests that policy names, read where policy comes from; raises `ConfigError`."""
    from gitledger.verdict.tests_policy import TestLists

    policy = trusted.config.policy
    return TestLists(
        expected_skips=_read_ids(repo, trusted.commit, policy.expected_skips, "policy.expected_skips"),
        required_tests=_read_ids(repo, trusted.commit, policy.required_tests, "policy.required_tests"),
        allow_skipped=allow_skipped,
        source=trusted.source,
    )


def _read_ids(repo: Repository, commit: CommitId, path: str | None, key: str) -> frozenset[str] | None:
    if path is None:
        return None
    text = repo.file_at(commit, str(PurePosixPath(path)))
    if text is None:
        raise ConfigError(
            "file-missing", f"{key} names {path}, which commit {commit[:12]} lacks", f"commit {path}"
        )
    try:
        lines = text.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ConfigError("file-malformed", f"{commit[:12]}:{path} is not UTF-8", f"mend {path}") from error
    return frozenset(line for line in lines if line and not line.startswith("#"))
