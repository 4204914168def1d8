"""Hold a workflow file against the rules of a gate, without running anything of it."""

from __future__ import annotations

from gitledger.dataclass import dataclass
from gitledger.errors import UsageError
from gitledger.verdict.finding import Finding
from gitledger.workflows.check_workflow_document import Place, read_documents
from gitledger.workflows.check_workflow_entries import entry_faults
from gitledger.workflows.check_workflow_github import read_workflow
from gitledger.workflows.check_workflow_gitlab import gitlab_faults, read_pipeline
from gitledger.workflows.check_workflow_rules import RULES

__all__ = ["Checked", "check_workflow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a workflow was found to be (`kind`: GitHub or GitLab), how many jobs were looked at, what is wrong."""

    kind: str
    jobs: int
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Tell whether it holds; a file without jobs never gets here."""
        return self.jobs > 0 and not self.findings


def check_workflow(content: bytes, *, name: str, shards: frozenset[str] | None = None) -> Checked:
    """Return what a workflow breaks of the rules of a gate, in the order of its lines.

    `shards` are those that the configuration declares, None where there is none to hold entries against. Raises
    `UsageError` `workflow-unreadable`.
    """
    document = _with_jobs(read_documents(content, name=name), name)
    if document.get("jobs").table:
        flow = read_workflow(document, name=name)
        found = [finding for rule in RULES for finding in rule(flow)]
        found += entry_faults(flow, shards)
        return Checked(kind="GitHub", jobs=len(flow.jobs), findings=_sorted(found))
    pipeline = read_pipeline(document, name=name)
    return Checked(kind="GitLab", jobs=len(pipeline.jobs), findings=_sorted(list(gitlab_faults(pipeline))))


def _with_jobs(documents: tuple[Place, ...], name: str) -> Place:
    """Return the document that has the jobs: a GitLab component begins with another, of its inputs."""
    wanted = [document for document in documents if document.table and "spec" not in document.table]
    if not wanted:
        raise UsageError("workflow-unreadable", f"{name}: no jobs", "name a workflow file")
    if len(wanted) > 1:
        raise UsageError(
            "workflow-unreadable", f"{name}: {len(wanted)} documents", "name a file with one workflow"
        )
    return wanted[0]


def _sorted(findings: list[Finding]) -> tuple[Finding, ...]:
    def line(finding: Finding) -> int:
        return int(finding.subject.removeprefix("line ").partition(",")[0])

    return tuple(sorted(dict.fromkeys(findings), key=line))
