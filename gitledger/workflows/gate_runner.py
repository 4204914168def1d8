"""What a CI runner says: which commit it speaks of, and which branch that is to land on.

Sources: GitHub Actions, "Variables reference" and "Events that trigger workflows"; GitLab CI/CD, "Predefined CI/CD
variables reference". A workflow for pull requests checks out a merge that GitHub made up; evidence speaks of the
commit that its author pushed, so that one is judged. Many events (a comment, a check, a dispatch) come with a
`GITHUB_SHA` that is the tip of the default branch, whatever they are about: it counts as long as it is what is
checked out, and for a push, whose commit it always is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import UsageError
from gitledger.records.ids import CommitId
from gitledger.store.repository import Repository

__all__ = ["MAX_EVENT_BYTES", "Runner", "read_runner"]

MAX_EVENT_BYTES = 32 << 20
"""GitHub cuts the payload of an event at 25 MB."""
_ID = re.compile(r"\A(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_HEADS = "refs/heads/"
_MERGE_REF = re.compile(r"\Arefs/pull/\d+/merge\Z")
_SAY_IT = "say which commit: git ledger gate COMMIT"
_NAMED = (
    ("workflow_run", "head_sha", "the commit of the run before"),
    ("check_run", "head_sha", "the commit of the check"),
    ("check_suite", "head_sha", "the commit of the checks"),
    ("deployment", "sha", "the commit of the deployment"),
)
"""Where events name the commit that they are about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Where the gate stands: `forge` is `github`, `gitlab`, or "" for neither.

    `judged` is the commit that it speaks of, None for the one that is checked out; `what` says in words which
    that is. `target` is the branch that it is to land on, None where the runner names none.
    """

    forge: str
    judged: CommitId | None
    what: str
    target: str | None


def read_runner(environ: Mapping[str, str], repo: Repository, *, is_told: bool = False) -> Runner:
    """Return what the runner says of itself; raises `UsageError` `head-unknown` where that can't be understood.

    `is_told`: the commit is named by whoever asks, so that the runner need not.
    """
    if environ.get("GITHUB_ACTIONS") == "true":
        try:
            return _github(environ, repo)
        except UsageError:
            if not is_told:
                raise
            target = environ.get("GITHUB_BASE_REF") or None
            return Runner(forge="github", judged=None, what="what is checked out", target=target)
    if environ.get("GITLAB_CI") == "true":
        return _gitlab(environ)
    return Runner(forge="", judged=None, what="what is checked out", target=None)


def _github(environ: Mapping[str, str], repo: Repository) -> Runner:
    event = _event(environ)
    name = environ.get("GITHUB_EVENT_NAME", "")
    target = environ.get("GITHUB_BASE_REF") or None
    if pull := _table(event, "pull_request"):
        head = _commit(_table(pull, "head").get("sha"), "the event's pull_request.head.sha")
        what = f"the head of pull request {pull.get('number', '?')}"
        return Runner(
            forge="github", judged=head, what=what, target=target or _text(_table(pull, "base").get("ref"))
        )
    if group := _table(event, "merge_group"):
        head = _commit(group.get("head_sha"), "the event's merge_group.head_sha")
        base = (_text(group.get("base_ref")) or "").removeprefix(_HEADS)
        return Runner(forge="github", judged=head, what="the head of a merge group", target=base or target)
    for key, field, what in _NAMED:
        if table := _table(event, key):
            head = _commit(table.get(field), f"the event's {key}.{field}")
            return Runner(forge="github", judged=head, what=what, target=target)
    if name == "workflow_run":  # its GITHUB_SHA is the default branch's, not that of the run before
        raise UsageError("head-unknown", "this is a workflow_run, and its event file names no run before", _SAY_IT)
    if _table(_table(event, "issue"), "pull_request"):
        raise UsageError("head-unknown", "this is a comment on a pull request, and names no commit of it", _SAY_IT)
    if name.startswith("pull_request") or _MERGE_REF.match(environ.get("GITHUB_REF", "")):
        head = _second_parent(environ, repo)
        return Runner(
            forge="github", judged=head, what="the second parent of the merge that is checked out", target=target
        )
    return _by_sha(environ, repo, name, target)


def _by_sha(environ: Mapping[str, str], repo: Repository, name: str, target: str | None) -> Runner:
    """Return the runner of an event that names its commit by `GITHUB_SHA` alone."""
    sha = environ.get("GITHUB_SHA")
    if not sha:
        return Runner(forge="github", judged=None, what="what is checked out", target=target)
    judged, head = _commit(sha, "GITHUB_SHA"), repo.head()
    if name != "push" and judged != head:
        there = "nothing" if head is None else head[:12]
        text = f"the event {name or '?'} comes with {judged[:12]} (GITHUB_SHA), and {there} is checked out"
        raise UsageError("head-unknown", text, _SAY_IT)
    return Runner(forge="github", judged=judged, what=f"the commit of the event {name or '?'}", target=target)


def _gitlab(environ: Mapping[str, str]) -> Runner:
    target = environ.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME") or None
    source = environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA")  # only where GitLab runs on a merge of its own
    name = "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA" if source else "CI_COMMIT_SHA"
    sha = source or environ.get("CI_COMMIT_SHA")
    number = environ.get("CI_MERGE_REQUEST_IID")
    if not sha:
        return Runner(forge="gitlab", judged=None, what="what is checked out", target=target)
    what = f"the head of merge request {number}" if number else "the commit of the pipeline"
    return Runner(forge="gitlab", judged=_commit(sha, name), what=what, target=target)


def _second_parent(environ: Mapping[str, str], repo: Repository) -> CommitId:
    """Return the head that GitHub merged into `refs/pull/N/merge`, where that merge is what is checked out.

    Of any other merge, as one on the base branch that `pull_request_target` checks out, it would be an older head.
    """
    head = repo.head()
    parents = (repo.objects.read_parents(head) if head else None) or ()
    is_made_up = _MERGE_REF.match(environ.get("GITHUB_REF", "")) and environ.get("GITHUB_SHA") == head
    if len(parents) != 2 or not is_made_up:
        raise UsageError(
            "head-unknown",
            "this is a pull request, its event names no head, and no merge of it is checked out",
            _SAY_IT,
        )
    return parents[1]


def _event(environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the event's payload; none is none, one that can't be read is an error."""
    path = environ.get("GITHUB_EVENT_PATH")
    if not path:
        return {}
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_EVENT_BYTES + 1)
        found = json.loads(text) if len(text) <= MAX_EVENT_BYTES else None
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError("head-unknown", f"the event file {path} can't be read: {error}", _SAY_IT) from error
    if not isinstance(found, dict):
        raise UsageError("head-unknown", f"the event file {path} holds no JSON object", _SAY_IT)
    return found


def _table(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _commit(value: object, where: str) -> CommitId:
    if not isinstance(value, str) or not _ID.match(value):
        raise UsageError("head-unknown", f"{where} is no commit's id: {value!a:.60}", _SAY_IT)
    return CommitId(value)
