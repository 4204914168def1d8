"""The kernel's OOM killer is named where its count can be read (R08)."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitledger.machine.oom import OomWatch, memory_counters, read_counter

LIMIT_BYTES = 64 << 20
V1_MOUNTS = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
V2_MOUNTS = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
INNER_MOUNTS = "31 23 0:28 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"


@pytest.mark.parametrize(
    ("cgroups", "mounts", "expected"),
    [
        ("0::/user.slice/x.scope\n", V2_MOUNTS, "/sys/fs/cgroup/user.slice/x.scope/memory.events"),
        ("0::/\n", V2_MOUNTS, "/sys/fs/cgroup/memory.events"),
        ("0::/docker/abc/inner\n", INNER_MOUNTS, "/sys/fs/cgroup/inner/memory.events"),
        ("4:memory:/jobs/7\n3:cpuset:/\n", V1_MOUNTS, "/sys/fs/cgroup/memory/jobs/7/memory.oom_control"),
        ("4:cpu,memory:/a:b\n", V1_MOUNTS, "/sys/fs/cgroup/memory/a:b/memory.oom_control"),
    ],
)
def test_the_counter_of_a_process_is_found(cgroups, mounts, expected):
    assert memory_counters(cgroups, mounts) == (Path(expected),)


@pytest.mark.parametrize("cgroups", ["", "garbage", "0::", "::", "4:cpu:/x\n", "\0\n:\n"])
def test_odd_files_of_proc_name_no_counter_and_raise_nothing(cgroups):
    assert memory_counters(cgroups, "garbage\n - \n1 2 - cgroup2\n") == ()


def test_counters_are_read_in_both_formats(tmp_path):
    v1, v2, odd = tmp_path / "v1", tmp_path / "v2", tmp_path / "odd"
    v1.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    v2.write_text("low 0\nhigh 0\nmax 9\noom 5\noom_kill 4\noom_group_kill 0\n")
    odd.write_bytes(b"oom_kill x\n\xff\n")

    assert [read_counter(file) for file in (v1, v2, odd, tmp_path / "none")] == [3, 4, None, None]


def proc(root: Path, count: int) -> Path:
    """A /proc in which one process is in the cgroup /job of a hierarchy under `root`."""
    (root / "proc" / "self").mkdir(parents=True, exist_ok=True)
    (root / "proc" / "7").mkdir(exist_ok=True)
    (root / "proc" / "7" / "cgroup").write_text("0::/job\n")
    (root / "proc" / "self" / "mountinfo").write_text(f"31 23 0:28 / {root}/cgroup rw - cgroup2 cgroup2 rw\n")
    (root / "cgroup" / "job").mkdir(parents=True, exist_ok=True)
    (root / "cgroup" / "job" / "memory.events").write_text(f"oom_kill {count}\n")
    return root / "proc"


def test_only_a_count_that_rose_is_a_strike(tmp_path):
    watch = OomWatch(proc(tmp_path, 2))
    assert watch.struck() is None

    watch.observe(7)
    assert watch.struck() is False

    proc(tmp_path, 3)
    watch.observe(7)
    assert watch.struck() is True


def test_a_process_that_has_gone_leaves_what_was_seen(tmp_path):
    watch = OomWatch(proc(tmp_path, 2))
    watch.observe(8)

    assert watch.struck() is None


class Cgroup:
    """A memory cgroup below this process's own, with a limit: within what confines this session already."""

    def __init__(self) -> None:
        cgroups = Path("/proc/self/cgroup").read_text()
        counter = memory_counters(cgroups, Path("/proc/self/mountinfo").read_text())[0]
        self.folder = counter.parent / f"gitledger-test-{os.getpid()}"
        self.folder.mkdir()
        try:
            v2 = counter.name == "memory.events"
            (self.folder / ("memory.max" if v2 else "memory.limit_in_bytes")).write_text(str(LIMIT_BYTES))
        except OSError:
            self.folder.rmdir()
            raise


@pytest.fixture
def cgroup(capsys) -> Iterator[Cgroup]:
    """A memory cgroup of 64 MiB; a machine that gives none skips, and says so where nobody can miss it."""
    try:
        group = Cgroup()
    except (OSError, IndexError) as error:
        with capsys.disabled():
            print(
                f"\nNOT TESTED: the kernel's OOM killer, since no memory cgroup can be made here: {error}",
                flush=True,
            )
        pytest.skip("no memory cgroup can be made here")
    yield group
    group.folder.rmdir()


HOG = "import time; time.sleep(0.3); x = [bytearray(b'x' * (1 << 20)) for _ in range(200)]"


def test_a_command_killed_for_memory_is_told_from_one_that_was_killed(bench, cgroup):
    inside = f"echo $$ > {cgroup.folder}/cgroup.procs"
    hungry = bench.sh(f"{inside}; sleep 0.2; exec {sys.executable} -S -c '{HOG.replace(chr(39), chr(34))}'")
    killed = bench.sh(f"{inside}; sleep 0.2; kill -9 $$")

    assert (hungry.signal, hungry.oom) == (signal.SIGKILL, True)
    assert (killed.signal, killed.oom) == (signal.SIGKILL, False)


def test_r08_a_worker_killed_for_memory_is_named_when_its_controller_stalls(bench, cgroup):
    worker = f"{sys.executable} -S -c '{HOG.replace(chr(39), chr(34))}'"
    ended = bench.sh(f"echo $$ > {cgroup.folder}/cgroup.procs; sleep 0.2; {worker}; sleep 300", stall_s=3)

    assert (ended.stalled, ended.oom) == (True, True)


def test_a_command_that_copes_with_a_kill_for_memory_and_ends_well_is_no_victim(bench, cgroup):
    worker = f"{sys.executable} -S -c '{HOG.replace(chr(39), chr(34))}'"
    ended = bench.sh(f"echo $$ > {cgroup.folder}/cgroup.procs; sleep 0.2; {worker}; exit 0")

    assert (ended.status, ended.oom) == (0, False)
