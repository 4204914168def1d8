"""The path, through the installed command: record, plan, carry, merge, verify, from another clone too."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest


def record_all(project) -> None:
    for shard in ("alpha", "beta"):
        project.record(shard)


def test_from_a_run_to_a_verdict(project):
    assert project.verify() == ("failed", {"never-recorded"})
    project.record("alpha")
    assert project.plan() == {"alpha": ("fresh", "recorded"), "beta": ("stale", "never-recorded")}
    assert project.verify() == ("failed", {"never-recorded"})
    project.record("beta")
    assert project.verify() == ("passed", set())


def test_a_changed_input_makes_one_shard_stale_and_names_the_path(project):
    record_all(project)
    project.repo.commit({"src/beta.py": "def beta():\n    return 1 + 1\n"})
    rows = {row["name"]: row for row in project.ledger("plan", "--json").document["shards"]}
    assert (rows["alpha"]["verdict"], rows["alpha"]["reason"], rows["alpha"]["distance"]) == (
        "carryable",
        "unchanged",
        1,
    )
    assert (rows["beta"]["verdict"], rows["beta"]["reason"]) == ("stale", "inputs-changed")
    assert rows["beta"]["changed_paths"] == ["src/beta.py"]
    assert project.verify() == ("failed", {"inputs-changed"})
    project.record("beta")
    assert project.verify() == ("passed", set())


def test_merge_names_what_it_carries_and_a_chain_is_never_built(project):
    record_all(project)
    first = project.repo.git("rev-parse", "HEAD")
    for number in range(2):
        project.repo.commit({"README.md": str(number)})
        document = project.ledger("merge", "--json").document
        assert [item["carried"] for item in document["shards"]] == [True, True]
        merged = project.receipt(document["record"])
        assert {item["carried"]["original_commit"] for item in merged["shards"]} == {first}
        assert {item["carried"]["distance"] for item in merged["shards"]} == {number + 1}


def test_merge_refuses_with_every_fault_and_writes_nothing(project):
    before = project.ledger("log", "--json").document
    document = project.ledger("merge", "--json", expect=1).document
    assert document["outcome"] == "refused"
    assert document["record"] is None
    assert [(item["subject"], item["code"]) for item in document["findings"]] == [
        ("alpha", "never-recorded"),
        ("beta", "never-recorded"),
    ]
    assert project.ledger("log", "--json").document == before


def test_carrying_needs_policy_or_the_word(make_project):
    project = make_project(
        "version: 1\nrepository: demo\nshards:\n  alpha: {paths: [src/alpha.py, tests/alpha], command: pytest tests/alpha}\n"
    )
    project.record("alpha")
    project.repo.commit({"README.md": "x"})
    assert project.plan() == {"alpha": ("stale", "carry-forbidden")}
    assert project.plan("--carry") == {"alpha": ("carryable", "unchanged")}
    assert project.ledger("merge", "--carry", "--json").document["outcome"] == "passed"
    assert project.verify() == ("failed", {"carry-forbidden"})


def test_a_record_checks_out_with_ssh_keygen_alone(project, tmp_path: Path):
    project.record("alpha")
    line = project.repo.git("notes", "--ref=gitledger/records", "show", "HEAD")
    envelope = json.loads(line)
    payload = base64.b64decode(envelope["payload"])
    kind = envelope["payloadType"].encode()
    message = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    armour = (
        "-----BEGIN SSH SIGNATURE-----\n" + envelope["signatures"][0]["sig"] + "\n-----END SSH SIGNATURE-----\n"
    )
    (tmp_path / "sig").write_text(armour)
    command = [
        "ssh-keygen",
        "-Y",
        "verify",
        "-n",
        "gitledger",
        "-I",
        "alice@example.org",
        "-s",
        str(tmp_path / "sig"),
    ]
    command += ["-f", str(project.path / ".gitledger/allowed_signers")]
    good = subprocess.run(command, input=message, capture_output=True, check=False)
    assert good.returncode == 0, good.stderr
    bad = subprocess.run(command, input=message + b" ", capture_output=True, check=False)
    assert bad.returncode != 0


def test_another_clone_verifies_without_a_key(project, make_repo, tmp_path: Path):
    make_repo("server.git", "--bare")
    project.repo.git("remote", "add", "origin", str(tmp_path / "server.git"))
    record_all(project)
    project.repo.git("push", "-q", "origin", "main")
    project.ledger("sync", "origin")
    project.repo.git("clone", "-q", str(tmp_path / "server.git"), str(tmp_path / "second"))
    second = type(project)(type(project.repo)(tmp_path / "second", project.repo.env), project.keys)
    no_key = {"GITLEDGER_SIGNING_KEY": ""}
    assert second.ledger("verify", expect=1, env=no_key)
    second.ledger("sync", "--fetch-only", env=no_key)
    done = second.ledger("verify", "--policy-from", "origin/main", "--json", env=no_key)
    assert done.document["verdict"] == "passed"
    assert done.document["policy"]["from"] == "origin/main"


# --- section 4: policy from a trusted place --------------------------------------------------------------------


def test_t06_loosened_policy_and_signers_in_the_change_are_judged_by_the_refs(project):
    record_all(project)
    project.repo.git("branch", "trusted")
    mallory = project.key("mallory")
    signers = (project.path / ".gitledger/allowed_signers").read_text()
    project.repo.commit(
        {
            ".gitledger/allowed_signers": signers + f"mallory {project.public('mallory')}\n",
            "src/alpha.py": "def alpha():\n    return 1  # other\n",
        }
    )
    project.record("alpha", "--key", str(mallory))
    assert project.verify()[0] == "passed"
    assert project.verify("--policy-from", "trusted") == ("failed", {"untrusted"})


def test_f10_removed_and_redefined_shards_block_until_a_maintainer_accepts(project):
    record_all(project)
    project.repo.git("branch", "trusted")
    config = (project.path / ".gitledger/config.yaml").read_text()
    config = "\n".join(line for line in config.splitlines() if "  beta:" not in line)
    project.repo.commit(
        {".gitledger/config.yaml": config.replace("pytest -q tests/alpha", "pytest -q tests/alpha -k alpha")}
    )
    project.record("alpha")
    assert project.verify() == ("passed", set())
    assert project.verify("--policy-from", "trusted") == ("failed", {"shard-removed", "shard-redefined"})
    assert project.verify("--policy-from", "trusted", "--accept-shards") == ("passed", set())


def test_no_configuration_at_the_ref_is_no_verdict(project):
    record_all(project)
    project.repo.git("checkout", "-q", "--orphan", "empty")
    project.repo.git("rm", "-rqf", ".")
    project.repo.commit({"x": "1"})
    project.repo.git("checkout", "-q", "main")
    done = project.ledger("verify", "--policy-from", "empty", expect=2)
    assert "no-config" in done.err
    assert "git ledger init" in done.err


# --- case ids --------------------------------------------------------------------------------------------------


def test_t04_a_receipt_pasted_onto_another_commit_is_ignored_and_reported(project):
    record_all(project)
    line = project.repo.git("notes", "--ref=gitledger/records", "show", "HEAD")
    project.repo.commit(
        {"src/alpha.py": "def alpha():\n    return 1.0\n", "src/beta.py": "def beta():\n    return 2.0\n"}
    )
    project.repo.git("notes", "--ref=gitledger/records", "add", "-m", line, "HEAD")
    assert project.verify()[0] == "failed"
    ignored = project.ledger("verify", "--json", expect=1).document["ignored"]
    assert len(ignored) == 2
    assert all(item["reason"].startswith("misplaced") for item in ignored)


def test_t04_a_receipt_of_another_repository_is_ignored_and_reported(project, make_project):
    other = make_project(
        name="other", config=(project.path / ".gitledger/config.yaml").read_text().replace("demo", "else")
    )
    record_all(other)
    ref = "refs/notes/gitledger/records"
    project.repo.git("fetch", "-q", str(other.path), f"{ref}:{ref}")
    commit = other.repo.git("rev-parse", "HEAD")
    project.repo.git("fetch", "-q", str(other.path), "main")
    project.repo.git("checkout", "-q", commit)
    verdict, codes = project.verify("--policy-from", "main")
    assert verdict == "failed"
    assert "never-recorded" in codes
    ignored = project.ledger("verify", "--policy-from", "main", "--json", expect=1).document["ignored"]
    assert {item["reason"] for item in ignored} == {"other-repository"}


def test_t04_a_receipt_copied_onto_an_amended_commit_does_not_count(project):
    project.repo.git("config", "notes.rewriteRef", "refs/notes/gitledger/records")
    record_all(project)
    project.repo.write("src/alpha.py", "def alpha():\n    return 3\n")
    project.repo.git("commit", "-q", "-a", "--amend", "-m", "amended")
    assert project.repo.git("notes", "--ref=gitledger/records", "show", "HEAD") != ""
    verdict, codes = project.verify()
    assert verdict == "failed"
    assert codes <= {"never-recorded", "inputs-changed"}


@pytest.fixture
def switched(make_project):
    """One shard whose outcome is a file outside the tree: the same inputs, another result."""
    config = 'version: 1\nrepository: demo\nshards:\n  it: {command: [sh, -c, "exit $(cat ../verdict)"], '
    config += "results: exit-status}\npolicy: {allow_carried: true}\n"
    config = config.replace("it: {", "it: {paths: [src], ")
    project = make_project(config)

    def run(status: int) -> None:
        (project.path.parent / "verdict").write_text(str(status))
        project.record("it", expect=status)

    return project, run


def test_f05_a_newer_failure_with_the_same_inputs_lies_between(switched):
    project, run = switched
    run(0)
    project.repo.commit({"README.md": "1"})
    assert project.plan()["it"] == ("carryable", "unchanged")
    run(1)
    project.repo.commit({"README.md": "2"})
    assert project.plan()["it"] == ("stale", "not-green")
    assert project.verify() == ("failed", {"not-green"})


def test_f07_a_failure_after_a_green_merge_is_red_at_once(switched):
    project, run = switched
    run(0)
    assert project.ledger("merge", "--json").document["outcome"] == "passed"
    assert project.verify() == ("passed", set())
    run(1)
    document = project.ledger("verify", "--json", expect=1).document
    assert "snapshot-outdated" in {item["code"] for item in document["findings"]}


def test_u08_attempts_are_kept_and_the_newest_counts(switched):
    project, run = switched
    for status in (1, 0, 1):
        run(status)
        assert project.verify()[0] == ("failed" if status else "passed")
    row = project.ledger("plan", "--json").document["shards"][0]
    assert len(row["attempts"]) == 3


def test_f06_a_dirty_green_does_not_hide_the_clean_one_further_back(project):
    record_all(project)
    project.repo.commit({"README.md": "1"})
    project.repo.write("README.md", "edited")
    document = project.record("alpha")
    assert project.receipt(document["record"])["repo"]["dirty"] is True
    project.repo.git("checkout", "-q", "README.md")
    assert project.plan()["alpha"] == ("carryable", "unchanged")


def test_a_shallow_clone_carries_nothing_past_a_failure_that_may_lie_on_an_ancestor(switched, tmp_path: Path):
    project, run = switched
    run(0)
    project.repo.commit({"README.md": "1"})
    green = project.repo.git("rev-parse", "HEAD~1")
    project.repo.git("branch", "policy", green)
    run(1)
    for number in range(2):
        project.repo.commit({"README.md": f"later {number}"})
    # A merge brings the green commit near, while the failure lies beyond the boundary.
    project.repo.git("merge", "-q", "--no-ff", "-s", "ours", "-m", "merge", green, check=False)
    project.repo.git("commit", "-q", "--allow-empty", "-m", "tip")
    tree = project.repo.git("rev-parse", "HEAD^{tree}")
    tip = project.repo.git("commit-tree", "-p", "HEAD", "-p", green, "-m", "joined", tree)
    project.repo.git("reset", "-q", "--hard", tip)
    assert project.verify() == ("failed", {"not-green"})
    shallow = tmp_path / "shallow"
    project.repo.git("clone", "-q", "--depth", "2", f"file://{project.path}", str(shallow))
    clone = type(project)(type(project.repo)(shallow, project.repo.env), project.keys)
    clone.ledger("init")
    clone.ledger("sync", "--fetch-only")
    assert clone.repo.git("cat-file", "-t", green) == "commit"
    assert clone.verify() == ("failed", {"not-green"})
