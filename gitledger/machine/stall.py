"""Whether a run still makes progress: by what it writes and compiles, never by processor time."""

from __future__ import annotations

from collections.abc import Callable

from gitledger.machine.processes import live_compilers

__all__ = ["StallWatch"]


class StallWatch:
    """Stalled means `stall_s` seconds in which the log did not grow, `progress()` stayed and nothing compiled.

    A cold build prints nothing for an hour while its compilers work; a deadlock in a native loop burns a core.
    """

    def __init__(self, stall_s: float, progress: Callable[[], object] | None = None) -> None:
        self._stall_s = stall_s
        self._progress = progress
        self._seen: tuple[int, object] | None = None
        self._since_s = 0.0
        self._sampled_s = 0.0

    def is_stalled(self, log_size: int, *, root: int, now_s: float) -> bool:
        """Return whether the run of `root`'s descendants is stalled at `now_s` (monotonic seconds)."""
        seen = (log_size, self._progress() if self._progress else None)
        if seen != self._seen:
            self._seen, self._since_s = seen, now_s
            return False
        # Looking for compilers costs a walk through the run's processes: a tenth of the span is often enough.
        if now_s - self._sampled_s >= min(self._stall_s / 10, 5.0):
            self._sampled_s = now_s
            if live_compilers(root):
                self._since_s = now_s
        return now_s - self._since_s >= self._stall_s
