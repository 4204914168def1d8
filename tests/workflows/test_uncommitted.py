"""What `plan` says of uncommitted edits: what `record` would call dirty, for the shards whose inputs it touches."""

from __future__ import annotations

import os

import pytest

from gitledger.store.edits import Edits
from gitledger.store.repository import open_repository
from gitledger.workflows.uncommitted import found_beside

LINT = """\
version: 1
repository: demo
shards:
  src: {paths: [src], command: "true", results: exit-status}
  all: {paths: ["*.py"], excluded_paths: [docs], command: "true", results: exit-status}
  unit: {paths: [tests/unit], command: pytest tests/unit}
"""
FILES = {"src/a.py": "a = 1\n", "docs/conf.py": "", "tests/unit/test_it.py": "def test_it():\n    pass\n"}


@pytest.fixture
def hints(make_project):
    """Return the project, and what its plan says: the paths by shard, and whether a record would be dirty."""
    project = make_project(LINT, FILES)

    def ask() -> tuple[dict[str, list[str]], bool]:
        found = project.ledger("plan", "--json").document["uncommitted"]
        record = project.record("src")["record"]
        return {item["name"]: item["paths"] for item in found}, project.receipt(record)["repo"]["dirty"]

    return project, ask


def test_without_edits_there_are_none(hints):
    _, ask = hints
    assert ask() == ({}, False)


def test_an_edit_is_named_to_the_shards_that_stand_on_it(hints):
    project, ask = hints
    project.repo.write("src/a.py", "a = 2\n")
    assert ask() == ({"src": ["src/a.py"], "all": ["src/a.py"]}, True)


def test_a_new_file_is_named_to_the_shards_whose_patterns_would_take_it(hints):
    project, ask = hints
    project.repo.write("tools/new.py", "")
    project.repo.write("docs/more.py", "")
    assert ask() == ({"all": ["tools/new.py"]}, True)


def test_a_new_conftest_above_the_tests_is_named(hints):
    project, ask = hints
    project.repo.write("tests/conftest.py", "")
    assert ask()[0]["unit"] == ["tests/conftest.py"]


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_flags_and_local_settings_hide_no_edit_from_it(hints, flag):
    project, ask = hints
    project.repo.git("update-index", flag, "src/a.py")
    project.repo.write("src/a.py", "a = 2\n")
    assert ask() == ({"src": ["src/a.py"], "all": ["src/a.py"]}, True)


def test_relaxed_stat_checks_hide_no_edit_from_it(hints):
    project, ask = hints
    target = project.path / "src/a.py"
    old = target.stat().st_mtime_ns - 10_000_000_000
    os.utime(target, ns=(old, old))
    project.repo.git("update-index", "--refresh")
    project.repo.git("config", "core.trustctime", "false")
    project.repo.git("config", "core.checkStat", "minimal")
    target.write_text("a = 2\n")
    os.utime(target, ns=(old, old))
    assert ask() == ({"src": ["src/a.py"], "all": ["src/a.py"]}, True)


def test_local_excludes_and_rules_that_hide_themselves_hide_no_file_from_it(hints):
    project, ask = hints
    (project.path / ".git/info").mkdir(exist_ok=True)
    (project.path / ".git/info/exclude").write_text("*.tmp\n")
    project.repo.write("src/x.tmp", "")
    project.repo.write("src/sub/.gitignore", "*\n!nothing\n")
    project.repo.write("src/sub/hidden.py", "")
    assert ask() == ({"src": ["src/sub/.gitignore", "src/x.tmp"]}, True)


def test_another_commit_than_the_one_checked_out_has_none(hints):
    project, _ = hints
    first = project.repo.git("rev-parse", "HEAD")
    project.repo.commit({"src/a.py": "a = 3\n"})
    project.repo.write("src/a.py", "a = 4\n")
    assert project.ledger("plan", first, "--json").document["uncommitted"] == []


def test_a_look_that_began_beside_another_commit_is_made_anew(hints):
    project, _ = hints
    repo = open_repository(project.path, env=project.repo.env)
    with Edits(repo.git) as edits:
        assert edits.survey().seen.head == repo.head()
    head = project.repo.commit({"README.md": "x\n"})
    project.repo.write("src/a.py", "a = 2\n")
    found = found_beside(repo, head, edits).seen
    assert (found.head, found.changed) == (head, ("src/a.py",))
