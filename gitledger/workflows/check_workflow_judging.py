"""What the job that judges must hold to on GitHub: that it runs, waits, judges the right thing, is believed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gitledger.verdict.finding import Finding, blocking
from gitledger.wording import counted
from gitledger.workflows.check_workflow_calls import RULE, place_of
from gitledger.workflows.check_workflow_document import Place
from gitledger.workflows.check_workflow_gate import (
    INTO_RUNNER,
    argument_faults,
    environment_faults,
    judges_another,
    judging_calls,
    moves,
    policy_by_variable,
    policy_faults,
    runner_overridden,
    script_faults,
    shell_faults,
)
from gitledger.workflows.check_workflow_github import Job, Workflow, condition, is_always
from gitledger.workflows.check_workflow_shell import assigns

__all__ = ["GATE_RULES"]

_NEEDS = re.compile(r"\$\{\{\s*toJSON\(\s*needs\s*\)\s*\}\}", re.IGNORECASE)
_LENIENT = re.compile(
    r"\bskipped\b|\bneutral\b|!=\s*[\"']?failure|-ne\s+[\"']?failure|contains\([^)]*result[^)]*failure",
    re.IGNORECASE,
)
_COMPARES = re.compile(r"=\s*[\"']?success\b|\bsuccess[\"']?\s*=")
_PLANNED = re.compile(r"needs\.[\w-]+\.outputs\.\w+ *== *'true'")


def no_gate(flow: Workflow) -> Iterator[Finding]:
    """Yield a finding where there is no gate: then nothing is judged."""
    if not flow.having("is_gate"):
        yield blocking(
            "gate-missing",
            RULE,
            place_of(flow.body.get("jobs").line, ""),
            expected="a job that runs git ledger gate",
            found=f"none of {counted(len(flow.jobs), 'job')} does",
            remedy="git ledger init --ci github (it writes a workflow that holds)",
        )


def may_skip(flow: Workflow) -> Iterator[Finding]:
    """Yield gates that may be skipped, and a job that is skipped counts as a success."""
    for job in flow.having("is_gate"):
        own = job.body.get("if")
        if not is_always(own) and (own or job.needs):
            yield _may_skip(own.line or job.body.line, job, condition(own) or "no condition: it is skipped")
        if matrix := job.body.get("strategy", "matrix"):
            yield _may_skip(matrix.line, job, "a matrix: an empty one runs nothing")
        for step in job.steps:
            judging = any(call.command in ("gate", "verify") for call in job.step_calls(step))
            if judging and step.get("if") and not is_always(step.get("if")):
                yield _may_skip(step.get("if").line, job, condition(step.get("if")))


def _may_skip(line: int, job: Job, found: str) -> Finding:
    return blocking(
        "gate-may-skip",
        RULE,
        place_of(line, job.name),
        expected="if: always(), and nothing else",
        found=found,
        remedy="if: always()",
    )


def scripts(flow: Workflow) -> Iterator[Finding]:
    """Yield what a gate's steps do by which the verdict could be lost, or be one on something else."""
    for gate in flow.having("is_gate"):
        if gate.calls_workflow:
            continue
        yield from environment_faults(flow.body.get("env"), job="")
        yield from environment_faults(gate.body.get("env"), job=gate.name)
        yield from environment_faults(gate.body.get("container", "env"), job=gate.name)
        folders = [step.get("with", "path").text.removeprefix("./").rstrip("/") for step in gate.steps]
        default = gate.body.get("defaults", "run") or flow.body.get("defaults", "run")
        for step in gate.steps:
            script = step.get("run")
            yield from environment_faults(step.get("env"), job=gate.name)
            if not any(True for _ in judging_calls([script])):
                yield from _prepared(script, gate)
                continue
            used = step.get("shell") or default.get("shell")
            yield from shell_faults(used, line=step.line, job=gate.name)
            yield from script_faults([script], job=gate.name, pipes_fail=used.text == "bash")
            for asked in judging_calls([script]):
                yield from argument_faults(asked, job=gate.name, folders=folders)
            variables = [holder.get("env") for holder in (step, gate.body, flow.body)]
            yield from policy_by_variable([script], variables, job=gate.name)
            yield from moves([script], job=gate.name, folders=folders)
            place = step.get("working-directory") or default.get("working-directory")
            if place and place.text.removeprefix("./").rstrip("/") not in folders:
                yield judges_another(place.line, gate.name, f"working-directory: {place.text}")
        for step in gate.steps:
            yield from policy_faults(step.get("with", "policy-from").text or None, line=step.line, job=gate.name)


def _prepared(script: Place, gate: Job) -> Iterator[Finding]:
    """Yield lines of earlier steps that reach into the later ones."""
    for line in script.commands():
        if found := INTO_RUNNER.search(line.text):
            yield runner_overridden(line.line, gate.name, found[0])


def same_name(flow: Workflow) -> Iterator[Finding]:
    """Yield jobs that report under the name of a gate: a required check is asked for by its name."""
    for gate in flow.having("is_gate"):
        name = gate.body.get("name").text or gate.name
        for job in flow.jobs.values():
            if job is not gate and not job.is_gate and (job.body.get("name").text or job.name) == name:
                yield blocking(
                    "gate-name-taken",
                    RULE,
                    place_of(job.body.line, job.name),
                    expected=f"one check that is called {name}",
                    found=f"{job.name} is called so too, and judges nothing",
                    remedy="give it another name",
                )


def misses_job(flow: Workflow) -> Iterator[Finding]:
    """Yield gates that don't wait for every job that makes evidence, and for the plan."""
    for gate in flow.having("is_gate"):
        for job in (*flow.having("is_plan"), *flow.having("is_shard")):
            if job is not gate and job.name not in gate.needs:
                yield blocking(
                    "gate-misses-job",
                    RULE,
                    place_of(gate.body.get("needs").line or gate.body.line, gate.name),
                    expected=f"needs: {job.name}",
                    found=f"needs: {', '.join(gate.needs) or 'nothing'}",
                    remedy=f"add {job.name} to needs",
                )


def ignores_results(flow: Workflow) -> Iterator[Finding]:
    """Yield gates that don't look at what became of each job."""
    for gate in flow.having("is_gate"):
        if gate.calls_workflow:
            continue
        text = [place.text for place in gate.body.scalars()]
        compared = all(any(f"needs.{name}.result" in line for line in text) for name in gate.needs)
        by_hand = compared and any(_COMPARES.search(line) for line in text)
        if gate.needs and not by_hand and not _is_handed(flow, gate):
            yield blocking(
                "gate-ignores-results",
                RULE,
                place_of(gate.body.line, gate.name),
                expected='git ledger gate --needs "$NEEDS" with NEEDS: ${{ toJSON(needs) }}',
                found="nothing asks what became of the jobs",
                remedy="hand over toJSON(needs)",
            )


def _is_handed(flow: Workflow, gate: Job) -> bool:
    """Tell whether a call of the gate is given what became of the jobs, and nothing that was made up."""
    for step in gate.steps:
        given = step.get("with", "needs")
        if given and any(call.command == "gate" for call in gate.step_calls(step)):
            return _NEEDS.fullmatch(given.text.strip()) is not None
        for asked in judging_calls([step.get("run")]):
            value = asked.value("--needs") or ""
            named = re.fullmatch(r"\$\{?(\w+)\}?", value)
            if named:
                lines = [line.text for line in step.get("run").commands()]
                if any(assigns(line, named[1]) for line in lines):
                    return False
                holders = (step, gate.body, flow.body)
                value = next((text for holder in holders if (text := holder.get("env", named[1]).text)), "")
            if asked.command == "gate" and _NEEDS.fullmatch(value.strip()):
                return True
    return False


def accepts_skipped(flow: Workflow) -> Iterator[Finding]:
    """Yield gates that look for failure alone, and take a job that never ran for one that passed.

    A gate bears skipped jobs where nothing is stale, as the plan says: so none may be skipped for another reason.
    """
    for gate in flow.having("is_gate"):
        for job in (flow.jobs[name] for name in gate.needs if name in flow.jobs):
            own = job.body.get("if")
            if own and not job.is_shard and not is_always(own) and not _PLANNED.fullmatch(condition(own)):
                yield blocking(
                    "gate-accepts-skipped",
                    RULE,
                    place_of(own.line, job.name),
                    expected="a job that the gate waits for to run, unless the plan says that nothing has to",
                    found=condition(own),
                    remedy="take the condition out, or ask for it in a step",
                )
        for place in gate.body.scalars():
            for line in place.commands():
                if found := _LENIENT.search(line.text):
                    yield blocking(
                        "gate-accepts-skipped",
                        RULE,
                        place_of(line.line, gate.name),
                        expected="success, and no other result",
                        found=found[0],
                        remedy="compare with success alone, or hand over toJSON(needs)",
                    )


GATE_RULES = (no_gate, may_skip, scripts, same_name, misses_job, ignores_results, accepts_skipped)
"""The rules, in the order in which their findings are told."""
