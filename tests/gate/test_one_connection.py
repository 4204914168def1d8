"""One `git push` asks for a passphrase or a touch at most once for the ledger: ssh connects once, lost races included."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitledger.store.repository import open_repository
from gitledger.store.ssh_sharing import one_connection

CONFIG = """\
version: 1
repository: demo
shards:
  it: {paths: [src, check.sh], command: [sh, check.sh], results: exit-status}
hooks: {pre_push: warn}
policy: {allowed_signers: [alice@example.org, runner@example.org]}
"""
STAND_IN = """\
#!/bin/sh
# What git takes for ssh: it connects nowhere, runs what is asked for here, and notes each time that it is called.
for word in "$@"; do
  if [ "$word" = -G ]; then echo "controlpath ${CONTROL_PATH:-none}"; exit; fi
  if [ "$word" = -O ]; then exit; fi
  last=$word
done
printf '%s\\n' "$*" >> CALLS
exec sh -c "$last"
"""


@pytest.fixture
def pushing(make_hosted):
    """A project with the hook, and a commit with evidence that the server lacks."""
    hosted = make_hosted(CONFIG, {"src/a": "1", "check.sh": "exit 0\n"})
    hosted.repo.git("remote", "set-head", "origin", "main")
    hosted.record("it")
    hosted.ledger("sync")
    hosted.ledger("init")
    hosted.repo.commit({"src/a": "2"})
    hosted.record("it")
    return hosted


@pytest.fixture
def stand_in(tmp_path) -> Path:
    """A program that git takes for ssh; it notes its calls in `calls` beside it."""
    program = tmp_path / "ssh"
    program.write_text(STAND_IN.replace("CALLS", shlex.quote(str(tmp_path / "calls"))))
    program.chmod(0o755)
    return program


@pytest.fixture
def over_ssh(pushing, stand_in):
    """The same, its server reached by a stand-in for ssh; and a function that returns and forgets its calls."""
    calls = stand_in.with_name("calls")
    pushing.repo.git("config", "core.sshCommand", str(stand_in))
    pushing.repo.git("remote", "set-url", "origin", f"ssh://git@forge.example{pushing.server}")

    def called() -> list[str]:
        said = calls.read_text().splitlines() if calls.exists() else []
        calls.unlink(missing_ok=True)
        return said

    pushing.ledger("sync", "--fetch-only")  # what was seen at the path says nothing of that place
    called()
    return pushing, called


def push(hosted, *args: str) -> str:
    done = subprocess.run(
        ["git", "push", *args],
        cwd=hosted.path,
        env=dict(hosted.repo.env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def lines_at(server: Path, repo) -> int:
    """Count the records that the server holds, those beside the notes included."""
    refs = repo.git("for-each-ref", "--format=%(refname)", "refs/notes/gitledger/records", "refs/gitledger/inbox")
    found = set()
    for ref in refs.splitlines():
        for path in repo.git("ls-tree", "-r", "--name-only", ref).splitlines():
            if not path.startswith("bodies"):
                found.update(repo.git("show", f"{ref}:{path}").splitlines())
    return len(found)


def someone_else_publishes(hosted) -> None:
    """Another clone publishes a record that this one has not seen."""
    other = hosted.clone("other")
    other.repo.git("config", "gitledger.signingKey", str(hosted.key("runner")))
    other.record("it")
    other.ledger("sync")


def test_new_evidence_goes_out_over_one_connection_beside_the_push_itself(over_ssh):
    hosted, called = over_ssh
    assert "published 1 record to origin" in push(hosted, "origin", "main")
    pushes = called()
    assert ["git-receive-pack" in line for line in pushes] == [True, True]  # git's own, and the ledger's; no fetch
    assert push(hosted, "origin", "main:copy")
    assert len(called()) == 1  # nothing new: git's own alone


def test_a_lost_race_is_made_up_for_over_the_same_connection(over_ssh):
    hosted, called = over_ssh
    someone_else_publishes(hosted)
    assert "published 1 record to origin" in push(hosted, "origin", "main")
    own, *ledger = called()
    assert "ControlPath" not in own
    assert [line.count("ControlMaster=auto") for line in ledger] == [1, 1]
    assert len({word for line in ledger for word in line.split() if word.startswith("ControlPath=")}) == 1
    server = type(hosted.repo)(hosted.server, hosted.repo.env)
    assert lines_at(hosted.server, server) == 3


def test_a_sync_and_what_a_hook_has_to_ask_share_a_connection_too(over_ssh):
    hosted, called = over_ssh
    hosted.ledger("sync")
    assert len(called()) == 2
    hosted.repo.git("remote", "set-head", "-d", "origin")
    push(hosted, "origin", "main")
    _, asks = called()
    assert "ControlMaster=auto" in asks


def test_whoever_shares_connections_already_is_left_alone(over_ssh):
    hosted, called = over_ssh
    hosted.repo.env["CONTROL_PATH"] = "/run/user/1000/ssh-%C"
    hosted.ledger("sync")
    assert not any("ControlPath" in line for line in called())


@pytest.mark.parametrize(
    ("url", "shared"),
    [
        ("ssh://git@forge.example:2222/team/repo.git", True),
        ("git@forge.example:team/repo.git", True),
        ("[git@forge.example:22]:team/repo.git", True),
        ("ssh://-oProxyCommand=touch%20x/repo", False),
        ("-oProxyCommand=touch x:repo", False),
        ("https://forge.example/team/repo.git", False),
        ("git://forge.example/repo.git", False),
        ("ext::sh -c x", False),
        ("/srv/repo.git", False),
        ("../repo.git", False),
    ],
)
def test_only_ssh_is_shared(git_repo, stand_in, url, shared):
    env = dict(git_repo.env) | {"GIT_SSH": str(stand_in)}
    with one_connection(open_repository(git_repo.path, env=env), url) as repo:
        assert ("ControlPath" in repo.git.env.get("GIT_SSH_COMMAND", "")) is shared


@pytest.mark.parametrize(
    ("name", "value"),
    [("GIT_SSH_COMMAND", "plink -batch"), ("GIT_SSH_VARIANT", "putty"), ("GIT_SSH_COMMAND", "ssh 'unbalanced")],
)
def test_another_program_than_openssh_is_left_alone(git_repo, stand_in, name, value):
    env = dict(git_repo.env) | {"GIT_SSH": str(stand_in), name: value}
    own = open_repository(git_repo.path, env=env)
    with one_connection(own, "git@forge.example:team/repo.git") as repo:
        assert repo is own


SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


@pytest.fixture
def server_log(pushing, tmp_path) -> Iterator[Path]:
    """The log of a real sshd of this test's own, over which the project's server is reached."""
    if not Path(SSHD).exists():
        pytest.skip("needs sshd (openssh-server)")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where sshd locks its child in
    host, user, log = pushing.key("host"), pushing.key("pusher"), tmp_path / "sshd.log"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": host,
        "AuthorizedKeysFile": f"{user}.pub",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "PidFile": "none",
    }
    (tmp_path / "sshd_config").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    with log.open("wb") as out:
        child = subprocess.Popen([SSHD, "-D", "-e", "-f", str(tmp_path / "sshd_config")], stderr=out)
    try:
        deadline = time.monotonic() + 20
        while b"Server listening" not in log.read_bytes() and time.monotonic() < deadline:
            assert child.poll() is None, log.read_text()
            time.sleep(0.05)
        name = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        command = f"ssh -F /dev/null -i {user} -o IdentitiesOnly=yes -o UserKnownHostsFile={tmp_path}/known"
        pushing.repo.git("config", "core.sshCommand", f"{command} -o StrictHostKeyChecking=accept-new")
        pushing.repo.git("remote", "set-url", "origin", f"ssh://{name}@127.0.0.1:{port}{pushing.server}")
        yield log
    finally:
        child.terminate()
        child.wait(20)


@pytest.mark.real
def test_a_real_sshd_is_shown_the_key_once_for_git_and_once_for_the_ledger(pushing, server_log):
    """Each `Accepted publickey` is one use of the key: one touch of a FIDO key, one passphrase."""
    before = server_log.read_text().count("Accepted publickey")
    assert "published 1 record to origin" in push(pushing, "origin", "main")
    assert server_log.read_text().count("Accepted publickey") - before == 2
    someone_else_publishes(pushing)
    pushing.repo.commit({"src/a": "3"})
    pushing.record("it")
    before = server_log.read_text().count("Accepted publickey")
    assert "published 1 record to origin" in push(pushing, "origin", "main")
    assert server_log.read_text().count("Accepted publickey") - before == 2
    deadline = time.monotonic() + 10
    while server_log.read_text().count("Disconnected from") < 4 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert server_log.read_text().count("Disconnected from") == 4  # none is left open
