"""One remote, spoken to by git itself: what is fetched into tracking refs, what a push was answered.

Nothing here is ever forced: fetched refs land in the tracking namespace alone, whatever refspecs the user has
configured, and a push only moves refs forward, or deletes an inbox ref by its expected id.
"""

from __future__ import annotations

import enum
import errno
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import field

from gitledger.dataclass import dataclass
from gitledger.errors import StoreError, UsageError
from gitledger.records.ids import CommitId
from gitledger.store.git import Git, GitDone
from gitledger.store.refs import BODIES_REF, INBOX_PREFIX, RECORDS_REF, tracking_prefix
from gitledger.store.repository import Repository

__all__ = [
    "IN_PUSH_VARIABLE",
    "Answer",
    "Remote",
    "choose_remote",
    "not_published",
    "remote_names",
    "tracking_refspecs",
    "was_broken_off",
]

IN_PUSH_VARIABLE = "GITLEDGER_IN_PUSH"
"""Set for every git that we start here, so that hooks of the user's own can tell; ours believe no variable."""

_GUARD = {IN_PUSH_VARIABLE: "1"}
_FETCH = (
    *("fetch", "--quiet", "--atomic", "--prune", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
    # In a partial clone the notes would arrive without their blobs; and an empty refmap keeps configured refspecs,
    # which may force their way into refs/notes, out of this.
    *("--no-auto-maintenance", "--no-filter", "--refmap="),
)
_PUSH = ("push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no")
_SETTLED = frozenset({0, 128})
_ENDED = frozenset(range(-64, 256))
_REFUSALS = (
    r"(?i)declined|permission|denied|prohibited|not allowed|not permitted"
    r"|protected|forbidden|unauthori.ed|read.?only"
)
_QUOTED = "'[^']*'"
"""Words by which a server says no for good. Whatever else a per-ref `!` says is taken for a lost race, and tried
again a few times: servers spell that in too many ways to list.
"""
_NO_ATOMIC = b"does not support --atomic"


class Answer(enum.Enum):
    """What a push came to."""

    DONE = "done"
    LOST = "lost"
    """Somebody else was first, or the server could not update a ref just now."""
    REFUSED = "refused"
    """A hook or a permission says no."""
    FAILED = "failed"
    """No answer for any ref: authentication, network, no such repository."""


def tracking_refspecs(remote: str) -> tuple[str, ...]:
    """Return the refspecs that fetch a remote's ledger into its tracking refs, bodies first.

    They are patterns throughout, since a plain refspec of a ref that a remote lacks is fatal for the whole fetch;
    and two narrow ones for the notes, so that no remote can make two refs land in one place.
    """
    to = tracking_prefix(remote)
    notes = BODIES_REF.removesuffix("bodies")
    return (
        f"+{notes}bodie*:{to}bodie*",
        f"+{notes}record*:{to}record*",
        f"+{INBOX_PREFIX}*:{to}inbox/*",
    )


def remote_names(repository: Repository) -> tuple[str, ...]:
    """Return the names of the remotes that are configured, as `git remote` lists them: whatever is set of one.

    A name can't be empty, or begin with a slash.
    """
    keys = (key.split(".") for key in repository.settings)
    names = {".".join(parts[1:-1]) for parts in keys if parts[0] == "remote"}
    return tuple(sorted(name for name in names if name and not name.startswith("/")))


def choose_remote(repository: Repository, argument: str | None = None) -> str:
    """Return `argument`, else the remote of the branch that is checked out, else the only remote.

    Raises `UsageError` `no-remote` where that names none.
    """
    names = remote_names(repository)
    if argument is not None:
        if argument not in names:
            raise _no_remote(f"{argument!a} is no remote of this clone", names, argument)
        return argument
    branch = repository.branch()
    own = None if branch is None else repository.config(f"branch.{branch}.remote")
    if own in names:
        return own
    if len(names) != 1:
        what = "this clone has no remote" if not names else "no remote is given, and the branch has none"
        raise _no_remote(what, names)
    return names[0]


def _no_remote(what: str, names: Sequence[str], meant: str = "") -> UsageError:
    hint = f"git ledger sync {names[0]}" if names else "git remote add origin URL"
    if names and meant:
        from difflib import get_close_matches  # for errors alone

        near = get_close_matches(meant, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(names)}"
        return UsageError("no-remote", what, hint)
    known = f" (there is {', '.join(names)})" if names else ""
    return UsageError("no-remote", what + known, hint)


@dataclass(frozen=True, slots=True)
class Remote:
    """A configured remote, and the time that is left for talking to it.

    `deadline` is a `time.monotonic` second. Raises `StoreError` `git-timeout` where that has come.
    """

    git: Git
    name: str
    deadline: float
    atomic: list[bool] = field(default_factory=lambda: [True])
    """Whether the server is still believed to take several refs all or none; one server, one answer."""

    def fetch(self) -> GitDone:
        """Fetch the remote's ledger into the tracking refs, pruning only those; the history is never cut.

        Statuses 0 and 128 (nothing was said about any ref) are final, others (a ref was locked) may pass.
        """
        return self._run(*_FETCH, self.name, *tracking_refspecs(self.name))

    def push(self, refs: Mapping[str, CommitId]) -> tuple[Answer, GitDone]:
        """Move all of the remote's `refs` forward, or none; bodies first where the server can't do all or none."""
        specs = [
            f"{commit}:{name}" for name, commit in sorted(refs.items(), key=lambda ref: ref[0] == RECORDS_REF)
        ]
        if len(specs) == 1:
            return self._push(*specs)
        if self.atomic[0]:
            answer, done = self._push("--atomic", *specs)
            if answer is not Answer.FAILED or _NO_ATOMIC not in done.stderr:
                return answer, done
            self.atomic[0] = False
        for spec in specs[:-1]:
            answer, done = self._push(spec)
            if answer is not Answer.DONE:
                return answer, done
        return self._push(specs[-1])

    def delete(self, refs: Mapping[str, CommitId]) -> None:
        """Delete those of the remote's `refs` that still have the expected id; that others stay is no error."""
        leases = [f"--force-with-lease={name}:{commit}" for name, commit in refs.items()]
        self._push(*leases, *(f":{name}" for name in refs))

    def _push(self, *args: str) -> tuple[Answer, GitDone]:
        options = [arg for arg in args if arg.startswith("--")]
        specs = [arg for arg in args if not arg.startswith("--")]
        # A mirror remote would refuse refspecs.
        mirror = f"remote.{self.name}.mirror=false"
        done = self._run("-c", mirror, *_PUSH, *options, self.name, *specs)
        return _judge(done), done

    def _run(self, *args: str) -> GitDone:
        left_s = max(0.0, self.deadline - time.monotonic())
        return self.git.run(*args, statuses=_ENDED, timeout_s=left_s, env=_GUARD)


def _judge(done: GitDone) -> Answer:
    """Return the answer that `git push --porcelain` printed: one line a ref, `!` before those that stayed."""
    if done.status == 0:
        return Answer.DONE
    lines = done.stdout.decode("utf-8", "replace").split("\n")
    rejected = [line.split("\t", 2)[-1] for line in lines if line.startswith("!\t")]
    if not rejected:
        return Answer.FAILED
    refused = any(re.search(_REFUSALS, re.sub(_QUOTED, "", said)) for said in rejected)
    return Answer.REFUSED if refused else Answer.LOST


def was_broken_off(done: GitDone) -> bool:
    """Tell whether the connection broke in the middle, as an overloaded server breaks it: worth another try.

    A server that can't be found, refuses to connect, or wants to know who is asking is not asked again.
    """
    return any(os.strerror(number) in done.reason for number in (errno.ECONNRESET, errno.EPIPE))


def not_published(remote: str, why: str) -> StoreError:
    """Return the error of a ledger that could not be published; nothing is lost locally."""
    return StoreError(
        "publish-failed",
        f"the ledger could not be published to {remote}: {why}",
        f"git ledger sync {remote} (when it can be reached; everything is kept here)",
    )
