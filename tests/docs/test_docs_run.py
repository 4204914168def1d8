"""The commands of the documentation do what the pages say (how pages are followed: conftest.py)."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(?P<kind>[\w ]*)\n(?P<text>.*?)^```$", re.S | re.M)
PLACEHOLDER = re.compile(r"git ledger COMMAND|git ledger [a-z]+ \[OPTIONS\]")
"""What stands for a command, or for its usage."""
FOLLOWED_ELSEWHERE = {
    "docs/how-to/migrate-from-pytest-gpu-proof.md": "workflows/test_take_over.py",
    "docs/reference/formats.md": "records/test_formats_page.py",
}
"""Pages whose blocks another test runs, in a world of its own."""


def masked(text: str) -> str:
    """Return a text without what differs from run to run: ids."""
    return re.sub(r"\b(?=[0-9a-f]*\d)[0-9a-f]{12}\b", "ID", text).strip()


def test_the_tutorial_does_what_it_says(reader):
    reader.follow((ROOT / "docs/tutorial.md").read_text("utf-8"))
    assert sum("git ledger " in line for line in reader.typed) >= 12
    assert "verdict: passed" in reader.last


def test_the_ten_lines_of_the_readme_do_what_they_say(reader):
    reader.follow((ROOT / "README.md").read_text("utf-8"))
    assert len(reader.typed) >= 8
    assert "next: nothing, the evidence passes" in reader.last


def test_the_plan_that_the_readme_shows_is_what_a_plan_prints(make_project):
    """The demo's project, after one change."""
    demo = runpy.run_path(str(ROOT / "docs/demo/demo.py"))
    project = make_project(demo["CONFIG"], demo["FILES"])
    for shard in ("parser", "solver", "report"):
        project.ledger("-q", "record", "--shard", shard)
    project.repo.commit({"calc/solver.py": "def mean(numbers):\n    return sum(numbers) / max(1, len(numbers))\n"})
    (shown,) = re.findall(r"^\$ git ledger plan\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.S | re.M)
    assert masked(project.ledger("plan").out) == masked(shown)


UNIT_AND_GPU = """\
shards:
  unit: {paths: [src/core, tests/unit], command: pytest tests/unit}
  gpu: {paths: [src/gpu, tests/gpu], command: pytest tests/gpu, variants: [a100, mi300]}
policy: {allowed_signers: [you@example.org], allow_carried: true}
"""
SEVERAL_FILES = {f"tests/unit/test_{name}.py": "def test_it():\n    assert True\n" for name in "abc"}


def test_the_day_of_a_gpu_lab(team, docs):
    """A topic is tried on the A100, CI refuses it until the other machine has run it too."""

    def topic(self) -> None:
        (self.folder / "build").mkdir()
        (self.folder / "build/kernels.so").write_text("generated")
        self.type(
            "git switch -qc topic && echo '# faster' >>src/gpu/kernel.py && git commit -qam 'Make it faster'"
        )
        self.type("GITLEDGER_SKIP=1 git push -qu origin topic && git switch -q main && git branch -qD topic")

    def in_ci(self) -> None:
        ci = self.folder.parent / "clone-of-ci"
        self.type(f"git clone -q ../server.git {ci} && git -C {ci} checkout -q --detach origin/topic")

    def other_machine(self) -> None:
        self.type("git ledger record --shard gpu@mi300 && git ledger sync")

    person = team(UNIT_AND_GPU)
    person.given = {
        "a topic branch on the server": topic,
        "the topic is checked out": in_ci,
        "the other machine has run": other_machine,
    }
    person.follow(docs("how-to/gpu-lab.md"))
    assert "verdict: passed" in person.last


def test_the_day_of_a_first_adoption(reader, docs):
    """An existing repository, from nothing to a runner whose key counts; the hook that was there still runs."""
    reader.type("printf '#!/bin/sh\necho theirs ran\n' >.git/hooks/pre-push && chmod +x .git/hooks/pre-push")
    reader.type("mkdir -p ../ci/.ssh && ssh-keygen -q -t ed25519 -N '' -f ../ci/.ssh/id_ed25519")
    reader.follow(docs("how-to/adopt.md"))
    assert reader.last.rstrip().endswith("holds")
    assert "theirs ran" in reader.heard
    assert reader.heard.count("verdict: passed") == 2


def test_the_page_on_keys(team, docs):
    person = team('shards:\n  lint: {command: "true", results: exit-status}\n')
    person.follow(docs("how-to/keys.md"))
    assert "recorded lint: passed" in person.heard
    person.type('git ledger show --json | grep \'"backend": "agent"\'')


def test_the_page_on_reports(team, docs):
    person = team(UNIT_AND_GPU)
    person.type("git ledger record --shard unit")
    person.follow(docs("how-to/reports.md"))
    assert "## ❌ git ledger: failed" in person.heard


def test_the_page_on_running_what_is_stale(team, docs):
    person = team(UNIT_AND_GPU)
    person.follow(docs("how-to/run.md"))
    assert "merge: passed" in person.heard


def test_the_page_on_scopes(team, docs, tracer):
    config = """\
shards:
  alpha: {paths: [src/alpha.py, tests/alpha], command: pytest tests/alpha}
  lint: {paths: [src], command: cat src/shared.py, results: exit-status}
"""
    read = "from pathlib import Path\n\nimport shared\n\n\ndef alpha():\n    return Path('data/alpha.txt').read_text()\n"
    files = {
        "data/alpha.txt": "1\n",
        "data/beta.txt": "2\n",
        "src/alpha.py": read,
        "src/shared.py": "",
        "tests/alpha/test_alpha.py": "from alpha import alpha\n\n\ndef test_alpha():\n    assert alpha() == '1\\n'\n",
    }
    person = team(config, files)
    person.follow(docs("how-to/scopes.md"))
    assert person.typed[-1] == "git ledger record --shard lint --trace"


def test_the_page_for_teams_that_squash(team, docs):
    def squash(self) -> None:
        self.type(
            "git switch -qc topic && echo '# faster' >>src/gpu/kernel.py && git commit -qam 'Make it faster'"
        )
        self.type("git ledger run && git push -qu origin topic")
        self.type(
            "git clone -q ../server.git ../forge && cd ../forge && git merge -q --squash origin/topic >../said"
        )
        self.type("cd ../forge && git commit -qm 'Make it faster (#1)' && git push -q origin main")

        self.type("git push -q origin :topic", env=self.env | {"GITLEDGER_SKIP": "1"})

    def fresh_clone(self) -> None:
        """A clone by URL: one by path would also get the commits of the branch that is gone."""
        self.folder = self.folder.parent / "fresh"
        self.type(f"git clone -q file://{self.folder.parent}/server.git {self.folder}", where=self.folder.parent)
        self.type("git ledger verify --policy-from origin/main", status=1)

    person = team(UNIT_AND_GPU.replace(", variants: [a100, mi300]", ""))
    person.given = {
        "a squash merge on the server, and the branch deleted": squash,
        "a fresh clone over the network": fresh_clone,
    }
    person.follow(docs("how-to/squash-merge-teams.md"))
    assert "git ledger run --all && git ledger sync" in person.typed
    assert person.typed[-1] == "git ledger verify --policy-from origin/main"
    assert "verdict: passed" in person.last


@pytest.mark.days
def test_the_page_on_shards_in_ci(team, docs):
    def other_parts(self) -> None:
        for shard in ("unit-1-of-3", "unit-3-of-3", "lint"):
            self._run(f"git ledger record --shard {shard} --mode ci\ngit ledger sync origin\n", ["as ci"])
        self.type("git ledger sync --fetch-only")

    person = team("shards: {}\npolicy: {}\n", SEVERAL_FILES)
    person.given = {"the other parts": other_parts}
    person.follow(docs("how-to/sharded-ci.md"))
    assert "3 parts" in person.last


def test_the_page_on_a_gate(team, docs):
    """The template is the workflow that it holds to the rules."""
    workflow = {".github/workflows/test.yml": (ROOT / "hooks/github/git-ledger.yml").read_text("utf-8")}
    person = team('shards:\n  lint: {command: "true", results: exit-status}\n', workflow)
    person.type("git ledger record --shard lint")
    person.follow(docs("how-to/gate.md"))
    assert person.last.rstrip().endswith("holds")


def test_the_reference_of_coverage(team, docs):
    person = team("shards:\n  unit: {command: pytest --cov=src tests}\n")
    person.type("git ledger record --shard unit")
    person.follow(docs("reference/coverage.md").partition("## Out again")[2])
    assert (person.folder / "cov.lcov").exists()


def test_the_pages_on_installing_on_json_and_on_lanes(team, docs):
    person = team('shards:\n  lint: {command: "true", results: exit-status}\n')
    for page in ("reference/json.md", "how-to/lanes.md", "how-to/install.md"):
        person.follow(docs(page))
    assert person.typed[-1] == "git ledger init --uninstall"
    assert (person.folder / "plan.schema.json").read_text().startswith("{")


@pytest.fixture
def docs():
    """Return a page of docs/, and remember that it was followed."""
    return lambda name: (ROOT / "docs" / name).read_text("utf-8")


def test_every_page_with_commands_is_followed_by_a_test():
    """Here by its name; a page all of whose commands can't run here says why at each of them."""
    source = Path(__file__).read_text("utf-8")
    left = []
    for page in PAGES:
        name = str(page.relative_to(ROOT))
        blocks = re.findall(r"(^<!-- illustrative: .*-->\n)?^```(?:sh|console)\n", page.read_text("utf-8"), re.M)
        is_run = f'"{name.removeprefix("docs/")}"' in source or f'"{name}"' in source
        if not all(blocks) and not is_run:
            left.append(name)
    assert left == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_a_page_shows_can_be_typed(page, parse_commands):
    """Also those that can't run here, and those within a sentence: names in capitals stand for what is meant."""
    text = page.read_text("utf-8")
    shown = [line for block in BLOCK.finditer(text) for line in block["text"].splitlines()]
    said = re.findall(r"`([^`\n]*)`", BLOCK.sub("", text))
    faults = [
        fault
        for line in (*shown, *said)
        if "git ledger" in line and not PLACEHOLDER.search(line)
        for fault in parse_commands(line)
    ]
    assert faults == []


def test_every_link_from_a_page_leads_to_a_file_or_heading():
    broken = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.S | re.M)
        for target in re.findall(r"\]\((?!https?://)([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            there = (page.parent / path) if path else page
            if not there.exists() or (anchor and anchor not in anchors(there)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken
    assert len(PAGES) > 5


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
