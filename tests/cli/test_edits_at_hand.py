"""Edits that are not committed, and runs that failed: what is said of them, and what comes next."""

from __future__ import annotations

import subprocess

import pytest

CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: "true", results: exit-status}
"""
EDITED = "the configuration is edited and not committed; it counts once it is: git commit :/.gitledger/config.yaml"
MORE = CONFIG + '  more: {paths: [src], command: "true", results: exit-status}\n'
COMMANDS = (["plan"], ["run"], ["record", "--shard", "lint"], ["status"], ["verify"])


def test_run_says_of_uncommitted_edits_what_plan_says_where_nothing_is_stale(make_project):
    """It runs what is committed, and somebody who has just edited would take its yes for one of the edit."""
    project = make_project(CONFIG, {"src/a": "1"})
    assert "uncommitted" not in project.ledger("run").err
    project.repo.write("src/a", "2")
    line = "uncommitted edits would make lint stale: src/a"
    assert line in project.ledger("plan", "--exit-code").out
    assert line in project.ledger("run").err
    assert line in project.ledger("run", "--json").err


def test_plan_and_status_and_run_say_what_lets_leavings_of_tests_be(make_project):
    project = make_project(CONFIG, {"src/a": "1"})
    project.record("lint")
    project.repo.write("src/__pycache__/a.pyc", "")
    advice = "tests leave these behind: add `__pycache__/` to .gitignore and commit that"
    for args in (["plan"], ["status"], ["run"]):
        done = project.ledger(*args)
        assert advice in done.out + done.err, args
    project.repo.write("src/a", "2")
    project.repo.commit({".gitignore": "__pycache__/\n"})
    assert "tests leave" not in project.ledger("plan").out


@pytest.mark.parametrize("staged", [False, True])
def test_an_edited_configuration_is_said_once_not_to_count_yet(make_project, staged):
    project = make_project(CONFIG, {"src/a": "1"})
    project.record("lint")
    for args in COMMANDS:
        assert "the configuration is edited" not in project.ledger(*args).err, args
    project.repo.write(".gitledger/config.yaml", MORE)
    if staged:
        project.repo.git("add", ".gitledger")
    for args in COMMANDS:
        assert project.ledger(*args, expect=None).err.count(EDITED) == 1, args
    project.repo.commit()
    for args in COMMANDS:
        assert "the configuration is edited" not in project.ledger(*args, expect=None).err, args
    project.repo.write(".gitledger/config.yaml", CONFIG)
    assert "the configuration is edited" not in project.ledger("plan", "HEAD~1").err


def test_a_run_that_an_edited_configuration_makes_dirty_says_why(make_project):
    project = make_project(CONFIG, {"src/a": "1"})
    project.repo.write(".gitledger/config.yaml", MORE)
    said = project.ledger("run", expect=2).err
    assert said.count(EDITED) == 1
    assert "[dirty-start]" in said


@pytest.mark.parametrize("args", [["record", "--shard", "more"], ["run", "more"]])
def test_a_shard_that_is_declared_and_not_committed_is_to_be_committed(make_project, args):
    project = make_project(CONFIG, {"src/a": "1"})
    project.repo.write(".gitledger/config.yaml", MORE)
    said = project.ledger(*args, expect=2).err
    assert "no shard 'more' is declared [unknown-shard]; try: git commit :/.gitledger/config.yaml  # " in said
    assert said.count("\n") == 1
    said = project.ledger(*args[:-1], "lints", expect=2).err
    assert "did you mean lint?" in said, "the commit would not mend this one"


@pytest.mark.parametrize("args", COMMANDS)
def test_a_configuration_that_is_broken_in_the_commit_and_mended_beside_it_is_to_be_committed(make_project, args):
    project = make_project(CONFIG.replace("[src]", "7"), {"src/a": "1"})
    said = project.ledger(*args, expect=2).err
    assert "[config-value]; try: mend .gitledger/config.yaml\n" in said
    project.repo.write(".gitledger/config.yaml", CONFIG)
    said = project.ledger(*args, expect=2).err
    assert "[config-value]; try: git commit :/.gitledger/config.yaml  # " in said
    assert said.count("\n") == 1


def test_a_configuration_that_is_broken_beside_the_commit_is_said_to_be(make_project):
    project = make_project(CONFIG, {"src/a": "1"})
    project.record("lint")
    project.repo.write(".gitledger/config.yaml", "version: [\n")
    said = project.ledger("plan").err
    assert "the configuration is edited and not committed, and broken: .gitledger/config.yaml:" in said
    assert "[config-syntax]; try: mend .gitledger/config.yaml" in said


@pytest.mark.parametrize("staged", [False, True])
def test_a_deleted_configuration_is_said_once_to_count_still_and_comes_back_by_what_is_said(make_project, staged):
    """In the words for an edited one; what HEAD says counts until the deletion is committed."""
    project = make_project(CONFIG, {"src/a": "1"})
    project.record("lint")
    project.repo.git("rm", "-q", *([] if staged else ["--cached"]), ".gitledger/config.yaml")
    if not staged:
        project.repo.git("reset", "-q")
        (project.path / ".gitledger/config.yaml").unlink()
    deleted = "the configuration is deleted and not committed; HEAD's counts until that is: "
    back = "git checkout HEAD -- :/.gitledger/config.yaml"
    for args in COMMANDS:
        assert project.ledger(*args, expect=None).err.count(deleted + back) == 1, args
    (project.path / "src/deep").mkdir(parents=True)
    subprocess.run(back, shell=True, cwd=project.path / "src/deep", env=dict(project.repo.env), check=True)
    for args in COMMANDS:
        assert "configuration is" not in project.ledger(*args).err, args


def test_a_configuration_beyond_a_sparse_checkout_is_not_deleted(make_project):
    project = make_project(CONFIG, {"src/a": "1"})
    project.record("lint")
    project.repo.git("sparse-checkout", "set", "--no-cone", "/src/")
    assert not (project.path / ".gitledger").exists()
    assert "configuration is" not in project.ledger("plan").err


def test_line_ends_that_git_turns_are_no_edit_of_the_configuration(make_project):
    project = make_project(CONFIG, {"src/a": "1"})
    project.record("lint")
    project.repo.git("config", "core.autocrlf", "true")
    project.repo.write(".gitledger/config.yaml", CONFIG.replace("\n", "\r\n"))
    assert "the configuration is edited" not in project.ledger("plan").err


def test_after_a_failed_test_comes_a_look_at_it_and_not_the_same_run_again(make_project):
    """The same run would fail again; `explain not-green` sends to the test as well."""
    project = make_project(
        "version: 1\nrepository: demo\nshards:\n  add: {paths: [tests], command: pytest tests}\n",
        {"tests/test_add.py": "def test_sum():\n    assert 1 + 1 == 3\n", ".gitignore": "__pycache__/\n"},
    )
    record = project.record("add", "--", "pytest", "-q", "tests", expect=1)["record"]
    look = f"git ledger show --tests --failed {record[:12]}"
    mend = f"{look}  # mend what failed, then git ledger record --shard add"
    assert f"; try: {mend}\n" in project.ledger("verify", expect=1).out
    assert f"next: {mend}\n" in project.ledger("status").out
    assert "test_sum" in project.ledger(*look.split()[2:]).out
    project.repo.commit({"README": "no input of it"}, "more")
    assert f"; try: {mend}\n" in project.ledger("verify", expect=1).out, "it stands against a later commit too"
    assert "test_sum" in project.ledger(*look.split()[2:]).out


def test_a_run_that_no_test_of_failed_is_to_be_made_again(make_project):
    project = make_project(CONFIG.replace("exit-status", "{junit: none.xml}"), {"src/a": "1"})
    project.ledger("record", "--shard", "lint", expect=None)
    assert "next: git ledger record --shard lint\n" in project.ledger("status").out


def test_status_says_that_nothing_is_to_be_done_once_the_evidence_passes(make_project):
    project = make_project(CONFIG, {"src/a": "1"})
    project.record("lint")
    assert "next: nothing, the evidence passes\n" in project.ledger("status").out
