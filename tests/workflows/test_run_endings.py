"""Runs whose shards and drivers come to bad ends (R01, R18, R22), with real processes."""

from __future__ import annotations

import json
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


WORKERS = """\
import os, pathlib, signal, time, pytest

def test_fails():
    assert 1 == 2

@pytest.mark.parametrize("number", range(4))
def test_fine(number):
    pass

def test_of_the_worker_that_is_gone():
    os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_r08_a_worker_of_xdist_that_never_answers_is_a_stall_and_hides_no_failure(driven):
    """The controller waits for ever for a worker that the kernel has taken away; here it is stopped for good."""
    shard = "{paths: [src, tests/it], command: pytest -q -p no:randomly -n 2 tests/it}"
    project = driven(
        f"version: 1\nrepository: demo\nshards:\n  it: {shard}\n", {"tests/it/test_it.py": WORKERS, **IGNORE}
    )

    done = project.run(stall_s=5.0)

    [[item]] = done.results.values()
    assert {"stalled", "test-failed", "missing-results"} <= set(item.receipt.reasons)
    assert [str(name).rpartition("::")[2] for name in item.result.missing] == ["test_of_the_worker_that_is_gone"]
    assert (item.receipt.counts.passed, item.receipt.counts.failed) == (4, 1)


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
    assert "git ledger: told to stop: what runs is ended and recorded; a second signal ends it at once\n" in err
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


DOOMED = """\
import os, pathlib, signal, time

def test_fine():
    pass

def test_fails():
    assert 1 == 2

def test_under_way():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    out = pathlib.Path(os.environ["OUT"])
    if not (out / "go").exists():
        (out / "on").touch()
        time.sleep(300)
"""


@pytest.mark.parametrize("signals", [(signal.SIGKILL,), (signal.SIGTERM, signal.SIGKILL)], ids=["kill", "cancel"])
def test_r03_r18_what_a_shard_had_come_to_is_recorded_though_its_driver_was_killed(driven, signals):
    """A failure that was seen is not lost with the recorder that saw it, whatever a cancelled job is sent."""
    project = driven(*suites({"doomed": DOOMED}))
    driver = subprocess.Popen(
        ["git-ledger", "run"], cwd=project.path, env=dict(project.repo.env), stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 60
    while not (project.out / "on").exists() and time.monotonic() < until:
        time.sleep(0.02)
    for signum in signals:
        driver.send_signal(signum)
    driver.wait(60)
    (project.out / "go").touch()

    said = project.ledger("run", expect=1)

    assert "recorded what doomed had come to when its driver was killed: 1 passed and 1 failed of 3" in said.err
    [row] = project.ledger("plan", "--json").document["shards"]
    assert len(row["attempts"]) == 2, "the shard in flight counts as an attempt"
    first = project.receipt(row["attempts"][1])
    assert {"interrupted", "test-failed", "missing-results"} <= set(first["reasons"])
    assert first["session"]["started_at"] < first["session"]["ended_at"]
    assert list((project.path / ".git/gitledger/flight").iterdir()) == []


def test_a_note_that_names_a_folder_of_others_removes_nothing(driven, tmp_path):
    project = driven(FOUR.replace("if test -e $OUT/go", "if true"))
    precious = tmp_path / "gitledger-precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    notes = project.path / ".git/gitledger/flight"
    notes.mkdir(parents=True)
    told = {"argv": [], "commit": project.repo.git("rev-parse", "HEAD"), "folder": str(precious), "key": "last"}
    told |= {"nonce": "0", "started_at": "2026-01-01T00:00:00Z"}
    (notes / "last.json").write_text(json.dumps(told))
    (notes / "odd.json").write_text("{")

    assert project.run().exit_status == 0

    assert (precious / "file").exists()
    assert list(notes.iterdir()) == []
