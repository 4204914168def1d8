"""A git process that answers one question after another, such as `git cat-file --batch-command`.

It ends when whoever asks is gone, a kill -9 included: its input is closed then. What it says on stderr is kept
for the error that its silence becomes, in a file without a name, so that nothing can block on it.
"""

from __future__ import annotations

import os
import select
import subprocess
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

from gitledger.store.git import LOCAL_TIMEOUT_S, Git, readable

__all__ = ["Conversation", "ConversationEnded"]

_CHUNK_BYTES = 1 << 16


class ConversationEnded(Exception):  # noqa: N818 - it is no fault by itself: whoever asked knows what it means
    """The process ended, or did not answer in time; the text is what it said on stderr."""


class Conversation:
    """One running git with its input and output; `close` ends it, and so does the end of this object."""

    def __init__(self, git: Git, *args: str, env: Mapping[str, str] | None = None) -> None:
        self._stderr = _nameless_file()
        self._child = git.start(*args, env=env, stderr=self._stderr)
        self._output = select.poll()
        if self._child.stdout is not None:
            self._output.register(self._child.stdout, select.POLLIN)
        self._held = bytearray()
        self._heard = 0
        self.close = weakref.finalize(self, _end, self._child, self._stderr)

    def ask(self, question: bytes) -> None:
        """Send a question; raises `ConversationEnded`."""
        stream = self._child.stdin
        if stream is None:
            raise ConversationEnded("its input is closed")
        try:
            stream.write(question)
            stream.flush()
        except (OSError, ValueError) as error:
            raise self._ended() from error

    def line(self) -> bytes:
        """Return the next line of the answer without its newline; raises `ConversationEnded`."""
        while (end := self._held.find(b"\n")) < 0:
            self._more()
        found = bytes(self._held[:end])
        del self._held[: end + 1]
        return found

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes of the answer; raises `ConversationEnded`."""
        while len(self._held) < size:
            self._more()
        found = bytes(memoryview(self._held)[:size])
        del self._held[:size]
        return found

    def hang_up(self) -> None:
        """Say that no question will follow: the process ends by itself then, and `close` finds it gone."""
        with suppress(OSError):
            if self._child.stdin is not None:
                self._child.stdin.close()

    def complaint(self) -> str:
        """Return what it said on stderr since this was last asked for, as one short line."""
        self._stderr.seek(self._heard)
        said = self._stderr.read()
        self._heard += len(said)
        return readable(said)

    def _more(self) -> None:
        stream = self._child.stdout
        if stream is None or stream.closed:
            raise ConversationEnded("its output is closed")
        if not self._output.poll(1_000 * LOCAL_TIMEOUT_S):
            raise self._ended()
        chunk = os.read(stream.fileno(), _CHUNK_BYTES)
        if not chunk:
            raise self._ended()
        self._held += chunk

    def _ended(self) -> ConversationEnded:
        said = self.complaint() or f"no answer within {LOCAL_TIMEOUT_S:g} s"
        self.close()
        return ConversationEnded(said)


def _nameless_file() -> IO[bytes]:
    """Return a file that is gone with whoever has it open."""
    if hasattr(os, "memfd_create"):
        with suppress(OSError):
            return os.fdopen(os.memfd_create("git-stderr", os.MFD_CLOEXEC), "w+b")
    import tempfile

    return tempfile.TemporaryFile()


def _end(child: subprocess.Popen[bytes], stderr: IO[bytes]) -> None:
    for stream in (child.stdin, child.stdout):
        try:
            if stream is not None:
                stream.close()
        except OSError:
            continue
    try:
        child.wait(1.0)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    stderr.close()
