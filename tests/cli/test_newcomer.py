"""The stumbles of somebody who has read only the README: each is said before, or with what mends it."""

from __future__ import annotations

import pytest

CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: "true", results: exit-status}
"""


@pytest.fixture
def beginner(make_project):
    """A project with a virtual environment that nobody ignores, as `python -m venv` makes it before Python 3.13."""
    project = make_project(CONFIG, {"src/a": "1"})
    project.repo.write(".venv/bin/activate", "")
    return project


def test_init_names_what_would_make_every_run_dirty(beginner):
    said = beginner.ledger("init", "--ci", "github").err
    assert "dirty: .venv/: runs beside them count for nothing; commit them, or let .gitignore name them" in said
    assert ".github" not in said.partition("dirty: ")[2].partition("\n")[0], "ours is to be committed anyway"
    beginner.repo.write(".gitignore", ".venv/\n")
    assert "dirty: .gitignore:" in beginner.ledger("init").err
    beginner.repo.commit()
    assert "dirty" not in beginner.ledger("init").err


def test_a_dirty_run_says_what_mends_it_wherever_it_is_looked_at(beginner):
    """Recording it again would not: `git ledger record` alone was a circle."""
    said = beginner.ledger("record", "--shard", "lint").err
    assert "dirty: .venv/bin/activate; commit them, or let .gitignore name them" in said
    mend = "commit them, or let .gitignore name them; then git ledger record --shard lint"
    assert mend in beginner.ledger("verify", expect=1).out
    assert (
        "next: .venv/: commit them, or let .gitignore name them; then git ledger run"
        in beginner.ledger("status").out
    )
    beginner.repo.commit({".gitignore": ".venv/\n"})
    assert "next: git ledger record --shard lint" in beginner.ledger("status").out
    beginner.ledger("record", "--shard", "lint")
    assert "next: git ledger verify" in beginner.ledger("status").out


def test_status_says_run_where_several_shards_are_stale(project):
    assert "next: git ledger run (2 shards)" in project.ledger("status").out


def test_a_shard_that_is_named_without_its_option_is_understood_and_the_question_has_an_answer(project):
    named = project.ledger("record", "beta", expect=2).err
    assert "named by --shard, not by 'beta' alone [usage]; try: git ledger record --shard beta" in named
    assert (
        "what is to be recorded? [usage]; try: git ledger record --shard alpha"
        in project.ledger("record", expect=2).err
    )
    assert "try: git ledger record --shard alpha" in project.ledger("record", "nonsuch", expect=2).err


def test_a_clone_without_the_ledger_says_how_it_gets_there(project, tmp_path):
    """There nothing seems to be recorded, which is not so."""
    project.record("alpha")
    project.record("beta")
    project.repo.git("clone", "-q", ".", str(tmp_path / "clone"))
    clone = ("-C", str(tmp_path / "clone"))
    sentence = "this clone has no ledger; `git ledger sync --fetch-only origin` brings that of origin"
    for args, status in ((("verify",), 1), (("plan",), 0), (("status",), 0), (("log",), 0)):
        assert sentence in project.ledger(*clone, *args, expect=status).err, args
    project.ledger(*clone, "sync", "--fetch-only")
    for args in (("verify",), ("plan",), ("status",), ("log",)):
        assert "has no ledger" not in project.ledger(*clone, *args).err, args


def test_a_repository_without_a_remote_is_told_of_none(project):
    assert "has no ledger" not in project.ledger("verify", expect=1).err


def test_what_is_named_as_dirt_is_never_a_folder_that_holds_tracked_files(make_project):
    """Who lets `.gitignore` name `tests/`, since that was named, hides every test to come."""
    project = make_project(CONFIG, {"src/a": "1", "src/deep/b": "1"})
    project.repo.write("src/deep/__pycache__/b.pyc", "")
    project.repo.write("src/deep/__pycache__/c.pyc", "")
    project.repo.write("src/a", "2")
    assert "next: src/a, src/deep/__pycache__/: commit them" in project.ledger("status").out
    assert "dirty: src/a, src/deep/__pycache__/: runs" in project.ledger("init").err


def test_a_shard_that_names_nothing_is_mended_in_the_configuration_and_not_by_another_run(make_project):
    project = make_project(CONFIG.replace("[src]", "[nowhere]"), {"src/a": "1"})
    assert "[malformed]\n      expected a green receipt, fresh or carried; try: mend the shard in .gitledger" in (
        project.ledger("verify", expect=1).out
    )


def test_a_run_of_another_command_is_told_of_the_variable_that_may_have_made_it_one(make_project):
    """CI often sets PYTEST_ADDOPTS for every job: recording once more comes to the same."""
    project = make_project(CONFIG, {"src/a": "1"})
    project.ledger("record", "--shard", "lint", "--", "true", "too", expect=1)
    said = project.ledger("verify", expect=1).out
    assert "with PYTEST_ADDOPTS unset: git ledger record --shard lint" in said


@pytest.mark.parametrize(
    ("config", "way_out"),
    [("", "rm .gitledger/config.yaml, then git ledger init"), ("version: 1\n", "write `repository: NAME`")],
)
def test_a_configuration_that_init_leaves_alone_is_not_said_to_be_mended_by_init(make_project, config, way_out):
    project = make_project(CONFIG, {"src/a": "1"})
    project.repo.commit({".gitledger/config.yaml": config})
    assert f"try: {way_out}" in project.ledger("plan", expect=2).err


def test_a_key_that_the_commit_does_not_know_is_said_before_the_run(make_project):
    """A colleague's first receipt counts for nothing, and the plan goes on about somebody else's older one."""
    project = make_project(CONFIG, {"src/a": "1"})
    assert "lacks your key" not in project.ledger("record", "--shard", "lint").err
    project.repo.commit({".gitledger/allowed_signers": ""})
    said = project.ledger("record", "--shard", "lint").err
    assert "lacks your key SHA256:" in said
    assert "`git ledger init` adds it" in said
