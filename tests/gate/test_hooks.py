"""A real `git push` through each kind of hook: what is seen of it is judged, and a remote that hangs holds nobody up."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitledger.workflows import pre_push as module
from gitledger.workflows import push_rules

CONFIG = """\
version: 1
repository: demo
shards:
  it: {paths: [src, check.sh], command: [sh, check.sh], results: exit-status}
hooks: {pre_push: block, timeout: TIME}
policy: {allowed_signers: [alice@example.org, runner@example.org]}
"""


@pytest.fixture
def make_pushing(make_hosted):
    """Return a maker of hosted projects whose policy is to block, with a commit ahead of the server."""

    def make(timeout: str = "30s"):
        hosted = make_hosted(CONFIG.replace("TIME", timeout), {"src/a": "1", "check.sh": "exit 0\n"})
        hosted.repo.git("remote", "set-head", "origin", "main")
        hosted.repo.commit({"src/a": "2"})
        return hosted

    return make


@pytest.fixture
def silent_server() -> Iterator[str]:
    """The git:// URL of a server that accepts connections and never answers."""
    listener = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                held.append(listener.accept()[0])
            except OSError:
                return

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield f"git://127.0.0.1:{listener.getsockname()[1]}/repo.git"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(10)
    for connection in held:
        connection.close()


def push(
    hosted, *args: str, where: Path | None = None, env: dict[str, str] | None = None, before: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a real `git push`, with options of git's `before` that word, which must end by itself."""
    return subprocess.run(
        ["git", *before, "push", *args],
        cwd=where or hosted.path,
        env=dict(hosted.repo.env) | (env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )


def stands(hosted, ref: str) -> str:
    return hosted.repo.git("ls-remote", str(hosted.server), ref).partition("\t")[0]


def test_s18_the_remote_hangs_while_the_hook_runs_and_the_push_goes_on(make_pushing):
    hosted = make_pushing("2s")
    hosted.record("it")
    hosted.ledger("init")
    slow = hosted.server / "hooks" / "update"
    slow.parent.mkdir(exist_ok=True)
    slow.write_text("#!/bin/sh\ncase $1 in refs/heads/*) exit 0 ;; esac\nsleep 60\n")
    slow.chmod(0o755)
    started = time.monotonic()
    done = push(hosted, "origin", "main")
    assert time.monotonic() - started < 20
    assert done.returncode == 0, done.stdout
    assert "refs/heads/main: evidence passed (policy origin/main)" in done.stdout
    assert "the ledger was not published" in done.stdout
    assert "did not end within" in done.stdout
    assert stands(hosted, "refs/heads/main") == hosted.head()


@pytest.mark.parametrize(("mode", "allowed"), [("block", False), ("run", False), ("warn", True), ("off", True)])
def test_s18_a_remote_that_hangs_before_its_policy_is_known_is_no_remote_without_policy(
    make_pushing, silent_server, monkeypatch, mode, allowed
):
    hosted = make_pushing()
    hosted.repo.git("remote", "set-head", "-d", "origin")
    hosted.repo.git("remote", "set-url", "origin", silent_server)
    hosted.repo.git("config", "gitledger.prePush", mode)
    monkeypatch.setattr(push_rules, "_ASK_S", 0.3)
    line = module.PushLine("refs/heads/main", hosted.head(), "refs/heads/main", "0" * 40)
    done = module.pre_push(hosted.session(), "origin", [line])
    assert done.allowed is allowed
    assert any(
        "can't be asked for its policy: git ls-remote did not end within 0.3 s" in text for text in done.messages
    ) is (mode != "off")
    assert not any("there is no policy" in text for text in done.messages)


def test_s06_a_push_without_new_evidence_makes_no_connection_of_its_own(make_pushing):
    hosted = make_pushing()
    hosted.record("it")
    hosted.ledger("sync")
    hosted.ledger("init")
    hosted.repo.git("config", "remote.origin.uploadpack", "sleep 60; false")  # a fetch from there would hang
    started = time.monotonic()
    assert push(hosted, "origin", "main").returncode == 0
    assert time.monotonic() - started < 15


def test_several_refs_in_one_push_are_judged_each(make_pushing):
    """A branch that exists, a new one, a tag, a deletion: one of them without evidence stops them all."""
    hosted = make_pushing()
    hosted.repo.git("push", "-q", "origin", "main~1:refs/heads/old")
    hosted.record("it")
    hosted.repo.git("tag", "-am", "v1", "v1")
    hosted.repo.git("tag", "blob", hosted.head("HEAD:src/a"))
    hosted.repo.git("checkout", "-q", "-b", "topic")
    hosted.repo.commit({"src/a": "3"})
    hosted.ledger("init")
    done = push(hosted, "--atomic", "origin", "main", "topic", "v1", "blob", ":old")
    assert done.returncode == 1
    assert "refs/heads/main: evidence passed" in done.stdout
    assert "refs/tags/v1: evidence passed" in done.stdout
    assert "refs/heads/topic: evidence failed" in done.stdout
    assert stands(hosted, "refs/heads/old") != ""
    hosted.record("it")
    done = push(hosted, "--atomic", "origin", "main", "topic", "v1", "blob", ":old")
    assert done.returncode == 0, done.stdout
    assert stands(hosted, "refs/heads/old") == ""
    assert stands(hosted, "refs/notes/gitledger/records") != ""


def test_a_bare_hooks_path_is_respected_from_a_linked_worktree_too(make_pushing, tmp_path):
    hosted = make_pushing()
    hosted.repo.git("config", "core.hooksPath", str(tmp_path / "hooks"))
    hosted.ledger("init")
    assert not (hosted.path / ".git/hooks/pre-push").exists()
    hosted.repo.git("worktree", "add", "-q", "-b", "topic", str(tmp_path / "linked"))
    done = push(hosted, "origin", "topic", where=tmp_path / "linked")
    assert done.returncode == 1
    assert "never recorded" in done.stdout
    hosted.record("it")
    assert push(hosted, "origin", "topic", where=tmp_path / "linked").returncode == 0
    assert stands(hosted, "refs/heads/topic") == hosted.head("topic")


def test_a_hook_of_husky_hands_everything_on(make_pushing):
    """As husky 9 lays it out: git runs `.husky/_/pre-push`, which runs the tracked `.husky/pre-push`."""
    hosted = make_pushing()
    hosted.repo.git("config", "core.hooksPath", ".husky/_")
    wrapper = '#!/usr/bin/env sh\ns="$(dirname "$(dirname "$0")")/$(basename "$0")"\n[ ! -f "$s" ] && exit 0\nsh -e "$s" "$@"\n'
    hosted.repo.write(".husky/_/pre-push", wrapper, mode=0o755)
    hosted.repo.write(".husky/_/.gitignore", "*")
    hosted.repo.commit({".husky/pre-push": 'git-ledger hook pre-push "$@"\n'})
    done = push(hosted, "origin", "main")
    assert (done.returncode, "refs/heads/main: evidence failed" in done.stdout) == (1, True)
    hosted.record("it")
    assert push(hosted, "origin", "main").returncode == 0


def pre_commit(**variables: str) -> dict[str, str]:
    """What pre-commit 4 sets for its hooks: no input, no arguments, these variables."""
    names = {"PRE_COMMIT": "1", "PRE_COMMIT_REMOTE_NAME": "origin", "PRE_COMMIT_REMOTE_URL": "u"}
    return names | {f"PRE_COMMIT_{name.upper()}": value for name, value in variables.items()}


def test_what_pre_commit_shows_of_a_push_is_judged_and_what_it_hides_is_said(make_pushing):
    hosted = make_pushing()
    branch = {"local_branch": "refs/heads/main", "remote_branch": "refs/heads/main"}
    known = pre_commit(**branch, from_ref=hosted.head("main~1"), to_ref=hosted.head())
    for env in (known, pre_commit(**branch)):  # a branch that is new on the remote comes without its commits
        done = hosted.ledger("hook", "pre-push", env=env, expect=1)
        assert "refs/heads/main: evidence failed" in done.err
        assert "pre-commit shows the first ref of a push" in done.err
    gone = pre_commit(local_branch="(delete)", remote_branch="refs/heads/old")
    assert hosted.ledger("hook", "pre-push", env=gone).err == ""


def test_where_nothing_can_be_seen_of_a_push_head_is_judged(make_pushing):
    hosted = make_pushing()
    done = hosted.ledger("hook", "pre-push", expect=1)
    assert "refs/heads/main: evidence failed" in done.err
    assert "hides what is pushed" in done.err


@pytest.mark.parametrize("reader", ['git lfs pre-push "$@"', "(no use_stdin)"], ids=["git lfs", "lefthook"])
def test_refs_that_somebody_else_has_read_are_not_taken_for_none(make_pushing, reader):
    """git hands a hook its input once; `git lfs pre-push` reads it, and lefthook hands on none unless told to."""
    hosted = make_pushing()
    line = "cat >/dev/null" if "lfs" in reader else "exec </dev/null"
    hosted.repo.write(".git/hooks/pre-push", f'#!/bin/sh\n{line}\ngit-ledger hook pre-push "$@"\n', mode=0o755)
    done = push(hosted, "origin", "main")
    assert (done.returncode, "refs/heads/main: evidence failed" in done.stdout) == (1, True)
    assert "handed no refs" in done.stdout
    hosted.repo.git("checkout", "-q", "-b", "topic", "main~1")
    done = push(hosted, "origin", "main:other")  # what can't be judged is said, and HEAD is there already
    assert (done.returncode, "handed no refs" in done.stdout) == (0, True)
    hosted.repo.git("branch", "-qD", "main")
    hosted.repo.git("fetch", "-q", "origin")
    assert "git ledger" not in push(hosted, "origin", "topic:main").stdout


def test_a_push_of_nothing_is_told_from_one_that_is_hidden_where_git_itself_calls(make_pushing):
    hosted = make_pushing()
    hosted.ledger("init")
    done = push(hosted, "origin", "main~1:main")
    assert (done.returncode, done.stdout.strip()) == (0, "Everything up-to-date")
    hook = hosted.path / ".git/hooks/pre-push"
    hook.rename(hook.with_name("ours"))
    hosted.repo.write(".git/hooks/pre-push", f'#!/bin/sh\ncat >/dev/null\n"{hook.parent}/ours" "$@"\n', mode=0o755)
    done = push(hosted, "origin", "main")
    assert (done.returncode, "refs/heads/main: evidence failed" in done.stdout) == (1, True)


def test_what_is_pushed_from_another_repository_than_the_hooks_folder_is_judged_there(make_pushing, tmp_path):
    """`git --git-dir` leaves the folder as it is, and that may lie nowhere, or in a clone of something else."""
    hosted = make_pushing()
    hosted.ledger("init")
    other, told = tmp_path / "other", f"--git-dir={hosted.path}/.git"
    hosted.repo.git("clone", "-q", str(hosted.server), str(other))
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    dots = {"GIT_DIR": str(hosted.path / ".git"), "GIT_WORK_TREE": str(hosted.path)}
    for where, env in ((other, {}), (nowhere, {}), (other, dots), (hosted.path / "src", dots)):
        done = push(hosted, "origin", "main:topic", where=where, env=env, before=() if env else (told,))
        assert (done.returncode, "refs/heads/topic: evidence failed" in done.stdout) == (1, True), done.stdout
    hosted.record("it")
    assert push(hosted, "origin", "main:topic", where=other, before=(told,)).returncode == 0
    assert stands(hosted, "refs/notes/gitledger/records") != ""


def test_a_commit_that_can_not_be_read_here_is_not_taken_for_none(make_pushing, tmp_path):
    """It lies where the push alone is pointed: nobody can judge it, so nobody lets it through."""
    hosted = make_pushing()
    hosted.ledger("init")
    hosted.repo.git("clone", "-q", str(hosted.path), str(tmp_path / "other"))
    other = type(hosted.repo)(tmp_path / "other", hosted.repo.env)
    commit = other.commit({"src/a": "3"})
    where = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(tmp_path / "other/.git/objects")}
    done = push(hosted, "origin", f"{commit}:refs/heads/topic", env=where)
    assert (done.returncode, "refs/heads/topic: can't be judged" in done.stdout) == (1, True), done.stdout
    assert stands(hosted, "refs/heads/topic") == ""


def test_a_remote_whose_head_names_no_branch_is_said_to_have_no_policy_and_how_it_gets_one(make_pushing):
    """As a server's HEAD of `master` beside a branch `main`: whoever pushes learns that nothing judges."""
    hosted = make_pushing()
    hosted.ledger("init")
    hosted.repo.git("remote", "set-head", "-d", "origin")
    hosted.repo.git("--git-dir", str(hosted.server), "symbolic-ref", "HEAD", "refs/heads/master")
    done = push(hosted, "origin", "main:topic")
    assert (done.returncode, "origin has branches and no default one" in done.stdout) == (0, True)
    (told,) = (line for line in done.stdout.splitlines() if "no default one" in line)
    assert "its HEAD says master, and there is main. So this push is not judged" in told
    assert told.endswith("In this clone alone, to judge by the policy of main: git remote set-head origin main")
    typed(hosted, told)
    assert push(hosted, "origin", "main:another").returncode == 1
    assert push(hosted, "origin", "main").returncode == 1


def test_what_mends_the_head_of_a_server_mends_it_for_everybody(make_pushing):
    hosted = make_pushing()
    hosted.ledger("init")
    hosted.repo.git("remote", "set-head", "-d", "origin")
    hosted.repo.git("--git-dir", str(hosted.server), "symbolic-ref", "HEAD", "refs/heads/master")
    told = push(hosted, "origin", "main:topic").stdout
    assert "`git symbolic-ref HEAD refs/heads/main`" in told
    hosted.repo.git("--git-dir", str(hosted.server), "symbolic-ref", "HEAD", "refs/heads/main")
    assert push(hosted, "origin", "main:another").returncode == 1


def test_a_default_branch_that_was_never_fetched_is_fetched_by_what_is_told_to_type(make_pushing):
    """As in a clone of a single branch: `git remote set-head` alone would know no such branch."""
    hosted = make_pushing()
    hosted.ledger("init")
    hosted.repo.git("push", "-q", "--no-verify", "origin", "main~1:refs/heads/aside")
    hosted.repo.git("remote", "set-head", "-d", "origin")
    hosted.repo.git("update-ref", "-d", "refs/remotes/origin/main")
    hosted.repo.git("--git-dir", str(hosted.server), "symbolic-ref", "HEAD", "refs/heads/master")
    done = push(hosted, "origin", "main:topic")
    (told,) = (line for line in done.stdout.splitlines() if "no default one" in line)
    assert "there is main (and aside)" in told
    assert "to judge by the policy of main: git fetch origin && " in told
    typed(hosted, told)
    assert push(hosted, "origin", "main:another").returncode == 1


def typed(hosted, told: str) -> None:
    """Type what a line of the hook ends in."""
    command = told.rpartition(": ")[2]
    subprocess.run(command, shell=True, cwd=hosted.path, env=dict(hosted.repo.env), check=True, timeout=60)


def test_of_an_empty_remote_a_newcomer_learns_that_this_is_the_first_push_and_what_comes(make_pushing, make_repo):
    hosted = make_pushing()
    hosted.record("it")
    hosted.repo.git("remote", "remove", "origin")
    hosted.repo.git("remote", "add", "origin", str(make_repo("fresh.git", "--bare").path))
    hosted.ledger("init")
    done = push(hosted, "origin", "main")
    assert (done.returncode, "set-head" in done.stdout) == (0, False), done.stdout
    (told,) = (line for line in done.stdout.splitlines() if "origin has no branch yet" in line)
    assert "this is the first push to it" in told
    assert "published 1 record to origin" in done.stdout
    assert hosted.ledger("verify").status == 0, "as it is told to type, right then"
    hosted.repo.commit({"src/a": "3"})
    done = push(hosted, "origin", "main")
    assert (done.returncode, "evidence failed (policy origin/main)" in done.stdout) == (1, True), done.stdout


@pytest.mark.parametrize("known", ["tracked", "never fetched", "beside a tag of that name"])
def test_what_the_hook_tells_to_type_names_the_policy_shortly(make_pushing, known):
    """By the ref that it was taken from, where that names it here, else by twelve digits; never by forty."""
    hosted = make_pushing()
    hosted.ledger("init")
    trusted = hosted.head("origin/main")
    if known == "never fetched":
        hosted.repo.git("update-ref", "--no-deref", "-d", "refs/remotes/origin/HEAD")
        hosted.repo.git("update-ref", "-d", "refs/remotes/origin/main")
    changed = (hosted.path / ".gitledger/config.yaml").read_text().replace("paths: [src,", "paths: [src/a,")
    hosted.repo.commit({".gitledger/config.yaml": changed})
    if known == "beside a tag of that name":  # whoever may push may have pushed it, and git would read it first
        hosted.repo.git("tag", "origin/main", "main")
    hosted.record("it")
    done = push(hosted, "origin", "main:topic")
    assert (done.returncode, trusted in done.stdout) == (1, False), done.stdout
    word = "origin/main" if known == "tracked" else trusted[:12]
    command = f"git ledger verify --policy-from {word} --accept-shards"
    assert f"try: {command}  # " in done.stdout
    assert hosted.ledger(*command.split()[2:]).out.endswith("verdict: passed\n")


def test_no_variable_says_of_a_push_that_it_is_our_own(make_pushing):
    """What we start gets one, and hands it on: a server's hook that pushes to a mirror is nobody's ledger."""
    hosted = make_pushing()
    hosted.ledger("init")
    assert push(hosted, "origin", "main", env={"GITLEDGER_IN_PUSH": "1"}).returncode == 1


def test_a_ref_as_it_was_typed_may_hold_blanks(make_pushing):
    hosted = make_pushing()
    hosted.ledger("init")
    done = push(hosted, "origin", "HEAD@{0 days ago}:refs/heads/topic")
    assert (done.returncode, "refs/heads/topic: evidence failed" in done.stdout) == (1, True), done.stdout


def test_one_push_asks_for_a_passphrase_once(make_pushing, tmp_path):
    """Two branches at one commit whose shard is red: run for each, signed by one key that was opened once."""
    hosted = make_pushing()
    key = hosted.key("locked")
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-f", str(key)], check=True, capture_output=True)
    signers = hosted.path / ".gitledger/allowed_signers"
    line = f'runner@example.org namespaces="gitledger" {hosted.public("locked")}\n'
    hosted.repo.commit({".gitledger/allowed_signers": signers.read_text() + line, "check.sh": "exit 1\n"})
    hosted.repo.git("push", "-q", "origin", "main")
    hosted.repo.commit({"src/a": "9"})
    hosted.repo.git("branch", "twin")
    hosted.repo.git("config", "gitledger.prePush", "run")
    hosted.repo.git("config", "gitledger.signingKey", str(key))
    ask = tmp_path / "ask"
    ask.write_text(f"#!/bin/sh\necho x >> {tmp_path}/asked\necho secret\n")
    ask.chmod(0o755)
    hosted.repo.env.update({"SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"})
    hosted.ledger("init", "--key", str(hosted.key("alice")))
    done = push(hosted, "origin", "main", "twin")
    assert done.returncode == 1
    assert done.stdout.count("ran 1 shard") == 2, done.stdout
    assert (tmp_path / "asked").read_text().split() == ["x"]
