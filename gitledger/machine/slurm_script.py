"""Batch scripts for Slurm: one sparse array for tasks of one need, and a job that follows it.

Sources: sbatch(1), "JOB ARRAY SUPPORT" (a list of indices with ranges, `%A` and `%a` in names of files),
`--signal` (`B:` signals the batch shell, which `exec` makes our own process), `--dependency=afterany`;
slurm.conf(5), `MaxArraySize` (the largest index is one less).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from gitledger.dataclass import dataclass

__all__ = ["Batch", "Place", "array_list", "follower_script", "submission_script", "task_script"]

MIB = 1 << 20
END_EARLY_S = 60
"""How long before its time limit a task is told to end: for its command's grace, and for the receipt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where and how tasks run: their folder, the spool for what they leave, our command, more sbatch options."""

    folder: Path
    spool: Path
    command: tuple[str, ...]
    options: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """Further words of each task's command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The tasks of one array: names by index, and what each of them needs. Time in seconds, memory in bytes."""

    name: str
    tasks: dict[int, str]
    memory_bytes: int = 0
    gpus: int = 0
    time_s: float | None = None


def array_list(indices: Iterable[int]) -> str:
    """Return indices as sbatch takes them, ranges drawn together: `0-2,7`."""
    parts: list[list[int]] = []
    for index in sorted(set(indices)):
        if parts and parts[-1][1] == index - 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def task_script(batch: Batch, place: Place) -> str:
    """Return the batch script of an array; only this `case` turns an index into a name.

    Its parentheses are in pairs: the script also stands in a `$(…)` of `submission_script`.
    """
    cases = [f"({index}) shard={shlex.quote(name)} ;;" for index, name in sorted(batch.tasks.items())]
    words = [*place.command, "run", "--spool", str(place.spool), *place.words]
    lines = [
        *_head(batch.name, place, "%A_%a"),
        f"#SBATCH --array={array_list(batch.tasks)}",
        f"#SBATCH --signal=B:TERM@{END_EARLY_S}",
        *_needs(batch),
        *(f"#SBATCH {option}" for option in place.options),
        'case "$SLURM_ARRAY_TASK_ID" in',
        *cases,
        "(*) exit 99 ;;",
        "esac",
        f"cd {shlex.quote(str(place.folder))} || exit 99",
        f'exec {shlex.join(words)} "$shard"',
    ]
    return "\n".join(lines) + "\n"


def follower_script(name: str, place: Place) -> str:
    """Return the batch script of the job that collects what the tasks left, signs where it can, and merges."""
    words = [*place.command, "run", "--collect", str(place.spool)]
    lines = [
        *_head(name, place, "%j-merge"),
        "#SBATCH --kill-on-invalid-dep=yes",
        *(f"#SBATCH {option}" for option in place.options),
        f"cd {shlex.quote(str(place.folder))} || exit 99",
        f"exec {shlex.join(words)}",
    ]
    return "\n".join(lines) + "\n"


def submission_script(batches: Sequence[Batch], place: Place, *, name: str, comment: str) -> str:
    """Return a script for a shell that submits every array, and the job that follows them all."""
    spool = shlex.quote(str(place.spool))
    lines = ["#!/bin/sh", f"# {comment}", "set -eu", f"mkdir -p -m 700 {spool} {spool}/logs", "jobs="]
    for batch in batches:
        lines += ["job=$(sbatch --parsable <<'TASKS'", task_script(batch, place).rstrip("\n"), "TASKS", ")"]
        lines += ["jobs=$jobs:${job%%;*}", 'echo "submitted ${job%%;*}"']
    if batches:
        lines += [
            "sbatch --dependency=afterany$jobs <<'MERGE'",
            follower_script(name, place).rstrip("\n"),
            "MERGE",
        ]
    else:
        lines.append("echo 'every shard has its evidence: nothing is submitted'")
    return "\n".join(lines) + "\n"


def _head(name: str, place: Place, log: str) -> list[str]:
    logs = str(place.spool / "logs").replace("%", "%%")
    return [
        "#!/bin/sh",
        f"#SBATCH --job-name={name}",
        f'#SBATCH --output="{logs}/{log}.out"',
        "#SBATCH --open-mode=append",
    ]


def _needs(batch: Batch) -> list[str]:
    lines = []
    if batch.memory_bytes:
        lines.append(f"#SBATCH --mem={-(-batch.memory_bytes // MIB)}M")
    if batch.gpus:
        lines.append(f"#SBATCH --gres=gpu:{batch.gpus}")
    if batch.time_s is not None:
        minutes = -(-(batch.time_s + 2 * END_EARLY_S) // 60)
        lines.append(f"#SBATCH --time={minutes:.0f}")
    return lines
