"""Whether HEAD was elsewhere, asked of the log that git keeps of it."""

from __future__ import annotations

import pytest

from gitledger.store.head_log import head_log, was_elsewhere


@pytest.fixture
def repo(git_repo):
    git_repo.commit({"a": "1"})
    git_repo.commit({"a": "2"})
    return git_repo


BACK = {
    "another-commit": ["checkout -q HEAD~1", "checkout -q main"],
    "a-commit-that-was-taken-back": ["commit -q --allow-empty -m x", "reset -q --hard HEAD~1"],
    "amended": ["commit -q --amend -m x", "reset -q --hard HEAD@{1}"],
}
STAYS = {
    "another-branch-of-it": ["checkout -q -b side", "checkout -q main"],
    "stashed": ["stash -q", "stash pop -q"],
    "other-refs": ["branch side HEAD~1", "tag t", "update-ref refs/notes/x HEAD"],
    "nothing": [],
}


@pytest.mark.parametrize("steps", [*BACK, *STAYS])
def test_head_was_elsewhere_where_its_log_names_another_commit(repo, steps):
    repo.write("a", "edited" if steps == "stashed" else "2")
    git_dir, head = repo.path / ".git", repo.git("rev-parse", "HEAD")
    since = head_log(git_dir)
    for step in {**BACK, **STAYS}[steps]:
        repo.git(*step.split())
    assert repo.git("rev-parse", "HEAD") == head
    assert was_elsewhere(git_dir, since) == (steps in BACK)


def test_a_linked_work_tree_has_a_head_of_its_own(repo, tmp_path):
    repo.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    own = repo.path / ".git/worktrees/linked"
    mine, theirs = head_log(repo.path / ".git"), head_log(own)
    repo.git("-C", str(tmp_path / "linked"), "checkout", "-q", "HEAD~1")
    assert was_elsewhere(own, theirs)
    assert not was_elsewhere(repo.path / ".git", mine)


def test_without_a_log_or_with_one_that_was_written_anew_nobody_knows(repo):
    git_dir = repo.path / ".git"
    since = head_log(git_dir)
    repo.git("checkout", "-q", "HEAD~1")
    repo.git("checkout", "-q", "main")
    repo.git("reflog", "expire", "--expire=all", "HEAD")
    assert not was_elsewhere(git_dir, since)
    (git_dir / "logs/HEAD").unlink()
    assert head_log(git_dir) is None
    assert not was_elsewhere(git_dir, None)
    assert not was_elsewhere(git_dir, since)
