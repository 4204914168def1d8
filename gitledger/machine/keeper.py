"""The keeper: the small process between a driver and the command that it runs.

`child.py` starts it as a script of its own (arguments LOG_FD, STDIN_FD, and descriptors that it only holds open
until nothing of the command is left), one for each command. It is the parent that the command can't escape: a
subreaper, so every orphan of the command, double forks and `setsid` included, becomes its child (prctl(2),
PR_SET_CHILD_SUBREAPER), and no process that isn't of the command ever does. It enforces the time-out and every
escalation by itself, so a driver that is blocked or dead changes nothing: end of file on the control pipe means
that the driver died, and the tree is ended.

What the driver starts is a guard that forks the keeper and waits for it: a subreaper as well, to which the
command's processes fall where the keeper itself is killed (`kill -9 $PPID`), whatever session and environment they
gave themselves.

Standard library only, and little of it: its start is what a recorded command pays (`signal` and `json` would cost
another 10 ms each).

Control pipe (stdin): an 8-byte length, the request's fields separated by NUL, then lines `stop REASON SIGNAL NTH`.
Report pipe (stdout): lines `started PID MONOTONIC_NS SUBREAPER`, or `failed WHERE ERRNO`; then
`exited WAIT_STATUS MAX_RSS_BYTES REASON MONOTONIC_NS` and `done LEFTOVERS UNKILLED`. Where the request names a
file for it, the end stands there too, for whoever comes after a driver that died: `WAIT_STATUS MAX_RSS_BYTES
REASON DURATION_NS ENDED_EPOCH_NS`, whole or not at all. The reason is the one that had been given when the command
ended: what ends first is not blamed on what comes after it.
"""

# ruff: noqa: PTH104, PTH110, PTH112, PTH208, SIM105 (pathlib and contextlib would cost more than the keeper itself)
from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the `signal` module adds enums, and 8 ms
import os
import select
import sys
import time

__all__ = ["Keeper", "Request", "descendants", "end_descendants", "main"]

SIGHUP, SIGINT, SIGKILL, SIGTERM = 1, 2, 9, 15
SIGCONT = int(_signal.SIGCONT)
LINGER_S = 0.25  # what follows the command within this time was on its way out, and is no leftover
SEE_OFF_S = 2.0  # most that leftovers, or the orphans of a dead driver, get between TERM and KILL
KILL_S = 10.0  # a process that KILL hasn't ended by then hangs in the kernel
DUMP_S = 1.0  # what a stack dump gets before TERM
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def prctl(option: int, value: int) -> bool:
    """Return whether the kernel took the setting; False where there is no prctl."""
    try:
        import ctypes  # missing in some builds of Python

        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def read_file(path: str) -> bytes:
    """Return the bytes of a file of /proc, empty where the process has gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(fd, 65536):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(fd)


def state_and_parent(pid: int) -> tuple[str, int]:
    """Return a process's state letter and parent from proc(5) `stat`; ("", 0) where it has gone."""
    fields = read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return (fields[0].decode(), int(fields[1])) if len(fields) > 1 else ("", 0)


def children(pid: int) -> list[int]:
    """Return the children of all threads of a process (proc(5), `children`)."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(child) for thread in threads for child in read_file(f"/proc/{pid}/task/{thread}/children").split()]


def scanned_children() -> dict[int, list[int]]:
    """Return every process's children by reading all of /proc, for kernels without `children` files."""
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            found.setdefault(state_and_parent(int(name))[1], []).append(int(name))
    return found


def descendants(root: int) -> list[int]:
    """Return the living descendants of a process, parents first; zombies are none, nor is `root` itself.

    A list taken of a moving tree may miss who was just born; who must be sure repeats it until nobody is left.
    """
    if not os.path.isdir("/proc/self"):
        return []
    known = None if os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children") else scanned_children()
    queue, seen = [root], {root}
    for pid in queue:
        for child in children(pid) if known is None else known.get(pid, []):
            if child not in seen and state_and_parent(child)[0] not in ("Z", "X", ""):
                seen.add(child)
                queue.append(child)
    return queue[1:]


def catches(pid: int, signum: int) -> bool:
    """Return whether a process has a handler of its own for a signal (proc(5) `status`, SigCgt).

    Whoever has none would die of it, and a wrapper's death before its time hides what it waits for.
    """
    for line in read_file(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"SigCgt:"):
            return bool(int(line.split()[1], 16) >> (signum - 1) & 1)
    return False


class Request:
    """What to run: decoded from the control pipe's first message."""

    def __init__(self, fields: list[bytes]) -> None:
        self.cwd = fields[0]
        self.timeout_s = float(fields[1]) if fields[1] else None
        self.grace_s = float(fields[2])
        self.dump_signal = int(fields[3])
        self.end_file = fields[4]
        split = 6 + int(fields[5])
        self.argv = fields[6:split]
        self.env = dict(item.split(b"=", 1) for item in fields[split:])

    @classmethod
    def read(cls, fd: int) -> Request:
        """Return the request; raises EOFError where the driver died while it was writing."""
        size = int.from_bytes(read_exactly(fd, 8), "big")
        return cls(read_exactly(fd, size).split(b"\0"))


def read_exactly(fd: int, size: int) -> bytes:
    """Return exactly `size` bytes; raises EOFError."""
    parts = []
    while size:
        part = os.read(fd, min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class Keeper:
    """One command, from its start until nothing of it is left."""

    def __init__(
        self, request: Request, *, control: int, report: int, log: int, stdin: int, held: tuple[int, ...] = ()
    ) -> None:
        self.request = request
        self.control: int | None = control
        self.report_fd = report
        self.log = log
        self.stdin = stdin
        for fd in (log, stdin, *held):
            os.set_inheritable(fd, False)  # the command gets copies of the first two, and no others
        self.main = 0
        self.status: int | None = None  # of the main process, as wait(2) gives it
        self.rss_bytes = 0
        self.started_ns = self.ended_ns = 0
        self.reason = self.reason_at_end = "-"
        self.term_at: float | None = None
        self.kill_at: float | None = None
        self.deadline: float | None = None
        self.leftovers: set[int] = set()
        self.pending = b""
        self.woken, self.wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
        os.set_blocking(self.woken, False)
        os.set_blocking(self.wake, False)

    def run(self) -> None:
        """Start the command, wait for its end, and end what it left."""
        _signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        _signal.signal(_signal.SIGCHLD, lambda *_: None)
        subreaper = prctl(PR_SET_CHILD_SUBREAPER, 1)
        if not self.spawn():
            return
        self.started_ns = time.monotonic_ns()
        if self.request.timeout_s is not None:
            self.deadline = self.started_ns / 1e9 + self.request.timeout_s
        self.report(f"started {self.main} {self.started_ns} {int(subreaper)}")
        while self.status is None and not self.kill_is_due():
            self.wait(self.next_deadline())
            self.reap()
            self.listen()
            self.escalate()
        if self.status is not None:
            self.report_exit()
            self.see_off()
        self.kill_all()
        if self.status is None:
            self.has_ended(SIGKILL)
        self.report_exit()
        self.report(f"done {len(self.leftovers)} {len(descendants(os.getpid()))}")

    # -- the command ----------------------------------------------------------------------------------------------

    def spawn(self) -> bool:
        """Start the main process in a session of its own; where that fails, report why and return False."""
        failed_r, failed_w = os.pipe()  # closed by a successful exec: Python's descriptors are close-on-exec
        parent = os.getpid()
        self.main = os.fork()
        if self.main == 0:
            where = "keeper"
            try:
                prctl(PR_SET_PDEATHSIG, SIGKILL)
                if os.getppid() != parent:
                    os._exit(1)
                os.setsid()
                os.dup2(self.stdin, 0)
                os.dup2(self.log, 1)
                os.dup2(self.log, 2)
                where = "cwd"
                os.chdir(self.request.cwd)
                where = "command"
                reset_signals()
                os.execvpe(self.request.argv[0], self.request.argv, self.request.env)  # noqa: S606
            except OSError as error:
                os.write(failed_w, f"failed {where} {error.errno}".encode())
            finally:
                os._exit(127)
        os.close(failed_w)
        failure = b"".join(iter(lambda: os.read(failed_r, 4096), b""))
        os.close(failed_r)
        if failure:
            os.waitpid(self.main, 0)
            self.report(failure.decode())
        return not failure

    def reap(self) -> bool:
        """Collect whoever ended; return whether any child, and so any descendant, is left."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.main:
                self.has_ended(status)
                unit = 1 if sys.platform == "darwin" else 1024
                self.rss_bytes = usage.ru_maxrss * unit

    def has_ended(self, status: int) -> None:
        """Keep how and when the main process ended, and what had been asked of it by then."""
        self.status, self.ended_ns, self.reason_at_end = status, time.monotonic_ns(), self.reason

    # -- waiting and deciding -------------------------------------------------------------------------------------

    def wait(self, until: float | None) -> None:
        """Sleep until a child changes, the driver speaks or a time (monotonic) is reached."""
        poller = select.poll()
        poller.register(self.woken, select.POLLIN)
        if self.control is not None:
            poller.register(self.control, select.POLLIN)
        poller.poll(None if until is None else max(0.0, until - time.monotonic()) * 1000)
        try:
            os.read(self.woken, 4096)
        except BlockingIOError:
            pass

    def next_deadline(self) -> float | None:
        """Return the nearest time (monotonic) at which something is due."""
        due = [at for at in (self.deadline, self.term_at, self.kill_at) if at is not None]
        return min(due, default=None)

    def kill_is_due(self) -> bool:
        """Return whether all grace is used up."""
        return self.kill_at is not None and time.monotonic() >= self.kill_at

    def listen(self) -> None:
        """Take in what the driver says; its silence for ever (end of file) is its death."""
        while self.control is not None and select.select([self.control], [], [], 0)[0]:
            said = os.read(self.control, 4096)
            if not said:
                self.control = None
                self.stop("orphaned", SIGTERM, min(self.request.grace_s, SEE_OFF_S))
                return
            *lines, self.pending = (self.pending + said).split(b"\n")
            for line in lines:
                _, reason, signum, nth = line.decode().split()
                self.ask_to_stop(reason, int(signum), int(nth))

    def ask_to_stop(self, reason: str, signum: int, nth: int) -> None:
        """Begin to stop for a reason; asked a second time, who asks means at once."""
        if reason == "stalled" and self.request.dump_signal and self.reason == "-":
            self.dump(reason)
        else:
            self.stop(reason, signum, 0.0 if nth > 1 else self.request.grace_s)

    def dump(self, reason: str) -> None:
        """Ask for stacks whoever handles the signal, and put TERM off until they had the time to write them."""
        self.reason, self.deadline = reason, None
        asked = [pid for pid in self.tree() if catches(pid, self.request.dump_signal)]
        for pid in asked:
            send(pid, self.request.dump_signal)
        self.term_at = time.monotonic() + (DUMP_S if asked else 0.0)

    def stop(self, reason: str, signum: int, grace_s: float) -> None:
        """Signal the whole tree and set the time of its KILL; the first reason and the earliest KILL count."""
        if self.reason == "-":
            self.reason = reason
        self.deadline = self.term_at = None
        kill_at = time.monotonic() + grace_s
        self.kill_at = kill_at if self.kill_at is None else min(self.kill_at, kill_at)
        self.signal_tree(signum)

    def escalate(self) -> None:
        """Do what is due: the time-out, or the TERM after a dump."""
        now = time.monotonic()
        if self.deadline is not None and now >= self.deadline and self.status is None:
            if self.request.dump_signal:
                self.dump("timeout")
            else:
                self.stop("timeout", SIGTERM, self.request.grace_s)
        if self.term_at is not None and now >= self.term_at:
            self.stop(self.reason, SIGTERM, self.request.grace_s)

    # -- ending ---------------------------------------------------------------------------------------------------

    def tree(self) -> list[int]:
        """Return every process of the command that can be found."""
        found = descendants(os.getpid())
        return found or ([self.main] if self.status is None else [])

    def signal_tree(self, signum: int) -> None:
        """Send a signal to the whole tree; where there is no /proc, to the command's process group."""
        for pid in self.tree():
            send(pid, signum)
            send(pid, SIGCONT)  # a stopped process takes no TERM
        self.signal_group(signum)

    def signal_group(self, signum: int) -> None:
        """Where there is no /proc to find processes by, send a signal to the command's process group."""
        if not os.path.isdir("/proc/self"):
            try:
                os.killpg(self.main, signum)
            except OSError:
                pass

    def see_off(self) -> None:
        """Give what outlives the main process a moment, then TERM and a little more."""
        if not self.everybody_left_within(LINGER_S):
            self.leftovers.update(self.tree())
            self.signal_tree(SIGTERM)
            self.everybody_left_within(min(self.request.grace_s, SEE_OFF_S))

    def everybody_left_within(self, seconds: float) -> bool:
        """Return whether no descendant is left; stops waiting when the driver asks to stop."""
        until = time.monotonic() + seconds
        while self.reap():
            self.listen()
            if time.monotonic() >= until or self.kill_is_due():
                return False
            self.wait(min(until, time.monotonic() + 0.05))
        return True

    def kill_all(self) -> None:
        """KILL until no child is left: under a subreaper that means no descendant, whoever forks meanwhile."""
        give_up = time.monotonic() + KILL_S
        self.signal_group(SIGKILL)
        while self.reap() and time.monotonic() < give_up:
            for pid in self.tree():
                send(pid, SIGKILL)
                if pid != self.main:
                    self.leftovers.add(pid)
            self.wait(time.monotonic() + 0.005)

    # -- reporting ------------------------------------------------------------------------------------------------

    def report_exit(self) -> None:
        """Report the main process's end, once, and write it down before: the driver may be dead."""
        if self.ended_ns > 0:
            told = f"{self.status} {self.rss_bytes} {self.reason_at_end}"
            if self.request.end_file:
                note_end(self.request.end_file, f"{told} {self.ended_ns - self.started_ns} {time.time_ns()}\n")
            self.report(f"exited {told} {self.ended_ns}")
            self.ended_ns = -1

    def report(self, line: str) -> None:
        """Tell the driver; a dead one doesn't matter."""
        try:
            os.write(self.report_fd, line.encode() + b"\n")
        except OSError:
            pass


def note_end(file: bytes, line: str) -> None:
    """Write a line to a file, whole or not at all; a disk that is full leaves it unsaid."""
    half = file + b".half"
    try:
        fd = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            whole = os.write(fd, line.encode()) == len(line)
        finally:
            os.close(fd)
        if whole:
            os.rename(half, file)
    except OSError:
        pass


def end_descendants(give_up_s: float = KILL_S) -> None:
    """KILL the descendants of this process, a subreaper, until none is left, for `give_up_s` seconds at most."""
    until = time.monotonic() + give_up_s
    while time.monotonic() < until:
        for pid in descendants(os.getpid()):
            send(pid, SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def send(pid: int, signum: int) -> None:
    """Signal a process that may have gone."""
    try:
        os.kill(pid, signum)
    except OSError:
        pass


def reset_signals() -> None:
    """Give every signal its default, and block none: what Python and the keeper ignore, the command must not."""
    for signum in range(1, _signal.NSIG):
        try:
            _signal.signal(signum, _signal.SIG_DFL)
        except (OSError, ValueError):
            continue
    _signal.pthread_sigmask(_signal.SIG_SETMASK, [])


def main() -> None:
    """Keep one command: arguments are the descriptors of its log, of its stdin, and those to hold open."""
    for signum in (SIGHUP, SIGINT, SIGTERM):
        _signal.signal(signum, _signal.SIG_IGN)  # the driver decides, and its death is seen on the pipe
    _signal.pthread_sigmask(_signal.SIG_SETMASK, [])
    try:
        request = Request.read(0)
    except EOFError:
        return
    log, stdin, *held = map(int, sys.argv[1:])
    guard((0, log, stdin))
    Keeper(request, control=0, report=1, log=log, stdin=stdin, held=tuple(held)).run()
    os._exit(0)


def guard(unneeded: tuple[int, ...]) -> None:
    """Fork, and return in the child, which is the keeper; see that it goes on; end what it leaves if killed."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        keeper = os.fork()
    except OSError:  # no process to be had: the keeper does without
        return
    if keeper == 0:
        return
    for fd in unneeded:
        os.close(fd)
    while True:
        pid, status = os.waitpid(-1, os.WUNTRACED)
        if pid == keeper and not os.WIFSTOPPED(status):
            break
        if pid == keeper:
            send(pid, SIGCONT)  # a stopped keeper would enforce no time-out
    if status != 0:
        end_descendants()
    os._exit(0)
