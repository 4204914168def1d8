"""The branch whose policy a gate applies, as the remote has it at this moment."""

from __future__ import annotations

from gitledger.dataclass import dataclass
from gitledger.errors import StoreError, UsageError
from gitledger.records.ids import CommitId
from gitledger.store.repository import Repository
from gitledger.store.sync import NETWORK_TIMEOUT_S
from gitledger.wording import shell_word
from gitledger.workflows.no_default_branch import no_default_of

__all__ = ["Target", "find_target"]

_ENDED = frozenset(range(-64, 256))
_FETCH = (
    *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
    *("--no-auto-maintenance", "--refmap="),
)
_HINT = "name a ref of this clone: git ledger gate --policy-from REF"


@dataclass(frozen=True, slots=True)
class Target:
    """Where policy comes from: a name to print, and the one commit that it was resolved to."""

    source: str
    commit: CommitId


def find_target(
    repo: Repository, remote: str, branch: str | None, *, timeout_s: float = NETWORK_TIMEOUT_S
) -> Target:
    """Return the remote's branch of that name, else its default branch; its commit is here afterwards.

    The remote is asked, not the clone: a runner's clone may lack the branch, and a policy that was tightened since
    must hold. Raises `UsageError` `no-target` where the remote has no such branch, and `StoreError` `fetch-failed`
    or `git-timeout` where it can't be asked.
    """
    listed = _ask(repo, remote, branch, timeout_s)
    if branch is None:
        branch = listed.default
    commit = listed.heads.get(branch or "")
    if branch is None or commit is None:
        raise _no_target(repo, remote, branch, listed)
    name = f"refs/remotes/{remote}/{branch}"
    if repo.objects.read_ref(name) != commit or repo.objects.read_commit(commit) is None:
        done = repo.git.run(*_FETCH, remote, f"+refs/heads/{branch}:{name}", statuses=_ENDED, timeout_s=timeout_s)
        if done.status:
            raise done.failure("fetch-failed", f"check that {remote} can be reached: git ls-remote {remote}")
        commit = repo.objects.read_ref(name) or commit
    if repo.objects.read_commit(commit) is None:
        raise StoreError("fetch-failed", f"{remote} did not send {branch}", f"git fetch {remote} {branch}")
    return Target(source=f"{remote}/{branch}", commit=commit)


def _no_target(repo: Repository, remote: str, branch: str | None, listed: _Listed) -> UsageError:
    if branch is None and not listed.heads:
        return UsageError("no-target", f"{remote} has no branch yet, so there is no policy to apply", _HINT)
    if branch is None or branch == listed.default:
        found = no_default_of(repo, remote, listed.heads)
        ref = shell_word(f"{remote}/{found.likely}")
        fetched = repo.objects.read_ref(f"refs/remotes/{remote}/{found.likely}") is not None
        fetch = "" if fetched else f"git fetch {shell_word(remote)} && "
        what = f"{found.cause}. So there is no policy to apply; {found.mend}"
        return UsageError("no-target", what, f"{fetch}git ledger gate --policy-from {ref}")
    return UsageError("no-target", f"{remote} has no branch {branch!a}, so there is no policy to apply", _HINT)


@dataclass(frozen=True, slots=True)
class _Listed:
    default: str | None
    heads: dict[str, CommitId]


def _ask(repo: Repository, remote: str, branch: str | None, timeout_s: float) -> _Listed:
    """Return what the remote says: its default branch, and what it and `branch` stand at."""
    wanted = f"refs/heads/{'*' if branch is None else branch}"
    if branch is not None and repo.git.run("check-ref-format", wanted, statuses=_ENDED).status:
        raise UsageError("no-target", f"{branch!a} is no name of a branch", _HINT)
    done = repo.git.run("ls-remote", "--symref", remote, "HEAD", wanted, statuses=_ENDED, timeout_s=timeout_s)
    if done.status:
        raise done.failure("fetch-failed", f"check that {remote} can be reached: git ls-remote {remote}")
    default, heads = None, {}
    for line in done.text.splitlines():
        value, _, name = line.partition("\t")
        if name == "HEAD" and value.startswith("ref: refs/heads/"):
            default = value.removeprefix("ref: refs/heads/")
        elif name.startswith("refs/heads/"):
            heads[name.removeprefix("refs/heads/")] = CommitId(value)
    return _Listed(default, heads)
