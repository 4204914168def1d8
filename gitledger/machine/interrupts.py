"""The signals that tell a driver to stop, taken in and handed to every command that runs at the moment."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

__all__ = ["STOPPING", "Interrupts"]

STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

ECHO_S = 0.2


class Interrupts:
    """A context (of the main thread) in which SIGINT, SIGTERM and SIGHUP stop the commands, not the driver.

    A signal that was ignored when the context was entered stays ignored: `nohup` and shells that start background
    jobs mean it. `received` holds what arrived, in order; a driver looks there before it starts the next command.
    """

    def __init__(self) -> None:
        self.received: list[int] = []
        self._listeners: dict[int, Callable[[int, int], None]] = {}
        self._before: dict[int, Any] = {}
        self._last = (0, 0.0)

    def __enter__(self) -> Interrupts:
        for signum in STOPPING:
            if signal.getsignal(signum) is not signal.SIG_IGN:
                self._before[signum] = signal.signal(signum, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, signal.SIG_DFL if handler is None else handler)
        self._before.clear()

    def _on_signal(self, signum: int, _frame: FrameType | None) -> None:
        """Take one signal in; the same one at once again is an echo, not a person who means it twice.

        Whoever is called as `git ledger` hears Ctrl-C from the terminal and a moment later from git, which hands
        it on to what it has started (git's run-command.c, `clean_on_exit`).
        """
        now_s = time.monotonic()
        last, last_s = self._last
        self._last = (signum, now_s)
        if signum != last or now_s - last_s >= ECHO_S:
            self.tell(signum)

    def tell(self, signum: int) -> None:
        """Hand a signal to every listener, as if it had arrived; for drivers with reasons of their own."""
        self.received.append(signum)
        for deliver in list(self._listeners.values()):
            deliver(signum, len(self.received))

    @contextmanager
    def listener(self, deliver: Callable[[int, int], None]) -> Iterator[None]:
        """Call `deliver(signal, nth)` for each signal in the context, and at once for one that came before.

        One signal may be delivered twice, with the same `nth`. `deliver` runs inside a signal handler: it must
        neither block nor raise.
        """
        key = id(deliver)
        self._listeners[key] = deliver
        try:
            if self.received:
                deliver(self.received[-1], len(self.received))
            yield
        finally:
            del self._listeners[key]
