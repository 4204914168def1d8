"""`git ledger export bundle`: the whole ledger in one file, and `sync --from` takes of it what verifies."""

from __future__ import annotations

import subprocess

import pytest

CONFIG = """\
version: 1
repository: demo
shards:
  it: {paths: [src], command: [sh, -c, "exit 0"], results: exit-status}
policy: {allowed_signers: [alice@example.org]}
"""


@pytest.fixture
def clones(make_project, tmp_path):
    """A project, and a clone of it that lacks its ledger."""
    project = make_project(CONFIG, {"src/a": "1"})
    project.repo.git("clone", "-q", str(project.path), str(tmp_path / "clone"))
    project.ledger("record", "--shard", "it")
    return project, tmp_path / "clone"


def test_a_bundle_carries_the_ledger_to_a_clone_that_can_not_reach_this_one(clones, tmp_path):
    project, clone = clones
    before = project.repo.git("for-each-ref")
    project.ledger("export", "bundle", "-o", str(tmp_path / "ledger.bundle"))
    heads = project.repo.git("bundle", "list-heads", str(tmp_path / "ledger.bundle")).split("\n")
    assert sorted(line.split()[1] for line in heads) == [
        "refs/notes/gitledger/bodies",
        "refs/notes/gitledger/records",
    ]
    assert project.repo.git("for-each-ref") == before
    taken = project.ledger("-C", str(clone), "sync", "--from", str(tmp_path / "ledger.bundle"), "--json").document
    assert (len(taken["taken"]), taken["refused"]) == (1, [])
    assert project.ledger("-C", str(clone), "verify").out.endswith("verdict: passed\n")


def test_only_what_verifies_is_taken_from_it(clones, tmp_path):
    project, clone = clones
    project.ledger("record", "--shard", "it", "--key", str(project.key("mallory")))
    project.ledger("export", "bundle", "-o", str(tmp_path / "b"))
    taken = project.ledger("-C", str(clone), "sync", "--from", str(tmp_path / "b"), "--json").document
    assert [item["reason"] for item in taken["refused"]] == ["unknown-signer"]
    assert len(taken["taken"]) == 1


def test_what_was_only_fetched_is_in_it_too(clones, tmp_path):
    """A clone that has fetched and never united exports what it sees, and keeps its own refs as they are."""
    project, clone = clones
    project.ledger("-C", str(clone), "sync", "--fetch-only", "origin")
    project.ledger("-C", str(clone), "export", "bundle", "-o", str(tmp_path / "b"))
    assert "refs/notes" not in project.repo.git("-C", str(clone), "for-each-ref", "--format=%(refname)")
    listed = project.repo.git("bundle", "list-heads", str(tmp_path / "b"))
    assert listed.split()[0::2] == project.repo.git("for-each-ref", "--format=%(objectname)", "refs/notes").split()


def test_a_bundle_to_stdout_is_one_and_an_empty_ledger_is_none(clones, tmp_path):
    project, clone = clones
    done = subprocess.run(
        ["git-ledger", "export", "bundle", "-o", "-"],
        cwd=project.path,
        env=dict(project.repo.env),
        capture_output=True,
        check=True,
        timeout=60,
    )
    (tmp_path / "b").write_bytes(done.stdout)
    project.repo.git("bundle", "verify", "-q", str(tmp_path / "b"))
    assert "[ledger-empty]" in project.ledger("-C", str(clone), "export", "bundle", "-o", "b", expect=2).err
    assert not (clone / "b").exists()
