"""Runs whose shards and drivers come to bad ends (R01, R18, R22), with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PYTEST = "{{paths: [src, tests/{0}], command: pytest -q -p no:randomly tests/{0}}}"
IGNORE = {".gitignore": "__pycache__/\n.pytest_cache/\n"}


def suites(bodies: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Return the configuration and the files of pytest shards, each a file of its own."""
    lines = ["version: 1", "repository: demo", "shards:", *(f"  {name}: {PYTEST.format(name)}" for name in bodies)]
    files = {f"tests/{name}/test_{name}.py": body for name, body in bodies.items()}
    return "\n".join([*lines, ""]), {**files, **IGNORE}


FINE = "def test_fine():\n    pass\n"
SEGFAULT = (
    FINE
    + "def test_crash():\n    import os, signal\n    os.kill(os.getpid(), signal.SIGSEGV)\n\ndef test_after(): pass\n"
)
HANG = FINE + "def test_stuck_here():\n    import threading\n    threading.Event().wait()\n"
STICKY = """\
import pytest
broken = []

@pytest.fixture(autouse=True)
def device():
    if broken:
        raise RuntimeError("CUDA error: device-side assert triggered")

def test_breaks_the_device():
    broken.append(1)
    raise RuntimeError("CUDA error: an illegal memory access was encountered")

def test_next():
    pass
"""


def test_r01_three_of_five_shards_misbehave_and_only_they_are_red(driven):
    """A crash, a hang and a sticky device error stay in their own processes."""
    bodies = {"one": FINE, "crash": SEGFAULT, "hang": HANG, "sticky": STICKY, "two": FINE}
    project = driven(*suites(bodies))

    done = project.run(jobs=2, stall_s=6.0)

    assert sorted(map(str, done.red)) == ["crash", "hang", "sticky"]
    assert done.exit_status == 1
    reasons = {str(key): set(items[-1].receipt.reasons) for key, items in done.results.items()}
    assert reasons["one"] == reasons["two"] == set()
    assert "signal" in reasons["crash"]
    assert "stalled" in reasons["hang"]
    assert {"test-failed", "test-error"} <= reasons["sticky"]
    [crash] = done.results[next(key for key in done.results if key.name == "crash")]
    assert str(crash.result.last_started).endswith("::test_crash")
    [hang] = done.results[next(key for key in done.results if key.name == "hang")]
    assert "in test_stuck_here" in hang.log_text, "its stacks, asked for before it was ended"
    assert done.merge.outcome == "failed"


# --- the driver -------------------------------------------------------------------------------------------------

SLOW = "{paths: [src], command: [sh, -c, %s], results: exit-status}"
FOUR = f"""\
version: 1
repository: demo
shards:
  first: {SLOW % "'echo first >> $OUT/ran'"}
  long: {SLOW % "'echo long >> $OUT/ran; if test -e $OUT/go; then exit 0; fi; setsid sleep 300 & echo $! > $OUT/daemon; touch $OUT/on; sleep 300'"}
  last: {SLOW % "'echo last >> $OUT/ran'"}
"""


@pytest.fixture
def start(driven) -> Callable[..., tuple[subprocess.Popen[str], object]]:
    """Start `git-ledger run` on the four shards and wait until the long one is under way; ended after the test."""
    drivers: list[subprocess.Popen[str]] = []

    def begin() -> tuple[subprocess.Popen[str], object]:
        project = driven(FOUR)
        drivers.append(
            subprocess.Popen(
                ["git-ledger", "run"],
                cwd=project.path,
                env=dict(project.repo.env),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        until = time.monotonic() + 60
        while not (project.out / "on").exists():
            assert time.monotonic() < until
            assert drivers[-1].poll() is None, drivers[-1].communicate()
            time.sleep(0.02)
        return drivers[-1], project

    yield begin
    for driver in drivers:
        driver.kill()
        driver.communicate(timeout=60)


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_r03_r18_an_interrupt_records_what_is_under_way_and_the_same_command_resumes(start, signum):
    driver, project = start()
    driver.send_signal(signum)
    out, err = driver.communicate(timeout=60)

    assert driver.returncode == 128 + signum, err
    assert "interrupted; `git ledger run` resumes" in out
    assert not lives(int((project.out / "daemon").read_text()))
    [row] = [row for row in project.ledger("plan", "--json").document["shards"] if row["name"] == "long"]
    assert len(row["attempts"]) == 1, "the shard in flight counts as an attempt"

    (project.out / "go").touch()
    resumed = project.ledger("run", "--json").document
    assert resumed["exit_status"] == 0
    assert project.ran() == ["first", "last", "long", "long"]
    assert [item["attempt"] for item in resumed["ran"] if item["name"] == "long"] == [2]
    assert project.verify()[0] == "passed"


def test_r22_a_killed_driver_takes_its_shards_along_and_blocks_no_next_run(start):
    driver, project = start()
    daemon = int((project.out / "daemon").read_text())
    os.kill(driver.pid, signal.SIGKILL)
    (project.out / "go").touch()

    resumed = project.ledger("run", "--json").document

    assert not lives(daemon), "the next run begins when nothing of the last is left"
    assert resumed["exit_status"] == 0
    assert project.ran() == ["first", "last", "long", "long"]
    assert project.verify()[0] == "passed"
