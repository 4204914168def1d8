"""What a gate on GitLab must hold to: the same rules, as its pipelines spell them.

Sources: GitLab CI/CD YAML syntax reference (`when`, `needs`, `trigger:strategy`, `allow_failure`), and "Downstream
pipelines": without `strategy: depend` the job that triggers a child is green at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gitledger.dataclass import dataclass
from gitledger.errors import UsageError
from gitledger.verdict.finding import Finding, blocking
from gitledger.wording import counted
from gitledger.workflows.check_workflow_calls import (
    RULE,
    Call,
    calls_of,
    count_faults,
    dropped_status,
    place_of,
    tolerance,
    word_faults,
)
from gitledger.workflows.check_workflow_document import Place
from gitledger.workflows.check_workflow_gate import (
    argument_faults,
    environment_faults,
    judging_calls,
    moves,
    policy_by_variable,
    script_faults,
)

__all__ = ["Pipeline", "gitlab_faults", "read_pipeline"]

_RESERVED = frozenset(
    {
        *("default", "include", "stages", "variables", "workflow", "image"),
        *("services", "cache", "before_script", "after_script", "spec"),
    }
)
_STAGES = (".pre", "build", "test", "deploy", ".post")
_DEPLOYS = re.compile(r"deploy|release|publish|ship|promote|rollout", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PipelineJob:
    """One job with what it inherits."""

    name: str
    body: Place

    def calls(self) -> list[Call]:
        """Return the calls of `git ledger` of its script."""
        return list(calls_of(self.body.get("script")))

    @property
    def commands(self) -> set[str]:
        """The names of these."""
        return {call.command for call in self.calls() if not call.has("--check-workflow")}

    @property
    def is_shard(self) -> bool:
        """Tell whether it makes evidence, itself or by the pipeline that it starts."""
        return bool(self.commands & {"record", "run"}) or bool(self.body.get("trigger"))

    @property
    def is_gate(self) -> bool:
        """Tell whether its end is the verdict."""
        return "gate" in self.commands or ("verify" in self.commands and not self.is_shard)

    @property
    def is_plan(self) -> bool:
        """Tell whether it plans, and no more."""
        return "plan" in self.commands and not self.is_shard and not self.is_gate

    @property
    def is_deploy(self) -> bool:
        """Tell whether it hands something out."""
        plain = not (self.is_gate or self.is_shard or self.is_plan)
        return plain and bool(self.body.get("environment") or _DEPLOYS.search(self.name))


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline and its jobs by name, hidden ones aside."""

    body: Place
    jobs: dict[str, PipelineJob]

    def having(self, part: str) -> list[PipelineJob]:
        """Return the jobs that play a part."""
        return [job for job in self.jobs.values() if getattr(job, part)]

    def stage(self, job: PipelineJob) -> int:
        """Return where its stage stands in the order of stages."""
        named = self.body.get("stages").names()
        order = (".pre", *named, ".post") if named else _STAGES
        name = job.body.get("stage").text or "test"
        return order.index(name) if name in order else len(order)

    def waits(self, job: PipelineJob, other: PipelineJob) -> bool:
        """Tell whether `job` starts after `other` has ended, by `needs` or, without any, by stages."""
        if "needs" in job.body.table:
            items = job.body.get("needs").items
            return any(
                (item.text or item.get("job").text) == other.name and item.get("optional").text != "true"
                for item in items
            )
        return self.stage(job) > self.stage(other)


def read_pipeline(document: Place, *, name: str) -> Pipeline:
    """Return the pipeline of a document; raises `UsageError` `workflow-unreadable` where it has no jobs."""
    table = {key: body for key, body in document.table.items() if key not in _RESERVED and body.table}
    jobs = {key: PipelineJob(key, _inherited(key, table, frozenset())) for key in table if not key.startswith(".")}
    jobs = {key: job for key, job in jobs.items() if job.body.get("script") or job.body.get("trigger")}
    if not jobs:
        raise UsageError("workflow-unreadable", f"{name}: no jobs", "name a workflow file")
    return Pipeline(document, jobs)


def _inherited(key: str, table: dict[str, Place], above: frozenset[str]) -> Place:
    """Return a job with what it extends; what can't be found here is left out."""
    body = table[key]
    found: dict[str, Place] = {}
    for base in body.get("extends").names():
        if base in table and base not in above:
            found |= _inherited(base, table, above | {key}).table
    return Place(body.line, table=found | body.table)


def gitlab_faults(flow: Pipeline) -> Iterator[Finding]:
    """Yield what breaks a rule."""
    gates = flow.having("is_gate")
    if not gates:
        yield blocking(
            "gate-missing",
            RULE,
            place_of(flow.body.line, ""),
            expected="a job that runs git ledger gate",
            found=f"none of {counted(len(flow.jobs), 'job')} does",
            remedy="git ledger init --ci gitlab (it writes a component that holds)",
        )
    for gate in gates:
        yield from _gate_faults(flow, gate)
        yield from _script_faults(flow, gate)
    for job in flow.having("is_deploy"):
        yield from _deploy_faults(flow, job, gates)
    for job in (*flow.having("is_plan"), *flow.having("is_shard"), *gates):
        yield from _job_faults(flow, job)
    for job in flow.having("is_shard"):
        yield from _shard_faults(job)


def _gate_faults(flow: Pipeline, gate: PipelineJob) -> Iterator[Finding]:
    rules = gate.body.get("rules")
    always = [rule.get("when").text == "always" for rule in rules.items] or [
        gate.body.get("when").text == "always"
    ]
    others = [job for job in (*flow.having("is_plan"), *flow.having("is_shard")) if job is not gate]
    if others and not all(always):
        yield blocking(
            "gate-may-skip",
            RULE,
            place_of((rules or gate.body.get("when")).line or gate.body.line, gate.name),
            expected="when: always",
            found=gate.body.get("when").text or "rules without it" if rules else "on_success, by default",
            remedy="when: always",
        )
    yield from _narrower(gate, others)
    for job in others:
        if not flow.waits(gate, job):
            yield blocking(
                "gate-misses-job",
                RULE,
                place_of(gate.body.get("needs").line or gate.body.line, gate.name),
                expected=f"needs: {job.name}, and not optional",
                found=f"needs: {', '.join(gate.body.get('needs').names()) or 'nothing'}",
                remedy=f"add {job.name} to needs",
            )


def _narrower(gate: PipelineJob, others: list[PipelineJob]) -> Iterator[Finding]:
    """Yield conditions by which the gate is left out of a pipeline that has what it judges: none is missed there.

    On GitLab a pipeline without the job is as green as one in which it passed.
    """
    for word in ("only", "except"):
        if gate.body.get(word):
            yield _left_out(gate.body.get(word), gate, f"{word}: {', '.join(gate.body.get(word).names())}")
    rules = gate.body.get("rules").items
    for rule in rules:
        for word in ("changes", "exists"):
            if rule.get(word):
                yield _left_out(rule.get(word), gate, f"rules with {word}:")
    if not rules or any(not rule.get("if") for rule in rules):
        return
    own = {_spelled(rule) for rule in rules}
    for job in others:
        theirs = job.body.get("rules").items
        wider = [rule for rule in theirs if rule.get("when").text != "never" and _spelled(rule) not in own]
        if not theirs or wider:
            found = f"if: {wider[0].get('if').text or 'always'}" if wider else "no rules: always"
            yield _left_out(
                gate.body.get("rules"), gate, f"{job.name} also runs where the gate does not ({found})"
            )
            return


def _spelled(rule: Place) -> str:
    return " ".join(rule.get("if").text.split())


def _left_out(place: Place, gate: PipelineJob, found: str) -> Finding:
    return blocking(
        "gate-may-skip",
        RULE,
        place_of(place.line or gate.body.line, gate.name),
        expected="the gate in every pipeline that has what it judges",
        found=found,
        remedy="give the gate the rules of the jobs that it waits for, with when: always",
    )


def _script_faults(flow: Pipeline, gate: PipelineJob) -> Iterator[Finding]:
    """Yield what comes before or around the call that judges; GitLab runs it all in one shell."""
    for variables in (
        flow.body.get("variables"),
        flow.body.get("default", "variables"),
        gate.body.get("variables"),
        *(
            rule.get("variables")
            for rule in (*gate.body.get("rules").items, *flow.body.get("workflow", "rules").items)
        ),
    ):
        yield from environment_faults(variables, job=gate.name)
    before = (
        gate.body.get("before_script")
        or flow.body.get("default", "before_script")
        or flow.body.get("before_script")
    )
    run = [before, gate.body.get("script")]
    yield from script_faults(run, job=gate.name, pipes_fail=False)
    for asked in judging_calls(run):
        yield from argument_faults(asked, job=gate.name)
    places = (gate.body, flow.body.get("default"), flow.body)
    yield from policy_by_variable(run, [place.get("variables") for place in places], job=gate.name)
    yield from moves(run, job=gate.name)


def _deploy_faults(flow: Pipeline, job: PipelineJob, gates: list[PipelineJob]) -> Iterator[Finding]:
    later = [other for other in flow.jobs.values() if flow.waits(job, other)]
    waits = any(flow.waits(job, gate) for gate in gates) or any(
        flow.waits(other, gate) and other.body.get("when").text != "always" for other in later for gate in gates
    )
    whens = {job.body.get("when").text, *(rule.get("when").text for rule in job.body.get("rules").items)}
    anyway = sorted(whens & {"always", "on_failure"})
    if gates and (not waits or anyway):
        yield blocking(
            "deploy-not-gated",
            RULE,
            place_of(job.body.line, job.name),
            expected=f"needs: [{gates[0].name}], and no when: always",
            found=f"when: {anyway[0]}" if anyway else "it does not wait for the gate",
            remedy="let it need the gate",
        )


def _job_faults(flow: Pipeline, job: PipelineJob) -> Iterator[Finding]:
    for body in (job.body, *job.body.get("rules").items):
        yield from tolerance(body, "allow_failure", job=job.name, unsaid="for some exit codes")
    script = job.body.get("script")
    yield from dropped_status(script, job=job.name, pipes_fail=False)
    yield from word_faults(script, job=job.name, is_gate=job.is_gate)
    yield from count_faults([script], job=job.name, counted=job.is_gate)
    depth = job.body.get("variables", "GIT_DEPTH") or flow.body.get("variables", "GIT_DEPTH")
    if job.commands and depth.text != "0":
        yield blocking(
            "history-shallow",
            RULE,
            place_of(depth.line or job.body.line, job.name),
            expected='GIT_DEPTH: "0"',
            found=f"GIT_DEPTH: {depth.text or 'the project’s default'}",
            remedy='variables: {GIT_DEPTH: "0"}',
        )


def _shard_faults(job: PipelineJob) -> Iterator[Finding]:
    trigger, parallel = job.body.get("trigger"), job.body.get("parallel")
    if parallel:
        yield blocking(
            "literal-count",
            RULE,
            place_of(parallel.line, job.name),
            expected="jobs made by git ledger plan --format gitlab",
            found=f"parallel: {parallel.text or 'a matrix'}",
            remedy="make it a child pipeline: trigger: {include: [{artifact: …}], strategy: depend}",
        )
    if trigger and trigger.get("strategy").text not in ("depend", "mirror"):
        yield blocking(
            "child-not-awaited",
            RULE,
            place_of(trigger.line, job.name),
            expected="strategy: depend",
            found="green as soon as the child has started",
            remedy="trigger: {strategy: depend}",
        )
    later = [call.command for call in calls_of(job.body.get("after_script"))]
    if job.commands & {"record", "run"} and "sync" not in later:
        yield blocking(
            "failure-not-published",
            RULE,
            place_of(job.body.line, job.name),
            expected="after_script: [git ledger sync], which runs after a failure, too",
            found="only what passed is published" if "sync" in job.commands else "nothing publishes",
            remedy="after_script: [git ledger sync]",
        )
