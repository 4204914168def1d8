"""`sync --from`: of a fork or a bundle only records that verify by policy's signers, with their bodies."""

from __future__ import annotations

import base64
import json
import subprocess

import pytest

from gitledger.records.ids import CommitId
from gitledger.store.ledger import BODIES_REF, RECORDS_REF, Ledger
from gitledger.store.libgit import LibgitObjects
from gitledger.store.objects import Identity

MALLORY = Identity("Mallory", "mallory@example.org")


@pytest.fixture
def fork(project):
    """A fork with a commit of its own on which Alice, whom the project trusts, has recorded."""
    path = project.path.parent / "fork"
    project.repo.git("clone", "-q", str(project.path), str(path))
    fork = type(project)(type(project.repo)(path, project.repo.env), project.keys)
    fork.repo.git("checkout", "-q", "-b", "topic")
    fork.repo.commit({"src/alpha.py": "def alpha():\n    return 1  # as ever\n"})
    fork.record("alpha")
    project.repo.git("fetch", "-q", str(path), "topic:topic")
    return fork


def lines(project, commit: str = "topic") -> list[str]:
    shown = project.repo.git("notes", "--ref=gitledger/records", "show", commit, check=False)
    return shown.splitlines()


def plant(fork, *added: bytes, bodies=(), commit: str = "HEAD") -> None:
    head = CommitId(fork.repo.git("rev-parse", commit))
    Ledger(LibgitObjects(fork.path / ".git")).append({head: added}, bodies, identity=MALLORY, message="m")


def take(project, *args: str, source: object = None, expect: int = 0):
    return project.ledger("sync", "--from", str(source), "--json", *args, expect=expect).document


def reasons(document) -> list[str]:
    return sorted(item["reason"] for item in document["refused"])


def test_a_forks_record_is_taken_with_its_bodies(project, fork):
    found = take(project, source=fork.path)
    assert (len(found["taken"]), found["known"], found["refused"]) == (1, 0, [])
    assert lines(project) == lines(fork)
    assert project.ledger("fsck", "--json").document["problems"] == []
    project.ledger("show", "topic", "--tests")
    again = take(project, source=fork.path)
    assert (again["taken"], again["known"]) == ([], 1)


def test_of_a_bundle_too(project, fork, tmp_path):
    fork.repo.git("bundle", "create", "-q", str(tmp_path / "x.bundle"), RECORDS_REF, BODIES_REF)
    assert len(take(project, source=tmp_path / "x.bundle")["taken"]) == 1
    assert project.ledger("fsck", "--json").document["problems"] == []


def test_a_stranger_is_refused_and_garbage_stays_where_it_is(project, fork):
    """Mallory signs well, with a key that nobody knows; forges; pastes; and leaves noise."""
    [good] = lines(fork)
    fork.record("alpha", "--key", str(fork.key("mallory")))
    document = json.loads(good)
    payload = json.loads(base64.b64decode(document["payload"]))
    payload["predicate"]["counts"]["passed"] += 1
    forged = {**document, "payload": base64.b64encode(json.dumps(payload).encode()).decode()}
    plant(fork, json.dumps(forged, separators=(",", ":"), sort_keys=True).encode(), b"noise")
    plant(fork, good.encode(), commit="main")
    plant(fork, bodies=[b"a body that no record names"])
    found = take(project, source=fork.path)
    assert len(found["taken"]) == 1
    assert reasons(found) == ["bad-signature", "malformed", "misplaced", "unknown-signer"]
    assert lines(project) == [good]
    assert lines(project, "main") == []
    assert project.ledger("fsck", "--json").document["problems"] == []


def test_a_fork_can_not_bring_its_own_signers(project, fork):
    """It is judged by HEAD here, or by the ref that is named, never by the fork's commit."""
    fork.repo.commit({".gitledger/allowed_signers": f'm namespaces="gitledger" {fork.public("mallory")}\n'})
    fork.record("alpha", "--key", str(fork.key("mallory")))
    project.repo.git("fetch", "-q", str(fork.path), "topic:topic")
    found = take(project, source=fork.path)
    assert (len(found["taken"]), reasons(found)) == (1, ["unknown-signer"])
    project.repo.git("checkout", "-q", "topic")
    found = take(project, "--policy-from", "main", source=fork.path)
    assert (found["taken"], reasons(found)) == ([], ["unknown-signer"])


def test_a_revoked_key_is_refused(project, fork):
    project.repo.commit({".gitledger/revoked_keys": f"{project.public('alice')}\n"})
    found = take(project, source=fork.path)
    assert (found["taken"], reasons(found)) == ([], ["key-revoked"])


def test_a_record_whose_bodies_are_missing_is_refused(project, fork):
    fork.repo.git("update-ref", "-d", BODIES_REF)
    found = take(project, source=fork.path)
    assert (found["taken"], reasons(found)) == ([], ["body-missing"])
    assert "gitledger" not in project.repo.git("for-each-ref")


def test_only_the_commits_that_are_asked_for(project, fork):
    fork.repo.commit({"README.md": "more"})
    fork.record("beta")
    project.repo.git("fetch", "-q", str(fork.path), "topic:topic")
    assert len(take(project, "--commits", "main..topic~1", source=fork.path)["taken"]) == 1
    assert len(lines(project, "topic~1")) == 1
    assert lines(project, "topic") == []
    assert len(take(project, "--commits", "main..topic", source=fork.path)["taken"]) == 1


def test_a_commit_that_is_not_here_is_passed_over(project, fork):
    project.repo.git("branch", "-D", "topic")
    project.repo.git("gc", "-q", "--prune=now")
    found = take(project, source=fork.path)
    assert (found["taken"], found["known"], found["refused"]) == ([], 0, [])


def test_nothing_of_the_fork_but_its_records_comes_here(project, fork):
    before = set(project.repo.git("for-each-ref", "--format=%(refname)").split())
    fork.repo.git("update-ref", "refs/notes/gitledger/evil", "HEAD")
    take(project, source=fork.path)
    assert set(project.repo.git("for-each-ref", "--format=%(refname)").split()) - before == {
        RECORDS_REF,
        BODIES_REF,
    }


@pytest.mark.parametrize(
    ("args", "status", "code"),
    [
        (("--from", "/nowhere/at-all"), 3, "fetch-failed"),
        (("--from", "--upload-pack=touch x"), 2, "bad-source"),
        (("--from", ""), 2, "bad-source"),
        (("--commits", "a..b"), 2, "bad-options"),
        (("--from", "x", "--fetch-only"), 2, "bad-options"),
        (("--from", ".", "--commits", "nothing..here"), 2, "unknown-commit"),
        (("--from", ".", "--commits", "--all"), 2, "unknown-commit"),
    ],
)
def test_what_can_not_be_asked_is_one_clear_error(project, args, status, code):
    done = project.ledger("sync", *args, expect=status)
    assert f"[{code}]" in done.err
    assert len(done.err.splitlines()) == 1


def test_no_temporary_folder_is_left(project, fork, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    take(project, source=fork.path)
    done = subprocess.run(
        ["git", "ledger", "sync", "--from", str(fork.path)],
        cwd=project.path, env=dict(project.repo.env) | {"TMPDIR": str(temporary)}, check=True, capture_output=True,
    )  # fmt: skip
    assert b"took 0 records, 1 here already, 0 refused" in done.stdout
    assert list(temporary.iterdir()) == []
