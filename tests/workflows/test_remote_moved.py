"""A remote that comes to stand for another server: what was fetched from the old one says nothing of the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFIG = """\
version: 1
repository: demo
shards:
  it: {paths: [src], command: "true", results: exit-status}
"""


@pytest.fixture
def moving(make_project, make_repo, tmp_path: Path):
    """A project with the hook that has recorded and published to `old.git`; `new.git` is empty."""
    project = make_project(CONFIG, {"src/a": "1"})
    for name in ("old.git", "new.git"):
        make_repo(name, "--bare", "--initial-branch=main")
    project.repo.git("remote", "add", "origin", str(tmp_path / "old.git"))
    project.ledger("init")
    project.repo.commit()
    project.record("it")
    project.repo.git("push", "-q", "-u", "origin", "main")
    assert "next: nothing, the evidence passes" in project.ledger("status").out
    return project


def set_url(project, new: str) -> None:
    project.repo.git("remote", "set-url", "origin", new)


def remove_and_add(project, new: str) -> None:
    project.repo.git("remote", "remove", "origin")
    project.repo.git("remote", "add", "origin", new)


def rewrite(project, new: str) -> None:
    project.repo.git("config", f"url.{new}.insteadOf", project.repo.git("config", "remote.origin.url"))


def clone_plan(project, tmp_path: Path):
    """What a colleague sees who clones the new server."""
    project.repo.git("clone", "-q", str(tmp_path / "new.git"), str(tmp_path / "clone"))
    project.ledger("-C", str(tmp_path / "clone"), "sync", "--fetch-only")
    rows = project.ledger("-C", str(tmp_path / "clone"), "plan", "--json").document["shards"]
    return {row["name"]: row["verdict"] for row in rows}


@pytest.mark.parametrize("move", [set_url, remove_and_add, rewrite])
def test_a_push_to_the_new_server_publishes_the_ledger_there(moving, tmp_path: Path, move):
    move(moving, str(tmp_path / "new.git"))
    status = moving.ledger("status").out
    assert "1 record not published to origin\n" in status
    assert "next: git ledger sync origin" in status
    assert moving.ledger("plan", "--json").document["unpublished"]["origin"] == 1
    assert "unpublished" in moving.ledger("fsck").out
    moving.repo.git("push", "-q", "-u", "origin", "main")
    assert clone_plan(moving, tmp_path) == {"it": "fresh"}
    assert "not published to origin" not in moving.ledger("status").out


def test_another_place_to_push_to_gets_the_ledger_though_the_one_to_fetch_from_has_it(moving, tmp_path: Path):
    moving.repo.git("remote", "set-url", "--push", "origin", str(tmp_path / "new.git"))
    moving.ledger("sync", "--fetch-only")
    assert "1 record not published to origin" in moving.ledger("status").out
    moving.repo.git("push", "-q", "-u", "origin", "main")
    assert clone_plan(moving, tmp_path) == {"it": "fresh"}
    assert "not published to origin" not in moving.ledger("status").out
    assert "origin has everything that was recorded here" in moving.ledger("sync").out


def test_what_another_has_recorded_and_only_tracking_refs_hold_moves_too(moving, tmp_path: Path):
    """It is evidence here all the while; on the new server it must not be missing."""
    moving.repo.git("clone", "-q", str(tmp_path / "old.git"), str(tmp_path / "other"))
    other = ("-C", str(tmp_path / "other"))
    moving.ledger(*other, "sync", "--fetch-only")
    moving.repo.git("-C", str(tmp_path / "other"), "remote", "set-url", "origin", str(tmp_path / "new.git"))
    assert moving.ledger(*other, "verify", "--json").document["verdict"] == "passed"
    assert "1 record not published to origin" in moving.ledger(*other, "status").out
    assert "published 1 record to origin" in moving.ledger(*other, "sync").out
    assert moving.ledger(*other, "status").out.endswith("next: nothing, the evidence passes\n")


def test_a_look_at_the_new_server_keeps_what_it_lacks_and_says_that_it_is_not_published(moving, tmp_path: Path):
    set_url(moving, str(tmp_path / "new.git"))
    moving.ledger("sync", "--fetch-only")
    assert "1 record not published to origin" in moving.ledger("status").out
    assert moving.verify() == ("passed", set())


def test_the_same_place_spelt_otherwise_has_it_all_once_it_is_looked_at(moving, tmp_path: Path):
    set_url(moving, f"file://{tmp_path}/old.git")
    assert "origin has everything that was recorded here" in moving.ledger("sync").out
    assert "next: nothing, the evidence passes" in moving.ledger("status").out


def test_a_clone_that_plain_fetch_alone_has_served_believes_its_tracking_refs(moving, tmp_path: Path):
    moving.repo.git("clone", "-q", str(tmp_path / "old.git"), str(tmp_path / "plain"))
    plain = str(tmp_path / "plain")
    moving.repo.git(
        "-C", plain, "fetch", "-q", "origin", "+refs/notes/gitledger/*:refs/gitledger/remotes/origin/*"
    )
    assert "next: nothing, the evidence passes" in moving.ledger("-C", plain, "status").out
