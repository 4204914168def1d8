"""How far a run of shards has come, in words: single lines for logs, one line that is rewritten for terminals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gitledger.dataclass import dataclass
from gitledger.report.text import escaped

__all__ = ["Under", "clock_text", "last_lines", "left_s", "progress_line", "status_line"]

MAX_NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Under:
    """A shard that is under way: for how many seconds, and how many it took before (None: nobody knows)."""

    name: str
    seconds: float
    estimate_s: float | None = None
    quiet_s: float = 0.0


def clock_text(seconds: float) -> str:
    """Return a span as people say it: `0.4s`, `42s`, `3m05s`, `2h04m`."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def left_s(
    running: Iterable[Under], waiting: Iterable[float | None], *, slots: int, seen: Sequence[float]
) -> float | None:
    """Return the seconds that are likely left, None where nothing is known of any shard.

    A shard that nobody timed before counts as the mean of those that are known or have been `seen` in this run.
    """
    under, queue = list(running), list(waiting)
    known = [value for value in (*(item.estimate_s for item in under), *queue) if value is not None]
    samples = [*known, *seen]
    if not samples:
        return None
    mean = sum(samples) / len(samples)
    rest = [max(0.0, (mean if item.estimate_s is None else item.estimate_s) - item.seconds) for item in under]
    rest += [mean if value is None else value for value in queue]
    return max([sum(rest) / max(1, slots), *rest])


def status_line(
    running: Sequence[Under], *, done: int, total: int, red: int, left: float | None, width: int
) -> str:
    """Return the one line of a terminal, within its width."""
    return progress_line(running, done=done, total=total, red=red, left=left)[: max(1, width - 1)]


def progress_line(running: Sequence[Under], *, done: int, total: int, red: int, left: float | None) -> str:
    """Return how many shards are done, which run and since when, which are silent, and what is likely left."""
    parts = [f"{done} of {total} done"]
    if red:
        parts.append(f"{red} not green")
    if running:
        named = ", ".join(_under(item) for item in running[:MAX_NAMED])
        more = f" and {len(running) - MAX_NAMED} more" if len(running) > MAX_NAMED else ""
        parts.append(f"running {named}{more}")
    if left is not None:
        parts.append(f"about {clock_text(left)} left")
    return "; ".join(parts)


QUIET_S = 60.0
"""From when on it is said that a shard shows no output."""


def _under(item: Under) -> str:
    quiet = f", no output for {clock_text(item.quiet_s)}" if item.quiet_s >= QUIET_S else ""
    return f"{item.name} ({clock_text(item.seconds)}{quiet})"


def last_lines(text: str, *, count: int) -> list[str]:
    """Return the last lines of a log that say something, escaped."""
    lines = [line.rstrip() for line in text.splitlines()]
    return [escaped(line) for line in [line for line in lines if line][-count:]]
