"""The commands of README.md and docs/tutorial.md do what the pages say, in a real repository with a real remote.

Every `sh` block is run, line by line, in the order of the page; a line that fails fails the test. What a reader does
by hand (installing, changing folders) is skipped by name. `<!-- in another clone -->` above a block runs it in a fresh
clone without a key, `<!-- illustrative: why -->` leaves it out. A `text` block behind one is held against what the
last command printed, ids aside; a `yaml` block replaces the parts of the configuration that it spells.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BY_HAND = ("pip install ", "cd ", "make ")
"""What a reader does before: the test has done it."""
BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^>]+?) -->\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.S | re.M)
PROJECT = {
    ".gitignore": "__pycache__/\n.pytest_cache/\n.ruff_cache/\n",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n',
    "src/core/math.py": "def double(number):\n    return 2 * number\n",
    "src/gpu/kernel.py": "def run(number):\n    return number + 1\n",
    "tests/unit/test_math.py": "from core.math import double\n\n\ndef test_double():\n    assert double(2) == 4\n",
    "tests/gpu/test_kernel.py": "from gpu.kernel import run\n\n\ndef test_run():\n    assert run(1) == 2\n",
}


def masked(text: str) -> str:
    """Return a text without what differs from run to run: ids and durations."""
    return re.sub(r"\b(?=[0-9a-f]*\d)[0-9a-f]{12}\b", "ID", text).strip()


@dataclass
class Reader:
    """Somebody who types what a page says."""

    folder: Path
    env: Mapping[str, str]
    last: str = ""
    typed: list[str] = field(default_factory=list)

    def type(self, line: str, *, where: Path | None = None, env: Mapping[str, str] | None = None) -> None:
        """Run one line as a shell would; it must succeed. Both streams are what a person sees."""
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=where or self.folder,
            env=dict(env or self.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"$ {line}\n{done.stdout}"
        assert "Traceback" not in done.stdout
        self.last = done.stdout
        self.typed.append(line)

    def follow(self, page: str) -> None:
        """Do what the page says, block by block."""
        for block in BLOCK.finditer(page):
            mark, kind, text = block["mark"] or "", block["kind"], block["text"]
            if mark.startswith("illustrative: "):
                continue
            assert mark in ("", "in another clone"), mark
            if kind == "sh":
                self._run(text, elsewhere=bool(mark))
            elif kind == "text":
                assert masked(text) in masked(self.last)
            elif kind == "yaml":
                self._configure(text)

    def _run(self, text: str, *, elsewhere: bool) -> None:
        where, env = self.folder, dict(self.env)
        if elsewhere:
            where = self.folder.parent / "elsewhere"
            self.type(f"git clone -q {self.folder.parent}/server.git {where}", where=self.folder.parent)
            env["HOME"] = str(where.parent / "nobody")
        for line in text.splitlines():
            if line.strip() and not line.startswith(BY_HAND):
                self.type(line, where=where, env=env)

    def _configure(self, text: str) -> None:
        """Replace the top-level keys that `text` spells; the version and the repository's id stay."""
        path = self.folder / ".gitledger/config.yaml"
        head = [line for line in path.read_text().splitlines() if line.startswith(("version:", "repository:"))]
        assert len(head) == 2
        path.write_text("\n".join([*head, text]))


@pytest.fixture
def reader(tmp_path: Path, hermetic_env: dict[str, str]) -> Reader:
    """A person with a key in the usual place, a project with tests, and a remote."""
    tools = Path(sys.executable).parent
    identity = {f"GIT_{who}_EMAIL": "you@example.org" for who in ("AUTHOR", "COMMITTER")}
    env = hermetic_env | identity | {"PATH": f"{tools}{os.pathsep}{hermetic_env['PATH']}"}
    folder = tmp_path / "project"
    folder.mkdir()
    person = Reader(folder, env)
    person.type("mkdir ~/.ssh && ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519")
    person.type("git config --global user.email you@example.org && git init -q -b main")
    for path, text in PROJECT.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    person.type("git add -A && git commit -qm start && git init -q --bare -b main ../server.git")
    person.type("git remote add origin ../server.git && git push -qu origin main")
    person.typed.clear()
    return person


def test_the_tutorial_does_what_it_says(reader):
    reader.follow((ROOT / "docs/tutorial.md").read_text("utf-8"))
    assert sum("git ledger " in line for line in reader.typed) >= 12
    assert "verdict: passed" in reader.last


def test_the_ten_lines_of_the_readme_do_what_they_say(reader):
    reader.follow((ROOT / "README.md").read_text("utf-8"))
    assert len(reader.typed) >= 8
    assert "next: git ledger verify" in reader.last


def test_the_plan_that_the_readme_shows_is_what_a_plan_prints(make_project):
    """The demo's project, after one change."""
    demo = runpy.run_path(str(ROOT / "docs/demo/demo.py"))
    project = make_project(demo["CONFIG"], demo["FILES"])
    for shard in ("parser", "solver", "report"):
        project.ledger("-q", "record", "--shard", shard)
    project.repo.commit({"calc/solver.py": "def mean(numbers):\n    return sum(numbers) / max(1, len(numbers))\n"})
    (shown,) = re.findall(r"^\$ git ledger plan\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.S | re.M)
    assert masked(project.ledger("plan").out) == masked(shown)


def test_every_link_from_a_page_leads_to_a_file_or_heading():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    broken = []
    for page in pages:
        text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.S | re.M)
        for target in re.findall(r"\]\((?!https?://)([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            there = (page.parent / path) if path else page
            if not there.exists() or (anchor and anchor not in anchors(there)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken
    assert len(pages) > 5


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("```sh\nfalse\n```\n", "$ false"),
        ("```sh\necho one\n```\n```text\ntwo\n```\n", "two"),
        ("<!-- unknown -->\n```sh\ntrue\n```\n", "unknown"),
    ],
)
def test_a_page_that_is_wrong_is_noticed(reader, page, fault):
    with pytest.raises(AssertionError, match=re.escape(fault)):
        reader.follow(page)
