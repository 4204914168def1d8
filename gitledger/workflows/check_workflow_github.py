"""A workflow of GitHub Actions as jobs with the parts that they play around a gate."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gitledger.dataclass import dataclass
from gitledger.errors import UsageError
from gitledger.workflows.check_workflow_calls import Call, calls_of
from gitledger.workflows.check_workflow_document import Place

__all__ = ["Job", "Workflow", "condition", "is_always", "read_workflow", "runs_after_failure"]

_ACTION = re.compile(r"(?:\./|[\w.-]+/git-ledger[\w.-]*/)hooks/github/?(?:@|\Z)")
_CALLED = re.compile(r"(?:^|/)git-ledger[\w.-]*\.ya?ml(?:@|\Z)")
_DEPLOYS = re.compile(r"deploy|release|publish|ship|promote|rollout", re.IGNORECASE)
_AFTER_FAILURE = re.compile(r"\b(?:always|failure|cancelled)\s*\(\s*\)", re.IGNORECASE)
_SUCCESS = re.compile(r"\bsuccess\s*\(\s*\)", re.IGNORECASE)
_DEMANDED = re.compile(r"\(*success\(\)\)*", re.IGNORECASE)
_MODES = {"plan": "plan", "shard": "run", "gate": "gate"}


def condition(place: Place) -> str:
    """Return an `if` as one line without its braces."""
    text = " ".join(place.text.split())
    found = re.fullmatch(r"\$\{\{(.*)\}\}", text)
    return found[1].strip() if found and "${{" not in found[1] else text


def is_always(place: Place) -> bool:
    """Tell whether an `if` is `always()` and nothing else."""
    return re.sub(r"\s", "", condition(place)).lower() == "always()"


def runs_after_failure(place: Place) -> bool:
    """Tell whether an `if` lets run what comes after a failure.

    GitHub asks for success by itself, unless the condition names a function of status. One that says `success()`
    has to demand it: not as one of several ways (`success() || x`), and not inside of a text, which is true,
    whatever it says (`${{ success() }} && x`).
    """
    text = re.sub(r"\s", "", condition(place))
    if _AFTER_FAILURE.search(text):
        return True
    is_demanded = "||" not in text and any(_DEMANDED.fullmatch(term) for term in text.split("&&"))
    return bool(_SUCCESS.search(text)) and not is_demanded


@dataclass(frozen=True, slots=True)
class Job:
    """One job: its name in the file, and what it says."""

    name: str
    body: Place

    @property
    def steps(self) -> tuple[Place, ...]:
        """Its steps, none for one that calls another workflow."""
        return self.body.get("steps").items

    @property
    def needs(self) -> tuple[str, ...]:
        """The jobs that it waits for."""
        return self.body.get("needs").names()

    def calls(self) -> Iterator[Call]:
        """Yield its calls of `git ledger`, those that our action makes included."""
        for step in self.steps:
            yield from self.step_calls(step)

    def step_calls(self, step: Place) -> Iterator[Call]:
        """Yield the calls of one step."""
        yield from calls_of(step.get("run"))
        if _ACTION.match(step.get("uses").text):
            mode = step.get("with", "mode")
            words = ("--needs",) if step.get("with", "needs") else ()
            yield Call(step.line, _MODES.get(mode.text, mode.text), words, "")
            if mode.text == "shard":
                yield Call(step.line, "sync", (), "")

    def commands(self) -> set[str]:
        """Return the names of the commands that it calls."""
        return {call.command for call in self.calls() if not call.has("--check-workflow")}

    @property
    def calls_workflow(self) -> bool:
        """Tell whether it is a call of our reusable workflow, which has a gate of its own."""
        return bool(_CALLED.search(self.body.get("uses").text))

    @property
    def is_shard(self) -> bool:
        """Tell whether it makes evidence."""
        return bool(self.commands() & {"record", "run"})

    @property
    def is_gate(self) -> bool:
        """Tell whether its end is the verdict."""
        commands = self.commands()
        return "gate" in commands or ("verify" in commands and not self.is_shard) or self.calls_workflow

    @property
    def is_plan(self) -> bool:
        """Tell whether it plans, and no more."""
        return "plan" in self.commands() and not self.is_shard and not self.is_gate

    @property
    def is_deploy(self) -> bool:
        """Tell whether it hands something out, by its name or because it names an environment."""
        if self.is_gate or self.is_shard or self.is_plan:
            return False
        title = f"{self.name} {self.body.get('name').text}"
        return bool(self.body.get("environment")) or bool(_DEPLOYS.search(title))


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow and its jobs by name."""

    body: Place
    jobs: dict[str, Job]

    @property
    def triggers(self) -> tuple[str, ...]:
        """What it runs on."""
        return self.body.get("on").names()

    def having(self, part: str) -> list[Job]:
        """Return the jobs that play a part: `is_gate`, `is_shard`, `is_plan`, `is_deploy`."""
        return [job for job in self.jobs.values() if getattr(job, part)]

    def waits_for(self, job: Job) -> set[str]:
        """Return the jobs without whose success this one does not run, through others that stop with them."""
        found: set[str] = set()
        todo = [job]
        while todo:
            one = todo.pop()
            if runs_after_failure(one.body.get("if")):
                continue
            fresh = [name for name in one.needs if name not in found]
            found.update(fresh)
            todo += [self.jobs[name] for name in fresh if name in self.jobs]
        return found


def read_workflow(document: Place, *, name: str) -> Workflow:
    """Return the workflow of a document; raises `UsageError` `workflow-unreadable` where it has no jobs."""
    table = document.get("jobs").table
    jobs = {key: Job(key, body) for key, body in table.items() if body.table}
    if not jobs:
        raise UsageError("workflow-unreadable", f"{name}: no jobs", "name a workflow file")
    return Workflow(document, jobs)
