"""One ssh connection for all that a command asks of a remote: a key is touched, or its passphrase typed, once.

OpenSSH shares a connection among calls where it is told to (ssh_config(5), ControlMaster): the first one
authenticates, and the next go through it. That is told here, to OpenSSH alone, and not where the user's own
configuration shares connections already. Whatever becomes of us, the connection ends soon after its last use.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gitledger.dataclass import replace
from gitledger.store.git import Git
from gitledger.store.repository import Repository

__all__ = ["one_connection"]

_MARK = "gitledger-ssh-"
_KEPT_S = 60
_ASK_S = 5.0
_MAX_PATH = 50
"""The socket's name has 42 bytes more (`%C` is a SHA-1), a temporary one of ssh's 17 more, and 104 are allowed."""
_URL = re.compile(r"\A(?:git\+)?ssh(?:\+git)?://(?P<host>[^/]+)")
_SCP = re.compile(r"\A(?P<host>[^/:\s][^/:]*|[^/:\s]*@?\[[^]/]+\]):(?!//)")
_STATUSES = frozenset(range(-64, 256))


@contextmanager
def one_connection(repository: Repository, remote: str) -> Iterator[Repository]:
    """Give the repository with a git that reaches `remote`, a name or a URL, by one shared ssh connection.

    Where that can't be, by another transport or program, or because the user shares connections already, it is the
    repository itself.
    """
    command = _command(repository)
    host = _host(repository, remote)
    if command is None or host is None or _MARK in command or _shares_already(repository.git, command, host):
        yield repository
        return
    folder = _folder()
    if folder is None:
        yield repository
        return
    try:
        options = f"-o ControlMaster=auto -o ControlPath={shlex.quote(str(folder))}/%C -o ControlPersist={_KEPT_S}"
        env = {**repository.git.env, "GIT_SSH_COMMAND": f"{command} {options}"}
        yield replace(repository, git=replace(repository.git, env=env))
    finally:
        _close(folder, repository.git, command, host)


def _folder() -> Path | None:
    """Return a new folder whose name is short enough for a socket in it, and plain to ssh; None for none."""
    for place in (tempfile.gettempdir(), "/tmp"):  # noqa: S108 - mkdtemp makes it the user's own
        if len(os.fsencode(place)) + len(_MARK) + 9 <= _MAX_PATH and "%" not in place and Path(place).is_dir():
            return Path(tempfile.mkdtemp(prefix=_MARK, dir=place))
    return None


def _command(repository: Repository) -> str | None:
    """Return git's ssh as a line of shell, as git chooses it (`core.sshCommand`); None where it is no OpenSSH."""
    env = repository.git.env
    variant = env.get("GIT_SSH_VARIANT") or repository.config("ssh.variant") or "auto"
    command = env.get("GIT_SSH_COMMAND") or repository.config("core.sshCommand")
    if not command:
        program = env.get("GIT_SSH")
        command = shlex.quote(program) if program else "ssh"
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    is_open = bool(words) and Path(words[0]).name.lower() in ("ssh", "ssh.exe")
    return command if is_open and variant in ("auto", "ssh") and os.name == "posix" else None


def _host(repository: Repository, remote: str) -> str | None:
    """Return whom ssh would be told to connect to; None for another transport, or a folder of this machine."""
    url = remote
    if ":" not in remote:
        done = repository.git.run("remote", "get-url", "--push", "--", remote, statuses=_STATUSES)
        url = done.text.strip() if done.status == 0 else ""
    found = _URL.match(url) or _SCP.match(url)
    if found is None or url.startswith("-"):
        return None
    host = found["host"]
    if _URL.match(url):
        host = re.sub(r":\d+\Z", "", host)
    is_helper = "::" in url.partition("/")[0]
    return None if host.startswith("-") or is_helper else host.replace("[", "").replace("]", "")


def _shares_already(git: Git, command: str, host: str) -> bool:
    """Tell whether the user's own configuration names a place for shared connections; also where ssh can't say."""
    said = _ask(git, f"{command} -G {shlex.quote(host)}")
    path = re.search(r"(?m)^controlpath (.*)$", said)
    return not said or (path is not None and path[1].strip().lower() != "none")


def _close(folder: Path, git: Git, command: str, host: str) -> None:
    for socket in folder.iterdir():
        _ask(git, f"{command} -o ControlPath={shlex.quote(str(socket))} -O exit {shlex.quote(host)}")
    shutil.rmtree(folder, ignore_errors=True)


def _ask(git: Git, line: str) -> str:
    """Return what a line of shell prints, "" where it fails; nothing of it touches a network."""
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            env=git.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_ASK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
