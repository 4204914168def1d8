"""Signing with keys as people hold them, and what others' programs get to see of them, through the command."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ONE = "version: 1\nrepository: demo\nshards:\n  it: {paths: [src], command: 'true', results: exit-status}\n"
SECRET = "correct horse"


@pytest.fixture
def one(make_project):
    """One shard; no key in the environment."""
    project = make_project(ONE, {"src/x": "x", ".gitattributes": "*.dat filter=spy\n", "a.dat": "1\n"})
    del project.repo.env["GITLEDGER_SIGNING_KEY"]
    return project


def trust(project, *publics: str) -> None:
    lines = [f"alice@example.org {public}\n" for public in publics]
    project.repo.commit({".gitledger/allowed_signers": "".join(lines)})


@contextlib.contextmanager
def agent(project, key: Path | None = None) -> Iterator[dict[str, str]]:
    """Run a real ssh-agent that holds one key; yields the environment that reaches it."""
    path = project.keys / "agent.sock"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 10
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    env = {"SSH_AUTH_SOCK": str(path)}
    if key is not None:
        subprocess.run(["ssh-add", "-q", str(key)], env=dict(project.repo.env) | env, check=True)
    yield env | {"AGENT": str(process.pid)}
    process.terminate()
    process.wait(10)


@pytest.mark.parametrize("spelling", ["key::{line}", "{line}", "{path}"])
def test_t07_a_key_that_only_the_agent_holds_signs(one, spelling):
    key, line = one.key("alice"), one.public("alice")
    with agent(one, key) as env:
        key.unlink()
        one.repo.git("config", "gpg.format", "ssh")
        one.repo.git("config", "user.signingKey", spelling.format(line=line, path=f"{key}.pub"))
        document = one.record("it", env=env)
    assert one.receipt(document["record"])["signer"]["backend"] == "agent"
    assert one.verify() == ("passed", set())


@pytest.mark.parametrize("command", [("run",), ("record", "--shard", "it")])
def test_r18_a_key_that_is_gone_when_the_night_is_over_loses_no_run(make_project, command):
    """An agent that forgets its keys after hours, a card that was pulled out: the next run needs no other night."""
    line = "echo it >> $OUT/ran; kill $AGENT; sleep 0.2; exit 5"
    shards = f"  it: {{command: [sh, -c, '{line}'], results: exit-status}}\n"
    shards += "  odd: {command: [no-such-tool], results: exit-status}\n"  # to be told apart from what is lost
    project = make_project(f"version: 1\nrepository: demo\nshards:\n{shards}")
    del project.repo.env["GITLEDGER_SIGNING_KEY"]
    out = {"OUT": str(project.keys)}
    with agent(project, project.key("alice")) as env:
        project.repo.git("config", "user.signingKey", f"key::{project.public('alice')}")
        first = project.ledger(*command, env=env | out, expect=3)
    assert "[not-recorded]" in first.err
    assert "can't sign" in first.err or "agent" in first.err

    with agent(project, project.key("alice")) as env:
        second = project.ledger("run", env=env | out | {"AGENT": "0"}, expect=1)

    assert "recorded what it had come to, which was not stored then: 0 passed and 1 failed of 1" in second.err
    assert (project.keys / "ran").read_text().count("it") == 2


def test_t07_an_agent_without_the_key_is_one_error(one):
    one.repo.git("config", "user.signingKey", f"key::{one.public('alice')}")
    with agent(one) as env:
        done = one.ledger("record", "--shard", "it", env=env, expect=3)
    assert "[agent-lacks-key]" in done.err.splitlines()[-1]
    assert "ssh-add" in done.err


def test_t07_a_passphrase_is_asked_for_once_by_the_program_that_ssh_would_ask(one):
    key = one.keys / "locked"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", SECRET, "-C", "", "-f", str(key)]
    subprocess.run(command, check=True)
    trust(one, (one.keys / "locked.pub").read_text().strip())
    asked = one.keys / "asked"
    program = one.keys / "askpass"
    program.write_text(f"#!/bin/sh\necho \"$1\" >> '{asked}'\necho '{SECRET}'\n")
    program.chmod(0o755)
    env = {"SSH_ASKPASS": str(program)}
    one.record("it", "--key", str(key), env=env)
    assert len(asked.read_text().splitlines()) == 1
    assert "locked" in asked.read_text()
    one.ledger("merge", "--key", str(key), env=env)
    assert len(asked.read_text().splitlines()) == 2
    assert one.verify() == ("passed", set())
    done = one.ledger("record", "--shard", "it", "--key", str(key), expect=2)
    assert "[passphrase-needed]" in done.err
    program.write_text("#!/bin/sh\necho wrong\n")
    assert "[passphrase-wrong]" in one.ledger("merge", "--key", str(key), env=env, expect=2).err


def test_a_file_that_comes_while_a_passphrase_is_asked_for_is_no_file_that_the_run_made(one):
    """The look at the work tree is begun before that, and made anew where it has become old."""
    key = one.keys / "locked"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", SECRET, "-C", "", "-f", str(key)]
    subprocess.run(command, check=True)
    program = one.keys / "askpass"
    program.write_text(f"#!/bin/sh\nsleep 1.1\ntouch '{one.path}/came.txt'\necho '{SECRET}'\n")
    program.chmod(0o755)
    document = one.record("it", "--key", str(key), env={"SSH_ASKPASS": str(program)})
    repo = one.receipt(document["record"])["repo"]
    assert (repo["dirty"], repo["dirty_paths"]) == (True, ["came.txt"])


def test_t07_a_key_that_others_can_read_is_refused_as_ssh_does(one):
    key = one.key("alice")
    key.chmod(0o644)
    done = one.ledger("record", "--shard", "it", "--key", str(key), expect=2)
    assert "[key-permissions]" in done.err
    assert "chmod 600" in done.err


def test_t07_a_relative_key_is_one_from_where_the_command_works(one, tmp_path):
    key = one.key("alice")
    relative = os.path.relpath(key, one.path)
    command = ["git-ledger", "-C", str(one.path), "record", "--shard", "it", "--key", relative]
    done = subprocess.run(
        command, cwd=tmp_path, env=dict(one.repo.env), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_t07_a_key_handed_over_as_text_signs(one):
    env = {"GITLEDGER_SIGNING_KEY": one.key("alice").read_text()}
    one.record("it", env=env)
    assert one.verify() == ("passed", set())


def test_s05_a_record_by_b_on_a_commit_by_a_credits_b_alone(one):
    """Author, committer and `user.email` say Alice; Bob's key signed."""
    one.repo.git("config", "user.email", "alice@example.org")
    one.record("it", "--key", str(one.key("bob")))
    assert one.verify() == ("failed", {"untrusted"})
    entry = one.ledger("log", "--json").document[0]["records"][0]
    assert entry["signer"] is None
    lines = f"alice@example.org {one.public('alice')}\nbob {one.public('bob')}\n"
    one.repo.commit({".gitledger/allowed_signers": lines})
    one.record("it", "--key", str(one.key("bob")))
    assert one.verify() == ("passed", set())
    assert one.ledger("log", "--json").document[0]["records"][0]["signer"] == "bob"


# --- what a run plants, and what git then runs for us ----------------------------------------------------------

SPY = "#!/bin/sh\nenv >> '{seen}'\ncat\n"
WHERE = {
    "filter": "git config filter.spy.clean '{spy}' && echo 2 > a.dat",
    "attributes": "git config filter.spy.clean '{spy}' && echo '* filter=spy' > .git/info/attributes && touch src/x",
    "fsmonitor": "git config core.fsmonitor '{spy}'",
    "hook": "cp '{spy}' .git/hooks/post-index-change && cp '{spy}' .git/hooks/reference-transaction && touch src/x",
    "hooks-path": "git config core.hooksPath '{keys}/hooks' && touch src/x",
}


@pytest.mark.parametrize("where", WHERE)
def test_what_a_run_leaves_in_gits_configuration_gets_no_key(one, where):
    """After the run git looks at the work tree for us, and runs filters and hooks that anybody configured."""
    spy, seen, hooks = one.keys / "spy", one.keys / "seen", one.keys / "hooks"
    hooks.mkdir()
    for path in (spy, hooks / "post-index-change", hooks / "reference-transaction"):
        path.write_text(SPY.format(seen=seen))
        path.chmod(0o755)
    plant = WHERE[where].format(spy=spy, keys=one.keys)
    env = {"GITLEDGER_SIGNING_KEY": one.key("alice").read_text(), "SSH_AUTH_SOCK": "/the/agent", "CANARY": "here"}
    one.ledger("record", "--shard", "planted", "--paths", "src", "--", "sh", "-c", plant, env=env, expect=None)
    found = seen.read_text() if seen.exists() else ""
    assert "OPENSSH PRIVATE KEY" not in found
    assert "/the/agent" not in found
    if where in ("filter", "attributes"):
        assert "CANARY=here" in found  # it did run, and saw what is not withheld


def test_what_signs_is_not_bent_by_variables_of_a_test_run(one):
    """`LD_PRELOAD`, `PYTHONPATH`, `GIT_*` do not reach ssh-keygen."""
    seen = one.keys / "seen"
    program = one.keys / "keygen"
    program.write_text(f"#!/bin/sh\nenv > '{seen}'\nexec ssh-keygen \"$@\"\n")
    program.chmod(0o755)
    one.repo.git("config", "gpg.ssh.program", str(program))
    one.repo.git("config", "user.signingKey", f"key::{one.public('alice')}")
    with agent(one, one.key("alice")) as env:
        bent = {
            "PYTHONPATH": "/evil",
            "GIT_DIR_X": "/evil",
            "COV_CORE_X": "/evil",
            "PYTEST_X": "/evil",
        }
        one.record("it", env=env | bent)
    assert "/evil" not in seen.read_text()
