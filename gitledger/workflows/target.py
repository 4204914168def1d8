"""Which commit a command speaks of."""

from __future__ import annotations

import shlex

from gitledger.config.schema import CONFIG_PATH
from gitledger.errors import UsageError
from gitledger.records.ids import CommitId
from gitledger.store.repository import Repository
from gitledger.workflows.session import Session

__all__ = ["head_of", "no_commit", "no_work_tree", "target_of"]


def target_of(session: Session, revision: str) -> CommitId:
    """Return the commit that a person means; raises `UsageError`, `no-commit` for HEAD before the first one."""
    if revision == "HEAD":
        head = head_of(session)
        if session.repo.objects.read_parents(head) is not None:  # readable: git need not be asked
            return head
    return session.repo.resolve(revision)


def head_of(session: Session) -> CommitId:
    """Return the commit that is checked out; raises `UsageError` `no-commit` before the first one."""
    head = session.repo.head()
    if head is None:
        raise no_commit(session.repo)
    return head


def no_commit(repo: Repository) -> UsageError:
    """Return the error of a repository without a commit; its way out works as typed, also with nothing added."""
    if repo.worktree is None:
        way = "commit in a clone, and push that"
    elif (repo.worktree / CONFIG_PATH).exists():
        way = "git add :/.gitledger && git commit"
    else:
        way = "git ledger init && git add :/.gitledger && git commit"
    return UsageError("no-commit", "this repository has no commits, and a receipt speaks of one", way)


def no_work_tree(repo: Repository, why: str) -> UsageError:
    """Return the error of what needs files where none are checked out: in a bare repository, or inside `.git`."""
    if _is_bare(repo):
        return UsageError("no-work-tree", f"{repo.git_dir} is bare: {why}", "run it in a clone")
    way = (
        f"cd {shlex.quote(str(repo.git_dir.parent))}" if repo.git_dir.name == ".git" else "run it in the work tree"
    )
    return UsageError("no-work-tree", f"this is the .git folder, and no work tree: {why}", way)


def _is_bare(repo: Repository) -> bool:
    """Tell a bare repository from the `.git` folder of a work tree, whose configuration says `false`."""
    return repo.config("core.bare") != "false"
