"""Runs real pytest processes under a journal, as `record` does, and reads what they left."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitledger.machine.child import ChildExit
from gitledger.suites.inject import child_environment
from gitledger.suites.journal import Journal, read_journal
from gitledger.suites.recorder import summarise
from gitledger.suites.result import SuiteResult

NONCE = "0123456789abcdef"
BEGAN = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
ENDED = datetime(2026, 1, 31, 12, 0, 2, tzinfo=UTC)


def child_end(status: int | None = 0, **known: object) -> ChildExit:
    """Return the end of a child that ran for two seconds."""
    plain = {
        "signal": None,
        "timed_out": False,
        "interrupted": False,
        "stalled": False,
        "oom": None,
        "started_at": BEGAN,
        "ended_at": ENDED,
        "duration_ns": 2_000_000_000,
        "max_rss_bytes": None,
        "leftovers": 0,
    }
    return ChildExit(status=status, **{**plain, **known})


@dataclass(frozen=True)
class Run:
    """One finished run: its result, its journal, its end and its output."""

    result: SuiteResult
    journal: Journal | None
    end: ChildExit
    output: str
    data: bytes

    @property
    def outcomes(self) -> dict[str, str]:
        """Test name (the id after its file) to outcome."""
        return {
            item.node_id.partition("::")[2] or item.node_id: item.outcome.value for item in self.result.results
        }


@pytest.fixture(scope="session")
def end() -> Callable[..., ChildExit]:
    return child_end


@pytest.fixture
def nonce() -> str:
    return NONCE


@pytest.fixture
def suite_env(hermetic_env: dict[str, str]) -> dict[str, str]:
    """An environment without the traces of the pytest that runs us."""
    return hermetic_env


@pytest.fixture
def run_suite(tmp_path: Path, suite_env: dict[str, str]) -> Callable[..., Run]:
    """Return a runner: writes `files` into a folder and runs pytest there with the journal injected."""

    def run(
        files: Mapping[str, str | bytes] | str,
        *args: str,
        env: Mapping[str, str] | None = None,
        autoload: bool = False,
        plugins: tuple[str, ...] = (),
        command: tuple[str, ...] = (sys.executable, "-m", "pytest"),
        repository: str | None = None,
        marker: str | None = None,
    ) -> Run:
        tree = tmp_path / "tree"
        for name, text in ({"test_it.py": files} if isinstance(files, str) else files).items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(textwrap.dedent(text).encode() if isinstance(text, str) else text)
        (tree / "pytest.ini").exists() or (tree / "pytest.ini").write_text("[pytest]\n")
        folder = tmp_path / f"run-{len(list(tmp_path.glob('run-*')))}"
        folder.mkdir()
        journal = folder / "journal"
        base = {**suite_env, **(env or {})}
        if not autoload:
            base["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        for name in plugins:
            args = ("-p", name, *args)
        child = subprocess.run(
            [*command, *args],
            cwd=tree,
            env=child_environment(base, journal=journal, nonce=NONCE, folder=folder, marker=marker),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=100,
        )
        code = child.returncode
        seen = child_end(code) if code >= 0 else child_end(None, signal=-code)
        data = journal.read_bytes() if journal.exists() else b""
        read = read_journal(data, NONCE) if data else None
        result = summarise(read, seen, repository=repository)
        return Run(result, read, seen, child.stdout.decode(errors="replace"), data)

    return run


@pytest.fixture(autouse=True)
def _no_foreign_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.startswith(("GITLEDGER_", "PYTEST_XDIST", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "COV_")):
            monkeypatch.delenv(name)
