"""What became of the jobs that a gate waits for, as GitHub's `toJSON(needs)` tells it.

A required check that was skipped counts as a success there, an empty list of results is green, and a misspelt
expression is an empty string. So nothing is accepted but a word for each job, and that word is `success`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gitledger.verdict.finding import Finding, blocking

__all__ = ["judge_needs"]

_RULE = "10"
_REMEDY = 'git ledger gate --needs "$NEEDS" (with NEEDS: ${{ toJSON(needs) }} in the env of the step)'


def judge_needs(text: str, *, nothing_stale: bool) -> Iterator[Finding]:
    """Yield a blocking finding for each job that did not succeed, or one where `text` tells of none.

    A job may have been skipped only where a job that succeeded gave out `any=false` (as `git ledger plan --format
    github` does when nothing has to run), and the evidence says so too (`nothing_stale`).
    """
    jobs = _read(text)
    if not jobs:
        found = "none" if jobs is not None else "it is not JSON" if text.strip() else "an empty text"
        yield blocking(
            "jobs-unknown", _RULE, "needs", expected="the results of the jobs", found=found, remedy=_REMEDY
        )
        return
    planned_none = any(_result(job) == "success" and _outputs(job).get("any") == "false" for job in jobs.values())
    for name, job in jobs.items():
        result = _result(job)
        if result == "success" or (result == "skipped" and planned_none and nothing_stale):
            continue
        yield blocking(
            "job-not-successful",
            _RULE,
            f"job {name}",
            expected="success",
            found=result or "no result",
            remedy=f"look at the job {name}, and run it again",
        )


def _read(text: str) -> Mapping[str, Any] | None:
    """Return the jobs, none where the document tells of none, None where it can't be read."""
    try:
        found = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else {}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose keys stand there once: of two results of one job nobody can tell which is meant."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _result(job: object) -> str:
    found = job.get("result") if isinstance(job, dict) else None
    return found if isinstance(found, str) else ""


def _outputs(job: object) -> Mapping[str, Any]:
    found = job.get("outputs") if isinstance(job, dict) else None
    return found if isinstance(found, dict) else {}
