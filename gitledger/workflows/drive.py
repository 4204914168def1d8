"""Runs shards beside each other: longest first, as many as slots, memory and devices allow.

`work` does one run in a thread of its own and says how it ended. Nothing is started any more once a signal came,
or once a run found that all others would be in vain; what runs is seen to its end, whatever happens.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Protocol

from gitledger.dataclass import dataclass
from gitledger.errors import InconclusiveError, LedgerError
from gitledger.machine.admission import Admission, Blocked, Grant, Need
from gitledger.machine.interrupts import Interrupts
from gitledger.records.ids import ShardKey
from gitledger.suites.report_file import may_meet
from gitledger.wording import counted
from gitledger.workflows.record import Recorded

__all__ = ["Attempt", "Drive", "Ended", "Job", "NotAlone", "Stop", "Watch"]

TICK_S = 0.1
UNKNOWN_S = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One shard to run. `estimate_s` is how long it took before, None where nobody knows.

    `report` is the file or pattern that its results are read from, None where they come otherwise: two shards that
    may write one file never run at the same time, since either's results could be taken for the other's.
    """

    key: ShardKey
    need: Need
    estimate_s: float | None = None
    report: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run of a job: the how-manieth of this driver, what it was given, and when it began (monotonic).

    `alone`: nothing else runs, and nothing will be started beside it.
    """

    job: Job
    number: int
    grant: Grant
    began_s: float
    alone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended. `recorded` is None where it could not be run, and `fault` says why."""

    recorded: Recorded | None = None
    may_retry: bool = False
    fault: LedgerError | None = None

    @property
    def is_green(self) -> bool:
        """Tell whether there is a green receipt, and it is stored."""
        return self.recorded is not None and self.recorded.stored and self.recorded.receipt.is_green


class NotAlone(Exception):  # noqa: N818 - no error: a run that waits for its turn
    """The run can't start while others leave files about: it is started again when nothing else runs."""


class Stop(Exception):  # noqa: N818 - no error of ours
    """Nothing more may start, for what `error` says; None: a signal came."""

    def __init__(self, error: LedgerError | None = None) -> None:
        super().__init__(error)
        self.error = error


@dataclass(frozen=True, slots=True)
class _Begun:
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class _Done:
    attempt: Attempt


class Watch(Protocol):
    """Who is told of every step, in the driver's own thread."""

    def started(self, attempt: Attempt) -> None:
        """Hear that a run begins: nothing speaks against it any more."""

    def ended(self, attempt: Attempt, seconds: float, ended: Ended) -> None:
        """Hear how a run ended, or why it could not be run."""

    def waits(self, job: Job, why: str) -> None:
        """Hear for want of what a job can't start; told again only where the words change."""

    def given_up(self, job: Job, fault: LedgerError) -> None:
        """Hear why a job won't run."""

    def news(self, text: str) -> None:
        """Hear a sentence about a run that goes on elsewhere."""

    def tick(self, running: Sequence[Attempt], waiting: Sequence[Job]) -> None:
        """Hear that time went by."""


@dataclass(slots=True, kw_only=True)
class Drive:
    """Some jobs, from the first to the last. `retries` counts further attempts at one that was not green."""

    work: Callable[[Attempt, Callable[[], None], Callable[[], None]], Ended]
    """Runs an attempt. The first call that it is given is for when the run begins and nothing speaks against it,
    the second for when its command and all that looks at its traces have ended."""
    watch: Watch
    admission: Admission
    interrupts: Interrupts
    slots: int
    retries: int = 0
    results: dict[ShardKey, list[Recorded]] = field(default_factory=dict)
    faults: dict[ShardKey, LedgerError] = field(default_factory=dict)
    stopped: LedgerError | None = None
    _is_stopped: bool = False
    _is_told: bool = False
    _waiting: list[Job] = field(default_factory=list)
    _running: dict[Future[Ended], Attempt] = field(default_factory=dict)
    _busy: dict[int, Attempt] = field(default_factory=dict)
    _events: SimpleQueue[_Begun | _Done | Future[Ended]] = field(default_factory=SimpleQueue)
    _alone: set[ShardKey] = field(default_factory=set)
    _tries: dict[ShardKey, int] = field(default_factory=dict)
    _told: dict[ShardKey, str] = field(default_factory=dict)

    def run(self, jobs: Sequence[Job]) -> None:
        """Run all jobs to their end; `results`, `faults`, `stopped` and `left` then say what came of them.

        A job of which nobody knows how long it takes comes first. An error that `work` doesn't answer for ends
        what runs, and is raised once all of it has ended.
        """
        self._waiting = sorted(jobs, key=lambda job: -(UNKNOWN_S if job.estimate_s is None else job.estimate_s))
        with ThreadPoolExecutor(2 * self.slots, thread_name_prefix="shard") as pool:
            try:
                while self._running or (self._waiting and not self._is_over()):
                    self._step(pool)
            except BaseException:
                self.interrupts.tell(signal.SIGTERM)
                raise

    @property
    def left(self) -> tuple[ShardKey, ...]:
        """Return the shards that were not started any more, or not once more."""
        return tuple(job.key for job in self._waiting)

    def _step(self, pool: ThreadPoolExecutor) -> None:
        if not self._is_over():
            self._start(pool)
        self._say_if_told_to_stop()
        self.watch.tick(list(self._busy.values()), self._waiting)
        try:
            event = self._events.get(timeout=TICK_S)
        except Empty:
            return
        self._say_if_told_to_stop()  # before what was running then, and has ended by now, is told
        match event:
            case _Begun(attempt):
                self.watch.started(attempt)
            case _Done(attempt):
                self._free(attempt)
            case _:
                self._finish(event)

    def _say_if_told_to_stop(self) -> None:
        if self.interrupts.received and not self._is_told and self._running:
            self._is_told = True
            self.watch.news("told to stop: what runs is ended and recorded; a second signal ends it at once")

    def _is_over(self) -> bool:
        return self._is_stopped or bool(self.interrupts.received)

    def _start(self, pool: ThreadPoolExecutor) -> None:
        """Start what may start, in order; who has to wait lets others pass."""
        for job in list(self._waiting):
            if len(self._busy) >= self.slots or any(attempt.alone for attempt in self._busy.values()):
                return
            alone = job.key in self._alone
            if (alone and self._busy) or self._writes_what_another_does(job):
                continue
            answer = self.admission.ask(str(job.key), job.need)
            if isinstance(answer, Blocked):
                self._wait_or_give_up(job, answer)
                continue
            self._waiting.remove(job)
            number = self._tries[job.key] = self._tries.get(job.key, 0) + 1
            attempt = Attempt(job=job, number=number, grant=answer, began_s=time.monotonic(), alone=alone)
            self._submit(pool, attempt)

    def _writes_what_another_does(self, job: Job) -> bool:
        return job.report is not None and any(
            item.job.report is not None and may_meet(item.job.report, job.report) for item in self._busy.values()
        )

    def _submit(self, pool: ThreadPoolExecutor, attempt: Attempt) -> None:
        """Start an attempt; beside others, the next may start while this one's receipt is still being written."""
        self._busy[id(attempt)] = attempt
        began = partial(self._events.put, _Begun(attempt))
        ended = partial(self._events.put, _Done(attempt)) if self.slots > 1 else (lambda: None)
        future = pool.submit(self.work, attempt, began, ended)
        self._running[future] = attempt
        future.add_done_callback(self._events.put)

    def _free(self, attempt: Attempt) -> None:
        """Give back what an attempt held, once."""
        if self._busy.pop(id(attempt), None) is not None:
            self.admission.take_back(attempt.grant)

    def _wait_or_give_up(self, job: Job, blocked: Blocked) -> None:
        if blocked.is_final:
            self._waiting.remove(job)
            self.faults[job.key] = InconclusiveError("machine-not-ready", blocked.why, "git ledger run")
            self.watch.given_up(job, self.faults[job.key])
        elif self._told.get(job.key) != blocked.why:
            self._told[job.key] = blocked.why
            self.watch.waits(job, blocked.why)

    def _finish(self, future: Future[Ended]) -> None:
        attempt = self._running.pop(future)
        self._free(attempt)
        job = attempt.job
        try:
            ended = future.result()
        except NotAlone:
            self._alone.add(job.key)
            self._put_back(job)
            return
        except Stop as stop:
            self._put_back(job)
            if stop.error is not None and not self._is_stopped:
                more = (
                    f"left: {counted(len(self._waiting), 'shard')}"
                    if len(self._waiting) > 1
                    else f"{job.key} is left"
                )
                self.watch.news(f"nothing more is started, {more}: {stop.error.message} [{stop.error.code}]")
            self._is_stopped, self.stopped = True, self.stopped or stop.error
            return
        self.watch.ended(attempt, time.monotonic() - attempt.began_s, ended)
        if ended.fault is not None:
            self.faults[job.key] = ended.fault
        if ended.recorded is not None:
            self.results.setdefault(job.key, []).append(ended.recorded)
        if not ended.is_green and ended.may_retry and attempt.number <= self.retries:
            self._waiting.append(job)

    def _put_back(self, job: Job) -> None:
        self._tries[job.key] -= 1
        self._waiting.insert(0, job)
