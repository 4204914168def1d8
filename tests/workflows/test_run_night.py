"""A night in small: shards that misbehave in every way, and a driver that is killed twice and resumed (R01-R22)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitledger.machine.oom import memory_counters

LIMIT_BYTES = 64 << 20
FINE = "echo {name} >> $OUT/began; sleep {seconds}"
HOG = "x = [bytearray(b'x' * (1 << 20)) for _ in range(300)]"
MISCHIEF = {
    "segfault": "kill -SEGV $$",
    "hang": "sleep 1000",
    "memory": '{inside}; {python} -S -c "{hog}"',
    "daemon": "setsid sh -c 'echo $$ > $OUT/daemon; exec sleep 1000' & sleep 0.5; exit 0",
    "fails": "echo 'a real failure'; exit 1",
}
AT_EXIT = "import atexit, os, signal\natexit.register(os.kill, os.getpid(), signal.SIGSEGV)\n\ndef test_it():\n    pass\n"


@pytest.fixture
def cgroup(capsys) -> Iterator[Path | None]:
    """A memory cgroup of 64 MiB; without one, that shard is killed by a plain KILL, and it is said."""
    counter = memory_counters(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    folder = counter[0].parent / f"gitledger-night-{os.getpid()}" if counter else None
    try:
        if folder is None:
            raise OSError("no memory cgroup")
        folder.mkdir()
        name = "memory.max" if counter[0].name == "memory.events" else "memory.limit_in_bytes"
        (folder / name).write_text(str(LIMIT_BYTES))
    except OSError as error:
        with capsys.disabled():
            print(f"\nNOT TESTED: the kernel's OOM killer in a night: {error}", flush=True)
        folder = None
    yield folder
    if folder is not None:
        folder.rmdir()


def night(count: int, seconds: float, cgroup: Path | None) -> tuple[str, dict[str, str]]:
    """Return configuration and files: `count` shards, six of which come to a bad end."""
    inside = f"echo $$ > {cgroup}/cgroup.procs" if cgroup else "kill -KILL $$"
    bodies = {
        name: text.replace("{inside}", inside).replace("{python}", sys.executable).replace("{hog}", HOG)
        for name, text in MISCHIEF.items()
    }
    fine = [f"fine{number:02}" for number in range(count - len(bodies) - 1)]
    files = {f"bin/{name}.sh": f"echo {name} >> $OUT/began\n{text}\n" for name, text in bodies.items()}
    files |= {f"bin/{name}.sh": FINE.format(name=name, seconds=seconds) + "\n" for name in fine}
    files["tests/test_exit.py"] = AT_EXIT
    files[".gitignore"] = "__pycache__/\n.pytest_cache/\n"
    lines = [
        f"  {name}: {{paths: [bin], command: [sh, bin/{name}.sh], results: exit-status}}"
        for name in (*fine, *bodies)
    ]
    lines.append("  atexit: {paths: [tests], command: pytest -q tests}")
    return "\n".join(["version: 1", "repository: demo", "shards:", *lines, ""]), files


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def survivors(repository: Path) -> list[str]:
    """Return the command lines of processes that work in a repository."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == repository and lives(int(process.name)):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def words(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def stored(project) -> int:
    """Return how many receipts the commit has."""
    return len(project.repo.git("notes", "--ref=gitledger/records", "show", "HEAD", check=False).splitlines())


def sleep_through(project, *, kills: int, step: int) -> dict[str, int]:
    """Run, and kill the driver `kills` times, a while after `step` more receipts; the last run is left alone.

    Return how often each shard had begun when it was first seen to be done, that is, to have a green receipt.
    """
    done: dict[str, int] = {}
    command = ["git-ledger", "run", "--jobs", "2", "--stall", "6s"]
    for number in range(kills + 1):
        driver = subprocess.Popen(
            command,
            cwd=project.path,
            env=dict(project.repo.env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        wanted, until = stored(project) + step, time.monotonic() + 120
        while number < kills and stored(project) < wanted and driver.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        if number < kills:
            time.sleep(0.2 * number)
            assert driver.poll() is None, f"it was over before it could be killed:\n{driver.communicate()[0]}"
            os.kill(driver.pid, signal.SIGKILL)
            driver.communicate(timeout=60)
            began = Counter(words(project.out / "began"))
            green = {name for name, (verdict, _) in project.plan().items() if verdict == "fresh"}
            done |= {name: began[name] for name in green - set(done)}
        else:
            out, _ = driver.communicate(timeout=500)
            assert driver.returncode == 1, out
    return done


def judge_the_night(project, count: int, cgroup: Path | None, done: dict[str, int]) -> None:
    rows = {row["name"]: row for row in project.ledger("plan", "--json").document["shards"]}
    assert len(rows) == count
    red = {name for name, row in rows.items() if row["verdict"] == "stale"}
    assert red == {*MISCHIEF, "atexit"} - {"daemon"}, "only the guilty are red"
    assert {name for name, row in rows.items() if row["outcome"] is None} == set(), "every shard has its receipt"

    reasons = {name: set(project.receipt(rows[name]["record"])["reasons"]) for name in red}
    assert "signal" in reasons["segfault"]
    assert "stalled" in reasons["hang"]
    # It is the driver that counts what the kernel killed: one that was killed itself meanwhile left the status alone.
    assert ("out-of-memory" if cgroup else "signal") in reasons["memory"] or reasons["memory"] == {"test-failed"}
    assert reasons["fails"] == {"test-failed"}
    assert "signal-at-exit" in reasons["atexit"]

    began = Counter(words(project.out / "began"))
    assert done, "the driver was killed before anything was done"
    assert {name: began[name] for name in done} == done, "nothing that was done ran again"
    assert not lives(int((project.out / "daemon").read_text()))
    assert survivors(project.path) == []


def test_a_night_in_small_is_survived(driven, cgroup):
    config, files = night(10, 0.2, cgroup)
    project = driven(config, files)

    done = sleep_through(project, kills=2, step=2)

    judge_the_night(project, 10, cgroup, done)


@pytest.mark.night
def test_a_night_of_forty_shards_is_survived(driven, cgroup):
    config, files = night(40, 1.0, cgroup)
    project = driven(config, files)

    done = sleep_through(project, kills=2, step=8)

    judge_the_night(project, 40, cgroup, done)
