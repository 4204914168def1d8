"""Live output: what a growing log file gained since the last look."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType

__all__ = ["Tail"]

BLOCK_BYTES = 1 << 18


class Tail:
    """Follows an open file and hands what it gains to `echo`; a reader that went away (`| head`) ends only that.

    The file is read by a descriptor of its own, so nothing that a process does to its copy moves the place.
    """

    def __init__(self, path: str | os.PathLike[str], echo: Callable[[bytes], None] | None) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._echo = echo
        self._place = 0

    def __enter__(self) -> Tail:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def size_bytes(self) -> int:
        """Return the log's size now."""
        return os.fstat(self._fd).st_size

    def pump(self, *, limit_bytes: int | None = None) -> None:
        """Echo what is new, all of it or about `limit_bytes`; a file that was truncated is read from its start."""
        if self._echo is None:
            return
        if self.size_bytes() < self._place:
            self._place = 0
        begin = self._place
        while (limit_bytes is None or self._place - begin < limit_bytes) and self._echo is not None:
            block = os.pread(self._fd, BLOCK_BYTES, self._place)
            if not block:
                return
            self._place += len(block)
            try:
                self._echo(block)
            except OSError:
                self._echo = None
