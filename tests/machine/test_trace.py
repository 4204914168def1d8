"""A traced command ends as an untraced one, and its trace is whole, or known not to be."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from gitledger.errors import MachineError
from gitledger.machine.child import shell_status
from gitledger.machine.strace import TraceFault, read_trace
from gitledger.machine.trace import Tracing, find_tracer


@pytest.fixture
def tracing(tracer, tmp_path: Path) -> Tracing:
    folder = tmp_path / "trace"
    folder.mkdir()
    return Tracing(tracer, folder)


@pytest.fixture
def bench(bench, monkeypatch):
    """The place to run commands in, where each of them ends by itself."""
    run = bench.run
    monkeypatch.setattr(bench, "run", lambda *argv, **options: run(*argv, **{"timeout_s": 60, **options}))
    return bench


def opened(tracing: Tracing, folder: Path) -> set[str]:
    with tracing.file.open("rb") as lines:
        return {event.real or event.names[0] for event in read_trace(lines, str(folder))}


@pytest.mark.parametrize(
    ("line", "status", "signum"),
    [("exit 0", 0, None), ("exit 77", 77, None), ("kill -TERM $$", None, 15), ("kill -KILL $$", None, 9)],
)
def test_a_traced_command_ends_as_it_does_untraced(bench, tracing, line, status, signum):
    ended = bench.sh(f"ulimit -c 0; {line}", tracing=tracing)

    assert (ended.status, ended.signal, ended.leftovers, ended.unkilled) == (status, signum, 0, 0)
    assert bench.output() == b""
    assert str(Path("/usr/bin/sh").resolve()) in {os.path.realpath(name) for name in opened(tracing, bench.folder)}


def test_what_children_in_any_language_open_is_told(bench, tracing):
    (bench.folder / "sub").mkdir()
    (bench.folder / "a <b>\n.txt").write_text("x")
    bench.sh('cd sub && cat "../a <b>\n.txt"', tracing=tracing)

    assert str(bench.folder / "a <b>\n.txt") in opened(tracing, bench.folder)


def test_a_thread_that_executes_a_program(bench, tracing):
    source = """
        import os, threading, time
        threading.Thread(target=os.execv, args=("/bin/cat", ["cat", "script.py"])).start()
        time.sleep(30)
    """
    assert bench.python(source, tracing=tracing).status == 0
    assert str(bench.folder / "script.py") in opened(tracing, bench.folder)


def test_many_processes_at_once(bench, tracing):
    (bench.folder / "tool").write_text('#!/bin/sh\n: < "$1"\n')
    (bench.folder / "tool").chmod(0o755)
    for i in range(8):
        (bench.folder / f"d{i}").mkdir()
        (bench.folder / f"d{i}/in").write_text("x")
    line = "for i in 0 1 2 3 4 5 6 7; do (cd d$i; for n in 1 2 3; do ../tool in & done; wait) & done; wait"
    assert bench.sh(line, tracing=tracing).status == 0
    assert {str(bench.folder / f"d{i}/in") for i in range(8)} <= opened(tracing, bench.folder)


def test_a_command_that_can_not_be_started_is_the_same_error(bench, tracer, tmp_path):
    (bench.folder / "text").write_text("no program")
    (bench.folder / "script").write_text("no first line that names an interpreter\n")
    (bench.folder / "script").chmod(0o755)
    (bench.folder / "lost").write_text("#!/no/such/interpreter\n")
    (bench.folder / "lost").chmod(0o755)
    for i, name in enumerate(["nothing-of-that-name", "./text", "./script", "./lost"]):
        folder = tmp_path / f"t{i}"
        folder.mkdir()
        errors = []
        for tracing in (None, Tracing(tracer, folder)):
            with pytest.raises(MachineError) as caught:
                bench.run(name, tracing=tracing)
            errors.append((caught.value.code, caught.value.message))
        assert errors[0] == errors[1]


def test_r05_a_time_out_ends_all_of_it(bench, tracing, pids):
    source = """
        import os, signal, subprocess, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(os.environ["PIDS"] + "/me", "w").write(str(os.getpid()))
        subprocess.Popen(["sh", "-c", "trap '' TERM; echo $$ > $PIDS/child; sleep 300 & wait"])
        time.sleep(300)
    """
    started = time.monotonic()
    ended = bench.python(source, tracing=tracing, timeout_s=1.5, grace_s=0.5)

    assert ended.timed_out
    assert shell_status(ended) == 124
    assert time.monotonic() - started < 20
    assert len(pids.all()) == 2
    assert pids.alive() == []
    assert tracers_of(tracing) == []


def tracers_of(tracing: Tracing) -> list[int]:
    """Return the processes whose command line names this trace."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(tracing.folder).encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_a_killed_driver_leaves_no_tracer_and_no_command(bench, tracing, pids, eventually):
    command = ["sh", "-c", "echo $$ > $PIDS/me; sleep 300"]
    before = (
        f"from gitledger.machine.trace import Tracer, Tracing; "
        f"tracing = Tracing(Tracer({tracing.tracer.words!r}), Path({str(tracing.folder)!r}))"
    )
    driver = bench.driver(command, "tracing=tracing, grace_s=0.5, timeout_s=60", before)
    assert eventually(pids.all)
    driver.kill()

    assert eventually(lambda: not pids.alive() and not tracers_of(tracing))


def test_a_killed_keeper_and_driver_take_the_command_along(bench, tracing, pids, eventually):
    command = ["sh", "-c", "echo $$ > $PIDS/me; exec sleep 300"]
    before = (
        f"from gitledger.machine.trace import Tracer, Tracing; "
        f"tracing = Tracing(Tracer({tracing.tracer.words!r}), Path({str(tracing.folder)!r}))"
    )
    driver = bench.driver(command, "tracing=tracing, timeout_s=60", before)
    assert eventually(pids.all)
    keeper = child_of(driver.pid)
    driver.kill()
    os.kill(keeper, signal.SIGKILL)

    assert eventually(lambda: not pids.alive() and not tracers_of(tracing))


def child_of(pid: int) -> int:
    """Return the one child of a process."""
    (child,) = [
        int(text) for path in Path(f"/proc/{pid}/task").glob("*/children") for text in path.read_text().split()
    ]
    return child


def test_a_tracer_that_is_killed_leaves_a_trace_that_says_so(bench, tracing):
    source = """
        import os, signal
        pid = int([line for line in open("/proc/self/status") if line.startswith("TracerPid")][0].split()[1])
        os.kill(pid, signal.SIGKILL)
    """
    bench.python(source, tracing=tracing)
    with pytest.raises(TraceFault, match="breaks off"):
        opened(tracing, bench.folder)


def test_a_trace_over_its_bound_is_cut_and_the_command_is_not(bench, tracing):
    tracing.max_bytes = 10_000
    ended = bench.sh("i=0; while [ $i -lt 2000 ]; do : < /dev/null; i=$((i+1)); done; exit 3", tracing=tracing)

    assert ended.status == 3
    assert not tracing.is_whole
    assert tracing.file.stat().st_size <= 10_000


def test_what_outlives_the_command_is_ended_and_in_the_trace(bench, tracing):
    source = """
        import subprocess
        subprocess.Popen(["sh", "-c", "trap 'cat script.py; exit' TERM; while :; do sleep 0.1; done"], stdout=-3)
    """
    ended = bench.python(source, tracing=tracing)
    assert ended.status == 0
    assert ended.leftovers >= 1
    assert str(bench.folder / "script.py") in opened(tracing, bench.folder)


@pytest.mark.parametrize(
    "fake", ["exit 1", "echo 'strace: ptrace: Operation not permitted' >&2; exit 1", "shift $#"]
)
def test_a_tracer_that_can_not_trace_is_unavailable(tmp_path, hermetic_env, fake):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "strace").write_text(f"#!/bin/sh\n{fake}\n")
    (tools / "strace").chmod(0o755)
    with pytest.raises(MachineError, match="can't trace") as caught:
        find_tracer({**hermetic_env, "PATH": f"{tools}:{hermetic_env['PATH']}"}, tmp_path)
    assert caught.value.code == "trace-unavailable"
    with pytest.raises(MachineError, match="none on PATH"):
        find_tracer({**hermetic_env, "PATH": str(tmp_path)}, tmp_path)
