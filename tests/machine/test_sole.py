"""One driver at a time, by a lock that outlives a killed driver exactly as long as its runs do (R22)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from gitledger.errors import MachineError
from gitledger.machine.sole import sole_driver

DRIVER = """
    import sys, time
    from datetime import UTC, datetime
    from pathlib import Path
    from gitledger.machine.child import run_child
    from gitledger.machine.sole import sole_driver
    with sole_driver(Path(sys.argv[1])) as held:
        run_child(["sh", "-c", sys.argv[2]], cwd=Path.cwd(), env={"PATH": "/usr/bin:/bin"}, log=Path("log"),
                  clock=lambda: datetime.now(UTC), held=held, grace_s=1.0)
"""


@pytest.fixture
def driver(tmp_path: Path):
    """Start a driver that holds the lock and runs a shell line; killed after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(line: str) -> subprocess.Popen[bytes]:
        script = tmp_path / "driver.py"
        script.write_text(textwrap.dedent(DRIVER))
        env = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": os.environ["PATH"]}
        command = [sys.executable, str(script), str(tmp_path / "lock"), line]
        started.append(subprocess.Popen(command, cwd=tmp_path, env=env))
        until = time.monotonic() + 30
        while not (tmp_path / "on").exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(30)


def test_a_driver_that_lives_is_named_at_once(driver, tmp_path):
    first = driver("touch on; sleep 60")
    began = time.monotonic()

    with pytest.raises(MachineError) as caught, sole_driver(tmp_path / "lock"):
        pytest.fail("two drivers")

    assert caught.value.code == "run-in-progress"
    assert f"process {first.pid} " in caught.value.message
    assert time.monotonic() - began < 5


def test_r22_after_a_kill_the_lock_is_free_when_nothing_of_the_runs_is_left(driver, tmp_path):
    """The command ignores TERM, so its keeper gives it a second before it is killed."""
    first = driver("trap '' TERM; echo $$ > pid; touch on; while :; do sleep 0.05; done")
    pid = int((tmp_path / "pid").read_text())
    os.kill(first.pid, signal.SIGKILL)
    first.wait(30)

    with sole_driver(tmp_path / "lock"):
        assert not Path(f"/proc/{pid}").exists()


def test_r22_keepers_that_their_command_has_stopped_block_no_next_run(driver, tmp_path):
    """A stopped guard holds the lock for ever, and nobody else is left to wake it."""
    line = (
        "keeper=$PPID; read -r _ _ _ guard _ < /proc/$keeper/stat; touch on; kill -STOP $guard $keeper; sleep 60"
    )
    first = driver(line)
    os.kill(first.pid, signal.SIGKILL)
    first.wait(30)

    with sole_driver(tmp_path / "lock"):
        pass


def test_what_does_not_end_is_waited_for_within_bounds(driver, tmp_path):
    driver("touch on; echo $PPID > keeper; sleep 60")
    lock = tmp_path / "lock"
    lock.write_bytes(b"1 0")  # as if the holder that stands there had died

    with pytest.raises(MachineError, match="still runs") as caught, sole_driver(lock, wait_s=0.2):
        pytest.fail("two drivers")
    assert (tmp_path / "keeper").read_text().strip() in re.findall("[0-9]+", caught.value.hint)


def test_the_lock_is_free_afterwards_and_the_patient_wait_for_it(tmp_path):
    order = []

    def second() -> None:
        with sole_driver(tmp_path / "lock", wait_s=30, patient=True):
            order.append("second")

    with sole_driver(tmp_path / "lock"):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.2)
        order.append("first")
    thread.join(30)
    assert order == ["first", "second"]
    with sole_driver(tmp_path / "lock"):
        pass


def test_a_lock_on_a_full_disk_is_one_clear_error():
    with pytest.raises(MachineError) as caught, sole_driver(Path("/dev/full")):
        pytest.fail("no lock")
    assert caught.value.code == "lock-unwritable"


def test_a_folder_that_can_not_be_written_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError) as caught, sole_driver(tmp_path / "file" / "lock"):
        pytest.fail("no lock")
    assert caught.value.code == "lock-unwritable"
