"""Fixtures for tests that run real commands, well-behaved and otherwise."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitledger.machine.child import ChildExit, run_child


def utc_clock() -> datetime:
    return datetime.now(UTC)


class Bench:
    """A folder, an environment and a log in which commands are run; `python` takes the source of a script."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self.env = env
        self.log = folder / "run.log"
        self.drivers: list[subprocess.Popen[str]] = []

    def run(self, *argv: str, **options) -> ChildExit:
        options = {"cwd": self.folder, "env": self.env, "log": self.log, "clock": utc_clock, **options}
        return run_child(argv, **options)

    def script(self, source: str, name: str = "script.py") -> list[str]:
        path = self.folder / name
        path.write_text(textwrap.dedent(source))
        return [sys.executable, "-S", str(path)]

    def python(self, source: str, **options) -> ChildExit:
        return self.run(*self.script(source), **options)

    def sh(self, line: str, **options) -> ChildExit:
        return self.run("sh", "-c", line, **options)

    def output(self) -> bytes:
        return self.log.read_bytes()

    def driver(
        self,
        command: list[str],
        options: str = "",
        before: str = "",
        after: str = "",
        launcher: Sequence[str] = (),
        **popen,
    ) -> subprocess.Popen[str]:
        """Start a real driver process (it prints the ChildExit's fields, then runs `after`), by `launcher`."""
        source = f"""
            import os, sys
            from dataclasses import asdict
            from datetime import UTC, datetime
            from pathlib import Path
            from gitledger.machine.child import run_child
            {before}
            ended = run_child({command!r}, cwd=Path({str(self.folder)!r}), env=dict(os.environ),
                              log=Path({str(self.log)!r}), clock=lambda: datetime.now(UTC), {options})
            print({{name: value for name, value in asdict(ended).items() if not name.endswith("_at")}})
            {after}
        """
        path = self.folder / "driver.py"
        path.write_text(textwrap.dedent(source))
        root = str(Path(__file__).parents[2])
        popen = {"stdout": subprocess.PIPE, "text": True, **popen}
        self.drivers.append(
            subprocess.Popen([*launcher, sys.executable, str(path)], env={**self.env, "PYTHONPATH": root}, **popen)
        )
        return self.drivers[-1]


@pytest.fixture
def bench(tmp_path: Path, hermetic_env: dict[str, str]) -> Iterator[Bench]:
    """A place to run commands in; drivers that a failed test left running are ended."""
    folder = tmp_path / "bench"
    folder.mkdir()
    place = Bench(folder, hermetic_env)
    yield place
    for driver in place.drivers:
        driver.kill()
        driver.wait()
        driver.stdout.close()


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.fixture
def eventually() -> Callable[..., bool]:
    """Return a waiter: `eventually(condition)` is whether it came true within `seconds`."""

    def wait(condition: Callable[[], object], seconds: float = 10.0) -> bool:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if condition():
                return True
            time.sleep(0.01)
        return bool(condition())

    return wait


class Pids:
    """Process ids that scripts write into files of a folder, so that a test can ask who still lives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def all(self) -> list[int]:
        return [
            int(text) for path in sorted(self.folder.iterdir()) if (text := path.read_text().strip()).isdigit()
        ]

    def alive(self) -> list[int]:
        return [pid for pid in self.all() if is_alive(pid)]


@pytest.fixture
def pids(bench: Bench) -> Iterator[Pids]:
    """Who was started: a script writes its pid into a file of `$PIDS`. Survivors are ended after the test."""
    folder = bench.folder / "pids"
    folder.mkdir()
    bench.env["PIDS"] = str(folder)
    found = Pids(folder)
    yield found
    for pid in found.alive():
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
