"""From a plan to jobs: one for each stale shard, or as many as are wanted, filled evenly."""

from __future__ import annotations

from collections.abc import Sequence

from gitledger.errors import UsageError
from gitledger.machine.slurm import DEFAULT_ARRAY_LIMIT
from gitledger.machine.slurm_script import submission_script
from gitledger.report.ci_plan import MAX_MATRIX_JOBS, PlannedJob
from gitledger.wording import counted
from gitledger.workflows.drive import Job
from gitledger.workflows.judge import Plan
from gitledger.workflows.run import RunRequest, chosen, jobs_of
from gitledger.workflows.run_slurm import SlurmRequest, batches_of, place_of
from gitledger.workflows.session import Session

__all__ = ["planned_jobs", "slurm_text"]


def planned_jobs(found: Plan, *, max_jobs: int | None, limit: int | None = None) -> tuple[PlannedJob, ...]:
    """Return the jobs that run what is stale, in configuration order; with `max_jobs` at most so many.

    A job's shards are of one variant and one number of GPUs, so that one runner can serve it. Raises `UsageError`
    `too-many-jobs` for more than `limit`, and where `max_jobs` are too few to keep variants apart.
    """
    _, todo = chosen(found, (), everything=False)
    jobs = jobs_of(found.case.inputs.config, found.union, todo)
    planned = [_planned([job]) for job in jobs] if max_jobs is None else _packed(jobs, max_jobs)
    if limit is not None and len(planned) > limit:
        raise UsageError(
            "too-many-jobs",
            f"{counted(len(planned), 'job')}, where a matrix may have no more than {limit}",
            f"--max-jobs {MAX_MATRIX_JOBS}",
        )
    return tuple(planned)


def slurm_text(session: Session, found: Plan, request: SlurmRequest) -> str:
    """Return a script that submits what is stale to Slurm, and the job that collects and merges it.

    Slurm itself need not be here: arrays are cut for its default `MaxArraySize`.
    """
    _, todo = chosen(found, (), everything=False)
    config, commit = found.case.inputs.config, found.case.situation.commit
    jobs = jobs_of(config, found.union, todo)
    return submission_script(
        batches_of(config, commit, jobs, limit=DEFAULT_ARRAY_LIMIT, timeout_s=None),
        place_of(session, commit, RunRequest(), request),
        name=f"git-ledger-{commit[:8]}-merge",
        comment=f"git ledger plan --format slurm, commit {commit}",
    )


def _planned(jobs: Sequence[Job]) -> PlannedJob:
    first = jobs[0]
    return PlannedJob(
        shards=tuple(str(job.key) for job in jobs), variant=first.key.variant or "", gpus=first.need.gpus
    )


def _packed(jobs: Sequence[Job], max_jobs: int) -> list[PlannedJob]:
    """Return at most `max_jobs` jobs: each kind gets one, then whichever kind is fullest; longest shards first."""
    kinds: dict[tuple[str, int], list[Job]] = {}
    for job in jobs:
        kinds.setdefault((job.key.variant or "", job.need.gpus), []).append(job)
    if len(kinds) > max_jobs:
        raise UsageError(
            "too-many-jobs",
            f"{counted(len(kinds), 'kind')} of shards (variant, GPUs) can't go into {counted(max_jobs, 'job')}",
            f"--max-jobs {len(kinds)}",
        )
    known = [job.estimate_s for job in jobs if job.estimate_s is not None]
    mean = sum(known) / len(known) if known else 1.0
    cost = {job.key: mean if job.estimate_s is None else job.estimate_s for job in jobs}
    parts = dict.fromkeys(kinds, 1)
    for _ in range(min(max_jobs, len(jobs)) - len(kinds)):
        open_kinds = [kind for kind, items in kinds.items() if parts[kind] < len(items)]
        if not open_kinds:
            break
        fullest = max(open_kinds, key=lambda kind: sum(cost[job.key] for job in kinds[kind]) / parts[kind])
        parts[fullest] += 1
    place = {job.key: index for index, job in enumerate(jobs)}
    planned = []
    for kind, items in kinds.items():
        bins: list[list[Job]] = [[] for _ in range(parts[kind])]
        for job in sorted(items, key=lambda job: -cost[job.key]):
            min(bins, key=lambda held: (sum(cost[item.key] for item in held), len(held))).append(job)
        planned += [_planned(sorted(held, key=lambda job: place[job.key])) for held in bins if held]
    return planned
