"""Runs one command under a keeper and returns how it ended, whatever it did.

The command's output goes to a file, never to a pipe that a grandchild could hold open; its process group and
session are its own; nothing that it started outlives it (see `keeper.py`); and a signal to the driver ends the
command but not the driver, so that what happened can still be recorded.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gitledger.dataclass import dataclass
from gitledger.errors import InternalError, MachineError
from gitledger.machine.interrupts import STOPPING, Interrupts
from gitledger.machine.missing import missing_command, to_obtain
from gitledger.machine.oom import OomWatch
from gitledger.machine.processes import MARKER, sweep
from gitledger.machine.stall import StallWatch
from gitledger.machine.tail import Tail

if TYPE_CHECKING:
    from gitledger.machine.trace import Tracing

__all__ = ["GRACE_S", "ChildExit", "NotedEnd", "read_end", "run_child", "shell_status"]

GRACE_S = (
    5.0  # CI systems KILL about ten seconds after their first signal: half for the command, half for the receipt
)
TICK_S = 0.05
NUDGE_S = 1.0
PUMP_BYTES = 1 << 22  # echoed at most between two looks at the keeper
TOLD_S = 0.2
ENDS_OF_TOLD = frozenset(code for number in STOPPING for code in (-number, 128 + number))
TIMED_OUT_STATUS = 124  # timeout(1)
AGAIN = "run it again"
_OFTEN_MEANT = ("coverage", "mypy", "nox", "pytest", "python", "python3", "ruff", "tox")
"""Commands of shards that are so common that a near miss is a slip."""
_LIMITS = {
    errno.EAGAIN: "end other processes, or raise `ulimit -u`",
    errno.EMFILE: "run fewer shards at once, or raise `ulimit -n`",
    errno.ENOMEM: "free some memory, and run it again",
}
# Imported as a module, so that its compiled form is used (10 ms); its folder comes last, so that it hides nothing.
KEEPER = "import sys; sys.path.append(sys.argv.pop(1)); import keeper; keeper.main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildExit:
    """How a command ended.

    `status` is the exit status, or None if a signal ended it, which is then `signal`. `timed_out`, `interrupted`
    and `stalled` say that the end was asked for, and why (the first reason counts), however the command then
    ended. `oom`: the kernel's OOM killer struck in the command's cgroup while it ran, and it did not end with 0;
    None where that can't be read. `max_rss_bytes` is the largest resident size of any one process of it.
    `leftovers` counts the descendants that outlived it and had to be ended, `unkilled` those that hang in the
    kernel and still live.
    """

    status: int | None
    signal: int | None
    timed_out: bool
    interrupted: bool
    stalled: bool
    oom: bool | None
    started_at: datetime
    ended_at: datetime
    duration_ns: int
    max_rss_bytes: int | None
    leftovers: int
    unkilled: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedEnd:
    """How a command ended by its keeper's note; `reason` is why its end had been asked for by then, or "-"."""

    code: int
    max_rss_bytes: int | None
    reason: str
    duration_ns: int
    ended_ns: int
    """Since the epoch."""

    @property
    def was_told(self) -> bool:
        """Tell whether it ended since it, or everybody, was told to stop: its status then says nothing of it."""
        return self.reason in ("orphaned", "interrupted") or self.code in ENDS_OF_TOLD


def read_end(file: Path) -> NotedEnd | None:
    """Return what a keeper noted in `end_file`; None where it could not, or did not live to see it."""
    try:
        status, rss, reason, duration_ns, ended_ns = file.read_text("ascii").split()
        return NotedEnd(
            code=os.waitstatus_to_exitcode(int(status)),
            max_rss_bytes=int(rss) or None,
            reason=reason,
            duration_ns=int(duration_ns),
            ended_ns=int(ended_ns),
        )
    except (OSError, ValueError, OverflowError):
        return None


def shell_status(ended: ChildExit) -> int:
    """Return the exit status in the way of shells and timeout(1): the command's, 128+N for signal N, or 124."""
    if ended.timed_out:
        return TIMED_OUT_STATUS
    if ended.signal is not None:
        return 128 + ended.signal
    return ended.status or 0


def run_child(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    log: Path,
    clock: Callable[[], datetime],
    timeout_s: float | None = None,
    grace_s: float = GRACE_S,
    stall_s: float | None = None,
    progress: Callable[[], object] | None = None,
    dump_signal: int = 0,
    echo: Callable[[bytes], None] | None = None,
    stdin: int | None = None,
    interrupts: Interrupts | None = None,
    held: Sequence[int] = (),
    tracing: Tracing | None = None,
    marker: str | None = None,
    end_file: Path | None = None,
    started: Callable[[], None] | None = None,
) -> ChildExit:
    """Run a command to its end, its output in the new file `log`, and return how it ended; nothing of it is left.

    `timeout_s` and `stall_s` (seconds without progress: the log grows, the value of `progress()` changes, a
    compiler of the command's works) end it by TERM, and by KILL `grace_s` later; `dump_signal` is sent a second
    before to whatever of it handles that signal. `echo` is given the output while it runs. `stdin` is a
    descriptor, /dev/null unless given. `interrupts` is the driver's; without it, signals are taken in here where
    this is the main thread. `held` are descriptors, such as a lock's, that stay open until nothing of the command
    is left, even where the driver is killed; the command doesn't get them. `tracing`: the tracer to run it under.
    `marker` names the run in its processes' environments (a random one unless given). `end_file`, an absolute
    path, is where the keeper writes how the command ended, whether this driver lives or not (`read_end` reads it).
    `started` is called once the keeper is started, to begin with what can be done meanwhile.

    Raises `MachineError`: `command-missing`, `command-not-found` (a shell's 127), `command-not-executable` (126),
    `command-malformed`, `folder-unusable`, `log-unwritable`, `keeper-failed`.
    """
    marker = marker or os.urandom(8).hex()
    numbers = (timeout_s, grace_s, dump_signal)
    request = _encode_request(argv, cwd, _marked(env, marker), numbers, end_file)
    if tracing is not None:
        # The tracer would say it in its own way, and with a status of its own.
        _require_started(missing_command(argv[0], cwd, env) if cwd.is_dir() else None, argv[0], cwd)
        request = _encode_request([*tracing.words, *argv], cwd, _marked(env, marker), numbers, end_file)
    with ExitStack() as stack:
        if interrupts is None and threading.current_thread() is threading.main_thread():
            interrupts = stack.enter_context(Interrupts())
        log_fd = _open_log(log)
        stack.callback(os.close, log_fd)
        tail = stack.enter_context(Tail(log, echo))
        driver = _Driver(tail=tail, clock=clock, marker=marker, command=argv[0], folder=cwd, held=tuple(held))
        if stall_s is not None:
            driver.stall = StallWatch(stall_s, progress)
        if tracing is not None:
            stack.enter_context(tracing)
        stack.callback(driver.close)
        driver.start(request, log_fd, stdin)
        if interrupts is not None:
            driver.told = interrupts.received
            stack.enter_context(interrupts.listener(driver.interrupt))
        if started is not None:
            started()
        ended = driver.wait()
        if tracing is not None:
            tracing.finish()
            _require_started(tracing.refused(), argv[0], cwd)
        return ended


@dataclass(slots=True)
class _Driver:
    """The driver's side of one keeper: what it reported, and the pipe that it listens to."""

    tail: Tail
    clock: Callable[[], datetime]
    marker: str
    command: str
    folder: Path
    held: tuple[int, ...] = ()
    stall: StallWatch | None = None
    oom: OomWatch = field(default_factory=OomWatch)
    told: list[int] = field(default_factory=list)
    keeper: subprocess.Popen[bytes] | None = None
    control: int = -1
    report: int = -1
    pending: bytes = b""
    heard: dict[str, list[str]] = field(default_factory=dict)
    was_told: bool = False
    nudged_s: float = 0.0
    started_at: datetime | None = None
    ended_at: datetime | None = None

    def start(self, request: bytes, log_fd: int, stdin: int | None) -> None:
        self.oom.observe("self")
        with ExitStack() as mine:
            try:
                keeper_in, self.control = os.pipe()
                mine.callback(os.close, keeper_in)
                self.report, keeper_out = os.pipe()
                mine.callback(os.close, keeper_out)
                null = os.open(os.devnull, os.O_RDWR)
                mine.callback(os.close, null)
                fds = (log_fd, null if stdin is None else stdin, *self.held)
                self.started_at = self.clock()
                self.keeper = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", KEEPER, str(Path(__file__).parent), *map(str, fds)],
                    stdin=keeper_in,
                    stdout=keeper_out,
                    stderr=null,
                    cwd="/",
                    env=_loader_environment(),
                    pass_fds=fds,
                    start_new_session=True,
                )
                _write_all(self.control, len(request).to_bytes(8, "big") + request)
            except OSError as error:
                text = f"the keeper of {self.command!r} can't be started: {error.strerror}"
                raise MachineError("keeper-failed", text, _LIMITS.get(error.errno or 0, AGAIN)) from error

    def interrupt(self, signum: int, nth: int) -> None:
        """Ask the keeper to stop the command; runs inside a signal handler."""
        self.stop("interrupted", signum, nth)

    def stop(self, reason: str, signum: int, nth: int = 1) -> None:
        try:
            os.write(self.control, f"stop {reason} {signum} {nth}\n".encode())
        except OSError:  # the keeper has gone, and `wait` will see it
            return

    def wait(self) -> ChildExit:
        poller = select.poll()
        poller.register(self.report, select.POLLIN)
        ended = False
        while not ended:
            if poller.poll(TICK_S * 1000):
                ended = not self.listen()
            self.tail.pump(limit_bytes=PUMP_BYTES)
            self.look()
        self.end_keeper()
        self.tail.pump()
        return self.verdict()

    def look(self) -> None:
        """See to what only time shows: the cgroup that the command moved to, and a stall.

        A guard that the command has stopped goes on, and lets its keeper go on.
        """
        if self.keeper is not None and time.monotonic() - self.nudged_s >= NUDGE_S:
            self.nudged_s = time.monotonic()
            self.keeper.send_signal(signal.SIGCONT)
        if "started" not in self.heard or "exited" in self.heard:
            return
        self.oom.observe(self.heard["started"][0])
        if self.stall is None or self.keeper is None:
            return
        if self.stall.is_stalled(self.tail.size_bytes(), root=self.keeper.pid, now_s=time.monotonic()):
            self.stall = None
            self.stop("stalled", signal.SIGTERM)

    def listen(self) -> bool:
        """Take in reports; return False once the keeper has closed them."""
        said = os.read(self.report, 65536)
        *lines, self.pending = (self.pending + said).split(b"\n")
        for line in lines:
            word, *values = line.decode().split()
            self.heard[word] = values
            if word == "exited":
                self.ended_at, self.was_told = self.clock(), bool(self.told)
        return bool(said)

    def end_keeper(self) -> None:
        """Collect the keeper; where it couldn't finish, or was no subreaper, end what carries the run's marker."""
        if self.keeper is not None:
            self.keeper.wait()
        if "done" not in self.heard or self.heard.get("started", ["", "", "1"])[2] == "0":
            sweep(self.marker)

    def close(self) -> None:
        """Leave nothing behind, however the run was left: a keeper ends its command at the end of the pipe."""
        if self.control >= 0:
            os.close(self.control)
            self.control = -1
        if self.keeper is not None and self.keeper.returncode is None:
            self.end_keeper()
        if self.report >= 0:
            os.close(self.report)
            self.report = -1

    def verdict(self) -> ChildExit:
        if "failed" in self.heard:
            raise _start_error(self.heard["failed"], self.command, self.folder)
        if "started" not in self.heard or self.started_at is None:
            raise MachineError(
                "keeper-failed",
                f"the keeper of {self.command!r} ended before it could start it; somebody may have killed it",
                AGAIN,
            )
        # A keeper that was killed takes its command along (PR_SET_PDEATHSIG), by KILL.
        status, rss, reason, ended_ns = self.heard.get("exited", ["9", "0", "-", str(time.monotonic_ns())])
        leftovers, unkilled = self.heard.get("done", ["0", "0"])
        code = os.waitstatus_to_exitcode(int(status))
        struck = self.oom.struck()
        return ChildExit(
            status=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            timed_out=reason == "timeout",
            interrupted=reason == "interrupted" or (reason == "-" and self.was_told_too(code)),
            stalled=reason == "stalled",
            oom=None if struck is None else struck and code != 0,
            started_at=self.started_at,
            ended_at=self.ended_at or self.clock(),
            duration_ns=int(ended_ns) - int(self.heard["started"][1]),
            max_rss_bytes=int(rss) or None,
            leftovers=int(leftovers),
            unkilled=int(unkilled),
        )

    def was_told_too(self, code: int) -> bool:
        """Tell whether a command that ended badly did so because everybody was told to stop.

        Batch systems signal every process of a job at once; the command may end of that before the driver, and so
        the keeper, hears of it. A signal that follows at once is waited for where the end looks like one; any
        other end that was there before the signal is the command's own.
        """
        if code in ENDS_OF_TOLD:
            until = time.monotonic() + TOLD_S
            while not self.told and time.monotonic() < until:
                time.sleep(TOLD_S / 10)
            return bool(self.told)
        return code != 0 and self.was_told


def _marked(env: Mapping[str, str], marker: str) -> dict[str, str]:
    """Return the environment with this run's marker after those of the runs around it."""
    outer = env.get(MARKER)
    return {**env, MARKER: f"{outer}:{marker}" if outer else marker}


def _encode_request(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    numbers: tuple[float | None, float, int],
    end_file: Path | None,
) -> bytes:
    """Return the keeper's request; raises `MachineError` for what no process can be given."""
    if not argv or not argv[0]:
        raise MachineError(
            "command-missing", "there is no command to run", "git ledger record --shard NAME -- COMMAND"
        )
    timeout_s, grace_s, dump_signal = numbers
    head = [
        os.fspath(cwd),
        "" if timeout_s is None else repr(float(timeout_s)),
        repr(float(grace_s)),
        str(dump_signal),
        os.fspath(end_file) if end_file is not None else "",
    ]
    pairs = [f"{name}={value}" for name, value in env.items()]
    fields = [os.fsencode(text) for text in (*head, str(len(argv)), *argv, *pairs)]
    if any(b"\0" in text for text in fields) or any(not name or "=" in name for name in env):
        raise MachineError(
            "command-malformed",
            f"the command {argv[0]!r} or its environment holds a NUL byte or a nameless variable",
            "",
        )
    return b"\0".join(fields)


def _open_log(log: Path) -> int:
    """Return a descriptor of the new, empty log; appending, so that processes that share it don't overwrite."""
    try:
        return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise MachineError("log-unwritable", f"the log {log} can't be written: {error.strerror}", "") from error


def _loader_environment() -> dict[str, str]:
    """Return what this interpreter may need to start once more; nothing else, so no key reaches the keeper."""
    names = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME")
    return {name: os.environ[name] for name in names if name in os.environ}


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def _require_started(number: int | None, command: str, folder: Path) -> None:
    """Raise for the errno at which the command could not be started, where there is one."""
    if number is not None:
        raise _start_error(["command", str(number)], command, folder)


def _start_error(failure: list[str], command: str, folder: Path) -> Exception:
    """Return the error for a command that could not be started."""
    where, number = failure[0], int(failure[1])
    reason = os.strerror(number)
    if where == "cwd":
        return MachineError(
            "folder-unusable", f"the folder {folder} to run {command!r} in can't be entered: {reason}", ""
        )
    if where != "command":
        return InternalError("keeper-failed", f"the keeper failed before {command!r} was started: {reason}", "")
    if number in {errno.ENOENT, errno.ENOTDIR}:
        from difflib import get_close_matches

        near = get_close_matches(command, _OFTEN_MEANT, n=1, cutoff=0.8) if command not in _OFTEN_MEANT else []
        return MachineError(
            "command-not-found",
            f"the command {command!r}, or the interpreter that its first line names, does not exist",
            f"did you mean {near[0]}?" if near else to_obtain(command),
        )
    return MachineError(
        "command-not-executable",
        f"the command {command!r} can't be executed: {reason}",
        f"ls -l $(command -v {command})",
    )
