"""A clone that `init` has not set up: plain `git fetch` brings commits into it and no records of others."""

from __future__ import annotations

from pathlib import Path

import pytest

HINT = "git ledger sync --fetch-only origin"


@pytest.fixture
def shared(project, make_repo, tmp_path: Path):
    """A project with a server that has its branch and no ledger; `clone` runs commands in a clone of it."""
    make_repo("server.git", "--bare", "--initial-branch=main")
    project.repo.git("remote", "add", "origin", str(tmp_path / "server.git"))
    project.repo.git("push", "-q", "origin", "main")
    project.repo.git("clone", "-q", str(tmp_path / "server.git"), str(tmp_path / "clone"))
    return project


def test_it_names_the_sync_after_each_fetch_that_left_the_ledger_out(shared, tmp_path: Path):
    clone = ("-C", str(tmp_path / "clone"))
    shared.ledger(*clone, "record", "--shard", "alpha")
    shared.ledger(*clone, "sync")
    assert HINT not in shared.ledger(*clone, "verify", expect=1).err, "all that is there is here"
    shared.record("beta")
    shared.ledger("sync")
    shared.repo.git("-C", clone[1], "fetch", "-q")
    for command, status in (("verify", 1), ("plan", 0), ("status", 0)):
        said = shared.ledger(*clone, command, expect=status).err
        assert f"brings no records of others into this clone; `{HINT}` does" in said
    assert f"next: {HINT}; where nobody has recorded yet, git ledger record" in shared.ledger(*clone, "status").out
    shared.ledger(*clone, "sync", "--fetch-only")
    assert HINT not in shared.ledger(*clone, "verify").err


def test_where_a_plain_fetch_brings_the_ledger_no_sync_is_named(shared, tmp_path: Path):
    clone = ("-C", str(tmp_path / "clone"))
    shared.ledger(*clone, "record", "--shard", "alpha")
    shared.repo.git("-C", clone[1], "config", "--add", "remote.origin.fetch", "+refs/*:refs/gitledger/remotes/x/*")
    shared.repo.git("-C", clone[1], "fetch", "-q")
    assert HINT not in shared.ledger(*clone, "verify", expect=1).err


def test_a_remote_without_a_ledger_is_said_to_have_none_and_not_asked_for_it_again(shared, tmp_path: Path):
    """To fetch it again was what each command told, and nothing came of it."""
    clone = ("-C", str(tmp_path / "clone"))
    assert (
        "origin has no ledger yet: nobody has published one there\n"
        in shared.ledger(*clone, "sync", "--fetch-only").out
    )
    said = shared.ledger(*clone, "verify", expect=1).err
    assert "this clone has no ledger, and origin had none when it was last asked" in said
    assert HINT not in said
    assert "next: git ledger run  # 2 shards" in shared.ledger(*clone, "status").out
    shared.record("alpha")
    assert "; git ledger sync origin publishes what is recorded here" in shared.ledger("sync", "--fetch-only").out
