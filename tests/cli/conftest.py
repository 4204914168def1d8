"""A recorded project that can be spoilt: copied from one template, so that each case has its own."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).parent / "git-ledger")
RECORDS = "refs/notes/gitledger/records"
MAX_FILE_BYTES = 64 << 20
"""No command of a case may write a larger file: a mistake here must not fill a disk."""
CONFIG = """\
version: 1
repository: demo
shards:
  alpha: {paths: [src/alpha.py], command: "true", results: exit-status}
  beta: {paths: [src/beta.py], command: "true", results: exit-status}
policy:
  allow_carried: true
"""


@dataclass
class Place:
    """A repository, an environment and a command line that a case spoils before the command runs.

    `undo` mends what the case broke, last first, so that what the ledger held can be read again. `shell` is a
    command line for bash instead of `args`; `{}` in it stands for the installed command.
    """

    path: Path
    env: dict[str, str]
    keys: Path
    args: list[str | bytes] = field(default_factory=list)
    stdin: bytes = b""
    cwd: Path | None = None
    shell: str | None = None
    undo: list[Callable[[], object]] = field(default_factory=list)

    def git(self, *args: str, input: bytes | None = None, check: bool = True) -> str:  # noqa: A002
        done = subprocess.run(
            ["git", *args], cwd=self.path, env=self.env, input=input, capture_output=True, check=False
        )
        assert not check or done.returncode == 0, (args, done)
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def write(self, path: str, content: str | bytes) -> Path:
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    def commit(self, path: str, content: str | bytes) -> None:
        """Commit one more file; evidence of the commit before stays where it is."""
        self.write(path, content)
        self.git("add", "-f", path)
        self.git("commit", "-qm", "spoil")

    def run(self) -> subprocess.CompletedProcess[bytes]:
        if self.shell is not None:
            command: list[str | bytes] = ["bash", "-c", self.shell.replace("{}", COMMAND)]
        else:
            command = [COMMAND, *self.args]
        return subprocess.run(
            command,
            cwd=self.cwd or self.path,
            env=self.env,
            input=self.stdin,
            capture_output=True,
            timeout=60,
            check=False,
            preexec_fn=_bounded,
        )

    def lines(self) -> set[str]:
        """Return every line of every note of the ledger, read by git alone."""
        return set(self.git("grep", "-ah", "-e", "", RECORDS, "--", check=False).splitlines())


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with keys and a repository whose two shards are recorded and merged."""
    root = tmp_path_factory.mktemp("template")
    place = Place(root / "repo", environment(root), root / "keys")
    place.path.mkdir()
    place.keys.mkdir()
    for name, options in {"alice": ["-N", ""], "locked": ["-N", "secret"]}.items():
        command = ["ssh-keygen", "-q", "-t", "ed25519", *options, "-C", name, "-f", str(place.keys / name)]
        subprocess.run(command, check=True)
    place.git("init", "-q", "-b", "main")
    public = " ".join((place.keys / "alice.pub").read_text().split()[:2])
    for path, text in {
        "src/alpha.py": "",
        "src/beta.py": "",
        ".gitignore": "*.so\n",
        ".gitledger/config.yaml": CONFIG,
        ".gitledger/allowed_signers": f'alice@example.org namespaces="gitledger" {public}\n',
    }.items():
        place.write(path, text)
    place.git("add", "-A")
    place.git("commit", "-qm", "start")
    for args in (["record", "--shard", "alpha"], ["record", "--shard", "beta"], ["merge"]):
        place.args = list(args)
        done = place.run()
        assert done.returncode == 0, done
    assert len(place.lines()) == 3
    return root


def environment(root: Path) -> dict[str, str]:
    """Return an environment that leaks nothing of the machine's user; Alice's key is given."""
    (root / "home").mkdir(exist_ok=True)
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(root / "home"),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_GLOBAL": str(root / "home/.gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "Alice",
        "GIT_AUTHOR_EMAIL": "alice@example.org",
        "GIT_COMMITTER_NAME": "Alice",
        "GIT_COMMITTER_EMAIL": "alice@example.org",
        "GITLEDGER_SIGNING_KEY": str(root / "keys/alice"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@pytest.fixture
def place(template: Path, tmp_path: Path) -> Iterator[Place]:
    """A copy of the template, to be spoilt."""
    root = tmp_path / "place"
    shutil.copytree(template, root, symlinks=True)
    found = Place(root / "repo", environment(root), root / "keys")
    yield found
    while found.undo:
        found.undo.pop()()
