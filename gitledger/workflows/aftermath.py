"""What a run that has ended came to: its journal or report, what it read and measured, and what moved meanwhile.

Whoever started it asks this at once; where that driver was killed, the next one asks the same of what it left.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gitledger.config.schema import DURATIONS_PATH
from gitledger.dataclass import dataclass, replace
from gitledger.errors import DecodeError, ManifestError
from gitledger.machine.child import ChildExit
from gitledger.machine.redact import excerpt, secret_values
from gitledger.manifest.resolve import resolve
from gitledger.records.bodies import Inputs
from gitledger.store.edits import Edits
from gitledger.store.extras import ExtraFiles
from gitledger.store.facts import CommitFacts
from gitledger.store.head_log import was_elsewhere
from gitledger.suites.cut import read_durations
from gitledger.suites.following import Following
from gitledger.suites.journal import read_journal
from gitledger.suites.part import is_the_part, of_part
from gitledger.suites.recorder import summarise
from gitledger.suites.report_file import FileStamp
from gitledger.suites.result import SuiteResult, conclude
from gitledger.workflows.declared import ran_as_declared
from gitledger.workflows.fragment import fragment_of_run
from gitledger.workflows.observed import inputs_of_run
from gitledger.workflows.reports import result_of_run
from gitledger.workflows.request import Before, RecordRequest
from gitledger.workflows.session import Session

if TYPE_CHECKING:
    from gitledger.workflows.traced import Traced

__all__ = ["LOG_EXCERPT_BYTES", "Executed", "Scene", "aftermath", "log_of", "result_of_journal"]

LOG_EXCERPT_BYTES = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """What ran and how it ended (`ended` None: nothing ran). `reasons` are the recorder's own against it.

    `coverage` is the body of its fragment, None where it measured nothing. `after` looks at the work tree as the
    command left it, None where nobody has begun to.
    """

    ended: ChildExit | None
    started_at: datetime
    ended_at: datetime
    result: SuiteResult
    argv: tuple[str, ...]
    reasons: tuple[str, ...]
    log_text: str = ""
    coverage: bytes | None = None
    inputs: Inputs | None = None
    after: Edits | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where a run left its traces. `earlier` is its report file as it was before, `nonce` binds its journal.

    `as_declared`: its command line, and the variables that change what it runs, were the declared ones.
    """

    folder: Path
    log: Path
    nonce: str
    argv: tuple[str, ...]
    as_declared: bool
    earlier: FileStamp | None

    @property
    def journal(self) -> Path:
        """What our plugin writes."""
        return self.folder / "journal"

    @property
    def plugin(self) -> Path:
        """The folder of the plugin's companion, in which the coverage data lies."""
        return self.folder / "plugin"

    @property
    def observed(self) -> Path:
        """What the observer writes; the folder itself holds what it is loaded from."""
        return self.folder / "observer" / "observed"


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
