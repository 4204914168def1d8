"""What a clone has at hand for the next step: the programs that shards start, and a hook that publishes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gitledger.config.schema import Config
from gitledger.machine.missing import missing_command, to_obtain
from gitledger.records.ids import ShardKey
from gitledger.store.repository import Repository
from gitledger.workflows.hook_files import is_installed
from gitledger.workflows.session import Session

__all__ = ["absent_commands", "pushes_the_ledger"]


def absent_commands(session: Session, config: Config, keys: Iterable[ShardKey]) -> dict[str, tuple[str, str]]:
    """Return, by shard, the program of its declared command that can't be started here, and how it comes."""
    root, found = session.repo.worktree or Path(), {}
    for key in keys:
        command = config.shard(key).command
        if command and missing_command(command[0], root, session.environ) is not None:
            found[str(key)] = (command[0], to_obtain(command[0]))
    return found


def pushes_the_ledger(repo: Repository) -> str:
    """Return the remote that plain `git push` publishes to; "" without commits to push, or a hook of ours."""
    branch = repo.branch()
    if branch is None or repo.config("gitledger.prePush") == "off" or not is_installed(repo):
        return ""
    ahead = repo.git.run("rev-list", "--count", "@{push}..HEAD", statuses=frozenset({0, 128}))
    place = repo.git.run("rev-parse", "--abbrev-ref", "@{push}", statuses=frozenset({0, 128}))
    if ahead.status or place.status or ahead.text == "0":
        return ""
    return (
        repo.config(f"branch.{branch}.pushRemote")
        or repo.config("remote.pushDefault")
        or (repo.config(f"branch.{branch}.remote") or "")
    )
