"""A real `git push` with the installed hook: judged once, published in the same go."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitledger.workflows.pre_push import PushLine, pre_push
from gitledger.workflows.session import open_session

CONFIG = """\
version: 1
repository: demo
shards:
  it: {paths: [src, check.sh], command: [sh, check.sh], results: exit-status}
hooks: {pre_push: MODE, protect: [release]}
"""


@pytest.fixture
def pushed(make_project, make_repo, tmp_path: Path):
    """A project with a bare remote that has its configuration, the hook, and a counter of hook runs."""

    def make(mode: str):
        project = make_project(CONFIG.replace("MODE", mode), {"src/a": "1", "check.sh": "exit 0\n"})
        make_repo("server.git", "--bare")
        project.repo.git("remote", "add", "origin", str(tmp_path / "server.git"))
        project.repo.git("push", "-q", "origin", "main")
        project.repo.git("remote", "set-head", "origin", "main")
        counter = project.path / ".git/hooks/pre-push"
        counter.parent.mkdir(exist_ok=True)
        counter.write_text(f"#!/bin/sh\necho x >> {tmp_path}/runs\n")
        counter.chmod(0o755)
        project.ledger("init")
        return project

    return make


def entered(project):
    env = dict(project.repo.env)
    return open_session(project.path, environ=env, home=Path(env["HOME"]), now=lambda: datetime.now(UTC))


def remote_refs(project) -> set[str]:
    return {line.split("\t")[1] for line in project.repo.git("ls-remote", "origin").splitlines()}


def test_s06_one_hook_run_stopped_without_evidence_and_published_with_it(pushed, tmp_path: Path):
    project = pushed("block")
    project.repo.commit({"src/a": "2"})
    before = project.repo.git("ls-remote", "origin")
    with pytest.raises(AssertionError, match=r"never-recorded"):
        project.repo.git("push", "origin", "main")
    assert project.repo.git("ls-remote", "origin") == before
    project.record("it")
    project.repo.git("push", "-q", "origin", "main")
    assert {"refs/notes/gitledger/records", "refs/notes/gitledger/bodies"} <= remote_refs(project)
    assert (tmp_path / "runs").read_text().split() == ["x", "x"]


def test_warn_lets_the_push_through_and_protect_stops_it(pushed):
    project = pushed("warn")
    project.repo.commit({"src/a": "2"})
    project.repo.git("push", "-q", "origin", "main")
    with pytest.raises(AssertionError, match="the push is stopped"):
        project.repo.git("push", "origin", "main:release")


def test_the_pushed_change_can_not_loosen_the_hook(pushed):
    project = pushed("block")
    config = CONFIG.replace("MODE", "off")
    project.repo.commit({".gitledger/config.yaml": config})
    with pytest.raises(AssertionError, match="the push is stopped"):
        project.repo.git("push", "origin", "main")
    project.repo.git("config", "gitledger.prePush", "off")
    project.repo.git("push", "-q", "origin", "main")


def test_deletions_and_pushes_of_nothing_but_the_ledger_are_not_judged(pushed):
    project = pushed("block")
    project.repo.git("push", "-q", "--no-verify", "origin", "main:old")
    project.repo.git("push", "-q", "origin", ":old")
    project.record("it")
    project.repo.git("push", "-q", "origin", "refs/notes/gitledger/*:refs/notes/gitledger/*")


def test_a_linked_worktree_and_a_branch_without_configuration(pushed, tmp_path: Path):
    project = pushed("block")
    project.repo.git("worktree", "add", "-q", "-b", "topic", str(tmp_path / "linked"))
    linked = type(project)(type(project.repo)(tmp_path / "linked", project.repo.env), project.keys)
    linked.repo.commit({"src/a": "3"})
    with pytest.raises(AssertionError, match="the push is stopped"):
        linked.repo.git("push", "origin", "topic")
    linked.record("it")
    linked.repo.git("push", "-q", "origin", "topic")


def test_init_is_idempotent_and_uninstall_restores_the_hook_that_was_there(pushed, tmp_path: Path):
    project = pushed("warn")
    hook = project.path / ".git/hooks/pre-push"
    first = hook.read_text()
    done = project.ledger("init")
    assert "✓" not in done.err
    assert hook.read_text() == first
    specs = project.repo.git("config", "--get-all", "remote.origin.fetch").splitlines()
    assert len(specs) == len(set(specs)) == 4
    project.ledger("init", "--uninstall")
    assert str(tmp_path / "runs") in hook.read_text()
    assert project.repo.git("config", "--get-all", "remote.origin.fetch").splitlines() == specs[:1]


def test_s07_plain_fetch_against_a_remote_without_any_ledger(pushed):
    project = pushed("warn")
    project.repo.git("fetch", "-q", "origin")


def test_run_makes_the_evidence_that_is_missing_and_then_judges(pushed):
    project = pushed("run")
    project.repo.commit({"src/a": "2"})
    project.repo.git("push", "-q", "origin", "main")
    assert project.verify()[0] == "passed"
    assert "refs/notes/gitledger/records" in remote_refs(project)

    project.repo.commit({"check.sh": "exit 1\n"})
    with pytest.raises(AssertionError, match="the push is stopped"):
        project.repo.git("push", "origin", "main")


def test_run_ends_within_the_hooks_time_and_stops_the_push(pushed):
    project = pushed("run")
    short = CONFIG.replace("MODE", "run").replace("[release]", "[release], timeout: 8s")
    project.repo.commit({"check.sh": "sleep 300\n", ".gitledger/config.yaml": short})
    project.repo.git("push", "-q", "--no-verify", "origin", "main")
    project.repo.commit({"src/a": "2"})
    with pytest.raises(AssertionError, match="the hook's time was up"):
        project.repo.git("push", "origin", "main")
    assert project.plan()["it"] == ("stale", "incomplete")


def test_run_runs_only_what_is_checked_out(pushed):
    project = pushed("run")
    project.repo.git("checkout", "-q", "-b", "topic")
    project.repo.commit({"src/a": "2"})
    project.repo.git("checkout", "-q", "main")
    with pytest.raises(AssertionError, match="is not checked out, so nothing was run"):
        project.repo.git("push", "origin", "topic")


@pytest.mark.parametrize("to", ["url", "new remote", "other spelling", "rewritten url"])
def test_a_push_by_url_or_to_a_remote_by_another_name_is_judged_by_the_policy_of_that_remote(
    pushed, tmp_path: Path, to
):
    project = pushed("block")
    server = str(tmp_path / "server.git")
    project.repo.git("remote", "add", "up", server)
    project.repo.git("config", f"url.{tmp_path}/.insteadOf", "short:")
    where = {
        "url": server,
        "new remote": "up",
        "other spelling": f"file://{server}/",
        "rewritten url": "short:server.git",
    }
    project.repo.commit({"src/a": "2"})
    with pytest.raises(AssertionError, match="the push is stopped"):
        project.repo.git("push", where[to], "main")
    project.record("it")
    project.repo.git("push", "-q", where[to], "main")
    assert project.repo.git("for-each-ref", "refs/remotes/up/HEAD") == ""


def test_a_remote_that_was_never_fetched_is_asked_for_its_policy_and_keeps_no_ref_here(pushed, tmp_path: Path):
    project = pushed("block")
    project.repo.git("remote", "remove", "origin")
    project.repo.commit({"src/a": "2"})
    server = str(tmp_path / "server.git")
    before = project.repo.git("for-each-ref")
    with pytest.raises(AssertionError, match="the push is stopped"):
        project.repo.git("push", server, "main:topic")
    assert project.repo.git("for-each-ref") == before


def test_a_remote_without_an_answer_is_pushed_to_only_as_the_own_tree_allows(pushed, tmp_path: Path):
    project = pushed("block")
    project.repo.git("remote", "remove", "origin")
    (tmp_path / "server.git/HEAD").rename(tmp_path / "HEAD")
    line = PushLine("refs/heads/main", project.repo.git("rev-parse", "HEAD"), "refs/heads/main", "0" * 40)
    done = pre_push(entered(project), str(tmp_path / "server.git"), [line])
    assert not done.allowed
    assert "can't be asked for its policy" in done.messages[0]


def test_a_default_branch_set_by_hand_opens_no_protected_branch_and_is_named(pushed):
    project = pushed("block")
    config = CONFIG.replace("release", "main").replace("MODE", "off")
    project.repo.commit({".gitledger/config.yaml": config.replace("off", "block")})
    project.repo.git("push", "-q", "--no-verify", "origin", "main")
    project.repo.git("checkout", "-q", "-b", "loose")
    project.repo.commit({".gitledger/config.yaml": config.replace("[main]", "[]")})
    project.repo.git("push", "-q", "--no-verify", "origin", "loose")
    project.repo.git("remote", "set-head", "origin", "loose")
    project.repo.git("checkout", "-q", "main")
    project.repo.commit({"src/a": "2"})
    with pytest.raises(AssertionError, match=r"policy origin/main\); the push is stopped"):
        project.repo.git("push", "origin", "main")
    line = PushLine("refs/heads/main", project.repo.git("rev-parse", "main"), "refs/heads/topic", "0" * 40)
    said = pre_push(entered(project), "origin", [line])
    assert said.allowed
    assert said.messages == ["refs/heads/topic: not judged, since pre_push is off at origin/loose"]
