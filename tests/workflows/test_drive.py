"""The driver's own rules, with runs that are functions: slots, turns, and what happens to the others."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import replace

import pytest

from gitledger.errors import InternalError, UsageError
from gitledger.machine.admission import Admission, Need
from gitledger.machine.interrupts import Interrupts
from gitledger.records.ids import ShardKey
from gitledger.workflows.drive import Drive, Ended, Job, NotAlone, Stop


class Heard:
    def __init__(self) -> None:
        self.given_up_on: list[str] = []

    def started(self, attempt): ...

    def ended(self, attempt, seconds, ended): ...

    def waits(self, job, why): ...

    def news(self, text): ...

    def tick(self, running, waiting): ...

    def given_up(self, job, fault):
        self.given_up_on.append(str(job.key))


def jobs(*names: str, **more) -> list[Job]:
    return [Job(key=ShardKey(name), need=Need(**more)) for name in names]


def drive(work, interrupts: Interrupts, *, slots: int = 1, retries: int = 0) -> Drive:
    room = Admission(env={}, memory=lambda: None, devices=None, wait_s=0.0, clock=time.monotonic)
    return Drive(work=work, watch=Heard(), admission=room, interrupts=interrupts, slots=slots, retries=retries)


def wait_until(condition, seconds: float = 20.0) -> bool:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.005)
    return bool(condition())


def test_never_more_run_than_there_are_slots_and_all_slots_are_used():
    running, most, lock = set(), [0], threading.Lock()

    def work(attempt, began, ended):
        with lock:
            running.add(attempt.job.key)
            most[0] = max(most[0], len(running))
        time.sleep(0.03)
        with lock:
            running.discard(attempt.job.key)
        ended()
        return Ended()

    drive(work, Interrupts(), slots=3).run(jobs(*(f"s{number}" for number in range(12))))
    assert most == [3]


@pytest.mark.parametrize(("other", "most"), [("out/b.xml", 1), ("logs/b.xml", 2)])
def test_who_may_write_what_another_reads_its_results_from_waits(other, most):
    """Else the report of one that passes could be read as that of one that writes none."""
    running, seen = set(), []

    def work(attempt, began, ended):
        running.add(attempt.job.key)
        wait_until(lambda: len(running) == 2, seconds=0.2)
        seen.append(len(running))
        running.discard(attempt.job.key)
        return Ended()

    of_all, of_one = jobs("all", "one")
    with Interrupts() as interrupts:
        drive(work, interrupts, slots=2).run([replace(of_all, report="out/*.xml"), replace(of_one, report=other)])

    assert max(seen) == most


def test_the_next_begins_while_a_receipt_is_still_being_written():
    written, begun = threading.Event(), []

    def work(attempt, began, ended):
        begun.append(str(attempt.job.key))
        if str(attempt.job.key) == "a":
            ended()
            assert written.wait(20)
        elif len(begun) == 3:
            written.set()
        return Ended()

    drive(work, Interrupts(), slots=2).run(jobs("a", "b", "c"))
    assert written.is_set()


def test_one_at_a_time_is_one_to_its_very_end():
    busy, overlaps = [], []

    def work(attempt, began, ended):
        overlaps.append(len(busy))
        busy.append(1)
        ended()
        time.sleep(0.03)
        busy.pop()
        return Ended()

    drive(work, Interrupts()).run(jobs("a", "b", "c"))
    assert overlaps == [0, 0, 0]


def test_who_must_be_alone_is_started_again_when_nothing_else_runs():
    running, seen = set(), []

    def work(attempt, began, ended):
        name = str(attempt.job.key)
        running.add(name)
        try:
            if name == "shy":
                seen.append((attempt.number, attempt.alone, len(running)))
                if not attempt.alone:
                    raise NotAlone
            time.sleep(0.05)
            return Ended()
        finally:
            running.discard(name)

    drive(work, Interrupts(), slots=4).run(jobs("a", "shy", "b", "c"))
    assert seen[-1] == (1, True, 1)
    assert not seen[0][1]


def test_after_a_stop_nothing_starts_and_what_runs_is_seen_to_its_end():
    finished = []

    def work(attempt, began, ended):
        if str(attempt.job.key) == "a":
            raise Stop(UsageError("head-moved", "HEAD moved"))
        time.sleep(0.1)
        finished.append(str(attempt.job.key))
        return Ended()

    made = drive(work, Interrupts(), slots=2)
    made.run(jobs("a", "b", "c", "d"))
    assert (made.stopped.code, finished) == ("head-moved", ["b"])
    assert set(map(str, made.left)) == {"a", "c", "d"}


def test_an_error_that_nobody_answers_for_ends_what_runs_before_it_is_raised():
    ends = []

    def work(attempt, began, ended):
        if str(attempt.job.key) == "a":
            raise InternalError("internal", "our own fault")
        ends.append(wait_until(lambda: interrupts.received))
        return Ended()

    interrupts = Interrupts()
    with pytest.raises(InternalError):
        drive(work, interrupts, slots=2).run(jobs("a", "b"))
    assert (interrupts.received, ends) == ([signal.SIGTERM], [True])


def test_a_shard_that_can_never_run_here_is_given_up_and_the_others_run():
    ran = []

    def work(attempt, began, ended):
        ran.append(str(attempt.job.key))
        return Ended()

    made = drive(work, Interrupts())
    made.run([*jobs("gpu", gpus=1), *jobs("a", "b")])
    assert (ran, made.watch.given_up_on) == (["a", "b"], ["gpu"])
    assert made.faults[ShardKey("gpu")].exit_status == 99
