"""A run without progress is stalled; output, tests and compilers are progress, burnt time is not (R08, R16)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

from gitledger.machine.processes import live_compilers
from gitledger.machine.stall import StallWatch

linux = pytest.mark.skipif(sys.platform != "linux", reason="compilers are found through /proc")


def test_r08_a_silent_command_is_ended_and_called_stalled(bench):
    ended = bench.sh("echo begin; sleep 300", stall_s=0.5)

    assert (ended.stalled, ended.timed_out, ended.interrupted) == (True, False, False)
    assert ended.signal == signal.SIGTERM
    assert 0.4e9 < ended.duration_ns < 3e9


def test_processor_time_is_no_progress(bench):
    ended = bench.python("while True: pass", stall_s=0.5)

    assert ended.stalled


def test_a_growing_log_is_progress(bench):
    ended = bench.sh("for n in 1 2 3 4 5 6 7 8; do echo $n; sleep 0.2; done", stall_s=0.6)

    assert (ended.stalled, ended.status) == (False, 0)


def test_finished_tests_are_progress_though_nothing_is_printed(bench):
    journal = bench.folder / "journal"
    journal.write_text("")
    line = "for n in 1 2 3 4 5 6 7 8; do echo $n >> journal; sleep 0.2; done"
    ended = bench.sh(line, stall_s=0.6, progress=lambda: journal.stat().st_size)

    assert (ended.stalled, ended.status) == (False, 0)


def test_a_stalled_command_that_ignores_term_is_killed(bench):
    ended = bench.sh("trap '' TERM; while :; do sleep 0.1; done", stall_s=0.4, grace_s=0.3)

    assert (ended.stalled, ended.signal) == (True, signal.SIGKILL)


def test_a_stalled_command_is_asked_for_its_stacks_first(bench):
    ended = bench.python(
        """
        import faulthandler, signal, time
        faulthandler.register(signal.SIGUSR1)
        def stuck_here(): time.sleep(300)
        stuck_here()
        """,
        stall_s=1.0,
        dump_signal=signal.SIGUSR1,
    )

    assert (ended.stalled, ended.signal) == (True, signal.SIGTERM)
    assert b"in stuck_here" in bench.output()


def test_a_wrapper_that_knows_no_such_signal_is_not_killed_by_it(bench):
    """`uv run pytest` hands nothing on: the stacks are those of whoever below it can tell."""
    stuck = bench.script(
        """
        import faulthandler, signal, time
        faulthandler.register(signal.SIGUSR1)
        def stuck_here(): time.sleep(300)
        stuck_here()
        """
    )
    ended = bench.run("sh", "-c", '"$@"; exit 7', "sh", *stuck, stall_s=1.0, dump_signal=signal.SIGUSR1)

    assert ended.stalled
    assert ended.signal != signal.SIGUSR1
    assert b"in stuck_here" in bench.output()


@linux
def test_r16_a_compiler_at_work_is_progress(bench):
    names = ["nvcc", "cicc", "ptxas", "cc1plus"]
    for name in names:
        shutil.copy("/bin/sleep", bench.folder / name)
    work = "; ".join(f"./{name} 0.8" for name in names)
    ended = bench.sh(f"sh -c '{work}; exit 0'; exit 0", stall_s=0.4)

    assert (ended.stalled, ended.status) == (False, 0)


@linux
def test_a_stall_after_the_last_compiler_is_seen(bench):
    shutil.copy("/bin/sleep", bench.folder / "ptxas")
    ended = bench.sh("./ptxas 0.8; sleep 300", stall_s=0.5)

    assert ended.stalled
    assert ended.duration_ns > 1.2e9


@linux
def test_a_compiler_that_is_stopped_is_not_at_work(bench):
    shutil.copy("/bin/sleep", bench.folder / "cicc")
    ended = bench.sh("./cicc 300 & sleep 0.2; kill -STOP $!; wait", stall_s=0.5, grace_s=0.2)

    assert ended.stalled


@linux
def test_only_compilers_below_the_given_process_count(bench):
    shutil.copy("/bin/sleep", bench.folder / "nvcc")
    compiler = subprocess.Popen([str(bench.folder / "nvcc"), "300"])
    other = subprocess.Popen(["sleep", "300"])
    try:
        assert live_compilers(os.getpid()) == ("nvcc",)
        assert live_compilers(other.pid) == ()
    finally:
        for process in (compiler, other):
            process.kill()
            process.wait()


def test_time_counts_from_the_last_progress():
    watch = StallWatch(10.0)
    seen = [(0, 0.0), (0, 9.9), (1, 10.5), (1, 20.4), (1, 20.5), (2, 20.6)]

    assert [watch.is_stalled(size, root=0, now_s=now) for size, now in seen] == [False] * 4 + [True, False]
