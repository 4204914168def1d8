"""Live output: what a growing log file gained since the last look."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType

__all__ = ["Tail"]

BLOCK_BYTES = 1 << 18
KEPT_BYTES = 4 << 20
"""What stays on disk of a log's beginning and of its end; a receipt quotes less of either."""
RELEASE_BYTES = 64 << 20
"""How much a log grows until what lies between is given back to the disk."""
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # linux/falloc.h


class Tail:
    """Follows an open file and hands what it gains to `echo`; a reader that went away (`| head`) ends only that.

    The file is read by a descriptor of its own, so nothing that a process does to its copy moves the place.
    """

    def __init__(self, path: str | os.PathLike[str], echo: Callable[[bytes], None] | None) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._echo = echo
        self._place = 0
        self._released = KEPT_BYTES

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
        self._release()
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

    def _release(self) -> None:
        """Give the disk back what lies between a log's beginning and its end, so that no output can fill it.

        Sizes and offsets stay as they are; the hole reads as NULs. Where the system can't do it, the log is whole.
        """
        seen = self._place if self._echo is not None else self.size_bytes()
        length = seen - KEPT_BYTES - self._released
        if length < RELEASE_BYTES or not sys.platform.startswith("linux"):
            return
        import ctypes  # for large logs alone

        libc = ctypes.CDLL(None, use_errno=True)
        libc.fallocate(
            self._fd, _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_longlong(self._released), ctypes.c_longlong(length)
        )
        self._released += length
