"""What was submitted to Slurm for one commit, kept in the spool: whoever comes back knows what to wait for."""

from __future__ import annotations

import json
from dataclasses import field
from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.records.ids import CommitId, ShardKey

__all__ = ["Submission"]

_STATE = "state.json"


@dataclass(slots=True, kw_only=True)
class Submission:
    """What was submitted for one commit: shards by job and index, and the jobs that follow."""

    commit: CommitId
    file: Path
    arrays: dict[str, dict[int, str]] = field(default_factory=dict)
    followers: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, spool: Path, commit: CommitId) -> Submission:
        """Return what the spool says; what can't be read was not submitted by us."""
        found = cls(commit=commit, file=spool / _STATE)
        try:
            known = json.loads(found.file.read_bytes())
            if known["commit"] == commit:
                found.arrays = {
                    str(int(job)): {int(index): str(name) for index, name in tasks.items()}
                    for job, tasks in known["arrays"].items()
                }
                found.followers = [str(job) for job in known["followers"]]
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return cls(commit=commit, file=spool / _STATE)
        return found

    def write(self) -> None:
        """Write it down, whole or not at all."""
        half = self.file.with_suffix(".half")
        known = {"arrays": self.arrays, "commit": self.commit, "followers": self.followers}
        half.write_text(json.dumps(known, indent=1, sort_keys=True), "utf-8")
        half.rename(self.file)

    def names(self) -> set[str]:
        """Return the shards of all tasks."""
        return {name for tasks in self.arrays.values() for name in tasks.values()}

    def task_of(self, key: ShardKey) -> tuple[str, int] | None:
        """Return the newest task of a shard; Slurm counts its jobs."""
        for job, tasks in sorted(self.arrays.items(), key=lambda item: int(item[0]), reverse=True):
            for index, name in tasks.items():
                if name == str(key):
                    return job, index
        return None
