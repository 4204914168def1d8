"""Runs a command under strace(1), which tells of every file that its processes open, whatever they are written in.

The tracer is no parent of the command (`-D`): the command stays the keeper's child, with its own exit status,
signals and resource use, and it dies with the keeper as it does untraced. The tracer itself becomes a child of
the keeper, like every orphan. It writes into a pipe with a name, and a thread here keeps of that what the bound
allows: the disk can't be filled, and a tracer is never held up by a full one.
"""

from __future__ import annotations

import errno
import os
import re
import select
import shutil
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Self

from gitledger.dataclass import dataclass
from gitledger.errors import MachineError
from gitledger.machine.strace import BLINDING

__all__ = ["MAX_TRACE_BYTES", "Tracer", "Tracing", "find_tracer"]

MAX_TRACE_BYTES = 256 << 20
"""Of a trace, what is kept; about two million calls. One that is longer says nothing."""
PROBE_S = 20.0
POLL_MS = 100
READ_BYTES = 1 << 16
HEAD_BYTES = 1 << 16

_CALLS = (
    *("open", "openat", "openat2", "creat", "open_by_handle_at", "execve", "execveat"),
    *("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat"),
    *("chdir", "fchdir", "fork", "vfork", "clone", "clone3"),
    *BLINDING,
)
# Signals are asked for because the end of a process by one is told only then; strings are cut to nothing, but for
# paths, which never are. `?`: not every kernel and processor has the call.
_OPTIONS = ("-D", "-f", "-q", "-y", "-s", "0", "-e", "signal=!SIGCHLD", "-e")
_FILTER = "trace=" + ",".join(f"?{name}" for name in _CALLS)
_BY_KERNEL = "--seccomp-bpf"
_PROBE = ("sh", "-c", ": < /dev/null")
_HINT = "leave --trace out, or install strace (5.13 or newer) where the kernel lets it trace"
_EXEC = re.compile(rb"\d+ +(?:execve\(|<\.\.\. execve resumed>).*\)\s+= (?:(0)|-1 (E[A-Z0-9]+) )", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tracer:
    """A tracer that was seen to work: the words that come before the file that it writes to."""

    words: tuple[str, ...]


def find_tracer(env: Mapping[str, str], folder: Path) -> Tracer:
    """Return the strace on `env`'s PATH, tried once in `folder`; with the kernel's own filter where both have it.

    Raises `MachineError` `trace-unavailable`: there is none, it may not trace, or it doesn't print what is needed.
    """
    program = shutil.which("strace", path=env.get("PATH", os.defpath))
    if program is None or not Path(program).is_absolute():  # the current folder's programs are not the machine's
        raise MachineError("trace-unavailable", "--trace needs strace, and there is none on PATH", _HINT)
    said = ""
    for extra in ((_BY_KERNEL,), ()):
        words = (program, *extra, *_OPTIONS, _FILTER)
        file = folder / f"probe{len(extra)}"
        works, said = _works(words, file, env)
        if works:
            return Tracer(words)
    raise MachineError("trace-unavailable", f"{program} can't trace a command here: {said}", _HINT)


def _works(words: tuple[str, ...], file: Path, env: Mapping[str, str]) -> tuple[bool, str]:
    """Tell whether a tracer runs a command and tells of it as we read it, and else what it said."""
    try:
        done = subprocess.run(
            [*words, "-o", str(file), "--", *_PROBE],
            env=dict(env),
            cwd=file.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_S,
            check=False,
        )
        trace = _settled(file) if done.returncode == 0 and file.exists() else b""
    except subprocess.TimeoutExpired:
        return False, f"no answer within {PROBE_S:.0f} s"
    except (OSError, ValueError) as error:
        return False, str(error)
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    needed = (b"AT_FDCWD</", b"</dev/null>", b"+++ exited with 0 +++")
    if done.returncode == 0 and not lines and all(word in trace for word in needed):
        return True, ""
    return False, lines[0][:200] if lines else "it does not print the paths of descriptors"


def _settled(file: Path) -> bytes:
    """Return what the tracer of the probe wrote; it may end a moment after its command."""
    for _ in range(50):
        data = file.read_bytes()
        if data.endswith(b"+++\n"):
            return data
        threading.Event().wait(0.02)
    return data


@dataclass(slots=True)
class Tracing:
    """One traced command: where its trace goes, and how much of it was kept.

    A context in which the trace is taken in. `is_whole` is false where it was longer than what is kept.
    """

    tracer: Tracer
    folder: Path
    max_bytes: int = MAX_TRACE_BYTES
    kept_bytes: int = 0
    is_whole: bool = True
    head: bytes = b""
    _pipe: int = -1
    _thread: threading.Thread | None = None
    _over: threading.Event = field(default_factory=threading.Event)

    @property
    def file(self) -> Path:
        """Return where the trace is kept."""
        return self.folder / "trace"

    @property
    def words(self) -> list[str]:
        """Return the words that stand before the command's own."""
        return [*self.tracer.words, "-o", str(self.folder / "trace-pipe"), "--"]

    def __enter__(self) -> Self:
        pipe = self.folder / "trace-pipe"
        try:
            out = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            os.mkfifo(pipe, 0o600)
            # For both directions: it neither waits for a writer nor ends with the first one that leaves.
            self._pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise MachineError(
                "trace-unavailable", f"no trace can be kept in {self.folder}: {error.strerror}", _HINT
            ) from error
        self._thread = threading.Thread(target=self._take_in, args=(out,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()

    def finish(self) -> None:
        """Take in what is left; nobody writes any more once the command's keeper has ended."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            os.close(self._pipe)

    def _take_in(self, out: int) -> None:
        poller = select.poll()
        poller.register(self._pipe, select.POLLIN)
        try:
            while True:
                is_last = self._over.is_set()  # looked at first: what came before it is read below
                poller.poll(0 if is_last else POLL_MS)
                if not self._drain(out) and is_last:
                    return
        finally:
            os.close(out)

    def _drain(self, out: int) -> bool:
        """Read once; False where there was nothing, or more than anybody should still have to say."""
        try:
            said = os.read(self._pipe, READ_BYTES)
        except BlockingIOError:
            return False
        if len(self.head) < HEAD_BYTES:
            self.head += said
        if self.is_whole:
            self.kept_bytes += len(said)
            self.is_whole = self.kept_bytes <= self.max_bytes and _written(out, said)
        return self.is_whole or not self._over.is_set()

    def refused(self) -> int | None:
        """Return the errno with which the command could not be executed; None where it was, or nothing is said."""
        number = None
        for line in self.head.split(b"\n"):
            found = _EXEC.match(line)
            if found is None:
                continue
            if found[1]:
                return None
            number = getattr(errno, found[2].decode(), errno.ENOEXEC)
        return number


def _written(out: int, data: bytes) -> bool:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(out, view) :]
    except OSError:  # a full disk: the rest is missing, and so all is
        return False
    return True
