"""A look at the work tree that begins before the repository is known counts only where it was one at that repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gitledger.store import early_look, worktree
from gitledger.store.early_look import FACTS_WORDS, SETTINGS_WORDS, EarlyLook, look_early
from gitledger.store.repository import open_repository
from gitledger.store.worktree import Survey, survey


@pytest.fixture
def repo(git_repo, monkeypatch):
    """One repository, in whose top folder this process stands; an early look is taken however small it is."""
    git_repo.commit({"src/a.py": "a = 1\n", ".gitignore": "*.log\n"})
    for module in (early_look, worktree):
        monkeypatch.setattr(module, "LARGE_INDEX_BYTES", 0)
    monkeypatch.chdir(git_repo.path)
    return git_repo


def begun(repo) -> EarlyLook:
    found = look_early(repo.env)
    assert found is not None
    return found


def seen(repo, early: EarlyLook | None, *, at: Path | None = None) -> Survey:
    return survey(open_repository(at or repo.path, env=repo.env).git, early)


PLACES = {
    "a repository": (),
    "a work tree elsewhere": (("config", "core.worktree", "../src"),),
    "settings of the folder": (("config", "includeIf.gitdir:**/.git.path", "more"),),
    "a shallow clone": (("rev-parse", "HEAD"),),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_repository_that_was_asked_about_early_is_the_same(repo, place):
    (repo.path / ".git/more").write_text("[user]\n\tname = Of This Place\n")
    said = [repo.git(*words) for words in PLACES[place]]
    if place == "a shallow clone":
        (repo.path / ".git/shallow").write_text(f"{said[0]}\n")
    plain = open_repository(repo.path, env=repo.env)
    early = begun(repo)
    found = open_repository(repo.path, env=repo.env, early=early)
    for name in ("git_dir", "common_dir", "worktree", "object_format", "boundary", "settings"):
        assert getattr(found, name) == getattr(plain, name), name
    assert [early.answer(words, repo.path) for words in (FACTS_WORDS, SETTINGS_WORDS)] == [None, None], (
        "it was heard"
    )
    early.abandon()


def test_what_was_asked_of_one_folder_says_nothing_of_another(repo, make_repo):
    other = make_repo("other")
    other.commit({"b.py": "b = 1\n"})
    early = begun(repo)
    assert open_repository(other.path, env=repo.env, early=early).worktree == other.path
    assert early.answer(FACTS_WORDS, repo.path / "src") is None
    assert early.answer(("rev-parse",), repo.path) is None
    early.abandon()


def test_where_git_fails_early_it_is_asked_anew(repo):
    config = repo.path / ".git/config"
    sound = config.read_text()
    config.write_text("[broken\n")
    early = begun(repo)
    for answer in early._others.values():
        os.waitid(os.P_PID, answer._child, os.WEXITED | os.WNOWAIT)
    config.write_text(sound)
    assert open_repository(repo.path, env=repo.env, early=early).worktree == repo.path
    early.abandon()


def test_it_says_what_git_says(repo):
    repo.write("src/a.py", "a = 2\n")
    repo.write("new.py", "")
    early = begun(repo)
    assert b"src/a.py" in (early.said() or b"")
    assert early.said() is None, "once"
    assert seen(repo, begun(repo)) == seen(repo, None)


def test_what_was_edited_after_it_began_waits_for_the_next_look(repo, monkeypatch):
    """So it does with any look; what this holds is that it is the early one that is believed."""
    early = begun(repo)
    os.waitid(os.P_PID, early._child, os.WEXITED | os.WNOWAIT)
    repo.write("new.py", "")
    assert seen(repo, early).seen.untracked == ()
    assert seen(repo, None).seen.untracked == ("new.py",)


def test_an_index_that_was_written_since_it_began_makes_it_void(repo):
    early = begun(repo)
    os.waitid(os.P_PID, early._child, os.WEXITED | os.WNOWAIT)
    repo.write("src/a.py", "a = 2\n")
    time.sleep(0.01)
    repo.git("add", "src/a.py")
    assert seen(repo, early).seen.changed == ("src/a.py",)


def test_a_look_at_another_repository_counts_for_nothing(repo, make_repo):
    other = make_repo("other")
    other.commit({"b.py": "b = 1\n"})
    repo.write("src/a.py", "a = 2\n")
    early = begun(repo)
    assert early.is_at(repo.path / ".git", repo.path)
    assert not early.is_at(other.path / ".git", other.path)
    assert not early.is_at(other.path / ".git", repo.path)
    found = seen(other, early)
    assert (found.root, found.seen.changed) == (other.path, ())


def test_a_look_at_another_work_tree_of_the_repository_counts_for_nothing(repo):
    repo.git("worktree", "add", "-q", "../linked")
    repo.write("src/a.py", "a = 2\n")
    assert seen(repo, begun(repo), at=repo.path.parent / "linked").seen.changed == ()


def test_where_the_work_tree_lies_elsewhere_it_counts_for_nothing(repo, tmp_path):
    """git itself obeys `core.worktree`; which folder was meant is for whoever opens the repository to say."""
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(repo.path / "src", elsewhere / "src")
    shutil.copy(repo.path / ".gitignore", elsewhere)
    repo.git("config", "core.worktree", str(elsewhere))
    early = begun(repo)
    assert not early.is_at(repo.path / ".git", elsewhere)
    assert seen(repo, early).root == elsewhere


def test_rules_of_the_clone_alone_hide_nothing_from_it(repo):
    repo.write(".git/info/exclude", "hidden.py\n")
    repo.write("hidden.py", "")
    early = begun(repo)
    assert seen(repo, early).seen.untracked == ("hidden.py",)
    assert early.said() is None, "it was told to end"


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"])
def test_with_a_variable_that_points_elsewhere_none_begins(repo, name):
    assert look_early(repo.env | {name: "x"}) is None


def test_where_it_is_not_plain_which_repository_is_meant_none_begins(repo, monkeypatch, tmp_path):
    monkeypatch.chdir(repo.path / "src")
    assert look_early(repo.env) is None
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    monkeypatch.chdir(tmp_path / "linked")
    assert look_early(repo.env) is None


def test_a_small_repository_is_not_worth_it(repo, monkeypatch):
    monkeypatch.setattr(early_look, "LARGE_INDEX_BYTES", 1 << 19)
    assert look_early(repo.env) is None


def test_a_git_that_fails_is_asked_again(repo):
    config = repo.path / ".git/config"
    sound = config.read_text()
    time.sleep(1.1)
    repo.git("read-tree", "HEAD")
    repo.git("update-index", "--refresh")  # no file is of the index's last second: one comparison will do
    repo.write("new.py", "")
    config.write_text("[broken\n")
    early = begun(repo)
    os.waitid(os.P_PID, early._child, os.WEXITED | os.WNOWAIT)
    config.write_text(sound)
    assert seen(repo, early).seen.untracked == ("new.py",)


def test_where_a_standard_stream_is_closed_none_begins(repo):
    code = "import os; from gitledger.store import early_look as e; e.LARGE_INDEX_BYTES = 0; os.close(1); os._exit(e.look_early(os.environ) is not None)"
    done = subprocess.run([sys.executable, "-c", code], cwd=repo.path, env=repo.env, timeout=60, check=False)
    assert done.returncode == 0


def test_a_git_that_says_nothing_has_not_looked(repo, monkeypatch, tmp_path):
    silent = tmp_path / "bin" / "git"
    silent.parent.mkdir()
    silent.write_text("#!/bin/sh\n")
    silent.chmod(0o755)
    monkeypatch.setenv("PATH", str(silent.parent))
    assert begun(repo).said() is None


def test_without_git_none_begins(repo, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert look_early(repo.env) is None


def test_one_that_nobody_wants_leaves_no_process(repo):
    early = begun(repo)
    child = early._child
    early.abandon()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    early.abandon()
