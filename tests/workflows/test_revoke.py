"""`git ledger revoke`, through the installed command: green to red, for good, in any order of merges."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

LINT = """\
version: 1
repository: demo
shards:
  it: {paths: [src], command: [sh, -c, "exit $(cat ../verdict 2>/dev/null || echo 0)"], results: exit-status}
policy: %s
"""


@pytest.fixture
def one(make_project):
    """One shard that exits as the file `verdict` beside the repository says; Alice signs, Ruth may revoke."""
    project = make_project(LINT % "{allowed_signers: [alice@example.org], revokers: [ruth]}", {"src/x": "x"})
    signers = (project.path / ".gitledger/allowed_signers").read_text()
    project.repo.commit({".gitledger/allowed_signers": f"{signers}ruth {project.public('ruth')}\n"})
    return project


def by(project, name: str) -> list[str]:
    return ["--key", str(project.key(name))]


def test_its_signer_takes_a_record_back_and_only_a_new_one_mends_that(one):
    record = one.record("it")["record"]
    assert one.verify() == ("passed", set())
    done = one.ledger("revoke", record[:12], "--reason", "wrong driver", "--json").document
    assert (done["revokes"], done["new"], done["reason"]) == (record, True, "wrong driver")
    assert one.verify() == ("failed", {"revoked"})
    assert "wrong driver" in one.ledger("show").out
    one.record("it")
    assert one.verify() == ("passed", set())


def test_a_second_revocation_by_the_same_key_is_the_first(one):
    record = one.record("it")["record"]
    first = one.ledger("revoke", record, "--reason", "one", "--json").document
    second = one.ledger("revoke", record, "--reason", "two", "--json").document
    assert (second["record"], second["reason"], second["new"]) == (first["record"], "one", False)
    assert len(one.ledger("log", "--json").document[0]["records"]) == 2


def test_a_revoker_of_policy_takes_anybodys_record_back(one):
    record = one.record("it")["record"]
    one.ledger("revoke", record, "--reason", "x", *by(one, "ruth"))
    assert one.verify() == ("failed", {"revoked"})


def test_anybody_else_is_refused_and_nothing_is_written(one):
    record = one.record("it")["record"]
    done = one.ledger("revoke", record, "--reason", "x", *by(one, "mallory"), expect=2)
    assert "[not-a-revoker]" in done.err
    assert one.verify() == ("passed", set())
    assert len(one.ledger("log", "--json").document[0]["records"]) == 1


def test_a_revoked_failure_still_blocks(one):
    (one.path.parent / "verdict").write_text("1")
    record = one.record("it", expect=1)["record"]
    one.ledger("revoke", record, "--reason", "flaky machine")
    assert one.verify() == ("failed", {"not-green"})


def test_a_revoked_green_makes_no_room_for_an_older_one(one):
    one.record("it")
    one.ledger("revoke", one.record("it")["record"], "--reason", "x")
    assert one.verify() == ("failed", {"revoked"})


def test_a_merged_receipt_that_names_a_revoked_input_fails(one):
    one.repo.commit({".gitledger/config.yaml": LINT % "{require_merged: true, revokers: [ruth]}"})
    record = one.record("it")["record"]
    one.ledger("merge")
    assert one.verify() == ("passed", set())
    one.ledger("revoke", record, "--reason", "x")
    assert one.verify() == ("failed", {"revoked", "snapshot-outdated"})


def test_a_copy_on_another_commit_does_not_keep_a_record_from_being_revoked(one):
    record = one.record("it")["record"]
    line = one.repo.git("notes", "--ref=gitledger/records", "show", "HEAD")
    first = one.repo.git("rev-parse", "HEAD")
    one.repo.commit({"README.md": "x"})
    one.repo.git("notes", "--ref=gitledger/records", "add", "-m", line, "HEAD")
    assert one.ledger("revoke", record, "--reason", "x", "--json").document["commit"] == first


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["00000000", "--reason", "x"], "unknown-record"),
        (["HEAD", "--reason", "x"], "unknown-record"),
        (["RECORD", "--reason", " "], "no-reason"),
        (["RECORD", "--reason", "x" * 20_000], "no-reason"),
        (["REVOCATION", "--reason", "x"], "not-revocable"),
    ],
)
def test_words_that_make_no_sense_are_one_clear_error(one, args, code):
    record = one.record("it")["record"]
    if "REVOCATION" in args:
        args = [one.ledger("revoke", record, "--reason", "y", "--json").document["record"], *args[1:]]
    args = [record if word == "RECORD" else word for word in args]
    done = one.ledger("revoke", *args, expect=2)
    assert f"[{code}]" in done.err
    assert len(done.err.splitlines()) == 1


# --- S29 -------------------------------------------------------------------------------------------------------


@pytest.fixture
def clones(one, make_repo, tmp_path: Path):
    """Two more clones of one server; each has what its maker says."""
    make_repo("server.git", "--bare")
    one.repo.git("remote", "add", "origin", str(tmp_path / "server.git"))
    one.repo.git("push", "-q", "origin", "main")

    def clone(name: str):
        one.repo.git("clone", "-q", str(tmp_path / "server.git"), str(tmp_path / name))
        return type(one)(type(one.repo)(tmp_path / name, one.repo.env), one.keys)

    return one, clone


@pytest.mark.parametrize("order", list(itertools.permutations(["record", "revocation"])))
@pytest.mark.parametrize("who", ["alice", "ruth"])
def test_s29_a_revocation_and_its_record_arrive_by_different_routes_in_either_order(clones, order, who, tmp_path):
    """The record travels in one clone, the revocation alone in another; whoever syncs first, it is in force."""
    author, clone = clones
    record = author.record("it")["record"]
    revoker = clone("revoker")
    notes = "refs/notes/gitledger/*:refs/notes/gitledger/*"
    revoker.repo.git("fetch", "-q", str(author.path), notes)
    revoker.ledger("revoke", record, "--reason", "x", *by(author, who))
    lines = revoker.repo.git("notes", "--ref=gitledger/records", "show", "HEAD").splitlines()
    alone = next(line for line in lines if line not in author.repo.git("notes", "--ref=gitledger/records", "show"))
    revoker.repo.git("notes", "--ref=gitledger/records", "add", "-f", "-m", alone, "HEAD")
    for name in order:
        (author if name == "record" else revoker).ledger("sync", "origin")
    reader = clone("reader")
    reader.ledger("sync", "--fetch-only")
    assert reader.verify("--policy-from", "origin/main") == ("failed", {"revoked"})
    author.ledger("sync", "origin")
    assert author.verify() == ("failed", {"revoked"})
