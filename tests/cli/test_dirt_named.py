"""Dirt is said before anything runs in vain, with what mends it: a `.gitignore` helps no edit, and no key is committed."""

from __future__ import annotations

import pytest

CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: "echo the suite ran", results: exit-status}
"""
RAN = "the suite ran"


def test_record_says_before_the_run_that_it_will_be_dirty(make_project):
    """The whole suite ran first, and then was told to count for nothing."""
    project = make_project(CONFIG, {"src/a": "1"})
    assert "warning" not in project.ledger("record", "--shard", "lint").err
    project.repo.write("notes.txt", "")
    done = project.ledger("record", "--shard", "lint")
    first = (
        "warning: the work tree differs from the commit in notes.txt; this run will be dirty and count for nothing"
    )
    assert f"{first}: commit them, or let .gitignore name them\n" in done.err
    assert RAN in done.out
    both = project.ledger("record", "--shard", "lint", "--json").err
    assert both.index("warning: ") < both.index(RAN), "before, and not after"


def test_record_says_nothing_where_policy_allows_dirt(make_project):
    project = make_project(CONFIG + "policy: {allow_dirty: true}\n", {"src/a": "1"})
    project.repo.write("notes.txt", "")
    for mode in ("local", "ci"):
        assert "differs" not in project.ledger("record", "--shard", "lint", "--mode", mode).err


@pytest.mark.parametrize("mode", ["ci", "ci-gpu"])
def test_in_ci_a_run_whose_receipt_would_be_worthless_is_not_begun(make_project, mode):
    """The job of the shard was green, and the gate red: what setup leaves behind made every receipt dirty."""
    project = make_project(CONFIG, {"src/a": "1"})
    args = ("record", "--shard", "lint", "--mode", mode)
    assert project.ledger(*args).status == 0
    project.repo.write("src/calc.egg-info/PKG-INFO", "")
    done = project.ledger(*args, expect=2)
    assert RAN not in done.out
    assert "[dirty-start]; try: add `*.egg-info/` to .gitignore and commit that\n" in done.err
    assert "src/calc.egg-info/: a receipt of mode" in done.err
    done = project.ledger(*args, "--best-effort")
    assert RAN in done.out, "who wants the command's own status in any case gets it"
    assert "warning: the work tree differs" in done.err
    project.ledger(*args[:2], "adhoc", *args[3:], "--paths", "src", "--", "true")


NAMERS = ((("init",), 0), (("record", "--shard", "lint"), 0), (("run", "--all"), 2), (("status",), 0))
"""Commands that name what lies in the work tree, and how they end."""


def test_no_gitignore_is_said_to_help_an_edit(make_project):
    project = make_project(CONFIG, {"src/a": "1"})
    project.repo.write("src/a", "2")
    edit = "commit the edits, or undo them"
    for args, status in NAMERS:
        done = project.ledger(*args, expect=status)
        assert edit in done.out + done.err, args
        assert "let .gitignore" not in done.out + done.err, args
    project.repo.write("notes.txt", "")
    both = "commit them, or undo the edits and let .gitignore name the rest"
    assert both in project.ledger("run", "--all", expect=2).err
    assert both in project.ledger("record", "--shard", "lint").err
    (project.path / "notes.txt").unlink()
    (project.path / "src/a").unlink()
    assert edit in project.ledger("record", "--shard", "lint").err


@pytest.mark.parametrize(
    "text",
    [
        *(f"-----BEGIN {form}PRIVATE KEY-----\nAAAA\n" for form in ("OPENSSH ", "RSA ", "", "ENCRYPTED ")),
        "-----BEGIN CERTIFICATE-----\n" + "A" * 2000 + "\n-----BEGIN PRIVATE KEY-----\n",
        "Bag Attributes\n    localKeyID: 01\n-----BEGIN PRIVATE KEY-----\n",
        "PuTTY-User-Key-File-3: ssh-ed25519\n",
    ],
)
def test_a_private_key_in_the_work_tree_is_never_to_be_committed(make_project, text):
    """`ssh-keygen -f ci-key` writes it here, and "commit them" would publish it."""
    project = make_project(CONFIG, {"src/a": "1"})
    project.repo.write("keys/of-ci", text)
    move = "move keys/of-ci out of the work tree (it is a private key, never to be committed)"
    for args, status in NAMERS:
        done = project.ledger(*args, expect=status)
        assert move in done.out + done.err, args
        assert "commit them" not in done.out + done.err, args
    project.repo.write("notes.txt", "")
    assert f"{move}; the rest: commit them, or let .gitignore" in project.ledger("run", "--all", expect=2).err


def test_a_receipt_of_elsewhere_that_names_what_may_be_a_key_does_not_say_commit_them(make_project):
    """Who verifies has not the files, but their names: those that keys mostly have are told apart."""
    project = make_project(CONFIG, {"src/a": "1"})
    for name in ("id_ed25519", "ci-key", "server.pem"):
        key = project.repo.write(name, "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n")
        project.ledger("record", "--shard", "lint")
        said = project.ledger("verify", expect=1).out
        assert f"move {name} out of the work tree where that is a private key" in said
        assert "commit them" not in said
        key.unlink()


@pytest.mark.parametrize("setup", ["pyproject.toml", "setup.py"])
def test_init_names_what_installing_the_project_will_leave(make_project, setup):
    """The workflow's own `pip install -e .` made every receipt of the first run in CI dirty."""
    project = make_project(CONFIG, {"src/a.py": "", ".gitignore": "__pycache__/\n.coverage\n"})
    assert "leavings" not in project.ledger("init").err
    project.repo.commit({setup: ""})
    line = "leavings: add `*.egg-info/` to .gitignore: what tests and `pip install -e .` leave makes the next run dirty"
    for args in (("init",), ("init", "--ci", "github")):
        assert line in project.ledger(*args).err
    for covering in ("*.egg-info/", "src/*.egg-info", "*.egg-info"):
        project.repo.write(".gitignore", f"__pycache__/\n.coverage\n{covering}\n")
        assert "leavings" not in project.ledger("init").err, covering


def test_plan_names_what_makes_a_run_dirty_though_no_shard_stands_on_it(make_project):
    """`status` named it, and `record` after `plan` was dirty all the same."""
    project = make_project(CONFIG, {"src/a": "1"})
    project.repo.write("notes.txt", "")
    said = project.ledger("plan").err
    assert "beside notes.txt a run is dirty; commit them, or let .gitignore name them" in said
    assert "beside" not in project.ledger("plan", "HEAD~0", "--json").out
    project.repo.write(".gitledger/config.yaml", CONFIG + "policy: {allow_dirty: true}\n")
    assert ".gitledger/config.yaml a run" not in project.ledger("plan").err, "that it is edited is said anyway"
    project.repo.git("commit", "-qm", "Allow it", ".gitledger/config.yaml")
    assert "beside" not in project.ledger("plan").err


def test_a_private_key_beside_the_configuration_is_not_to_be_added_with_it(make_project):
    """`next: git add :/.gitledger` would have published it."""
    project = make_project(CONFIG, {"src/a": "1"})
    project.repo.commit({".gitledger/allowed_signers": ""})
    project.repo.write(".gitledger/of-ci", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n")
    said = project.ledger("init").err
    assert "move .gitledger/of-ci out of the work tree (it is a private key, never to be committed)" in said
    assert "git add" not in said
    (project.path / ".gitledger/of-ci").unlink()
    project.repo.git("checkout", ".gitledger")
    assert "next: look at .gitledger/config.yaml, then `git add" in project.ledger("init").err
