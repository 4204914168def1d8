"""Receipts of runs whose driver was killed before it could record them.

What was seen is not lost: a command that had failed by itself is recorded as failed, with its true status. One
that had ended well is recorded as a normal end would have been where every rule of a normal end can still be
applied: all its traces are there, and nothing that it stood on was touched since it began. Else it is incomplete.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

from gitledger import __version__
from gitledger.config.schema import Config
from gitledger.dataclass import dataclass, replace
from gitledger.errors import LedgerError
from gitledger.machine.child import ChildExit, NotedEnd, read_end
from gitledger.machine.environment import host_name
from gitledger.manifest.chain import CHAIN_FILES
from gitledger.manifest.resolve import Manifest, resolve
from gitledger.records.ids import CommitId, RecordId
from gitledger.store.extras import ExtraFiles
from gitledger.store.facts import CommitFacts
from gitledger.store.worktree import WorkTreeState, work_tree_state
from gitledger.suites.report_file import report_less
from gitledger.suites.result import SuiteResult, conclude
from gitledger.trust.signer import Signer
from gitledger.trust.verified import Rejected, open_record
from gitledger.workflows.aftermath import aftermath, log_of, result_of_journal
from gitledger.workflows.asked import Asked, request_of
from gitledger.workflows.compose import draft
from gitledger.workflows.flight import Crash, crashes
from gitledger.workflows.record import Recorded, keep
from gitledger.workflows.reports import report_changed_ns, result_of_run
from gitledger.workflows.request import Before, RecordRequest
from gitledger.workflows.scene import Executed, Scene
from gitledger.workflows.session import Session
from gitledger.workflows.trusted import read_config

__all__ = ["recover"]

SIGKILL = 9
JUMP_NS = 10_000_000_000
"""From when on a clock that ran differently from the monotonic one was set; a slow start is none."""
TICK_NS = 20_000_000
"""How far the clock that stamps files may lag behind the one that processes read: two jiffies at most."""


def recover(
    session: Session, target: CommitId, signer: Signer | None, *, notes: Path, logs: Path, user: str
) -> Iterator[tuple[Recorded, bool]]:
    """Yield the receipts of runs that died with their driver, stored; their notes are cleared.

    Beside each: whether its driver was killed, or could not store what it had made.

    Of a run on another commit than `target` only a failure that was seen is recorded. A run of which nothing can
    be said is dropped. One whose receipt can't be made or stored now is left for the next time, and nothing is
    raised: what has to run now is not held up by what has died.
    """
    for crash in crashes(notes):
        was_made = crash.flight.record_file.exists()
        try:
            if not _is_stored(session, crash):
                wreck = _wreck(session, crash, target, logs=logs, user=user)
                done = None if wreck is None else wreck.record(signer)
                if done is not None and not done.stored:
                    continue
                if done is not None:
                    yield done, not was_made
        except LedgerError:
            continue
        crash.clear()


def _is_stored(session: Session, crash: Crash) -> bool:
    """Tell whether the run's receipt is in the ledger: its driver was killed right after storing it."""
    try:
        record = RecordId(crash.flight.record_file.read_text("ascii"))
    except (OSError, ValueError):
        return False
    opened = [open_record(line, commit=crash.note.commit) for line in session.ledger.lines(crash.note.commit)]
    return any(not isinstance(item, Rejected) and item.id == record for item in opened)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wreck:
    """What is left of a run. `end` is None where its keeper was killed too.

    `is_whole`: everything that a normal end looks at is as the run left it.
    """

    session: Session
    crash: Crash
    request: RecordRequest
    before: Before
    end: NotedEnd | None
    is_here: bool
    is_whole: bool
    logs: Path

    def record(self, signer: Signer | None) -> Recorded | None:
        """Return what was recorded; None where there is nothing to be said of a run on another commit."""
        run = self.run()
        if not self.is_here and not any(item.outcome.is_bad for item in run.result.results):
            return None
        after = self.before.state
        if self.is_whole:
            after = work_tree_state(
                self.session.repo.git, scope_paths=self.request.definition.paths, names=CHAIN_FILES
            )
        drafted = draft(self.session, self.request, signer, self.before, run)
        receipt = drafted.completed(after)
        return keep(self.session, self.request, signer, run, receipt, drafted.bodies, turn=nullcontext())

    def run(self) -> Executed:
        scene, ended = self.scene(), self.ended()
        if self.is_whole:
            observed = scene.observed if scene.observed.exists() else None
            return aftermath(self.session, self.request, self.before, scene, ended, observed=observed)
        moved = self.is_here and self.crash.note.manifest != self.before.manifest.digest
        return Executed(
            ended=ended,
            started_at=ended.started_at,
            ended_at=ended.ended_at,
            result=self.result(scene, ended),
            argv=scene.argv,
            reasons=("extra-moved",) if moved else (),
            log_text=log_of(self.session, scene.log),
        )

    def scene(self) -> Scene:
        note, folder = self.crash.note, self.crash.flight.folder
        own = folder / "log"
        return Scene(
            folder=folder,
            log=own if self.crash.has_folder and own.exists() else self.logs / f"{self.crash.flight.key}.log",
            nonce=note.nonce,
            argv=note.argv,
            as_declared=note.as_declared,
            earlier=note.earlier,
        )

    def ended(self) -> ChildExit:
        """Return how it ended: what was told to stop was interrupted, and so is what ended unwitnessed."""
        end, started_at = self.end, self.crash.note.started_at
        ended_s = self.crash.last_sign_s() if end is None else end.ended_ns / 1e9
        ended_at = max(started_at, datetime.fromtimestamp(ended_s, UTC))
        code = -SIGKILL if end is None else end.code
        lost = end is None or end.was_told or (code == 0 and not self.is_whole)
        return ChildExit(
            status=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            timed_out=end is not None and end.reason == "timeout",
            interrupted=lost,
            stalled=end is not None and end.reason == "stalled",
            oom=None,
            started_at=started_at,
            ended_at=ended_at,
            duration_ns=end.duration_ns if end else round((ended_at - started_at).total_seconds() * 1e9),
            max_rss_bytes=end.max_rss_bytes if end else None,
            leftovers=0,
        )

    def result(self, scene: Scene, ended: ChildExit) -> SuiteResult:
        """Return what can be said of a run whose surroundings are not known to be as it left them."""
        results = self.request.definition.results
        if results.kind == "exit-status":
            return result_of_run(results, Path(), self.request.key, ended, None)
        if results.kind == "pytest":
            root = self.session.repo.worktree or Path()
            journal = scene.journal if self.crash.has_folder else Path(scene.folder.name, "gone")
            return result_of_journal(journal, scene.nonce, ended, root)
        if ended.interrupted:
            return conclude(reasons=["interrupted"], results=(), full_ids=(), selected_ids=())
        return report_less("report-missing", ended, note="its report may be another's by now")


def _wreck(session: Session, crash: Crash, target: CommitId, *, logs: Path, user: str) -> _Wreck | None:
    """Return what is left of a run; None where its commit or its shard is gone, or nobody knows how it ended."""
    note, key = crash.note, crash.flight.key
    config = _config_of(session, note.commit)
    end = read_end(crash.flight.end_file)
    if config is None or key not in config.shard_keys() or (end is None and not crash.has_folder):
        return None
    session = replace(session, environ={**session.environ, **note.devices})
    request = replace(request_of(config, Asked(shard=str(key))), user=user, mode=note.mode, flight=crash.flight)
    facts = CommitFacts(session.repo.objects, session.repo.commit(note.commit).tree)
    root = session.repo.worktree or Path()
    manifest = resolve(request.definition, facts, ExtraFiles(root))
    is_here = note.commit == target
    is_whole = (
        is_here
        and end is not None
        and crash.has_folder
        and not note.is_traced
        and note.version == __version__
        and note.host == host_name()
        and note.manifest == manifest.digest
        and _kept_time(session, crash, end)
        and _is_untouched(session, crash, manifest)
    )
    state = WorkTreeState(head=note.commit, changed=note.changed, untracked=note.untracked)
    before = Before(head=note.commit, state=state, manifest=manifest, shadows=note.shadows)
    return _Wreck(
        session=session,
        crash=crash,
        request=request,
        before=before,
        end=end,
        is_here=is_here,
        is_whole=is_whole,
        logs=logs,
    )


def _config_of(session: Session, commit: CommitId) -> Config | None:
    """Return the configuration of the commit that a run was on; None where this clone has lost it."""
    if session.repo.objects.read_commit(commit) is None:
        return None
    try:
        return read_config(session.repo, commit)
    except LedgerError:
        return None


def _kept_time(session: Session, crash: Crash, end: NotedEnd) -> bool:
    """Tell whether the clock ran evenly while the command did, and not back since: it dates changes truly."""
    began_ns = round(crash.note.started_at.timestamp() * 1e9)
    jump_ns = end.ended_ns - began_ns - end.duration_ns
    return abs(jump_ns) < JUMP_NS and session.now().timestamp() * 1e9 > end.ended_ns - TICK_NS


def _is_untouched(session: Session, crash: Crash, manifest: Manifest) -> bool:
    """Tell whether no tracked file and no input was changed since the run began, and none since it ended.

    Then the tree of now is the tree that the run's recorder would have looked at. The time at which the file
    system itself says a file was last changed in any way can't be set by programs; it is held against that of the
    note, which was written right before the command began. A report has to be as old as the run's end.
    """
    began_ns = min(crash.flight.note.stat().st_ctime_ns, round(crash.note.started_at.timestamp() * 1e9)) - TICK_NS
    listed = session.repo.git.run("ls-files", "-z", "--recurse-submodules").stdout
    root = session.repo.worktree or Path()
    paths = [root / path.decode("utf-8", "surrogateescape") for path in listed.split(b"\0") if path]
    paths += [root / claim.path for claim in manifest.extra or ()]
    if any(_changed_ns(path) >= began_ns for path in paths):
        return False
    report_ns = report_changed_ns(manifest.definition.results, root)
    return report_ns <= crash.flight.end_file.stat().st_mtime_ns  # both by the clock that stamps files


def _changed_ns(path: Path) -> int:
    """Return when a file was last changed in any way; 0 for one that is not there, which is dirt of its own."""
    try:
        return path.lstat().st_ctime_ns
    except OSError:
        return 0
