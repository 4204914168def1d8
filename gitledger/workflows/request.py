"""What is to be recorded, and the repository as it stood before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gitledger.config.schema import NotesConfig, ResultsConfig
from gitledger.dataclass import dataclass
from gitledger.machine.interrupts import Interrupts
from gitledger.manifest.definition import Definition
from gitledger.manifest.resolve import Manifest
from gitledger.records.ids import CommitId, ShardKey
from gitledger.store.head_log import HeadLog
from gitledger.store.worktree import WorkTreeState
from gitledger.workflows.flight import Flight

__all__ = ["Before", "RecordRequest", "nearer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRequest:
    """What is to be recorded.

    `command` is what runs, None where nothing does: then `report`, which lies there already, is recorded.
    `declared`: the shard is one of the configuration's. `user` is the person's own word for themselves. `trace`:
    what it opens is observed by a tracer too.

    What a driver of several runs adds: `stall_s`, how long a run may show no sign of progress; `log`, where its
    output is kept; `interrupts`, the driver's; `held`, its descriptors that stay open until nothing of the run is
    left; `flight`, where it is noted down meanwhile; `began`, called when nothing speaks against its start any
    more.
    """

    repository: str
    key: ShardKey
    definition: Definition
    command: tuple[str, ...] | None
    declared: bool
    notes: NotesConfig
    report: ResultsConfig | None = None
    mode: str = "local"
    timeout_s: float | None = None
    best_effort: bool = False
    pass_agent: bool = False
    trace: bool = False
    gpu_uuid: bool = True
    user: str = ""
    echo: Callable[[bytes], None] | None = None
    stall_s: float | None = None
    log: Path | None = None
    interrupts: Interrupts | None = None
    held: tuple[int, ...] = ()
    flight: Flight | None = None
    began: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The repository as it stood before the run.

    `shadows` are configuration files that lie in the work tree, ignored, where the commit has none: pytest reads
    them, and the manifest says that there are none. `log`: how far git's log of HEAD had come, None where nobody
    knows.
    """

    head: CommitId
    state: WorkTreeState
    manifest: Manifest
    shadows: tuple[str, ...] = ()
    log: HeadLog | None = None


def nearer(declared_s: float | None, asked_s: float | None) -> float | None:
    """Return the smaller of a shard's own time-out and the one that was asked for; None where there is neither.

    A shard declares how long its run may take at most; who runs it may be less patient, and not more.
    """
    return min((seconds for seconds in (declared_s, asked_s) if seconds is not None), default=None)
