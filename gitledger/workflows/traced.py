"""A run under a tracer: the work tree before it, the trace that it leaves, and what that says was read."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from gitledger.dataclass import dataclass
from gitledger.machine.strace import TraceFault, read_trace
from gitledger.machine.trace import Tracer, Tracing
from gitledger.suites.observed import Observed
from gitledger.suites.traced import Standing, standing_files, told_by_trace

__all__ = ["Traced"]


@dataclass(frozen=True, slots=True)
class Traced:
    """One traced run. `standing` is None, and `fault` says why, where the work tree can't be listed."""

    tracing: Tracing
    standing: Standing | None
    fault: str = ""

    @classmethod
    def begin(cls, root: Path, folder: Path, tracer: Tracer) -> Self:
        """Return the run as it is about to begin; `folder` is its own, outside the work tree or in `.git`."""
        stamp = folder / "trace-began"
        stamp.touch(mode=0o600)
        tracing = Tracing(tracer, folder)
        try:
            standing = standing_files(root, began_ns=stamp.stat().st_ctime_ns)
        except TraceFault as fault:
            return cls(tracing, None, str(fault))
        return cls(tracing, standing)

    def end(self, *, interrupted: bool) -> tuple[Observed | None, list[str]]:
        """Return what the run read; None, and why in a sentence, where the trace doesn't say all.

        After an interruption nothing is read: whoever asked to stop may not wait for it.
        """
        if interrupted:
            return None, ["not observed: the run was interrupted"]
        try:
            return self._read(), []
        except TraceFault as fault:
            return None, [f"not observed: {fault}"]
        except OSError as error:
            return None, [f"not observed: the trace can't be read: {error.strerror}"]

    def _read(self) -> Observed:
        if self.standing is None:
            raise TraceFault(self.fault)
        if not self.tracing.is_whole:
            raise TraceFault(f"the trace is longer than {self.tracing.max_bytes} bytes, or its disk is full")
        with self.tracing.file.open("rb") as lines:
            return told_by_trace(read_trace(lines, self.standing.root), self.standing)
