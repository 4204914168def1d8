"""A spool: nodes without keys leave receipts, whoever has a key signs what holds against the repository."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gitledger.config.load import load_config
from gitledger.errors import LedgerError
from gitledger.workflows.spool import read_entry, require_ours

CONFIG = """\
version: 1
repository: demo
shards:
  good: {paths: [src], command: "echo said; true", results: exit-status}
  bad: {paths: [src], command: "false", results: exit-status}
""".replace('"echo said; true"', '[sh, -c, "echo said"]')


@pytest.fixture
def node(make_project, tmp_path):
    """A project, and a spool in which a node without any key has left a receipt of each shard."""
    project = make_project(CONFIG, {"src/a": "1"})
    spool = tmp_path / "spool"
    keyless = {"GITLEDGER_SIGNING_KEY": ""}
    project.ledger("run", "good", "--spool", str(spool), env=keyless)
    project.ledger("run", "bad", "--spool", str(spool), env=keyless, expect=1)
    return project, spool


def test_what_a_node_left_is_signed_stored_and_merged_once(node):
    project, spool = node
    assert {row["reason"] for row in project.ledger("plan", "--json").document["shards"]} == {"never-recorded"}

    first = project.ledger("run", "--collect", str(spool), "--json", expect=1).document
    again = project.ledger("run", "--collect", str(spool), "--json", expect=1).document

    assert {(item["name"], item["outcome"]) for item in first["ran"]} == {("good", "passed"), ("bad", "failed")}
    assert (first["merge"]["outcome"], again["ran"]) == ("failed", [])
    assert project.plan() == {"good": ("fresh", "recorded"), "bad": ("stale", "not-green")}
    receipt = project.receipt(first["ran"][0]["record"])
    assert receipt["signer"]["backend"] == "file"
    assert receipt["session"]["witnessed"] is True


def test_a_spool_that_others_can_write_to_is_not_signed(node):
    project, spool = node
    spool.chmod(0o777)

    assert "[spool-exposed]" in project.ledger("run", "--collect", str(spool), expect=2).err
    assert {row["reason"] for row in project.ledger("plan", "--json").document["shards"]} == {"never-recorded"}


SPOILED = {
    "cut": lambda data: data[:-1],
    "longer": lambda data: data + b"x",
    "a body of another": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "another format": lambda data: data.replace(b"gitledger-spool 1", b"gitledger-spool 2"),
    "no receipt": lambda data: data[: data.index(b"\n") + 1] + b"{}\n",
    "nothing": lambda data: b"",
}


def test_an_entry_that_is_not_whole_is_left_lying_and_the_others_are_taken(node):
    project, spool = node
    [entry] = spool.glob("good.*.entry")
    whole = entry.read_bytes()
    assert read_entry(entry).receipt.is_green
    for how, spoil in SPOILED.items():
        entry.write_bytes(spoil(whole))
        with pytest.raises(LedgerError) as caught:
            read_entry(entry)
        assert caught.value.code == "spool-malformed", how

    said = project.ledger("run", "--collect", str(spool), expect=1)

    assert "[spool-malformed]" in said.err
    assert entry.exists()
    assert project.plan() == {"good": ("stale", "never-recorded"), "bad": ("stale", "not-green")}


def test_a_receipt_of_another_commit_tree_repository_or_definition_is_not_ours(node):
    project, spool = node
    [entry] = spool.glob("good.*.entry")
    found, config = read_entry(entry), load_config(CONFIG.encode(), source="test")
    commit, tree = found.receipt.repo.commit, found.receipt.repo.tree
    require_ours(found, config, commit, tree)
    others = {
        "another commit": (config, "0" * 40, tree),
        "another tree": (config, commit, "0" * 40),
        "another repository": (replace(config, repository="other"), commit, tree),
        "another definition": (load_config(CONFIG.replace("said", "else").encode(), source="test"), commit, tree),
        "not declared": (replace(config, shards={"bad": config.shards["bad"]}), commit, tree),
    }
    for fault, (held_against, at, of_tree) in others.items():
        with pytest.raises(LedgerError, match=fault) as caught:
            require_ours(found, held_against, at, of_tree)
        assert caught.value.code == "spool-foreign"

    project.repo.commit({"src/a": "2"})
    said = project.ledger("run", "--collect", str(spool), expect=1)
    assert "[spool-foreign]" in said.err
    assert len(list(spool.glob("*.entry"))) == 2


def test_a_node_that_can_not_run_a_shard_says_why_in_the_spool(make_project, tmp_path):
    project = make_project(
        "version: 1\nrepository: demo\nshards:\n  a: {paths: [src], command: no-such, results: exit-status}\n",
        {"src/a": "1"},
    )
    spool = tmp_path / "spool"

    project.ledger("run", "a", "--spool", str(spool), expect=2)

    assert "command-not-found" in (spool / "a.fault").read_text()


@pytest.mark.parametrize("args", [("--spool", "x"), ("--collect", "x", "a"), ("--sbatch=-p", "a")])
def test_words_that_belong_to_an_engine_are_refused_elsewhere(make_project, args):
    project = make_project(CONFIG, {"src/a": "1"})
    assert "[usage]" in project.ledger("run", *args, expect=2).err
