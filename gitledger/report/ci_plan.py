"""A plan as jobs of a CI system: GitHub's matrix, GitLab's child pipeline.

Sources of the limits: GitHub Actions, "Usage limits" (256 jobs of a matrix; an empty matrix is an error); GitLab
CI/CD, "Downstream pipelines" (a generated child pipeline must define at least one job that is visible).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gitledger.dataclass import dataclass

__all__ = ["MAX_MATRIX_JOBS", "PlannedJob", "github_text", "gitlab_text"]

MAX_MATRIX_JOBS = 256
_GITLAB_TEMPLATE = ".git-ledger"
_GITLAB_SCRIPT = (
    "git ledger sync --fetch-only",
    # `run` would merge as well, and the job that ends last would be red for another's failure.
    (
        "status=0; for shard in $GITLEDGER_SHARDS; do "
        'git ledger record --mode ci --shard "$shard" || status=$?; done; exit "$status"'
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """One job: the shards that it runs, all of one variant ("" for none) and of one need of GPUs."""

    shards: tuple[str, ...]
    variant: str
    gpus: int

    @property
    def name(self) -> str:
        """What the job is called: its first shard, and how many more."""
        more = len(self.shards) - 1
        return f"{self.shards[0]} and {more} more" if more else self.shards[0]

    def encode(self) -> dict[str, Any]:
        """Return the entry of a matrix; shards are separated by blanks, which none of their names holds."""
        return {"gpus": self.gpus, "name": self.name, "shards": " ".join(self.shards), "variant": self.variant}


def github_text(jobs: Sequence[PlannedJob]) -> str:
    """Return lines for `$GITHUB_OUTPUT`: `matrix` (one line of JSON), `count`, and `any` (`true` or `false`).

    An empty matrix fails a workflow, so the job that uses it asks for `any` first.
    """
    matrix = json.dumps({"include": [job.encode() for job in jobs]}, separators=(",", ":"), sort_keys=True)
    return f"matrix={matrix}\ncount={len(jobs)}\nany={'true' if jobs else 'false'}\n"


def gitlab_text(jobs: Sequence[PlannedJob], *, commit: str, include: str | None) -> str:
    """Return a child pipeline: a job for each, by the template `.git-ledger`, which `include` may define.

    Where nothing has to run it has one job that says so, since GitLab refuses an empty pipeline.
    """
    document: dict[str, Any] = {"workflow": {"rules": [{"when": "always"}]}}
    if include is not None:
        document["include"] = [{"local": include}]
    elif jobs:
        document[_GITLAB_TEMPLATE] = {
            "script": list(_GITLAB_SCRIPT),
            "after_script": ["git ledger sync"],
            "variables": {"GIT_DEPTH": "0"},
        }
    for job in jobs:
        variables = {
            "GITLEDGER_GPUS": str(job.gpus),
            "GITLEDGER_SHARDS": " ".join(job.shards),
            "GITLEDGER_VARIANT": job.variant,
        }
        document[f"shard {job.name}"] = {"extends": _GITLAB_TEMPLATE, "variables": variables}
    if not jobs:
        document["nothing is stale"] = {"script": ["echo every shard has its evidence"]}
    lines = [f"# git ledger plan --format gitlab, commit {commit}"]
    lines += [f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in document.items()]
    return "\n".join(lines) + "\n"
