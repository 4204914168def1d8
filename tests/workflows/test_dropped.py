"""A record that was dropped with plain git: what it says against a commit still counts, what it says for one doesn't."""

from __future__ import annotations

import pytest

RECORDS = "gitledger/records"
CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: test -e ok, results: exit-status}
policy: {allow_carried: true}
"""


@pytest.fixture
def flaky(make_project):
    """One shard, green on HEAD, and red when it ran again."""
    project = make_project(CONFIG, {"src/a.py": "x = 1\n", ".gitignore": "ok\n"})
    (project.path / "ok").touch()
    project.record("lint")
    (project.path / "ok").unlink()
    project.record("lint", expect=1)
    return project


def drop(repo, outcome: str, *, on: str = "HEAD") -> None:
    """Take the records of one outcome out of a note, as an ordinary step forward of the ref."""
    lines = repo.git("notes", f"--ref={RECORDS}", "show", on).splitlines()
    kept = [
        line for line, is_red in zip(lines, map(is_failed, lines), strict=True) if is_red != (outcome == "red")
    ]
    if kept:
        blob = repo.git("hash-object", "-w", "--stdin", input="".join(f"{line}\n" for line in kept).encode())
        repo.git("notes", f"--ref={RECORDS}", "add", "-f", "-C", blob, on)
    else:
        repo.git("notes", f"--ref={RECORDS}", "remove", on)


def is_failed(line: str) -> bool:
    import base64
    import json

    return json.loads(base64.b64decode(json.loads(line)["payload"]))["predicate"]["outcome"] == "failed"


def findings(project) -> dict[str, bool]:
    document = project.ledger("verify", "--json", expect=None).document
    return {item["code"]: item["blocks"] for item in document["findings"]}


def test_s16_a_dropped_failure_still_blocks_and_is_named(flaky):
    assert flaky.verify() == ("failed", {"not-green"})
    drop(flaky.repo, "red")
    assert flaky.verify() == ("failed", {"not-green"})
    assert findings(flaky)["records-dropped"] is False
    assert flaky.plan()["lint"] == ("stale", "not-green")


def test_s16_a_failure_that_the_remote_dropped_blocks_in_a_clone_that_never_saw_it(flaky, make_repo):
    bare = make_repo("remote.git", "--bare")
    flaky.repo.git("remote", "add", "origin", str(bare.path))
    flaky.repo.git("push", "-q", "origin", "main")
    flaky.ledger("sync", "origin")
    drop(bare, "red", on=flaky.repo.git("rev-parse", "HEAD"))
    fresh = make_repo("fresh")
    fresh.git("remote", "add", "origin", str(bare.path))
    fresh.git("fetch", "-q", "origin", "main")
    fresh.git("reset", "-q", "--hard", "FETCH_HEAD")
    clone = type(flaky)(fresh, flaky.keys)
    clone.ledger("sync", "--fetch-only", "origin")
    assert clone.verify() == ("failed", {"not-green"})


def test_s16_a_failure_dropped_from_an_ancestor_still_keeps_it_from_being_carried(flaky):
    flaky.repo.commit({"README.md": "x\n"})
    assert flaky.plan()["lint"] == ("stale", "not-green")
    drop(flaky.repo, "red", on="HEAD^")
    assert flaky.plan()["lint"] == ("stale", "not-green")
    flaky.repo.git("notes", f"--ref={RECORDS}", "remove", "HEAD^")
    assert flaky.plan()["lint"] == ("stale", "not-green")


def test_what_was_dropped_makes_nothing_green(flaky):
    (flaky.path / "ok").touch()
    flaky.record("lint")
    assert flaky.verify() == ("passed", set())
    assert "records-dropped" not in findings(flaky)
    flaky.repo.git("notes", f"--ref={RECORDS}", "remove", "HEAD")
    assert flaky.verify()[0] == "failed"
    flaky.record("lint")
    assert flaky.verify() == ("passed", set())
    assert findings(flaky)["records-dropped"] is False
