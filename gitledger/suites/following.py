"""A journal read while it is being written: that of ten thousand tests takes a second, and then nobody waits.

What was read counts only if the journal begins with it, to the byte, once the run is over; else all is read anew.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from threading import Event, Thread
from types import TracebackType

from gitledger.suites.journal import MAX_JOURNAL_BYTES, Journal, JournalReading, read_journal

__all__ = ["Following"]

_PAUSE_S = 0.1
_STEP_BYTES = 1 << 18
"""What is read at one look: a tenth of a second's work, so that whoever floods the journal keeps nobody busy."""


class Following:
    """Reads the journal at `path`, of the run with `nonce`, as it is written, until `with` is left."""

    def __init__(self, path: Path, nonce: str) -> None:
        self._path = path
        self._nonce = nonce
        self._taken = bytearray()
        self._reading: JournalReading | None = JournalReading(nonce)
        self._over = Event()
        self._thread = Thread(target=self._follow, name="journal")

    def __enter__(self) -> Following:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._over.wait(_PAUSE_S):
            self.look()

    def look(self) -> None:
        """Read some of what was written since the last look."""
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return
        try:
            if stat.S_ISREG(os.fstat(file).st_mode):
                self._take(os.pread(file, _STEP_BYTES, len(self._taken)))
        except OSError:
            return
        finally:
            os.close(file)

    def _take(self, data: bytes) -> None:
        whole = data[: data.rfind(b"\n") + 1]
        if self._reading is None or not whole or len(self._taken) + len(whole) > MAX_JOURNAL_BYTES:
            return
        self._taken += whole
        if not self._reading.lines(whole):
            self._reading = None  # whoever reads all of it says what is wrong

    def journal(self, data: bytes) -> Journal:
        """Return what `read_journal` returns for the whole journal `data`, and raise what it raises."""
        reading, size = self._reading, len(self._taken)
        self._reading = None  # it goes on from here once
        if reading is None or len(data) > MAX_JOURNAL_BYTES or data[:size] != self._taken:
            return read_journal(data, self._nonce)
        return reading.rest(data[size:])
