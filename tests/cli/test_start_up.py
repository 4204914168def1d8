"""What a command loads and starts before it does anything: thousands of commands pay for it, people and suites."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: "true", results: exit-status}
"""
NEVER = {
    "pygit2",
    "logging",
    "ssl",
    "socket",
    "tarfile",
    "ctypes",
    "coverage",
    "pytest",
    "numpy",
    "torch",
    "urllib.request",
}
"""Nothing that only reads a ledger of everyday size needs any of them."""
RUN = """\
import json, sys
from gitledger.cli.app import main
try:
    main(sys.argv[1:])
finally:
    with open(LOADED, "w") as file:
        json.dump(sorted(sys.modules), file)
"""


@pytest.fixture
def recorded(make_project):
    """A project with one shard and its record."""
    project = make_project(CONFIG, {"src/a.py": "a = 1\n"})
    project.record("lint")
    return project


@pytest.fixture
def started(recorded, tmp_path):
    """Return the modules that a command loads, and the git commands that it starts, in a project with a record."""
    project = recorded

    def start(*words: str) -> tuple[set[str], list[str]]:
        loaded, trace = tmp_path / "loaded", tmp_path / "trace"
        trace.unlink(missing_ok=True)
        code = RUN.replace("LOADED", repr(str(loaded)))
        env = project.repo.env | {"GIT_TRACE2_EVENT": str(trace)}
        command = [sys.executable, "-c", code, *words]
        done = subprocess.run(command, cwd=project.repo.path, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 1), done.stderr
        events = [json.loads(line) for line in trace.read_text().splitlines()] if trace.exists() else []
        commands = [" ".join(event["argv"]) for event in events if event["event"] == "start"]
        return set(json.loads(loaded.read_text())), commands

    return start


def test_help_loads_no_workflow(started):
    loaded, commands = started("--help")
    assert not NEVER & loaded
    assert not [name for name in loaded if name.startswith(("gitledger.workflows", "gitledger.store", "yaml"))]
    assert commands == []


@pytest.mark.parametrize("words", [("plan",), ("plan", "--json"), ("verify",), ("status",), ("log",), ("show",)])
def test_what_only_reads_loads_neither_libgit2_nor_the_network(started, words):
    loaded, _ = started(*words)
    assert not NEVER & loaded


def test_plan_starts_few_processes(started):
    _, commands = started("plan", "--json")
    assert len(commands) <= 9, commands


COUNT = """\
import collections, json, sys
from gitledger.cli.app import main
calls = collections.Counter()
sys.setprofile(lambda frame, event, _: calls.update([frame.f_code.co_qualname] if event == "call" else []))
try:
    main(sys.argv[1:])
finally:
    sys.setprofile(None)
    with open(COUNTED, "w") as file:
        json.dump(calls, file)
"""


def test_status_judges_once_what_it_calls_passed(recorded, tmp_path):
    """A plan's union is the one that a verdict is on: each record is opened once for both."""

    def calls_of(word: str) -> dict[str, int]:
        code = COUNT.replace("COUNTED", repr(str(tmp_path / "counted")))
        command = [sys.executable, "-c", code, word]
        env = dict(recorded.repo.env)
        done = subprocess.run(command, cwd=recorded.path, env=env, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        counted = json.loads((tmp_path / "counted").read_text())
        return {name: counted.get(name, 0) for name in ("gather", "form_union", "open_record", "judge")}

    status, verdict = calls_of("status"), calls_of("verify")
    assert status == verdict
    assert verdict["gather"] == verdict["form_union"] == 1
    assert verdict["open_record"] >= 1


AT_ONCE = {"status", "rev-parse", "config"}
EARLY = """\
import sys
from gitledger.store import early_look
early_look.LARGE_INDEX_BYTES = 0
from gitledger.cli.start import main
main()
"""


@pytest.fixture
def early(recorded, tmp_path):
    """Run a command for which a look at the tree is worth it however small; return what git was asked, and how it ended."""
    trace = tmp_path / "trace"

    def run(*words: str, at: str = ".") -> tuple[list[str], subprocess.CompletedProcess[str]]:
        trace.unlink(missing_ok=True)
        env = recorded.repo.env | {"GIT_TRACE2_EVENT": str(trace)}
        command = [sys.executable, "-c", EARLY, *words]
        done = subprocess.run(
            command, cwd=recorded.path / at, env=env, capture_output=True, text=True, timeout=60, check=False
        )
        events = [json.loads(line) for line in trace.read_text().splitlines()]
        asked = [event["argv"] for event in events if event["event"] == "start"]
        return ["status" if "status" in argv else argv[1] for argv in asked], done

    return run


@pytest.fixture
def settled(recorded):
    """The project once its index is a second older than its files: git then needs no second look at any."""
    time.sleep(1.1)
    recorded.repo.git("read-tree", "HEAD")
    recorded.repo.git("update-index", "--refresh")
    return recorded


def test_plan_lets_git_look_at_the_tree_before_anything_else(early, settled):
    settled.repo.write("src/a.py", "a = 2\n")
    asked, done = early("plan", "--json")
    assert (set(asked[:3]), asked.count("status")) == (AT_ONCE, 1)
    assert (asked.count("rev-parse"), asked.count("config")) == (1, 1), "what was asked early is not asked again"
    assert json.loads(done.stdout)["uncommitted"][0]["paths"] == ["src/a.py"]


def test_record_lets_git_look_at_the_tree_before_anything_else(early, settled):
    settled.repo.write("src/a.py", "a = 2\n")
    asked, done = early("record", "--shard", "lint", "--json")
    assert (set(asked[:3]), asked.count("status")) == (AT_ONCE, 2), "before the command and after it"
    assert settled.receipt(json.loads(done.stdout)["record"])["repo"]["dirty"]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("plan", "HEAD^"), 2),
        (("record", "--shard", "none"), 2),
        (("record", "--wrong"), 2),
        (("plan", "--format", "no"), 2),
    ],
)
def test_a_look_that_nobody_waited_for_changes_no_error(early, words, status):
    asked, done = early(*words)
    assert "status" in asked[:3]
    assert (done.returncode, done.stderr.count("error: ")) == (status, 1)


@pytest.mark.parametrize("words", [("verify",), ("record", "--help"), ("plan", "-C", "src"), ("-q", "plan")])
def test_what_may_mean_another_tree_or_none_begins_none(early, words):
    try:
        asked, _ = early(*words)
    except FileNotFoundError:  # git was not started at all
        return
    assert asked[:2] == ["rev-parse", "config"]


def test_from_below_the_top_it_begins_when_the_repository_is_open(early):
    asked, _ = early("plan", at="src")
    assert asked[:2] == ["rev-parse", "config"]
