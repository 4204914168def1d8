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
