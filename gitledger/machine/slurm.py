"""Slurm's commands: submitting scripts, and asking what became of their tasks. No accounting is needed.

Sources: sbatch(1) `--parsable`; squeue(1); scontrol(1) `show job --oneliner`, which knows a job for `MinJobAge`
(300 s) after its end.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence

from gitledger.dataclass import dataclass
from gitledger.errors import MachineError

__all__ = ["DEFAULT_ARRAY_LIMIT", "Slurm", "TaskState"]

CALL_TIMEOUT_S = 60.0
DEFAULT_ARRAY_LIMIT = 1001  # slurm.conf(5), MaxArraySize
OVER = frozenset(
    (
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"),
        *("REVOKED", "TIMEOUT"),
    )
)
"""Job states in which a job has ended (squeue(1), JOB STATE CODES)."""
GONE = ("Invalid job id", "invalid job id")


@dataclass(frozen=True, slots=True)
class TaskState:
    """What Slurm says of a task: `RUNNING`, `FAILED`, `OUT_OF_MEMORY`, …, and its reason."""

    state: str
    reason: str

    @property
    def is_over(self) -> bool:
        """Tell whether nothing more comes of it."""
        return self.state in OVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Slurm:
    """The commands on `env`'s PATH. Raises `MachineError` `slurm-missing`, `slurm-refused`, `slurm-silent`."""

    env: Mapping[str, str]

    def array_limit(self) -> int:
        """Return `MaxArraySize`: indices stay below it."""
        found = re.search(
            r"^MaxArraySize\s*=\s*([0-9]+)", self._call(["scontrol", "show", "config"]), re.MULTILINE
        )
        return max(1, int(found[1])) if found else DEFAULT_ARRAY_LIMIT

    def submit(self, script: str, *, after: Sequence[str] = ()) -> str:
        """Return the id of the job that a script became; it follows the jobs `after`, however they end."""
        options = [f"--dependency=afterany:{':'.join(after)}"] if after else []
        said = self._call(["sbatch", "--parsable", *options], stdin=script).strip()
        job = said.splitlines()[-1].partition(";")[0] if said else ""
        if not job.isdigit():
            raise MachineError("slurm-refused", f"sbatch printed no job id but {said[:200]!a}", "sbatch --version")
        return job

    def is_queued(self, job: str) -> bool:
        """Tell whether a job, or a task of it, waits or runs."""
        try:
            return bool(self._call(["squeue", "--noheader", "--format=%i", f"--jobs={job}"]).strip())
        except MachineError as error:
            if any(text in error.message for text in GONE):
                return False
            raise

    def tasks(self, job: str) -> dict[int, TaskState]:
        """Return the state of each task of an array that Slurm still knows, by its index."""
        try:
            lines = self._call(["scontrol", "show", "job", "--oneliner", job]).splitlines()
        except MachineError as error:
            if any(text in error.message for text in GONE):
                return {}
            raise
        found: dict[int, TaskState] = {}
        for line in lines:
            fields = dict(re.findall(r"(\w+)=(\S*)", line))
            for index in _indices(fields.get("ArrayTaskId", "")):
                found[index] = TaskState(fields.get("JobState", "?"), fields.get("Reason", "?"))
        return found

    def cancel(self, jobs: Sequence[str]) -> None:
        """Ask Slurm to end jobs, pending and running."""
        self._call(["scancel", *jobs])

    def _call(self, argv: Sequence[str], *, stdin: str = "") -> str:
        try:
            done = subprocess.run(
                argv,
                env=dict(self.env),
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=CALL_TIMEOUT_S,
                check=False,
            )
        except FileNotFoundError as error:
            raise MachineError(
                "slurm-missing", f"there is no {argv[0]} on PATH", "run it where Slurm is"
            ) from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MachineError("slurm-silent", f"{argv[0]} does not answer: {error}", "sinfo") from error
        if done.returncode:
            text = " ".join(done.stderr.split())[:400] or f"exit status {done.returncode}"
            raise MachineError("slurm-refused", f"{argv[0]}: {text}", "see what it says, and `--sbatch OPTION`")
        return done.stdout


def _indices(text: str) -> list[int]:
    """Return the indices that scontrol names: one, or for tasks that wait together a list with ranges and `%`."""
    found: list[int] = []
    for part in text.partition("%")[0].split(","):
        first, dash, last = part.partition("-")
        if first.isdigit() and (not dash or last.isdigit()):
            found += range(int(first), int(last if dash else first) + 1)
    return found
