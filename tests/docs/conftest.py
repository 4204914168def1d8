"""Somebody who types what a page says, in a real repository with a real remote.

Every `sh` and `console` block of a page is run, line by line, in the order of the page (a block with `for`, `{` or a
trailing backslash as a whole); a line that fails fails the test. What a reader does by hand (installing, changing
folders) is skipped by name. A `text` block is held against what the last command printed, ids and times aside; a `yaml`
block replaces the keys of the configuration that it spells, and is committed. A comment above a block says more:

    <!-- illustrative: why -->      it is not run; its commands are parsed all the same
    <!-- in another clone -->       in a fresh clone, by somebody without a key
    <!-- as ci -->                  in that clone, or a fresh one, by CI's runner, with its key
    <!-- exits with 1 -->           its last line ends with that status
    <!-- given: what -->            something that others have done meanwhile
    <!-- only a part of a file -->  a `yaml` block of another file
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
BY_HAND = ("pip install ", "pipx ", "uv ", "uvx ", "cd ", "make ")
"""What a reader does before: the test has done it."""
BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^>]+?) -->\n)?^```(?P<kind>[\w ]*)\n(?P<text>.*?)^```$", re.S | re.M)
PRINTED_KEY = "SHA256:9GY2anR4n74m/8ynsNRQLoN0gmiXERerRFbI3z9jgb4"
"""The fingerprint that pages show; here CI's own takes its place."""
PROJECT = {
    ".gitignore": "__pycache__/\n.pytest_cache/\n.ruff_cache/\n.coverage\nbuild/\n",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n',
    "src/core/math.py": "def double(number):\n    return 2 * number\n",
    "src/gpu/kernel.py": "def run(number):\n    return number + 1\n",
    "tests/unit/test_math.py": "from core.math import double\n\n\ndef test_double():\n    assert double(2) == 4\n",
    "tests/gpu/test_kernel.py": "from gpu.kernel import run\n\n\ndef test_run():\n    assert run(1) == 2\n",
}


def masked(text: str) -> str:
    """Return a text without what differs from run to run: ids and durations."""
    text = re.sub(r"\b(?=[0-9a-f]*\d)[0-9a-f]{12}\b", "ID", text)
    return re.sub(r"\b\d+\.\d s\b", "TIME", text).strip()


@dataclass
class Reader:
    """Somebody who types what a page says."""

    folder: Path
    env: Mapping[str, str]
    commits: bool = False
    """Whether a configuration that the page shows is committed and pushed at once; else the page says so itself."""
    given: Mapping[str, Callable[[Reader], None]] = field(default_factory=dict)
    last: str = ""
    heard: str = ""
    typed: list[str] = field(default_factory=list)

    def type(
        self, line: str, *, where: Path | None = None, env: Mapping[str, str] | None = None, status: int = 0
    ) -> None:
        """Run one line as a shell would; it must end as said. Both streams are what a person sees."""
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=where or self.folder,
            env=dict(env or self.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == status, f"$ {line}\n-> {done.returncode}\n{done.stdout}"
        assert "Traceback" not in done.stdout
        self.last = done.stdout
        self.heard += done.stdout
        self.typed.append(line)

    def follow(self, page: str) -> None:
        """Do what the page says, block by block."""
        for block in BLOCK.finditer(page):
            marks = [mark.strip() for mark in (block["mark"] or "").split(";") if mark.strip()]
            kind, text = block["kind"], block["text"].replace(PRINTED_KEY, self._fingerprint())
            if any(mark.startswith(("illustrative: ", "only a part of a file")) for mark in marks):
                continue
            for mark in marks:
                if mark.startswith("given: "):
                    self.given[mark.removeprefix("given: ")](self)
                else:
                    assert mark in ("in another clone", "as ci") or re.fullmatch(r"exits with \d+", mark), mark
            if kind in ("sh", "console"):
                self._run(text, marks)
            elif kind == "text":
                assert masked(text) in masked(self.last)
            elif kind == "yaml":
                self._configure(text)

    def _fingerprint(self) -> str:
        key = Path(self.env["HOME"]).parent / "ci/.ssh/id_ed25519.pub"
        if not key.exists():
            return PRINTED_KEY
        done = subprocess.run(["ssh-keygen", "-lf", str(key)], capture_output=True, text=True, check=True)
        return done.stdout.split()[1]

    def _run(self, text: str, marks: list[str]) -> None:
        where, env = self.folder, dict(self.env)
        for mark, who in (("in another clone", "nobody"), ("as ci", "ci")):
            if mark in marks:
                where = self.folder.parent / f"clone-of-{who}"
                if not where.exists():
                    self.type(f"git clone -q {self.folder.parent}/server.git {where}", where=self.folder.parent)
                env["HOME"] = str(self.folder.parent / who)
        lines = list(commands(text))
        wanted = [int(mark.rpartition(" ")[2]) for mark in marks if mark.startswith("exits with ")]
        for number, line in enumerate(lines, 1):
            self.type(line, where=where, env=env, status=wanted[0] if wanted and number == len(lines) else 0)

    def _configure(self, text: str) -> None:
        """Replace the top-level keys that `text` spells."""
        path = self.folder / ".gitledger/config.yaml"
        config = yaml.safe_load(path.read_text()) | yaml.safe_load(text)
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        if self.commits:
            self.type("git commit -qam 'Configure the ledger' && GITLEDGER_SKIP=1 git push -q")


def commands(text: str) -> Iterator[str]:
    """Yield what is typed of a block: its lines, prompts taken off; one command where it spans several."""
    if re.search(r"\\$|^(for|while|if) |^\{", text, re.M):
        yield text
        return
    shown = [line for line in text.splitlines() if line.startswith("$ ")]
    for line in [line[2:] for line in shown] or text.splitlines():
        if line.strip() and not line.startswith((*BY_HAND, "#")):
            yield line


@pytest.fixture
def make_reader(tmp_path: Path, hermetic_env: dict[str, str]) -> Callable[..., Reader]:
    """Return a maker of readers: a key in the usual place, a project with tests, and a remote, all set up."""

    def make(files: Mapping[str, str] = PROJECT) -> Reader:
        tools = Path(sys.executable).parent
        identity = {f"GIT_{who}_EMAIL": "you@example.org" for who in ("AUTHOR", "COMMITTER")}
        env = hermetic_env | identity | {"PATH": f"{tools}{os.pathsep}{hermetic_env['PATH']}"}
        folder = tmp_path / "project"
        folder.mkdir()
        person = Reader(folder, env)
        person.type("mkdir ~/.ssh && ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519")
        person.type("git config --global user.email you@example.org && git init -q -b main")
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        person.type("git add -A && git commit -qm start && git init -q --bare -b main ../server.git")
        person.type("git remote add origin ../server.git && git push -qu origin main")
        person.typed.clear()
        return person

    return make


@pytest.fixture
def reader(make_reader) -> Reader:
    """A person with a key, a project with tests, and a remote; the ledger is not set up yet."""
    return make_reader()


@pytest.fixture
def team(make_reader, tmp_path) -> Callable[..., Reader]:
    """Return a maker of readers whose project has a ledger already, and a runner of CI with a key that counts."""

    def make(config: str, files: Mapping[str, str] | None = None) -> Reader:
        person = make_reader({**PROJECT, **(files or {})})
        (tmp_path / "ci").mkdir()
        person.type("mkdir ../ci/.ssh && ssh-keygen -q -t ed25519 -N '' -C ci -f ../ci/.ssh/id_ed25519")
        person.type("git ledger init")
        signers = person.folder / ".gitledger/allowed_signers"
        mine, own = signers.read_text(), (tmp_path / "ci/.ssh/id_ed25519.pub").read_text()
        both = [mine.replace("you@example.org", "you@example.org,lab@example.org,alice@example.org", 1)]
        both.append(f'ci@example.org namespaces="gitledger" {" ".join(own.split()[:2])}\n')
        signers.write_text("".join(both))
        (person.folder / ".gitledger/config.yaml").write_text(f"version: 1\nrepository: demo\n{config}")
        person.type("git add -A && git commit -qm 'Set up the ledger' && GITLEDGER_SKIP=1 git push -q")
        person.typed.clear()
        person.commits = True
        return person

    return make


@pytest.fixture
def fingerprint_of_ci() -> Callable[[Reader], str]:
    """Return the fingerprint of the key that CI's runner of a team has."""
    return lambda person: person._fingerprint()
