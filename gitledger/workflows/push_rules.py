"""Whose policy a push is judged by: that of the remote's default branch, and of a protected branch its own.

A remote is known by its name or by any of its URLs. One that this clone has never fetched from is asked, within
the time of a hook; nothing of it is kept but the objects, which git drops again in time.
"""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable

from gitledger.config.schema import HooksConfig
from gitledger.dataclass import dataclass, replace
from gitledger.errors import ConfigError, LedgerError, StoreError
from gitledger.records.ids import CommitId
from gitledger.report.text import escaped
from gitledger.store.remote import remote_names
from gitledger.store.repository import Repository
from gitledger.wording import shell_word
from gitledger.workflows.no_default_branch import no_default_of
from gitledger.workflows.trusted import read_config

__all__ = ["Rules", "known_remote", "own_rules", "rules_of_remote"]

_ASK_S = 10.0
"""How long a remote may take to name its default branch."""
_MAX_TOLD = 800
"""Characters of what is said of a remote's branches: anybody may name one."""
_FETCH = (
    *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
    *("--no-auto-maintenance", "--refmap="),
)
_HEADS = "refs/heads/"
_MAYBE = frozenset({0, 1, 128})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Where policy comes from and what the hook does: `commit` None before there is a configuration.

    `source` names the branch. `unknown` says why nobody can tell what policy is, which is not the same as that
    there is none; `absent` says that there is none.
    """

    hooks: HooksConfig
    mode: str
    commit: CommitId | None
    source: str
    unknown: str = ""
    absent: str = ""

    def protects(self, branch: str) -> bool:
        """Tell whether a branch of that name is protected."""
        return any(fnmatch.fnmatchcase(branch, pattern) for pattern in self.hooks.protect)


def known_remote(repo: Repository, remote: str, url: str) -> str | None:
    """Return the name of the remote that is pushed to, given by name or by any URL that git resolves for one."""
    names = remote_names(repo)
    if remote in names:
        return remote
    wanted = {_place(repo, text) for text in (remote, url) if text}
    for name in names:
        for args in (("--all",), ("--push", "--all")):
            done = repo.git.run("remote", "get-url", *args, name, statuses=frozenset({0, 2, 128}))
            if wanted & {_place(repo, text) for text in done.text.splitlines()}:
                return name
    return None


def _place(repo: Repository, url: str) -> str:
    """Return one spelling of a URL: paths of this machine resolved, no slash at the end."""
    path = (repo.worktree or repo.git_dir) / url.removeprefix("file://")
    return str(path.resolve()) if path.exists() else url.rstrip("/")


def rules_of_remote(
    repo: Repository,
    remote: str,
    known: str | None,
    own: str | None,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Rules:
    """Return the rules of the remote's default branch.

    `known` is what `known_remote` returns for it; `own` is the mode that this clone's owner has set.
    """
    name = known or remote
    none = Rules(hooks=HooksConfig(), mode=own or "warn", commit=None, source=name)
    try:
        commit, source = _default_branch(repo, name, is_named=known is not None, clock=clock)
    except StoreError as error:
        return replace(none, unknown=error.message)
    none = replace(none, source=source)
    if commit is None:
        try:
            return replace(none, absent=_without_default(repo, name, known))
        except StoreError as error:
            return replace(none, unknown=error.message)
    try:
        hooks = read_config(repo, commit).hooks
    except ConfigError as error:
        if error.code != "no-config":
            raise
        return replace(none, absent=f"no configuration at {source} yet: this push is not judged")
    return Rules(hooks=hooks, mode=own or hooks.pre_push, commit=commit, source=source)


def _without_default(repo: Repository, name: str, known: str | None) -> str:
    """Return why nothing at the remote judges this push, and what helps: most often it is the very first one.

    Raises `StoreError` where the remote does not answer.
    """
    asked = repo.git.run("ls-remote", "--", name, f"{_HEADS}*", timeout_s=_ASK_S)
    branches = [line.partition("\t")[2].removeprefix(_HEADS) for line in asked.text.splitlines()]
    if not branches:
        return (
            f"{name} has no branch yet: this is the first push to it, and nothing there says by what policy to "
            "judge, so it is not judged. Later pushes are, by the policy of the branch that is the default there. "
            "What your evidence is worth by your own policy, `git ledger verify` says"
        )
    found = no_default_of(repo, name, branches)
    text = f"{found.cause}. So this push is not judged; {found.mend}"
    if known is None:
        return escaped(text, _MAX_TOLD)
    likely = found.likely
    is_here = repo.objects.read_ref(f"refs/remotes/{known}/{likely}") is not None
    fetch = "" if is_here else f"git fetch {shell_word(known)} && "
    local = f"{fetch}git remote set-head {shell_word(known)} {shell_word(likely)}"
    return escaped(f"{text}. In this clone alone, to judge by the policy of {likely}: {local}", _MAX_TOLD)


def own_rules(repo: Repository, remote: str | None, branch: str, at_remote: str) -> Rules | None:
    """Return the rules of a branch that its own policy, as it stands at the remote, protects; else None.

    What this clone takes for the remote's default branch is a local setting (`git remote set-head`), which must
    not open a protected branch. `at_remote` is the commit that the remote told git, which may not be here; then
    what was last fetched of it counts.
    """
    tracked = None if remote is None else repo.objects.read_ref(f"refs/remotes/{remote}/{branch}")
    here = CommitId(at_remote) if repo.objects.object_kind(at_remote) == "commit" else tracked
    if here is None:
        return None
    try:
        hooks = read_config(repo, here).hooks
    except LedgerError:
        return None
    rules = Rules(hooks=hooks, mode="block", commit=here, source=f"{remote or 'the remote'}/{branch}")
    return rules if rules.protects(branch) else None


def _default_branch(
    repo: Repository, remote: str, *, is_named: bool, clock: Callable[[], float]
) -> tuple[CommitId | None, str]:
    """Return the commit of the remote's default branch, and the name it goes by.

    As this clone knows it by its tracking refs, else as the remote says, bounded in time; None where the remote
    has none. Raises `StoreError` where it does not answer.
    """
    if is_named:
        head = f"refs/remotes/{remote}/HEAD"
        found = repo.objects.read_ref(head)
        if found is not None:
            target = repo.git.run("symbolic-ref", "-q", head, statuses=_MAYBE).text.strip()
            return found, target.removeprefix("refs/remotes/") or f"{remote}/HEAD"
    deadline = clock() + HooksConfig().timeout
    done = repo.git.run("ls-remote", "--symref", "--", remote, "HEAD", timeout_s=_ASK_S)
    branch, commit = None, None
    for line in done.text.splitlines():
        value, _, name = line.partition("\t")
        if name == "HEAD" and value.startswith(f"ref: {_HEADS}"):
            branch = value.removeprefix(f"ref: {_HEADS}")
        elif name == "HEAD":
            commit = CommitId(value)
    if branch is None or commit is None:
        return None, remote
    if repo.objects.read_commit(commit) is None:
        left_s = max(0.0, deadline - clock())
        repo.git.run(*_FETCH, "--", remote, f"{_HEADS}{branch}", timeout_s=left_s)
    return commit, f"{remote}/{branch}"
