"""The pre-push hook: judges what is pushed, and publishes the ledger in the same go (DESIGN section 10)."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gitledger.config.schema import HooksConfig
from gitledger.errors import ConfigError, LedgerError, StoreError, UsageError
from gitledger.records.ids import CommitId
from gitledger.store.refs import INBOX_PREFIX
from gitledger.store.remote import IN_PUSH_VARIABLE, remote_names
from gitledger.workflows.judge import Verified, verify
from gitledger.workflows.publish import sync_with
from gitledger.workflows.run_hook import PushRun
from gitledger.workflows.session import Session
from gitledger.workflows.trusted import read_config

__all__ = ["MODES", "PushLine", "Pushed", "parse_push", "pre_push"]

MODES = ("block", "warn", "run", "off")
MODE_KEY = "gitledger.prePush"
_OURS = ("refs/notes/gitledger/", INBOX_PREFIX)
_LS_REMOTE_S = 10.0


@dataclass(frozen=True, slots=True)
class PushLine:
    """One ref of a push, as git hands it to the hook; an all-zero oid stands for no object."""

    local_ref: str
    local_oid: str
    remote_ref: str
    remote_oid: str

    @property
    def is_delete(self) -> bool:
        """Tell whether the push deletes the ref."""
        return set(self.local_oid) == {"0"}

    @property
    def is_ours(self) -> bool:
        """Tell whether the ref is the ledger's own."""
        return self.remote_ref.startswith(_OURS)


def parse_push(text: str) -> tuple[PushLine, ...]:
    """Return the refs of a push from the hook's standard input; raises `UsageError` `bad-hook-input`."""
    lines = []
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) != 4:
            raise UsageError("bad-hook-input", f"not a line of git's pre-push input: {line[:80]!a}", "git push")
        lines.append(PushLine(*words))
    return tuple(lines)


@dataclass(slots=True)
class Pushed:
    """What the hook decided: `allowed`, what it judged, and sentences for the person who pushes."""

    allowed: bool = True
    judged: list[tuple[str, Verified]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def refuse(self, text: str) -> None:
        """Stop the push and say why."""
        self.allowed = False
        self.messages.append(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """Where policy comes from and what the hook does: `commit` None before there is a configuration.

    `unknown` says why nobody can tell what policy is, which is not the same as that there is none.
    """

    hooks: HooksConfig
    mode: str
    commit: CommitId | None
    source: str
    unknown: str = ""


def pre_push(
    session: Session,
    remote: str,
    lines: Iterable[PushLine],
    *,
    clock: Callable[[], float] = time.monotonic,
    runs: PushRun | None = None,
) -> Pushed:
    """Return whether a push may go on.

    Judged by the policy of the remote's default branch, never by that of the pushed commit. Branches that policy
    protects are judged in `block` mode, the others in the mode of `git config gitledger.prePush`, else of the
    policy. In `run` mode what is stale is run first, by `runs`, and then judged in `block` mode. A push of nothing
    but the ledger, deletions, and pushes made by our own sync are let through.
    """
    result = Pushed()
    pushed = [line for line in lines if not line.is_delete and not line.is_ours]
    if session.environ.get(IN_PUSH_VARIABLE) or not pushed:
        return result
    started = clock()
    rules = _rules(session, remote, result)
    for line in pushed:
        left_s = rules.hooks.timeout - (clock() - started)
        _judge_line(session, line, rules, result, runs if rules.mode == "run" else None, left_s)
    left_s = rules.hooks.timeout - (clock() - started)
    if result.allowed and rules.mode != "off":
        _publish(session, remote, 0.0 if rules.unknown else left_s, result)
    return result


def _rules(session: Session, remote: str, result: Pushed) -> _Rules:
    own = session.repo.config(MODE_KEY)
    if own is not None and own not in MODES:
        raise ConfigError(
            "bad-hook-mode",
            f"git config {MODE_KEY} is {own!a}, expected {', '.join(MODES)}",
            f"git config {MODE_KEY} warn",
        )
    try:
        commit, source = _default_branch(session, remote)
    except StoreError as error:
        return _Rules(hooks=HooksConfig(), mode=own or "warn", commit=None, source=remote, unknown=error.message)
    if commit is None:
        result.messages.append(f"no policy at {source} yet: this push is not judged")
        return _Rules(hooks=HooksConfig(), mode=own or "warn", commit=None, source=source)
    try:
        hooks = read_config(session.repo, commit).hooks
    except ConfigError as error:
        if error.code != "no-config":
            raise
        result.messages.append(f"no configuration at {source} yet: this push is not judged")
        return _Rules(hooks=HooksConfig(), mode=own or "warn", commit=None, source=source)
    mode = own or hooks.pre_push
    return _Rules(hooks=hooks, mode=mode, commit=commit, source=source)


def _default_branch(session: Session, remote: str) -> tuple[CommitId | None, str]:
    """Return the commit of the remote's default branch as this clone knows it, and the name it goes by.

    Its tracking ref, else what `ls-remote --symref` says, bounded in time; raises `StoreError` where it does not
    answer.
    """
    repo = session.repo
    if remote not in remote_names(repo):
        return None, remote
    head = f"refs/remotes/{remote}/HEAD"
    found = repo.objects.read_ref(head)
    if found is not None:
        return found, f"{remote}/HEAD"
    done = repo.git.run("ls-remote", "--symref", remote, "HEAD", timeout_s=_LS_REMOTE_S)
    for line in done.text.splitlines():
        if line.startswith("ref: ") and line.endswith("\tHEAD"):
            branch = line[len("ref: ") : -len("\tHEAD")].removeprefix("refs/heads/")
            return repo.objects.read_ref(f"refs/remotes/{remote}/{branch}"), f"{remote}/{branch}"
    return None, remote


def _judge_line(
    session: Session, line: PushLine, rules: _Rules, result: Pushed, runs: PushRun | None, left_s: float
) -> None:
    branch = line.remote_ref.removeprefix("refs/heads/")
    is_branch = branch != line.remote_ref
    protected = is_branch and any(fnmatch.fnmatchcase(branch, pattern) for pattern in rules.hooks.protect)
    mode = "block" if protected or rules.mode == "run" else rules.mode
    if rules.unknown and mode != "off":
        text = (
            f"{line.remote_ref}: not judged, since {rules.source} can't be asked for its policy: {rules.unknown}"
        )
        if mode == "block":
            result.refuse(text)
        else:
            result.messages.append(text)
    if mode == "off" or rules.commit is None:
        return
    try:
        commit = session.repo.resolve(line.local_oid)
    except UsageError:  # a tag of a tree or a blob: there is nothing to judge
        return
    try:
        verdict = verify(session, commit, policy_from=rules.commit)
        if runs is not None and not verdict.verdict.passed:
            result.messages.append(runs.of(session, commit, policy_from=rules.commit, left_s=left_s))
            verdict = verify(session, commit, policy_from=rules.commit)
    except LedgerError as error:
        text = f"{line.remote_ref}: can't be judged: {error}"
        if mode == "block":
            result.refuse(text)
        else:
            result.messages.append(text)
        return
    result.judged.append((line.remote_ref, verdict))
    if verdict.verdict.passed:
        result.messages.append(f"{line.remote_ref}: evidence passed (policy {rules.source})")
    elif mode == "block":
        result.refuse(f"{line.remote_ref}: evidence failed (policy {rules.source}); the push is stopped")
    else:
        result.messages.append(f"{line.remote_ref}: evidence failed (policy {rules.source}); only a warning")


def _publish(session: Session, remote: str, left_s: float, result: Pushed) -> None:
    """Publish the ledger to the remote that is being pushed to; that it can't be does not stop the push."""
    if remote not in remote_names(session.repo):
        result.messages.append("pushed to a URL: the ledger is published with `git ledger sync REMOTE`")
        return
    if not any(session.ledger.local_only(remote).values()):
        return  # no connection is made for nothing: each may cost a touch of a key
    if left_s <= 0:
        result.messages.append("no time left to publish the ledger; `git ledger sync` publishes it")
        return
    try:
        done = sync_with(session, remote, timeout_s=left_s).published
    except LedgerError as error:
        result.messages.append(f"the ledger was not published: {error}")
        return
    if done is not None and done.lines:
        result.messages.append(f"published {done.lines} records to {remote}")
