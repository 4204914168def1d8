"""What the tests on other people's packages share: source distributions, clones of one remote, plain outcomes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

TIMEOUT_S = 600
"""No test of ours waits longer for anything."""

TELL = """\
import json, os

OUTCOMES = {}

def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        OUTCOMES.setdefault(report.nodeid, []).append(f"{report.when}:{report.outcome}")

def pytest_collectreport(report):
    if report.failed:
        OUTCOMES.setdefault(report.nodeid, []).append("collect:failed")

def pytest_sessionfinish(exitstatus):
    with open(os.environ["TELL_OUTCOMES"], "w") as stream:
        json.dump({"outcomes": OUTCOMES, "status": int(exitstatus)}, stream)
"""
"""A pytest plugin that writes down what pytest itself reports, and knows nothing of us."""


@pytest.fixture
def unpack(tmp_path: Path):
    """Return a function that downloads a source distribution and returns its files by path."""

    def fetch(requirement: str) -> dict[str, bytes]:
        folder = tmp_path / "sdist"
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--no-binary",
            ":all:",
        ]
        subprocess.run(
            [*command, "-d", str(folder), requirement], check=True, capture_output=True, timeout=TIMEOUT_S
        )
        (archive,) = folder.glob("*.tar.gz")
        files = {}
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                content = tar.extractfile(member)
                if content is not None:
                    files[member.name.partition("/")[2]] = content.read()
        return files

    return fetch


@pytest.fixture
def site(tmp_path: Path):
    """Return a function that installs a package into a folder of its own and returns the folder."""

    def install(requirement: str) -> Path:
        folder = tmp_path / "site"
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), requirement]
        subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_S)
        return folder

    return install


@pytest.fixture
def plain_outcomes(tmp_path: Path):
    """Return a function that runs a command of pytest without us: each id's reports, and the exit status (None: no end)."""
    folder = tmp_path / "tell"
    folder.mkdir()
    (folder / "tell_outcomes.py").write_text(TELL)

    def run(command: list[str], cwd: Path, env: Mapping[str, str]) -> tuple[dict[str, list[str]], int | None]:
        answer = folder / "answer"
        answer.unlink(missing_ok=True)
        own = {
            **env,
            "PYTEST_PLUGINS": "tell_outcomes",
            "TELL_OUTCOMES": str(answer),
            "PYTHONPATH": os.pathsep.join([env.get("PYTHONPATH", ""), str(folder)]),
        }
        subprocess.run(command, cwd=cwd, env=own, capture_output=True, timeout=TIMEOUT_S, check=False)
        if not answer.exists():
            return {}, None
        found = json.loads(answer.read_text())
        return found["outcomes"], found["status"]

    return run
