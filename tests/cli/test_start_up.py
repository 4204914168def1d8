"""What a command loads and starts before it does anything: thousands of commands pay for it, people and suites."""

from __future__ import annotations

import json
import subprocess
import sys

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
