"""How a command ends is told truly, whatever it does, and nothing of it is left (DESIGN 8 and 10, cases R)."""

from __future__ import annotations

import ast
import contextlib
import os
import pty
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from datetime import UTC, timedelta
from pathlib import Path

import pytest

from gitledger.errors import MachineError
from gitledger.machine.child import read_end, shell_status
from gitledger.machine.interrupts import Interrupts
from gitledger.machine.processes import MARKER, end_marked, marked

linux = pytest.mark.skipif(sys.platform != "linux", reason="descendants are found through /proc")

DAEMON = """
    import os, signal, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            with open(os.path.join({folder!r}, "daemon"), "w") as f:
                f.write(str(os.getpid()))
            os.execve("/bin/sleep", ["sleep", "300"], {{}})
        os._exit(0)
    while not os.path.exists(os.path.join({folder!r}, "daemon")):
        time.sleep(0.01)
    {after}
"""


# -- how it ended ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [0, 1, 3, 77, 124, 255])
def test_an_exit_status_is_kept(bench, status):
    ended = bench.sh(f"exit {status}")

    assert (ended.status, ended.signal, shell_status(ended)) == (status, None, status)
    assert [ended.timed_out, ended.interrupted, ended.stalled] == [False] * 3
    assert (ended.leftovers, ended.unkilled) == (0, 0)


@pytest.mark.parametrize(
    "signum", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT, signal.SIGTERM, signal.SIGPIPE]
)
def test_r01_a_signal_is_told_from_a_status(bench, signum):
    ended = bench.sh(f"ulimit -c 0; kill -{int(signum)} $$")

    assert (ended.status, ended.signal) == (None, signum)
    assert shell_status(ended) == 128 + signum


def test_times_are_utc_and_the_duration_is_the_commands_own(bench):
    ended = bench.sh("sleep 0.3")

    assert ended.started_at.tzinfo is UTC
    assert timedelta(seconds=0.3) <= ended.ended_at - ended.started_at < timedelta(seconds=5)
    assert 300_000_000 <= ended.duration_ns < 2_000_000_000


def test_the_largest_resident_size_is_measured(bench):
    small = bench.python("pass").max_rss_bytes
    large = bench.python("x = b'x' * 200_000_000").max_rss_bytes

    assert small < 100_000_000
    assert 200_000_000 < large < 300_000_000


def test_a_short_command_is_not_kept_waiting(bench):
    bench.run("true")
    spans = []
    for _ in range(10):
        begin = time.perf_counter()
        bench.run("true")
        spans.append(time.perf_counter() - begin)

    # 17 ms measured; the bound leaves room for a loaded machine, and none for a poll of a tenth of a second.
    assert min(spans) < 0.09


# -- what it gets ---------------------------------------------------------------------------------------------


def test_the_command_leads_a_session_and_a_group_of_its_own(bench):
    bench.python(
        "import os; print(os.getpid() == os.getpgid(0) == os.getsid(0), os.getsid(0) != os.getsid(os.getppid()))"
    )

    assert bench.output() == b"True True\n"


def test_the_command_gets_exactly_the_folder_and_environment_given_and_a_marker(bench):
    bench.env["ODD"] = "a=b\nc \udcff"
    bench.python("import os, json; print(json.dumps([os.getcwd(), dict(os.environ)]))")

    folder, seen = ast.literal_eval(bench.output().decode())
    assert Path(folder) == bench.folder
    marker = seen.pop(MARKER)
    seen.pop("LC_CTYPE", None)  # Python's own, PEP 538
    assert seen == bench.env
    assert len(marker) == 16


def test_a_run_inside_a_run_carries_both_markers(bench):
    bench.env[MARKER] = "outer"
    bench.sh(f"echo ${MARKER}")

    assert bench.output().startswith(b"outer:")


def test_no_descriptor_and_no_signal_setting_of_the_keeper_reaches_the_command(bench):
    bench.sh("ls -l /proc/self/fd | grep -c -v -e total -e /proc/; grep -E 'Sig(Blk|Ign)' /proc/self/status")

    count, *masks = bench.output().decode().splitlines()
    assert int(count) == 3
    # Signals 32 and 33 are the C library's own: what make leaves of them no program can set.
    assert {int(line.split()[1], 16) & ~(3 << 31) for line in masks} == {0}


def test_what_a_driver_holds_open_does_not_reach_the_command(bench, tmp_path):
    with (tmp_path / "lock").open("w") as lock:
        bench.sh("ls /proc/self/fd | wc -l", held=(lock.fileno(),))
        held = bench.output()
        bench.sh("ls /proc/self/fd | wc -l")
    assert held == bench.output()


def test_stdin_is_empty_unless_given(bench, tmp_path):
    bench.sh("cat; echo end")
    assert bench.output() == b"end\n"

    (tmp_path / "in").write_text("given\n")
    with open(tmp_path / "in", "rb") as given:
        bench.sh("cat", stdin=given.fileno())
    assert bench.output() == b"given\n"


def test_a_very_long_command_and_environment_arrive_whole(bench):
    bench.env.update({f"V{n}": "x" * 50_000 for n in range(20)})
    bench.run("sh", "-c", "echo ${#V19} $#", "sh", *["y" * 1000] * 500)

    assert bench.output() == b"50000 500\n"


# -- what can't be started ------------------------------------------------------------------------------------


def refused(bench, *argv, **options) -> MachineError:
    with pytest.raises(MachineError) as caught:
        bench.run(*argv, **options)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_command_that_does_not_exist_is_named(bench):
    error = refused(bench, "no-such-command-here", "x")

    assert error.code == "command-not-found"
    assert refused(bench, "pytst").hint == "did you mean pytest?"
    assert "no-such-command-here" in error.message


def test_a_script_whose_interpreter_is_missing_is_not_found(bench):
    script = bench.folder / "odd"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)

    assert refused(bench, str(script)).code == "command-not-found"


@pytest.mark.parametrize(("content", "mode"), [("#!/bin/sh\n", 0o644), ("just words", 0o755)])
def test_a_file_that_is_no_program_is_not_executable(bench, content, mode):
    path = bench.folder / "tool"
    path.write_text(content)
    path.chmod(mode)

    assert refused(bench, str(path)).code == "command-not-executable"


def test_an_impossible_folder_log_or_command_is_refused_before_anything_runs(bench, tmp_path):
    assert refused(bench, "true", cwd=tmp_path / "gone").code == "folder-unusable"
    assert refused(bench, "true", log=tmp_path / "gone" / "log").code == "log-unwritable"
    assert refused(bench).code == "command-missing"
    assert refused(bench, "").code == "command-missing"
    assert refused(bench, "a\0b").code == "command-malformed"
    assert refused(bench, "true", env={**bench.env, "": "x"}).code == "command-malformed"


# -- output ---------------------------------------------------------------------------------------------------


def test_stdout_and_stderr_stand_in_the_log_in_order_and_the_log_is_private(bench):
    bench.log.write_text("old")
    bench.sh("echo one; echo two >&2; echo three")

    assert bench.output() == b"one\ntwo\nthree\n"
    assert stat.S_IMODE(bench.log.stat().st_mode) & 0o077 == 0 or bench.log.stat().st_uid == os.getuid()


def test_live_output_arrives_while_the_command_runs(bench):
    seen: list[tuple[float, bytes]] = []
    begin = time.monotonic()
    bench.sh("echo early; sleep 0.7; echo late", echo=lambda block: seen.append((time.monotonic() - begin, block)))

    assert [block for _, block in seen] == [b"early\n", b"late\n"]
    assert seen[0][0] < 0.6 < seen[1][0]


def test_output_is_echoed_byte_for_byte(bench):
    parts: list[bytes] = []
    bench.python("import sys; sys.stdout.buffer.write(bytes(range(256)) * 100_000)", echo=parts.append)

    assert b"".join(parts) == bytes(range(256)) * 100_000


def test_ten_thousand_lines_are_echoed_at_no_cost(bench):
    parts: list[bytes] = []
    begin = time.perf_counter()
    bench.python("import sys\nfor n in range(10_000): print('line', n, flush=True)", echo=parts.append)

    assert b"".join(parts).count(b"\n") == 10_000
    assert time.perf_counter() - begin < 2


def test_a_hundred_megabytes_are_no_burden(bench):
    total = 0

    def count(block: bytes) -> None:
        nonlocal total
        total += len(block)

    begin = time.perf_counter()
    ended = bench.sh("head -c 100000000 /dev/zero", echo=count)

    assert (ended.status, total, bench.log.stat().st_size) == (0, 100_000_000, 100_000_000)
    assert time.perf_counter() - begin < 10


def test_a_reader_that_goes_away_does_not_end_the_run(bench):
    calls = 0

    def closed(_block: bytes) -> None:
        nonlocal calls
        calls += 1
        raise BrokenPipeError

    ended = bench.sh("echo a; sleep 0.3; echo b; exit 4", echo=closed)

    assert (ended.status, calls) == (4, 1)


def test_an_echo_that_fails_leaves_no_process(bench, pids):
    def broken(_block: bytes) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bench.sh("echo $$ > $PIDS/main; echo x; sleep 300", echo=broken)
    assert pids.all()
    assert not pids.alive()


def test_a_command_that_truncates_its_own_output_is_still_followed(bench):
    parts: list[bytes] = []
    bench.sh("echo 0123456789; sleep 0.3; echo x > /dev/stdout; sleep 0.3", echo=parts.append)

    assert b"".join(parts) == b"0123456789\nx\n"


def test_a_command_that_closes_everything_is_seen_to_its_end(bench):
    ended = bench.python("""
        import os, time
        os.closerange(0, 256)
        time.sleep(0.4)
        os._exit(9)
    """)

    assert ended.status == 9
    assert ended.duration_ns > 400_000_000


# -- nothing is left ------------------------------------------------------------------------------------------


@linux
def test_r10_a_daemon_by_double_fork_and_setsid_does_not_survive(bench, pids):
    ended = bench.python(DAEMON.format(folder=str(pids.folder), after="os._exit(5)"))

    assert ended.status == 5
    assert len(pids.all()) == 1
    assert not pids.alive()
    assert (ended.leftovers, ended.unkilled) == (1, 0)


@linux
def test_r10_a_runner_whose_wrapper_is_killed_does_not_live_on(bench, pids):
    """`uv run pytest`: somebody, or the kernel, kills `uv`; pytest has a session of its own by then, and grows."""
    runner = "setsid sh -c 'trap \"\" TERM HUP; echo $$ > $PIDS/runner; while :; do sleep 0.05; done' & "
    ended = bench.sh(f"{runner}until test -s $PIDS/runner; do sleep 0.02; done; kill -KILL $$", grace_s=0.3)

    assert (ended.status, ended.signal) == (None, signal.SIGKILL)
    assert ended.leftovers >= 1
    assert len(pids.all()) == 1
    assert not pids.alive()


@linux
def test_r05_r10_a_time_out_ends_the_daemon_as_well(bench, pids):
    source = DAEMON.format(folder=str(pids.folder), after="time.sleep(300)")
    ended = bench.python(source, timeout_s=0.8, grace_s=0.3)

    assert ended.timed_out
    assert pids.all()
    assert not pids.alive()


@linux
def test_r09_a_grandchild_that_holds_the_output_open_delays_nothing(bench, pids):
    begin = time.monotonic()
    ended = bench.sh("(trap '' TERM HUP; echo $$ > $PIDS/sh; sleep 300) & exit 0", grace_s=0.5)

    assert ended.status == 0
    assert ended.leftovers >= 1
    assert time.monotonic() - begin < 3


@linux
def test_who_is_on_the_way_out_is_no_leftover(bench):
    ended = bench.sh("sleep 0.1 & exit 0")

    assert ended.leftovers == 0


@linux
def test_leftovers_get_a_term_first(bench):
    bench.sh("sh -c 'trap \"echo cleaned; exit\" TERM; while :; do sleep 0.05; done' & sleep 0.1")

    assert b"cleaned" in bench.output()


@linux
def test_chains_of_forks_are_outrun(bench):
    ended = bench.python(
        """
        import os, signal, time
        print(os.environ["GITLEDGER_RUN"], flush=True)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for _ in range(8):
            if os.fork() == 0:
                end = time.monotonic() + 20
                while time.monotonic() < end:
                    if os.fork():
                        os._exit(0)
        """,
        grace_s=0.2,
    )

    assert (ended.status, ended.unkilled) == (0, 0)
    time.sleep(0.2)
    assert marked(bench.output().decode().split()[0]) == ()


@linux
def test_processes_that_are_not_ours_are_left_alone(bench):
    stranger = os.spawnlpe(os.P_NOWAIT, "sleep", "sleep", "300", {**bench.env, MARKER: "not-this-one"})
    try:
        bench.sh("sleep 300 & exit 0")
        assert os.waitpid(stranger, os.WNOHANG) == (0, 0)
    finally:
        os.kill(stranger, signal.SIGKILL)
        os.waitpid(stranger, 0)


@linux
def test_orphans_that_end_are_reaped_while_the_command_runs(bench):
    ended = bench.python("""
        import os, subprocess, time
        keeper = os.getppid()
        for _ in range(30):
            subprocess.run(["sh", "-c", "sleep 0.05 & exit 0"])
        time.sleep(0.3)
        states = [open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
                  for pid in open(f"/proc/{keeper}/task/{keeper}/children").read().split()]
        print(states)
    """)

    assert ended.status == 0
    assert bench.output() == b"['R']\n"


def test_no_zombie_and_no_descriptor_is_left_in_the_driver(bench):
    bench.run("true")

    def held() -> tuple[list[str], list[str]]:
        children = [pid for task in Path("/proc/self/task").glob("*/children") for pid in task.read_text().split()]
        return sorted(os.listdir("/dev/fd")), sorted(children)  # a zombie is among the children

    before = held()
    for _ in range(5):
        bench.sh("sleep 300 & exit 0", grace_s=0.1)
        with pytest.raises(MachineError):
            bench.run("no-such-command-here")

    assert held() == before


# -- time-outs ------------------------------------------------------------------------------------------------


def test_r05_a_time_out_that_is_ignored_ends_in_a_kill(bench):
    ended = bench.sh("trap '' TERM; while :; do sleep 0.1; done", timeout_s=0.5, grace_s=0.4)

    assert (ended.timed_out, ended.status, ended.signal, shell_status(ended)) == (True, None, signal.SIGKILL, 124)
    assert 0.9e9 <= ended.duration_ns < 3e9


def test_a_command_that_heeds_the_time_out_is_timed_out_all_the_same(bench):
    ended = bench.sh("trap 'echo heeded; exit 0' TERM; while :; do sleep 0.05; done", timeout_s=0.4)

    assert (ended.timed_out, ended.status, shell_status(ended)) == (True, 0, 124)
    assert bench.output().endswith(b"heeded\n")


def test_a_stopped_command_can_be_timed_out(bench):
    ended = bench.sh("kill -STOP $$; echo never", timeout_s=0.4, grace_s=5)

    assert (ended.timed_out, ended.signal) == (True, signal.SIGTERM)
    assert ended.duration_ns < 2e9


def test_a_command_that_ends_in_time_is_not_timed_out(bench):
    assert not bench.sh("exit 0", timeout_s=30).timed_out


def test_a_driver_that_is_blocked_does_not_put_off_the_time_out(bench):
    ended = bench.sh("echo x; sleep 300", timeout_s=0.3, grace_s=0.2, echo=lambda _block: time.sleep(1.5))

    assert ended.timed_out
    assert ended.duration_ns < 1e9


def test_stacks_are_asked_for_before_the_end_where_agreed(bench):
    ended = bench.python(
        """
        import faulthandler, signal, time
        faulthandler.register(signal.SIGUSR1)
        def stuck_here(): time.sleep(300)
        stuck_here()
        """,
        timeout_s=1.0,
        dump_signal=signal.SIGUSR1,
    )

    assert (ended.timed_out, ended.signal) == (True, signal.SIGTERM)
    assert b"in stuck_here" in bench.output()


# -- the driver is told to stop, or dies ----------------------------------------------------------------------


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_r03_a_signal_to_the_driver_ends_the_command_and_not_the_driver(bench, pids, eventually, signum):
    line = "trap 'echo got; exit 9' INT TERM HUP; echo $$ > $PIDS/main; while :; do sleep 0.05; done"
    driver = bench.driver(["sh", "-c", line], after="print('receipt written')")
    assert eventually(pids.all)

    driver.send_signal(signum)
    said, _ = driver.communicate(timeout=10)

    told = ast.literal_eval(said.splitlines()[0])
    assert (told["interrupted"], told["timed_out"], told["status"]) == (True, False, 9)
    assert said.splitlines()[1] == "receipt written"
    assert driver.returncode == 0
    assert bench.output().endswith(b"got\n")


def test_r03_a_command_that_ignores_the_signal_is_killed_after_its_grace(bench, pids, eventually):
    line = "trap '' INT TERM; echo $$ > $PIDS/main; while :; do sleep 0.05; done"
    driver = bench.driver(["sh", "-c", line], "grace_s=0.5")
    assert eventually(pids.all)

    driver.terminate()
    said, _ = driver.communicate(timeout=10)

    told = ast.literal_eval(said)
    assert (told["interrupted"], told["signal"]) == (True, signal.SIGKILL)


def test_who_is_told_to_stop_with_its_driver_was_interrupted_and_did_not_fail(bench, pids, eventually):
    """Slurm, systemd and docker signal every process of a job; here the command is over before the driver hears."""
    driver = bench.driver(["sh", "-c", "echo $$ > $PIDS/main; exec sleep 300"])
    assert eventually(pids.all)

    os.kill(driver.pid, signal.SIGSTOP)
    os.kill(pids.all()[0], signal.SIGTERM)
    assert eventually(lambda: not pids.alive())
    os.kill(driver.pid, signal.SIGTERM)
    os.kill(driver.pid, signal.SIGCONT)
    said, _ = driver.communicate(timeout=10)

    told = ast.literal_eval(said)
    assert (told["interrupted"], told["signal"]) == (True, signal.SIGTERM)


def test_a_command_that_fails_like_one_that_was_told_to_stop_has_failed(bench):
    with Interrupts() as interrupts:
        assert not bench.sh("exit 143", interrupts=interrupts).interrupted


def test_a_second_signal_means_at_once(bench, pids, eventually):
    line = "trap '' INT TERM; echo $$ > $PIDS/main; while :; do sleep 0.05; done"
    driver = bench.driver(["sh", "-c", line], "grace_s=60")
    assert eventually(pids.all)

    driver.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert driver.poll() is None
    driver.send_signal(signal.SIGINT)
    said, _ = driver.communicate(timeout=10)

    assert ast.literal_eval(said)["interrupted"]


def test_the_echo_of_a_signal_takes_no_grace_away(bench, pids, eventually):
    """git hands Ctrl-C on to `git ledger`, which has heard it from the terminal already."""
    line = "trap 'sleep 0.5; echo saved; exit 9' INT; echo $$ > $PIDS/main; while :; do sleep 0.05; done"
    driver = bench.driver(["sh", "-c", line], "grace_s=60")
    assert eventually(pids.all)

    driver.send_signal(signal.SIGINT)
    time.sleep(0.02)
    driver.send_signal(signal.SIGINT)
    said, _ = driver.communicate(timeout=10)

    assert ast.literal_eval(said)["status"] == 9
    assert bench.output().endswith(b"saved\n")


def test_a_signal_that_was_ignored_before_stays_ignored(bench, pids, eventually):
    ignore = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    driver = bench.driver(["sh", "-c", "echo $$ > $PIDS/main; sleep 0.7; exit 6"], before=ignore)
    assert eventually(pids.all)

    driver.send_signal(signal.SIGHUP)
    said, _ = driver.communicate(timeout=10)

    told = ast.literal_eval(said)
    assert (told["interrupted"], told["status"]) == (False, 6)


def test_ctrl_c_at_a_terminal_ends_the_command(bench, pids, eventually):
    ours, theirs = pty.openpty()
    login = "import fcntl, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
    line = "trap 'exit 130' INT; echo $$ > $PIDS/main; while :; do sleep 0.05; done"
    driver = bench.driver(["sh", "-c", line], before=login, stdin=theirs)
    try:
        assert eventually(pids.all)
        os.write(ours, b"\x03")
        said, _ = driver.communicate(timeout=10)
    finally:
        os.close(ours)
        os.close(theirs)

    told = ast.literal_eval(said)
    assert (told["interrupted"], told["status"]) == (True, 130)
    assert not pids.alive()


@linux
@pytest.mark.parametrize("stubborn", [False, True])
@pytest.mark.parametrize("whole_group", [False, True])
def test_r22_a_killed_driver_takes_everything_along(bench, pids, eventually, stubborn, whole_group):
    trap = "trap '' TERM; " if stubborn else ""
    source = DAEMON.format(folder=str(pids.folder), after="time.sleep(300)")
    (bench.folder / "daemon.py").write_text(textwrap.dedent(source))
    line = f"{trap}echo $$ > $PIDS/sh; {sys.executable} -S daemon.py & sleep 300 & wait; sleep 300"
    driver = bench.driver(["sh", "-c", line], "grace_s=0.5", start_new_session=True)
    assert eventually(lambda: len(pids.all()) == 2)

    if whole_group:
        os.killpg(driver.pid, signal.SIGKILL)
    else:
        driver.kill()
    driver.communicate()

    assert eventually(lambda: not pids.alive())


@linux
def test_r22_a_killed_keeper_takes_everything_along_and_the_driver_says_killed(bench, pids):
    killer = threading.Thread(target=lambda: (time.sleep(1.0), os.kill(_keeper_of(pids.all()[0]), signal.SIGKILL)))
    killer.start()
    orphan = "(setsid sh -c 'echo $$ > $PIDS/orphan; exec sleep 300' &)"
    ended = bench.sh(f"{orphan}; echo $$ > $PIDS/main; exec env -i sleep 300")
    killer.join()

    assert (ended.status, ended.signal) == (None, signal.SIGKILL)
    assert len(pids.all()) == 2
    assert not pids.alive()


ORPHAN = "(env -i setsid sh -c 'echo $$ > {folder}/orphan; exec sleep 300' &); echo $$ > $PIDS/main; "
AWAIT_ORPHAN = "until test -s $PIDS/orphan; do sleep 0.02; done; "


@linux
def test_r22_a_command_that_kills_its_keeper_leaves_nothing_though_it_has_no_marker_and_its_own_session(
    bench, pids
):
    ended = bench.sh(ORPHAN.format(folder=pids.folder) + AWAIT_ORPHAN + "kill -KILL $PPID; sleep 300")

    assert (ended.status, ended.signal) == (None, signal.SIGKILL)
    assert len(pids.all()) == 2
    assert not pids.alive()


@linux
def test_r22_keeper_and_driver_killed_at_once_leave_nothing(bench, pids, eventually):
    driver = bench.driver(["sh", "-c", ORPHAN.format(folder=pids.folder) + "sleep 300"])
    assert eventually(lambda: len(pids.all()) == 2)

    os.kill(driver.pid, signal.SIGSTOP)
    os.kill(_keeper_of(int((pids.folder / "main").read_text())), signal.SIGKILL)
    driver.kill()

    assert eventually(lambda: not pids.alive())


@linux
@pytest.mark.parametrize("whom", ["$PPID", "$guard", "$guard $PPID"])
def test_r05_a_command_that_stops_its_keepers_is_timed_out_all_the_same(bench, whom):
    line = f"guard=$(cut -d' ' -f4 /proc/$PPID/stat); kill -STOP {whom}; sleep 60"
    ended = bench.sh(line, timeout_s=0.5, grace_s=0.3)

    assert ended.timed_out
    assert ended.duration_ns < 10e9


@linux
def test_a_guard_that_is_killed_changes_nothing(bench, pids):
    """Whoever kills it gains nothing: its keeper is a subreaper too, and tells how the command ended."""
    line = "guard=$(cut -d' ' -f4 /proc/$PPID/stat); kill -KILL $guard; setsid sleep 300 & echo $! > $PIDS/left; exit 3"
    ended = bench.sh(line, grace_s=0.3)

    assert (ended.status, ended.leftovers) == (3, 1)
    assert len(pids.all()) == 1
    assert not pids.alive()


def _keeper_of(main: int) -> int:
    return int(Path(f"/proc/{main}/stat").read_text().rpartition(")")[2].split()[1])


@linux
def test_nothing_that_carries_the_marker_is_left(bench):
    bench.sh(f"echo ${MARKER}; setsid sleep 300 & exit 0")

    assert marked(bench.output().decode().strip()) == ()


# -- what the keeper writes down ------------------------------------------------------------------------------


def test_the_end_of_a_command_is_written_down_as_it_is_told(bench, tmp_path):
    file = tmp_path / "end"
    for line, code in (("exit 0", 0), ("exit 7", 7), ("kill -SEGV $$", -signal.SIGSEGV)):
        ended = bench.sh(f"ulimit -c 0; {line}", end_file=file)
        noted = read_end(file)
        assert (noted.code, noted.reason, noted.was_told) == (code, "-", False)
        assert noted.duration_ns == ended.duration_ns
        assert abs(noted.ended_ns / 1e9 - ended.ended_at.timestamp()) < 2
    bench.sh("sleep 300", timeout_s=0.3, end_file=file)
    assert read_end(file).reason == "timeout"
    assert list(tmp_path.glob("*.half")) == []


@pytest.mark.parametrize("text", ["", "0 1 - 5", "x 1 - 5 6", "999999999999999999999 1 - 5 6"])
def test_a_note_of_an_end_that_is_none_says_nothing(tmp_path, text):
    (tmp_path / "end").write_text(text)
    assert read_end(tmp_path / "end") is None
    assert read_end(tmp_path / "no such file") is None


def test_where_the_end_can_not_be_written_down_the_run_goes_on(bench, tmp_path):
    assert bench.sh("exit 3", end_file=tmp_path / "no such folder" / "end").status == 3


@linux
def test_r22_a_command_that_had_failed_before_its_driver_was_killed_is_not_called_orphaned(
    bench, pids, eventually
):
    """Its keeper wakes to find both at once: the end came first."""
    file = bench.folder / "end"
    go = bench.folder / "go"
    line = f"echo $$ > $PIDS/main; until test -e {go}; do sleep 0.02; done; exit 7"
    driver = bench.driver(["sh", "-c", line], f"end_file=Path({str(file)!r})")
    assert eventually(pids.all)
    keeper = _keeper_of(pids.all()[0])

    os.kill(keeper, signal.SIGSTOP)
    go.touch()
    assert eventually(lambda: not pids.alive())
    driver.kill()
    driver.wait(30)
    with contextlib.suppress(ProcessLookupError):  # its guard may have woken it before
        os.kill(keeper, signal.SIGCONT)

    assert eventually(lambda: read_end(file))
    assert (read_end(file).code, read_end(file).reason) == (7, "-")


@linux
def test_r22_a_command_that_ends_since_its_driver_was_killed_was_told_to(bench, pids, eventually):
    file = bench.folder / "end"
    line = "trap 'exit 5' TERM; echo $$ > $PIDS/main; while :; do sleep 0.05; done"
    driver = bench.driver(["sh", "-c", line], f"end_file=Path({str(file)!r})")
    assert eventually(pids.all)

    driver.kill()

    assert eventually(lambda: read_end(file))
    assert (read_end(file).code, read_end(file).reason, read_end(file).was_told) == (5, "orphaned", True)


@linux
def test_a_failure_that_was_there_before_the_signal_was_not_interrupted(bench, pids, eventually):
    """What the command left behind is being seen off when Ctrl-C comes: its own end is known already."""
    line = "(trap '' TERM; echo $$ > $PIDS/left; exec sleep 300) & sleep 0.1; exit 1"
    file = bench.folder / "end"
    driver = bench.driver(["sh", "-c", line], f"end_file=Path({str(file)!r})")
    assert eventually(lambda: read_end(file))
    time.sleep(0.3)

    driver.send_signal(signal.SIGINT)
    said, _ = driver.communicate(timeout=20)

    told = ast.literal_eval(said)
    assert (told["status"], told["interrupted"], told["leftovers"]) == (1, False, 1)


def test_one_signal_stops_every_command_of_a_driver_with_threads(bench, pids, eventually):
    ended = []

    def work(number: int) -> None:
        log = bench.folder / f"{number}.log"
        ended.append(bench.sh(f"echo $$ > $PIDS/{number}; sleep 300", log=log, interrupts=interrupts))

    with Interrupts() as interrupts:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        assert eventually(lambda: len(pids.all()) == 4)
        os.kill(os.getpid(), signal.SIGTERM)
        for thread in threads:
            thread.join()
        late = bench.sh("sleep 300", interrupts=interrupts)

    assert [one.interrupted for one in [*ended, late]] == [True] * 5
    assert interrupts.received == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert not pids.alive()


@linux
def test_r22_what_carries_a_dead_runs_marker_is_ended_by_term_and_then_by_kill(bench, pids, eventually):
    env = {**bench.env, MARKER: "outer:0123456789abcdef"}
    soft = "trap 'echo $$ > $PIDS/heeded; exit 0' TERM; echo $$ > $PIDS/soft; while :; do sleep 0.05; done"
    lines = (soft, "trap '' TERM; echo $$ > $PIDS/hard; while :; do sleep 0.05; done")
    started = [subprocess.Popen(["sh", "-c", line], env=env, start_new_session=True) for line in lines]
    assert eventually(lambda: len(pids.all()) == 2)

    assert end_marked("0123456789abcdef", grace_s=0.5) >= 2

    assert [process.wait(30) for process in started] == [0, -signal.SIGKILL]
    assert (pids.folder / "heeded").exists()
    assert end_marked("0123456789abcdef") == 0


@linux
def test_r22_what_still_writes_to_a_dead_runs_log_is_ended_though_it_has_no_marker(bench, pids, eventually):
    """A daemon may have cleared its environment. Whoever only reads the log (`tail -f`) is a stranger."""
    bench.log.write_text("")
    line = "echo $$ > $PIDS/daemon; exec sleep 60"
    with bench.log.open("ab") as log, bench.log.open("rb") as read:
        daemon = subprocess.Popen(["sh", "-c", line], env=bench.env, stdout=log, start_new_session=True)
        reader = subprocess.Popen(["sh", "-c", line.replace("daemon", "reader")], env=bench.env, stdin=read)
    try:
        assert eventually(lambda: len(pids.all()) == 2)

        assert end_marked("0123456789abcdef", log=bench.log.resolve()) == 1

        assert daemon.wait(30) == -signal.SIGTERM
        assert reader.poll() is None
    finally:
        for process in (daemon, reader):
            process.kill()
            process.wait(30)


def test_a_keeper_that_is_killed_before_it_starts_the_command_is_no_matter_for_a_doctor(bench, monkeypatch):
    monkeypatch.setattr("gitledger.machine.child.KEEPER", "import os; os.kill(os.getpid(), 9)")

    with pytest.raises(MachineError) as caught:
        bench.sh("true")

    assert (caught.value.code, caught.value.hint) == ("keeper-failed", "run it again")


def test_a_driver_without_a_descriptor_left_says_which_limit_it_met(bench):
    driver = bench.driver(
        ["sh", "-c", "true"],
        before="""
            import resource
            resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))
            from gitledger.errors import MachineError
            sys.excepthook = lambda kind, error, trace: print(error.code, error.hint, flush=True)
        """,
    )

    said, _ = driver.communicate(timeout=60)

    assert said.strip() == "keeper-failed run fewer shards at once, or raise `ulimit -n`"


@linux
def test_r05_without_proc_a_time_out_still_ends_the_whole_process_group(bench, pids, eventually):
    """As on systems that have none: who ignores TERM is not found by descent there."""
    hidden = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if subprocess.run([*hidden, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace to be had here")
    inner = "trap '' TERM; sh -c 'echo $$ > $PIDS/child; while :; do sleep 0.05; done'"
    driver = bench.driver(["sh", "-c", inner], options="timeout_s=0.5, grace_s=0.2", launcher=hidden)

    said, _ = driver.communicate(timeout=60)

    assert "'timed_out': True" in said
    assert pids.all()
    assert eventually(lambda: not pids.alive())
