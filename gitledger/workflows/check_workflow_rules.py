"""What a gate on GitHub must hold to: each rule yields the places that break it.

The traps are GitHub's own: a required check that is skipped counts as a success, `pull_request` checks out a merge
that nobody has tested, and a token writes unless it is told not to ("About status checks"; "Events that trigger
workflows"; "Automatic token authentication").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gitledger.verdict.finding import Finding, blocking
from gitledger.workflows.check_workflow_calls import (
    RULE,
    calls_of,
    count_faults,
    dropped_status,
    place_of,
    tolerance,
    word_faults,
)
from gitledger.workflows.check_workflow_document import Place
from gitledger.workflows.check_workflow_gate import judges_another, shell_faults
from gitledger.workflows.check_workflow_github import Workflow, condition, runs_after_failure
from gitledger.workflows.check_workflow_judging import GATE_RULES

__all__ = ["RULES"]

_CHANGES = frozenset(
    {"pull_request", "pull_request_target", "merge_group", "push", "workflow_call", "workflow_run"}
)
_OWN = re.compile(r"\bgithub\.repository\b|\bpull_request\.head\.repo\.full_name\b")
_HEAD = re.compile(r"pull_request\.head\.sha|\bneeds\.[\w-]+\.outputs\.|\binputs\.")
_FROM_PLAN = re.compile(r"fromJSON\(\s*needs\.([\w-]+)\.outputs\.", re.IGNORECASE)
_KEY = "GITLEDGER_SIGNING_KEY"
_SIGNS = frozenset({"record", "run", "merge", "gate", "revoke"})


def tolerated(flow: Workflow) -> Iterator[Finding]:
    """Yield what lets a failure of a job that makes or judges evidence count as a success."""
    for job in (*flow.having("is_gate"), *flow.having("is_shard"), *flow.having("is_plan")):
        for body in (job.body, *job.steps):
            yield from tolerance(body, "continue-on-error", job=job.name)
        shell = job.body.get("defaults", "run", "shell") or flow.body.get("defaults", "run", "shell")
        for step in job.steps:
            used = step.get("shell") or shell
            if any(call.command in ("record", "run") for call in calls_of(step.get("run"))):
                yield from shell_faults(used, line=step.line, job=job.name)
            yield from dropped_status(step.get("run"), job=job.name, pipes_fail=used.text == "bash")


def not_gated(flow: Workflow) -> Iterator[Finding]:
    """Yield jobs that hand something out whether or not the gate has passed."""
    gates = {job.name for job in flow.having("is_gate")}
    for job in flow.having("is_deploy"):
        own = job.body.get("if")
        asks = any(re.search(rf"needs\.{re.escape(gate)}\.result\s*==\s*'success'", own.text) for gate in gates)
        waits = bool(gates & (set(job.needs) if asks else flow.waits_for(job)))
        if gates and not waits:
            yield blocking(
                "deploy-not-gated",
                RULE,
                place_of(job.body.line, job.name),
                expected=f"needs: {sorted(gates)[0]}, and no always()",
                found=condition(own) if runs_after_failure(own) else f"needs: {', '.join(job.needs) or 'nothing'}",
                remedy="let it need the gate",
            )


def literal_count(flow: Workflow) -> Iterator[Finding]:
    """Yield places that spell how many parts a suite has: that stands in the configuration alone."""
    for job in (*flow.having("is_plan"), *flow.having("is_shard"), *flow.having("is_gate")):
        matrix = job.body.get("strategy", "matrix")
        for axis in matrix.table.values():
            numbers = [item.text for item in axis.items if item.text.isdigit()]
            if job.is_shard and numbers and len(numbers) == len(axis.items):
                yield blocking(
                    "literal-count",
                    RULE,
                    place_of(axis.line, job.name),
                    expected="a matrix made by git ledger plan --format github",
                    found=f"[{', '.join(numbers)}]",
                    remedy="matrix: ${{ fromJSON(needs.plan.outputs.matrix) }}",
                )
        scripts = [step.get("run") for step in job.steps]
        yield from count_faults((*matrix.scalars(), *scripts), job=job.name, counted=job.is_gate)


def matrix_empty(flow: Workflow) -> Iterator[Finding]:
    """Yield matrices that may be empty, an error of GitHub's, and those that stop at the first failure."""
    for job in flow.having("is_shard"):
        matrix = job.body.get("strategy", "matrix")
        made = next((found for place in matrix.scalars() if (found := _FROM_PLAN.search(place.text))), None)
        own = condition(job.body.get("if"))
        if made and not re.search(rf"needs\.{re.escape(made[1])}\.outputs\.\w+\s*(?:==\s*'true'|!=)", own):
            yield blocking(
                "matrix-may-be-empty",
                RULE,
                place_of(matrix.line, job.name),
                expected=f"if: needs.{made[1]}.outputs.any == 'true'",
                found=own or "no condition",
                remedy="ask for `any` first: an empty matrix fails the run",
            )
        fast = job.body.get("strategy", "fail-fast")
        if matrix and fast.text != "false":
            yield blocking(
                "shards-cancelled",
                RULE,
                place_of(fast.line or matrix.line, job.name),
                expected="fail-fast: false",
                found=f"fail-fast: {fast.text or 'true, by default'}: one red shard cancels the others",
                remedy="strategy: {fail-fast: false}",
            )


def checked_out(flow: Workflow) -> Iterator[Finding]:
    """Yield jobs that work on another commit than the one that was pushed, or without its whole history."""
    pulls = any(name.startswith("pull_request") or name == "workflow_call" for name in flow.triggers)
    hostile = any(name in ("pull_request_target", "workflow_run") for name in flow.triggers)
    for job in flow.jobs.values():
        if job.calls_workflow or not (job.is_gate or job.is_shard or job.is_plan):
            continue
        steps = [step for step in job.steps if step.get("uses").text.startswith("actions/checkout@")]
        for step in steps or [job.body]:
            depth, ref = step.get("with", "fetch-depth"), step.get("with", "ref")
            if depth.text != "0":
                yield blocking(
                    "history-shallow",
                    RULE,
                    place_of(depth.line or step.line, job.name),
                    expected="actions/checkout with fetch-depth: 0",
                    found=f"fetch-depth: {depth.text or '1, by default'}" if steps else "nothing is checked out",
                    remedy="with: {fetch-depth: 0}",
                )
            if pulls and not _HEAD.search(ref.text):
                yield blocking(
                    "head-not-checked-out",
                    RULE,
                    place_of(ref.line or step.line, job.name),
                    expected="ref: ${{ github.event.pull_request.head.sha || github.sha }}",
                    found=ref.text or "the merge that GitHub made up for the run",
                    remedy="check out the head of the pull request",
                )
            other = step.get("with", "repository")
            if other and not _OWN.search(other.text):
                yield judges_another(other.line, job.name, f"repository: {other.text}")
            if hostile and job.is_shard and _HEAD.search(ref.text):
                yield blocking(
                    "untrusted-checkout",
                    RULE,
                    place_of(ref.line, job.name),
                    expected="code of a fork to run without secrets (on: pull_request)",
                    found="a fork's code, run with this repository's secrets",
                    remedy="on: pull_request, and let the ledger travel as a bundle",
                )


def too_wide(flow: Workflow) -> Iterator[Finding]:
    """Yield permissions of a token for more than its job does."""
    top = flow.body.get("permissions")
    if "permissions" not in flow.body.table:
        bare = [job for job in flow.jobs.values() if "permissions" not in job.body.table]
        if bare:
            yield _too_wide(1, bare[0].name, "no permissions: what the repository's default allows")
    for scope, level in _writes(top):
        yield _too_wide(top.line, "", f"{scope}: {level} for every job")
    for job in flow.jobs.values():
        own = job.body.get("permissions")
        publishes = job.is_shard or (job.is_gate and not job.is_plan)
        for scope, level in _writes(own):
            if scope == "*" or (job.is_plan and not publishes) or (publishes and scope != "contents"):
                yield _too_wide(own.line, job.name, f"{scope}: {level}")


def _writes(permissions: Place) -> Iterator[tuple[str, str]]:
    if permissions.text == "write-all":
        yield "*", "write-all"
    for scope, level in permissions.table.items():
        if level.text == "write":
            yield scope, level.text


def _too_wide(line: int, job: str, found: str) -> Finding:
    return blocking(
        "permissions-too-wide",
        RULE,
        place_of(line, job),
        expected="permissions: {} above, contents: write for the jobs that publish",
        found=found,
        remedy="name the least that each job needs",
    )


def loosened(flow: Workflow) -> Iterator[Finding]:
    """Yield thresholds and policy: they are not the workflow's to say."""
    for job in flow.jobs.values():
        for step in job.steps:
            if job.is_gate or job.is_shard or job.is_plan:
                yield from word_faults(step.get("run"), job=job.name, is_gate=job.is_gate)


def unpublished(flow: Workflow) -> Iterator[Finding]:
    """Yield jobs that publish only what passed."""
    for job in flow.having("is_shard"):
        said = [
            step
            for step in job.steps
            if any(call.command == "sync" and not call.has("--fetch-only") for call in job.step_calls(step))
        ]
        own = [
            step for step in said if not any(call.command in ("record", "run") for call in job.step_calls(step))
        ]
        if not any(
            runs_after_failure(step.get("if")) or "!cancelled()" in step.get("if").text for step in own
        ) and not (any(step.get("uses") for step in said)):
            yield blocking(
                "failure-not-published",
                RULE,
                place_of((said or [job.body])[0].line, job.name),
                expected="a step that runs git ledger sync, with if: always()",
                found="only what passed is published" if said else "no step publishes",
                remedy="- if: always()\n  run: git ledger sync",
            )


def key_everywhere(flow: Workflow) -> Iterator[Finding]:
    """Yield places from where more than the steps that sign see the key."""
    holders = [("", flow.body), *((job.name, job.body) for job in flow.jobs.values())]
    for name, body in holders:
        if _KEY in body.get("env").table:
            yield _key(body.get("env", _KEY).line, name, "every step below sees the key")
    for job in flow.jobs.values():
        for step in job.steps:
            signs = {call.command for call in job.step_calls(step)} & _SIGNS
            if _KEY in step.get("env").table and not signs:
                yield _key(step.get("env", _KEY).line, job.name, "a step that signs nothing sees the key")


def _key(line: int, job: str, found: str) -> Finding:
    return blocking(
        "key-in-reach",
        RULE,
        place_of(line, job),
        expected=f"{_KEY} in the env of the steps that sign",
        found=found,
        remedy="move it to the step that runs git ledger",
    )


def filtered(flow: Workflow) -> Iterator[Finding]:
    """Yield path filters: a workflow that is left out reports nothing, and a required check waits for ever."""
    if flow.having("is_gate") and not _CHANGES & set(flow.triggers):
        yield blocking(
            "trigger-filtered",
            RULE,
            place_of(flow.body.get("on").line or 1, ""),
            expected="on: pull_request, push or merge_group",
            found=f"on: {', '.join(flow.triggers) or 'nothing'}: no change starts it",
            remedy="on: [pull_request, merge_group, push]",
        )
    for name, trigger in flow.body.get("on").table.items():
        types = trigger.get("types").names()
        if name == "pull_request" and types and not {"opened", "synchronize"} <= set(types):
            yield blocking(
                "trigger-filtered",
                RULE,
                place_of(trigger.get("types").line, ""),
                expected="the gate to run when a change is opened, and whenever it changes (synchronize)",
                found=f"types: {', '.join(types)}",
                remedy="take types out",
            )
        for word in ("paths", "paths-ignore", "branches-ignore"):
            if trigger.get(word) and name in ("pull_request", "pull_request_target", "merge_group"):
                yield blocking(
                    "trigger-filtered",
                    RULE,
                    place_of(trigger.get(word).line, ""),
                    expected="the gate to run for every change; scopes say what it concerns",
                    found=f"{name}.{word}",
                    remedy="take it out: shards whose inputs are unchanged are not run anyway",
                )


RULES: tuple[Callable[[Workflow], Iterator[Finding]], ...] = (
    *GATE_RULES,
    tolerated,
    not_gated,
    literal_count,
    matrix_empty,
    checked_out,
    too_wide,
    loosened,
    unpublished,
    key_everywhere,
    filtered,
)
"""The rules, in the order in which their findings are told."""
