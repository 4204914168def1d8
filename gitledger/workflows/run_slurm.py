"""Runs stale shards on Slurm: submitted as sparse arrays with a job that follows them, waited for, and collected.

What is under way is known by a file in the spool and by Slurm itself, so that whoever comes back after an
interruption waits for the same jobs and submits none twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field
from functools import partial
from itertools import combinations
from pathlib import Path

from gitledger.config.schema import Config
from gitledger.dataclass import dataclass, replace
from gitledger.errors import InconclusiveError, LedgerError, MachineError, UsageError
from gitledger.machine.interrupts import Interrupts
from gitledger.machine.slurm import Slurm
from gitledger.machine.slurm_script import Batch, Place, follower_script, task_script
from gitledger.machine.sole import sole_driver
from gitledger.records.ids import CommitId, RecordId, ShardKey
from gitledger.suites.report_file import may_meet
from gitledger.trust.signer import Signer
from gitledger.verdict.verify import agreeing_snapshot
from gitledger.wording import counted
from gitledger.workflows.drive import Job, Watch
from gitledger.workflows.judge import Plan, plan
from gitledger.workflows.notes_author import notes_identity
from gitledger.workflows.request import nearer
from gitledger.workflows.run import RunRequest, chosen, jobs_of, merge_what_stands, refuse_dirt
from gitledger.workflows.run_attempts import attempts_left, may_retry, without_used_up
from gitledger.workflows.run_collect import collect, receipts_on
from gitledger.workflows.run_node import fault_of
from gitledger.workflows.run_result import Brought, RunResult
from gitledger.workflows.session import Session
from gitledger.workflows.slurm_submission import Submission
from gitledger.workflows.target import head_of

__all__ = ["SlurmRequest", "batches_of", "place_of", "run_on_slurm"]

POLL_S = (0.5, 5.0)
"""The first pause between two looks, and the longest."""
TICK_S = 0.1
HEARTBEAT_S = 60.0
SILENT_S = 600.0
"""How long a controller that does not answer is asked again: it is restarted now and then."""
LATE_S = 3.0
"""How long a receipt may take from a node's disk to ours, once its job has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmRequest:
    """Where tasks leave receipts (None: below the git folder), sbatch options, and the command on the nodes."""

    spool: Path | None = None
    options: tuple[str, ...] = ()
    command: tuple[str, ...] = ("git-ledger",)


def place_of(session: Session, commit: CommitId, request: RunRequest, slurm: SlurmRequest) -> Place:
    """Return where tasks of a commit run, and with which words."""
    spool = slurm.spool or session.repo.git_dir / "gitledger" / "slurm" / commit[:12]
    words = ["--mode", request.mode]
    for option, seconds in (("--stall", request.stall_s), ("--timeout", request.timeout_s)):
        words += [option, f"{seconds:.3f}s"] if seconds is not None else []
    return Place(
        folder=session.repo.worktree or Path(),
        spool=spool.absolute(),
        command=slurm.command,
        options=slurm.options,
        words=tuple(words),
    )


def batches_of(
    config: Config, commit: CommitId, jobs: Sequence[Job], *, limit: int, timeout_s: float | None
) -> list[Batch]:
    """Return the arrays that run jobs: one for each need, cut where indices would reach `limit`.

    A shard's index is its place in the configuration, so that an array of what is left names the same shards by
    the same numbers. Raises `UsageError` `report-shared`.
    """
    _refuse_shared_reports(jobs)
    places = {key: index for index, key in enumerate(config.shard_keys())}
    groups: dict[tuple[int, int, int], list[Job]] = {}
    for job in jobs:
        chunk = places[job.key] // limit
        groups.setdefault((job.need.gpus, job.need.memory_bytes, chunk), []).append(job)
    found = []
    for (gpus, memory_bytes, _), items in groups.items():
        times = [nearer(config.shard(job.key).timeout, timeout_s) for job in items]
        known = [value for value in times if value is not None]
        found.append(
            Batch(
                name=f"git-ledger-{commit[:8]}",
                tasks={places[job.key] % limit: str(job.key) for job in items},
                memory_bytes=memory_bytes,
                gpus=gpus,
                time_s=max(known) if len(known) == len(times) else None,
            )
        )
    return found


def _refuse_shared_reports(jobs: Sequence[Job]) -> None:
    """Refuse shards that may write one report: tasks run at once in one tree, and would be mixed up."""
    for one, other in combinations(jobs, 2):
        if one.report is None or other.report is None or not may_meet(one.report, other.report):
            continue
        files = one.report if one.report == other.report else f"what {one.report} and {other.report} both name"
        raise UsageError(
            "report-shared",
            f"{one.key} and {other.key} both write {files}, and would run at the same time in one work tree",
            "give each shard a report of its own, or name them one by one",
        )


def run_on_slurm(
    session: Session,
    request: RunRequest,
    slurm_request: SlurmRequest,
    signer: Signer | None,
    slurm: Slurm,
    *,
    watch: Watch,
    interrupts: Interrupts,
) -> RunResult:
    """Return what came of it, once no job of it is left, or at once after a signal: jobs then go on.

    Raises what `run` raises, and `MachineError` where Slurm refuses.
    """
    target = head_of(session)
    with sole_driver(session.repo.git_dir / "gitledger" / "run.lock"):
        trip = _Trip(
            session=session,
            request=request,
            place=place_of(session, target, request, slurm_request),
            signer=signer,
            slurm=slurm,
            watch=watch,
            interrupts=interrupts,
            target=target,
        )
        return trip.run()


@dataclass(slots=True, kw_only=True)
class _Trip:
    session: Session
    request: RunRequest
    place: Place
    signer: Signer | None
    slurm: Slurm
    watch: Watch
    interrupts: Interrupts
    target: CommitId
    brought: dict[ShardKey, list[Brought]] = field(default_factory=dict)
    before: frozenset[RecordId] = frozenset()

    def run(self) -> RunResult:
        self.place.spool.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.place.spool / "logs").mkdir(exist_ok=True)
        submitted = Submission.read(self.place.spool, self.target)
        found = self.plan()
        config = found.case.inputs.config
        if self.collect(config):  # what an earlier submission left
            found = self.plan()
        limit = found.case.trusted.config.policy.max_attempts
        asked, wanted = chosen(found, self.request.shards, everything=self.request.everything)
        todo, faults = without_used_up(wanted, found.union, limit)
        for fault in faults.values():
            self.watch.news(f"{fault.message} [{fault.code}]")
        jobs = jobs_of(config, found.union, todo)
        result = RunResult(commit=self.target, asked=asked, union=found.union, max_attempts=limit, faults=faults)
        if jobs:
            self.before = self.records()
            faults |= self.go(config, limit, submitted, jobs)
            result = replace(result, results=self.results(jobs), faults=faults)
        if self.interrupts.received:
            self.say_how_to_go_on(submitted)
            return replace(result, interrupted=self.interrupts.received[0])
        last = self.plan()
        if agreeing_snapshot(last.union, last.case.situation):  # the following job had a key, and has merged
            return replace(result, union=last.union)
        return merge_what_stands(self.session, self.request, self.signer, result)

    def plan(self) -> Plan:
        return plan(self.session, self.target, policy_from=self.request.policy_from, carry=self.request.carry)

    def go(
        self, config: Config, limit: int | None, submitted: Submission, jobs: list[Job]
    ) -> dict[ShardKey, LedgerError]:
        """Submit, wait and collect, again for what may be retried; return the shards that left nothing."""
        lost: dict[ShardKey, LedgerError] = {}
        for _ in range(1 + self.request.retries):
            known = self.records()
            under_way = self.under_way(submitted)
            self.collect(config)  # what was over when Slurm was asked has left its receipt, and does not run again
            open_keys = {key for key in self.missing(jobs, known) if str(key) not in under_way}
            self.submit(config, submitted, [job for job in jobs if job.key in open_keys])
            self.wait(config, submitted)
            if self.interrupts.received:
                return lost
            self.wait_for_files(config, partial(self.missing, jobs, known))
            lost |= {key: self.lost(submitted, key) for key in self.missing(jobs, known)}
            newest = {key: items[-1].receipt for key, items in self.results(jobs).items()}
            left = attempts_left(self.plan().union, limit) if limit is not None else {}
            jobs = [job for job in jobs if job.key in newest and may_retry(newest[job.key], left.get(job.key))]
            if not jobs:
                break
        return lost

    def records(self) -> frozenset[RecordId]:
        return frozenset(item.record for item in receipts_on(self.session, self.target))

    def results(self, jobs: Sequence[Job]) -> dict[ShardKey, list[Brought]]:
        """Return the receipts that have come for shards, by us or by the following job where it has a key."""
        wanted = {job.key for job in jobs}
        logs = {item.record: item for items in self.brought.values() for item in items}
        found: dict[ShardKey, list[Brought]] = {}
        for item in receipts_on(self.session, self.target):
            if item.receipt.key in wanted and item.record not in self.before:
                found.setdefault(item.receipt.key, []).append(logs.get(item.record, item))
        return found

    def missing(self, jobs: Sequence[Job], known: Collection[RecordId]) -> list[ShardKey]:
        """Return the shards of which no receipt has come beside those that were `known`."""
        come = {item.receipt.key for item in receipts_on(self.session, self.target) if item.record not in known}
        return [job.key for job in jobs if job.key not in come]

    def under_way(self, submitted: Submission) -> set[str]:
        """Return the shards whose newest task waits or runs."""
        states = {job: self.slurm.tasks(job) for job in submitted.arrays if self.slurm.is_queued(job)}
        found: set[str] = set()
        for name in submitted.names():
            job, index = submitted.task_of(ShardKey.parse(name)) or ("", 0)
            state = states.get(job, {}).get(index)
            if state is not None and not state.is_over:
                found.add(name)
        return found

    def wait_for_files(self, config: Config, missing: Callable[[], Sequence[ShardKey]]) -> None:
        """Give a file system that the nodes share the time to show what they wrote last."""
        until = time.monotonic() + LATE_S
        while missing() and time.monotonic() < until and not self.interrupts.received:
            time.sleep(TICK_S)
            self.collect(config)

    def submit(self, config: Config, submitted: Submission, jobs: Sequence[Job]) -> None:
        if not jobs:
            return
        notes_identity(self.session, config.notes)
        refuse_dirt(self.session, config, [job.key for job in jobs])
        limit = self.slurm.array_limit()
        batches = batches_of(config, self.target, jobs, limit=limit, timeout_s=self.request.timeout_s)
        for batch in batches:
            job = self.slurm.submit(task_script(batch, self.place))
            submitted.arrays[job] = batch.tasks
            submitted.write()
            self.watch.news(f"submitted {counted(len(batch.tasks), 'shard')} as job {job}")
        name = f"git-ledger-{self.target[:8]}-merge"
        submitted.followers.append(
            self.slurm.submit(follower_script(name, self.place), after=list(submitted.arrays)[-len(batches) :])
        )
        submitted.write()

    def wait(self, config: Config, submitted: Submission) -> None:
        """Collect until no job is left, or a signal came."""
        pause_s, longest_s = POLL_S
        left = [*submitted.arrays, *submitted.followers]
        heard_s = said_s = time.monotonic()
        while left and not self.interrupts.received:
            self.collect(config)
            try:
                left = [job for job in left if self.slurm.is_queued(job)]
                heard_s = time.monotonic()
            except MachineError as error:
                if time.monotonic() - heard_s > SILENT_S:
                    raise
                self.watch.news(f"asking again: {error.message}")
            if left and time.monotonic() - said_s >= HEARTBEAT_S:
                said_s = time.monotonic()
                self.watch.news(
                    f"waiting for job {', '.join(left)}; so far {counted(len(self.brought), 'shard')} came"
                )
            until = time.monotonic() + (pause_s if left else 0.0)
            while time.monotonic() < until and not self.interrupts.received:
                time.sleep(TICK_S)
            pause_s = min(longest_s, pause_s * 1.5)
        self.collect(config)

    def collect(self, config: Config) -> bool:
        """Sign and store what has come, and tell of it; return whether anything had."""
        spoils = collect(self.session, config, self.target, self.place.spool, self.signer, user=self.request.user)
        for item in spoils.brought:
            self.brought.setdefault(item.receipt.key, []).append(item)
            counts = item.receipt.counts
            text = f"{item.receipt.outcome.value} {item.receipt.key}, {counts.passed} of {counts.collected} passed"
            self.watch.news(text)
        for error in spoils.refused:
            self.watch.news(f"left in the spool: {error.message} [{error.code}]")
        return bool(spoils.brought)

    def lost(self, submitted: Submission, key: ShardKey) -> LedgerError:
        """Return what is known of a task that left no receipt."""
        task = submitted.task_of(key)
        why = fault_of(self.place.spool, key)
        if not why and task is not None:
            state = self.slurm.tasks(task[0]).get(task[1])
            why = f"Slurm says {state.state}, {state.reason}" if state else "Slurm knows nothing of it any more"
        name = "its task" if task is None else f"task {task[0]}_{task[1]}"
        return InconclusiveError("slurm-task-lost", f"{key}: {name} left no receipt: {why}", "git ledger run")

    def say_how_to_go_on(self, submitted: Submission) -> None:
        jobs = " ".join(_queued(self.slurm, [*submitted.arrays, *submitted.followers]))
        if jobs:
            self.watch.news(f"the jobs go on: the same command waits for them again, `scancel {jobs}` ends them")


def _queued(slurm: Slurm, jobs: Iterable[str]) -> list[str]:
    try:
        return [job for job in jobs if slurm.is_queued(job)]
    except LedgerError:
        return list(jobs)
