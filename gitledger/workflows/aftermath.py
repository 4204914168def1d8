"""What a run that has ended came to: its journal or report, what it read and measured, and what moved meanwhile.

Whoever started it asks this at once; where that driver was killed, the next one asks the same of what it left.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gitledger.config.schema import DURATIONS_PATH
from gitledger.dataclass import replace
from gitledger.errors import DecodeError, ManifestError
from gitledger.machine.child import ChildExit
from gitledger.machine.redact import excerpt, secret_values
from gitledger.manifest.resolve import resolve
from gitledger.store.extras import ExtraFiles
from gitledger.store.facts import CommitFacts
from gitledger.store.head_log import was_elsewhere
from gitledger.suites.cut import read_durations
from gitledger.suites.following import Following
from gitledger.suites.journal import read_journal
from gitledger.suites.part import is_the_part, of_part
from gitledger.suites.recorder import summarise
from gitledger.suites.result import SuiteResult, conclude
from gitledger.workflows.declared import ran_as_declared
from gitledger.workflows.fragment import fragment_of_run
from gitledger.workflows.observed import inputs_of_run
from gitledger.workflows.reports import result_of_run
from gitledger.workflows.request import Before, RecordRequest
from gitledger.workflows.scene import Executed, Scene
from gitledger.workflows.session import Session

if TYPE_CHECKING:
    from gitledger.workflows.traced import Traced

__all__ = ["LOG_EXCERPT_BYTES", "aftermath", "log_of", "result_of_journal"]

LOG_EXCERPT_BYTES = 64 << 10


def aftermath(
    session: Session,
    request: RecordRequest,
    before: Before,
    scene: Scene,
    ended: ChildExit,
    *,
    observed: Path | None,
    traced: Traced | None = None,
    following: Following | None = None,
) -> Executed:
    """Return what a run came to; call it while the work tree is as the run left it.

    `following` has read the journal as it was written.
    """
    root = session.repo.worktree or Path()
    results, split = request.definition.results, request.definition.split
    if results.kind == "pytest":
        result = result_of_journal(scene.journal, scene.nonce, ended, root, following=following)
    else:
        result = result_of_run(results, root, request.key, ended, scene.earlier)
    inputs, unobserved = inputs_of_run(session, before, result, observed, traced)
    result = replace(result, notes=(*result.notes, *unobserved))
    reasons = _reasons(session, request, before, scene, result)
    if split is not None:
        durations = session.repo.file_at(before.head, DURATIONS_PATH)
        if not is_the_part(result, split, read_durations(durations)):
            reasons.append("not-the-part")
        result = of_part(result, split)
    fragment: bytes | None = None
    if results.kind == "pytest" and request.definition.coverage != "none":
        fragment, notes = fragment_of_run(session, before, scene.plugin)
        result = replace(result, notes=(*result.notes, *notes))
    return Executed(
        ended=ended,
        started_at=ended.started_at,
        ended_at=ended.ended_at,
        result=result,
        argv=scene.argv,
        reasons=tuple(reasons),
        log_text=log_of(session, scene.log),
        coverage=fragment,
        inputs=inputs,
    )


def log_of(session: Session, log: Path) -> str:
    """Return what a receipt keeps of a log; nothing where there is none."""
    return excerpt(log, LOG_EXCERPT_BYTES, secret_values(session.environ)) if log.exists() else ""


def result_of_journal(
    journal: Path, nonce: str, ended: ChildExit, root: Path, *, following: Following | None = None
) -> SuiteResult:
    """Return what the journal says, decoded as hostile; without one, or with one that can't be read: not green."""
    repository = str(root.resolve())
    try:
        data = journal.read_bytes()
    except OSError:
        return summarise(None, ended, repository=repository)
    try:
        read = read_journal(data, nonce) if following is None else following.journal(data)
        return summarise(read, ended, repository=repository)
    except DecodeError:
        return conclude(reasons=["journal-mistrusted"], results=(), full_ids=(), selected_ids=())


def _reasons(
    session: Session, request: RecordRequest, before: Before, scene: Scene, result: SuiteResult
) -> list[str]:
    """Return what speaks against the receipt beside the results: another command, or inputs that moved."""
    reasons = []
    declared = request.definition.command
    if request.declared and not (
        declared is not None and scene.as_declared and ran_as_declared(result.args, declared)
    ):
        reasons.append("other-command")
    if session.repo.head() != before.head or was_elsewhere(session.repo.git_dir, before.log):
        reasons.append("head-moved")
    if request.definition.extra_paths and _extra_moved(session, request, before):
        reasons.append("extra-moved")
    return reasons


def _extra_moved(session: Session, request: RecordRequest, before: Before) -> bool:
    """Tell whether the extra inputs are others after the run than before it: the result stands on neither."""
    repo = session.repo
    facts = CommitFacts(repo.objects, repo.commit(before.head).tree)
    try:
        return (
            resolve(request.definition, facts, ExtraFiles(repo.worktree or Path())).extra != before.manifest.extra
        )
    except ManifestError:
        return True
