"""The one executor of the git binary: argument lists in, bytes out, bounded in time and size.

Nothing here decides on English prose. Callers read porcelain output and exit statuses; stderr only ever goes into
an error's message. The process's working folder is never changed, and the environment is an argument.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import IO

from gitledger.dataclass import dataclass
from gitledger.errors import StoreError, UsageError
from gitledger.store.git_environment import scrubbed

__all__ = [
    "LOCAL_TIMEOUT_S",
    "MAX_OUTPUT_BYTES",
    "Git",
    "GitDone",
    "readable",
]

LOCAL_TIMEOUT_S = 600.0
"""How long a git command that touches no network may take, in seconds."""
MAX_OUTPUT_BYTES = 512 << 20
"""Standard output of one command, in bytes."""
_MAX_STDERR_BYTES = 64 << 10
_MAX_REASON_CHARACTERS = 400
_GRACE_S = 2.0
_QUIET_S = 0.25
_CHUNK_BYTES = 1 << 16

_CREDENTIALS = r"(?<=://)[^/@\s]+@"
_CONTROL = r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+"


def readable(stderr: bytes) -> str:
    """Return what git said as one short line without credentials and control characters; empty for nothing."""
    text = re.sub(_CREDENTIALS, "", stderr.decode("utf-8", "replace"))
    said = re.sub(_CONTROL, " ", "; ".join(line.strip() for line in text.splitlines() if line.strip()))
    return said[-_MAX_REASON_CHARACTERS:]


@dataclass(frozen=True, slots=True, kw_only=True)
class GitDone:
    """A git command that ended: exit status (negative: the signal), stdout, and the end of stderr."""

    command: str
    status: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Standard output without its last newline; bytes outside UTF-8 become surrogates."""
        return self.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")

    @property
    def reason(self) -> str:
        """Return what stderr said, as one short line without credentials, for a person to read."""
        return readable(self.stderr) or f"exit status {self.status}"

    def failure(self, code: str = "git-failed", hint: str = "") -> StoreError:
        """Return the error that this command's failure is."""
        return StoreError(code, f"git {self.command} failed: {self.reason}", hint)


@dataclass(frozen=True, slots=True)
class Git:
    """Git, run in `folder` with `env`.

    Variables that name a repository are scrubbed from `env`; `git_dir` and `work_tree` set them on purpose.
    Unless `interactive`, git runs in a session of its own: neither it nor ssh can prompt on the terminal, and
    its helpers die with it.
    """

    folder: Path
    env: Mapping[str, str] = field(repr=False)
    git_dir: Path | None = None
    work_tree: Path | None = None
    interactive: bool = False

    def environment(self) -> dict[str, str]:
        """Return the environment that git sees."""
        env = scrubbed(self.env, interactive=self.interactive)
        if self.git_dir is not None:
            env["GIT_DIR"] = str(self.git_dir)
        if self.work_tree is not None:
            env["GIT_WORK_TREE"] = str(self.work_tree)
        return env

    def run(
        self,
        *args: str,
        stdin: bytes = b"",
        statuses: frozenset[int] = frozenset({0}),
        timeout_s: float = LOCAL_TIMEOUT_S,
        limit: int = MAX_OUTPUT_BYTES,
        env: Mapping[str, str] | None = None,
    ) -> GitDone:
        """Return what the command printed, once it ended with one of `statuses`.

        `env` adds variables for this one command. Raises `UsageError` `git-missing` and `StoreError`: `git-failed`
        (any other status), `git-timeout` (it is killed, with its helpers) and `git-output-too-large`.
        """
        command = _subcommand(args)
        child = self.start(*args, env=env)
        try:
            pump = _Pump(child, stdin, limit)
            ended = pump.run(time.monotonic() + timeout_s)
        finally:
            self._end(child)
        if pump.overflowed:
            raise StoreError("git-output-too-large", f"git {command} printed more than {limit} bytes")
        if not ended:
            raise StoreError(
                "git-timeout",
                f"git {command} did not end within {timeout_s:g} s",
                "check the connection, or give it more time",
            )
        stdout, stderr = bytes(pump.stdout), bytes(pump.stderr)
        done = GitDone(command=command, status=child.returncode, stdout=stdout, stderr=stderr)
        if done.status not in statuses:
            raise done.failure()
        return done

    def start(
        self, *args: str, env: Mapping[str, str] | None = None, stderr: IO[bytes] | None = None
    ) -> subprocess.Popen[bytes]:
        """Return a running git with pipes on all three streams (or `stderr` in a file); whoever starts it ends it.

        Raises `UsageError` `git-missing` where there is no git, or `folder` is gone.
        """
        try:
            return subprocess.Popen(
                ["git", *args],
                cwd=self.folder,
                env=self.environment() | dict(env or {}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if stderr is None else stderr,
                start_new_session=not self.interactive,
            )
        except (OSError, ValueError) as error:
            raise self._not_started(error) from error

    def _not_started(self, error: OSError | ValueError) -> UsageError:
        if not self.folder.is_dir():
            return UsageError("not-a-folder", f"{self.folder} is not a folder", "give an existing one with -C")
        if isinstance(error, FileNotFoundError | PermissionError):
            return UsageError("git-missing", "git is not on PATH", "install git 2.39 or newer")
        return UsageError("git-not-started", f"git can't be started: {error}", "give fewer or shorter arguments")

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """Leave neither the child nor a helper of it behind; SIGTERM first, so that git removes its lock files."""
        for number, grace_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, None)):
            if child.poll() is not None:
                break
            self._signal(child, number)
            try:
                child.wait(grace_s)
            except subprocess.TimeoutExpired:
                continue
        if child.returncode < 0:
            self._signal(child, signal.SIGKILL)
        for stream in (child.stdin, child.stdout, child.stderr):
            _close(stream)

    def _signal(self, child: subprocess.Popen[bytes], number: signal.Signals) -> None:
        try:
            if self.interactive:
                child.send_signal(number)
            else:
                os.killpg(child.pid, number)
        except (ProcessLookupError, PermissionError):
            return


class _Pump:
    """Feeds a child's stdin and drains its output, within a deadline and a size limit."""

    def __init__(self, child: subprocess.Popen[bytes], stdin: bytes, limit: int) -> None:
        self._child = child
        self._left = memoryview(stdin)
        self._limit = limit
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.overflowed = False

    def run(self, deadline: float) -> bool:
        """Return whether the child ended in time (a monotonic second) and within the limit.

        A helper that outlives git and holds its pipes (an ssh connection kept for the next call) isn't waited for.
        """
        with selectors.DefaultSelector() as selector:
            self._register(selector)
            while selector.get_map() and not self.overflowed:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return False
                # Asked before looking: a child that ends after a look that found nothing may have printed since.
                has_ended = self._child.poll() is not None
                events = selector.select(min(left_s, _QUIET_S))
                if not events and has_ended:
                    break
                for key, _ in events:
                    if not key.data(key.fd):
                        # Closed only once nobody looks at it: a closed one that a child starting in another
                        # thread still holds would wake the selector for nothing.
                        selector.unregister(key.fd)
                        if key.data == self._feed:
                            _close(self._child.stdin)
        if self.overflowed:
            return False
        try:
            self._child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def _register(self, selector: selectors.BaseSelector) -> None:
        watched: list[tuple[IO[bytes] | None, int, Callable[[int], bool]]] = [
            (self._child.stdin, selectors.EVENT_WRITE, self._feed),
            (self._child.stdout, selectors.EVENT_READ, self._take_stdout),
            (self._child.stderr, selectors.EVENT_READ, self._take_stderr),
        ]
        for stream, event, act in watched:
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                selector.register(stream.fileno(), event, act)

    def _feed(self, fd: int) -> bool:
        try:
            self._left = self._left[os.write(fd, self._left[:_CHUNK_BYTES]) :]
        except BrokenPipeError:
            self._left = self._left[:0]
        return bool(self._left)

    def _take_stdout(self, fd: int) -> bool:
        chunk = os.read(fd, _CHUNK_BYTES)
        self.stdout += chunk
        self.overflowed = len(self.stdout) > self._limit
        return bool(chunk)

    def _take_stderr(self, fd: int) -> bool:
        chunk = os.read(fd, _CHUNK_BYTES)
        self.stderr += chunk
        del self.stderr[:-_MAX_STDERR_BYTES]
        return bool(chunk)


def _close(stream: IO[bytes] | None) -> None:
    try:
        if stream is not None:
            stream.close()
    except BrokenPipeError:
        return


def _subcommand(args: tuple[str, ...]) -> str:
    """Return the git command's name, skipping `-c name=value` before it."""
    rest = iter(args)
    for word in rest:
        if word in {"-c", "-C"}:
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return "git"
