"""Modes that git never writes and rounds when it checks out: `120777` is a symlink there, and `40755` a folder."""

from __future__ import annotations

from contextlib import suppress

import pytest

from gitledger.errors import StoreError

CONFIG = """\
version: 1
repository: demo
shards:
  it: {paths: [src], command: "true tests/l1", results: exit-status}
policy: {allow_carried: true}
"""


def commit_with_modes(stage, odd: dict[str, str]) -> None:
    """Commit what is in the work tree, the root's entries of these names with these modes, and check that out."""
    stage.repo.git("add", "-A")
    listed = stage.repo.git("ls-tree", stage.repo.git("write-tree")).splitlines()
    entries = []
    for line in listed:
        mode, _, oid, name = line.replace("\t", " ").split(" ", 3)
        entries.append((odd.get(name, mode.lstrip("0")), name, oid))
    commit = stage.repo.git("commit-tree", "-p", "HEAD", "-m", "x", stage.raw_tree(*entries))
    stage.repo.git("update-ref", "refs/heads/main", commit)
    stage.repo.git("reset", "-q", "--hard")
    assert not stage.repo.git("status", "--porcelain")


def an_odd_folder_above_the_tests(stage) -> str:
    stage.repo.write("tests/conftest.py", "x = 1\n")
    stage.repo.write("tests/l1/test_a.py", "def test_a(): pass\n")
    return "tests/conftest.py"


def conftest_as_an_odd_symlink(stage) -> str:
    stage.repo.write("tests/l1/test_a.py", "def test_a(): pass\n")
    stage.repo.write("real/conf.py", "x = 1\n")
    (stage.path / "conftest.py").symlink_to("real/conf.py")
    return "real/conf.py"


@pytest.mark.parametrize(
    ("make", "odd"),
    [
        (an_odd_folder_above_the_tests, {"tests": "40755"}),
        (conftest_as_an_odd_symlink, {"conftest.py": "120777"}),
        (an_odd_folder_above_the_tests, {"README.md": "100640"}),
    ],
    ids=["folder", "symlink", "another entry of the folder"],
)
def test_what_stands_in_a_tree_with_a_mode_that_git_never_writes_is_given_no_verdict(stage, make, odd):
    stage.repo.write(".gitledger/config.yaml", CONFIG)
    stage.trust()
    changed = make(stage)
    commit_with_modes(stage, odd)
    with suppress(StoreError):
        stage.record()
    (stage.path / changed).write_text("raise RuntimeError\n")
    commit_with_modes(stage, odd)
    passed, said = stage.verdict()
    assert not passed
    assert "error object-corrupt" in said
    assert f"'{next(iter(odd))}' with mode {next(iter(odd.values()))}, which git never writes" in said


def test_modes_that_git_has_written_are_read(stage):
    """Group-writable files of long ago, and modes with a leading zero, as some tools wrote them."""
    commit_with_modes(stage, {"README.md": "100664", "src": "040000"})
    stage.record()
    assert stage.verdict() == (True, "")
