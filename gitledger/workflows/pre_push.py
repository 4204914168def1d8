"""The pre-push hook: judges what is pushed, and publishes the ledger in the same go (DESIGN section 10)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import field

from gitledger.dataclass import dataclass, replace
from gitledger.errors import ConfigError, LedgerError, UsageError
from gitledger.records.ids import CommitId
from gitledger.store.refs import INBOX_PREFIX
from gitledger.store.repository import Repository
from gitledger.store.ssh_sharing import one_connection
from gitledger.wording import counted
from gitledger.workflows.judge import Verified, verify
from gitledger.workflows.publish import sync_with
from gitledger.workflows.push_rules import Rules, known_remote, own_rules, rules_of_remote
from gitledger.workflows.run_hook import PushRun
from gitledger.workflows.session import Session
from gitledger.workflows.trusted import read_config
from gitledger.workflows.unpublished import unpublished_to

__all__ = ["MODES", "PushLine", "Pushed", "parse_push", "pre_push"]

MODES = ("block", "warn", "run", "off")
MODE_KEY = "gitledger.prePush"
_OURS = ("refs/notes/gitledger/", INBOX_PREFIX)
_MAYBE = frozenset({0, 1, 128})


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
    def branch(self) -> str | None:
        """The short name of the branch that it moves, None for a tag or anything else."""
        name = self.remote_ref.removeprefix("refs/heads/")
        return None if name == self.remote_ref else name

    @property
    def is_ours(self) -> bool:
        """Tell whether the ref is the ledger's own."""
        return self.remote_ref.startswith(_OURS)


def parse_push(text: str) -> tuple[PushLine, ...]:
    """Return the refs of a push from the hook's standard input; raises `UsageError` `bad-hook-input`."""
    lines = []
    for line in text.splitlines():
        words = line.rsplit(" ", 3)  # the first is what was typed, as `HEAD@{1 day ago}`
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


def pre_push(
    session: Session,
    remote: str,
    lines: Iterable[PushLine],
    *,
    url: str = "",
    clock: Callable[[], float] = time.monotonic,
    runs: PushRun | None = None,
    is_dry: bool = False,
) -> Pushed:
    """Return whether a push to `remote`, a name or a URL as it was typed, at `url` as git resolved it, may go on.

    Judged by the policy of the remote's default branch, and a branch that its own policy at the remote protects by
    that too; by that of the pushed commit only where the remote's can't be had, and as far as it blocks. Branches
    that policy protects are judged in `block` mode, the others in the mode of `git config gitledger.prePush`, else
    of the policy. In `run` mode what is stale is run first, by `runs`, and then judged in `block` mode. Deletions
    and a push of nothing but the ledger are let through, and so are those of our own sync: by what they push, and
    by no word of the environment, which whatever we start would hand on to pushes of its own. `is_dry`: git only
    says what it would push, and so nothing is published.
    """
    pushed = [line for line in lines if not line.is_delete and not line.is_ours]
    if not pushed:
        return Pushed()
    with one_connection(session.repo, url or remote) as repo:
        return _hooked(replace(session, repo=repo), (remote, url), pushed, clock, runs, is_dry=is_dry)


def _hooked(
    session: Session,
    given: tuple[str, str],
    pushed: Iterable[PushLine],
    clock: Callable[[], float],
    runs: PushRun | None,
    *,
    is_dry: bool,
) -> Pushed:
    """Judge and publish; whatever has to be asked of the remote goes over one connection, where that can be."""
    result, started = Pushed(), clock()
    remote, url = given
    known = known_remote(session.repo, remote, url)
    rules = _rules(session, remote, known)
    each = [(line, its) for line in pushed for its in _of_line(session, line, rules, known)]
    if rules.absent and any(its is rules for _, its in each):
        result.messages.append(rules.absent)
    for line, its in each:
        left_s = rules.hooks.timeout - (clock() - started)
        _judge_line(session, line, its, result, runs if rules.mode == "run" else None, left_s)
    left_s = rules.hooks.timeout - (clock() - started)
    if result.allowed and rules.mode != "off":
        _publish(session, known, 0.0 if rules.unknown else left_s, result, is_dry=is_dry)
    return result


def _rules(session: Session, remote: str, known: str | None) -> Rules:
    own = session.repo.config(MODE_KEY)
    if own is not None and own not in MODES:
        raise ConfigError(
            "bad-hook-mode",
            f"git config {MODE_KEY} is {own!a}, expected {', '.join(MODES)}",
            f"git config {MODE_KEY} warn",
        )
    return rules_of_remote(session.repo, remote, known, own)


def _of_line(session: Session, line: PushLine, rules: Rules, known: str | None) -> tuple[Rules, ...]:
    """Return the rules for one ref: those of the default branch, and of a branch that protects itself its own.

    Where nobody knows the remote's policy, `block` and `protect` of the commit that is pushed stand.
    """
    own = None if line.branch is None else own_rules(session.repo, known, line.branch, line.remote_oid)
    if own is not None and own.commit != rules.commit:
        judges = rules.commit is not None and (rules.mode != "off" or rules.protects(line.branch or ""))
        return (own, rules) if judges else (own,)
    if not rules.unknown:
        return (rules,)
    try:
        hooks = read_config(session.repo, session.repo.resolve(line.local_oid)).hooks
    except LedgerError:
        return (rules,)
    is_strict = session.repo.config(MODE_KEY) is None and hooks.pre_push in ("block", "run")
    return (replace(rules, hooks=hooks, mode="block" if is_strict else rules.mode),)


def _judge_line(
    session: Session, line: PushLine, rules: Rules, result: Pushed, runs: PushRun | None, left_s: float
) -> None:
    protected = line.branch is not None and rules.protects(line.branch)
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
        if rules.commit is not None and session.repo.config(MODE_KEY) is None:
            result.messages.append(f"{line.remote_ref}: not judged, since pre_push is off at {rules.source}")
        return
    commit = None
    try:
        commit = session.repo.resolve(line.local_oid)
        verdict = _verdict(session, commit, rules.commit, rules.source)
        if runs is not None and not verdict.verdict.passed:
            result.messages.append(runs.of(session, commit, policy_from=rules.commit, left_s=left_s))
            verdict = _verdict(session, commit, rules.commit, rules.source)
    except LedgerError as error:
        if commit is None and _is_no_commit(session.repo, line.local_oid):
            return
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


def _verdict(session: Session, commit: CommitId, trusted: CommitId, source: str) -> Verified:
    """Return the verdict by the policy of `trusted`, which its findings call as shortly as it can be typed."""
    found = verify(session, commit, policy_from=_typed(session.repo, trusted, source))
    if found.case.trusted.commit == trusted:
        return found
    return verify(session, commit, policy_from=trusted)  # a fetch has moved the name meanwhile


def _typed(repo: Repository, trusted: CommitId, source: str) -> str:
    """Return `source` where it names this very commit here, else twelve digits, else all of them."""
    for word in (source, trusted[:12]):
        with suppress(LedgerError):  # it means nothing here, or several things
            if repo.resolve(word) == trusted:
                return word
    return trusted


def _is_no_commit(repo: Repository, oid: str) -> bool:
    """Tell whether what is pushed is a tree or a blob, or a tag of one: there is nothing to judge.

    What can't be read here (it may lie where GIT_ALTERNATE_OBJECT_DIRECTORIES pointed the push) is no such thing.
    """
    peeled = repo.git.run("cat-file", "-t", f"{oid}^{{}}", statuses=_MAYBE)
    return peeled.text in ("tree", "blob")


def _publish(session: Session, remote: str | None, left_s: float, result: Pushed, *, is_dry: bool) -> None:
    """Publish the ledger to the remote that is being pushed to; that it can't be does not stop the push.

    Beside a push that `is_dry` nothing is published.
    """
    if remote is None:
        result.messages.append(
            "pushed to the URL of no remote: the ledger is published with `git ledger sync REMOTE`"
        )
        return
    if not any(unpublished_to(session, remote).values()):
        return  # no connection is made for nothing: each may cost a touch of a key
    if is_dry:
        result.messages.append("a dry run: the ledger is not published")
        return
    if left_s <= 0:
        result.messages.append("no time left to publish the ledger; `git ledger sync` publishes it")
        return
    try:
        done = sync_with(session, remote, timeout_s=left_s, push_first=True).published
    except LedgerError as error:
        result.messages.append(f"the ledger was not published: {error}")
        return
    if done is not None and done.lines:
        result.messages.append(f"published {counted(done.lines, 'record')} to {remote}")
