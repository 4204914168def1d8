"""Init in a clone that leaves `.gitledger` out of its work tree: what HEAD says of it stands."""

from __future__ import annotations

import pytest


@pytest.fixture
def sparse(project, make_repo):
    """A clone that checks out `src` alone."""
    clone = make_repo("sparse")
    clone.git("remote", "add", "origin", str(project.path))
    clone.git("fetch", "-q", "origin", "main")
    clone.git("sparse-checkout", "set", "src")
    clone.git("reset", "-q", "--hard", "FETCH_HEAD")
    assert not (clone.path / ".gitledger").exists()
    return type(project)(clone, project.keys)


def test_init_takes_the_configuration_that_is_not_checked_out(sparse):
    said = sparse.ledger("init").err
    assert "HEAD's .gitledger/config.yaml holds; it is not checked out here" in said
    assert "is in .gitledger/allowed_signers" in said
    assert not (sparse.path / ".gitledger").exists()
    assert sparse.repo.git("status", "--porcelain") == ""


def test_init_writes_no_list_of_signers_over_one_that_is_not_checked_out(sparse):
    key = str(sparse.key("bob"))
    said = sparse.ledger("init", "--key", key).err
    restore = "git restore --ignore-skip-worktree-bits :/.gitledger/allowed_signers"
    assert restore in said
    assert not (sparse.path / ".gitledger").exists()
    sparse.repo.git(*restore.split()[1:])
    assert "added" in sparse.ledger("init", "--key", key).err
    listed = (sparse.path / ".gitledger/allowed_signers").read_text()
    assert [sparse.public(name) in listed for name in ("alice", "bob")] == [True, True]
