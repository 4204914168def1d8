"""What a run shows while it lasts: a rewritten line on a terminal, plain lines and a heartbeat elsewhere."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from gitledger.cli.output import Output
from gitledger.cli.streams import OutputError, abandon_stdout
from gitledger.dataclass import dataclass
from gitledger.errors import EXIT_NOT_STORED
from gitledger.report.progress import Under, clock_text, left_s, progress_line, status_line

if TYPE_CHECKING:
    from gitledger.errors import LedgerError
    from gitledger.records.ids import ShardKey
    from gitledger.workflows.drive import Attempt, Ended, Job

__all__ = ["Screen"]

HEARTBEAT_S = 60.0
REDRAW_S = 0.5
MAX_HELD_BYTES = 1 << 16
"""A line of a shard that is longer is shown in pieces."""


@dataclass(slots=True, kw_only=True)
class Screen:
    """The watcher of a drive that speaks to people, on stderr; what shards print goes to `tail`."""

    output: Output
    slots: int
    logs: Path
    tail: TextIO
    is_live: bool
    _total: int = 0
    _done: int = 0
    _red: int = 0
    _seen: list[float] = field(default_factory=list)
    _said_s: float = field(default_factory=time.monotonic)
    _drawn: bool = False
    _held: dict[ShardKey, bytes] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, output: Output, *, slots: int, logs: Path, tail_to_stderr: bool) -> Screen:
        """Return the screen of this process: live only where stderr is a terminal that can rewrite a line."""
        is_live = sys.stderr.isatty() and output.environ.get("TERM", "dumb") != "dumb" and not output.quiet
        tail = sys.stderr if tail_to_stderr else sys.stdout
        return cls(output=output, slots=slots, logs=logs, tail=tail, is_live=is_live)

    # -- what the drive tells, in its thread --------------------------------------------------------------------

    def started(self, attempt: Attempt) -> None:
        """Say that a shard runs now, with what it was given."""
        words = [f"start {attempt.job.key}"]
        if attempt.number > 1:
            words.append(f"attempt {attempt.number}")
        if attempt.grant.devices:
            words.append(f"GPU {', '.join(attempt.grant.devices)}")
        if attempt.job.estimate_s is not None:
            words.append(f"about {clock_text(attempt.job.estimate_s)}")
        self._say(", ".join(words))

    def ended(self, attempt: Attempt, seconds: float, ended: Ended) -> None:
        """Say how a shard ended."""
        self._flush(attempt.job.key)
        self._seen.append(seconds)
        key, took = attempt.job.key, clock_text(seconds)
        done = ended.recorded
        self._done += 1
        if not ended.is_green:
            self._red += 1
        if done is None:
            if ended.fault is not None:
                what = "not recorded" if ended.fault.exit_status == EXIT_NOT_STORED else "not run"
                self._say(f"{what} {key}: {ended.fault.message} [{ended.fault.code}]")
            return
        counts, receipt = done.receipt.counts, done.receipt
        why = f": {', '.join(receipt.reasons)}" if receipt.reasons else ""
        stored = "" if done.stored else ", NOT STORED"
        number = f"{counts.passed} of {counts.collected} passed"
        self._say(f"{receipt.outcome.value} {key} in {took}, {number}{why}{stored}")

    def waits(self, job: Job, why: str) -> None:
        """Say what a shard waits for."""
        self._say(f"{job.key} {why}" if why.startswith("waits") else f"{job.key} waits: {why}")

    def given_up(self, job: Job, fault: LedgerError) -> None:
        """Say why a shard won't run."""
        self._done += 1
        self._say(f"not run {job.key}: {fault.message} [{fault.code}]")

    def news(self, text: str) -> None:
        """Say what happens elsewhere."""
        self._say(text)

    def tick(self, running: Sequence[Attempt], waiting: Sequence[Job]) -> None:
        """Show how far it has come, where it is time to."""
        self._total = max(self._total, self._done + len(running) + len(waiting))
        now_s = time.monotonic()
        if now_s - self._said_s < (REDRAW_S if self.is_live else HEARTBEAT_S):
            return
        self._said_s = now_s
        under = [self._under(attempt, now_s) for attempt in running]
        left = left_s(under, [job.estimate_s for job in waiting], slots=self.slots, seen=self._seen)
        facts = {"done": self._done, "total": self._total, "red": self._red, "left": left}
        if self.is_live:
            width = shutil.get_terminal_size().columns
            self._draw(status_line(under, **facts, width=width))  # type: ignore[arg-type]
        else:
            self.output.message(f"git ledger: {progress_line(under, **facts)}")  # type: ignore[arg-type]

    def _under(self, attempt: Attempt, now_s: float) -> Under:
        try:
            silent_s = time.time() - (self.logs / f"{attempt.job.key}.log").stat().st_mtime
        except OSError:
            silent_s = 0.0
        seconds = now_s - attempt.began_s
        return Under(
            name=str(attempt.job.key),
            seconds=seconds,
            estimate_s=attempt.job.estimate_s,
            quiet_s=min(seconds, max(0.0, silent_s)),
        )

    # -- what shards print, in their threads --------------------------------------------------------------------

    def echo(self, key: ShardKey, data: bytes) -> None:
        """Show the whole lines of what a shard printed, each behind its name; `OSError` where nobody reads."""
        with self._lock:
            *lines, rest = (self._held.get(key, b"") + data).split(b"\n")
            if len(rest) > MAX_HELD_BYTES:
                lines, rest = [*lines, rest], b""
            self._held[key] = rest
            self._write_lines(key, lines)

    def _flush(self, key: ShardKey) -> None:
        with self._lock:
            rest = self._held.pop(key, b"")
            if rest:
                try:
                    self._write_lines(key, [rest])
                except OSError:
                    return

    def _write_lines(self, key: ShardKey, lines: Sequence[bytes]) -> None:
        if not lines:
            return
        self._erase()
        prefix = f"{key} | ".encode()
        try:
            self.tail.buffer.write(b"".join(prefix + line + b"\n" for line in lines))
            self.tail.buffer.flush()
        except OutputError as error:  # nobody can read it, which is no reason not to record
            abandon_stdout()
            raise OSError(str(error)) from error

    # -- the line that is rewritten -----------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        with self._lock:
            self._erase()
            self.output.message(f"git ledger: {text}")

    def _draw(self, text: str) -> None:
        with self._lock:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
            self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False

    def close(self) -> None:
        """Leave a clean line."""
        with self._lock:
            self._erase()
