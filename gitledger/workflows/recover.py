"""Receipts of runs whose driver was killed: what had finished by then, and never more than an incomplete run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from gitledger.config.schema import Config
from gitledger.errors import LedgerError
from gitledger.machine.child import ChildExit
from gitledger.machine.redact import excerpt, secret_values
from gitledger.manifest.chain import CHAIN_FILES
from gitledger.records.ids import CommitId
from gitledger.store.worktree import work_tree_state
from gitledger.suites.result import SuiteResult, conclude
from gitledger.trust.signer import Signer
from gitledger.workflows.asked import Asked, request_of
from gitledger.workflows.execute import LOG_EXCERPT_BYTES, Executed, result_of_journal
from gitledger.workflows.flight import Crash, crashes
from gitledger.workflows.record import Recorded, keep, look
from gitledger.workflows.request import RecordRequest
from gitledger.workflows.session import Session

__all__ = ["recover"]

SIGKILL = 9


def recover(
    session: Session,
    config: Config,
    target: CommitId,
    signer: Signer | None,
    *,
    notes: Path,
    logs: Path,
    user: str,
    mode: str,
) -> Iterator[Recorded]:
    """Yield the receipts of the runs of a commit that died with their driver, stored; clears the notes of all.

    A note of another commit is dropped: its inputs can't be looked at any more. One whose receipt can't be made
    or stored is left, and nothing is raised: what has to run now is not held up by what has died.
    """
    for crash in crashes(notes):
        if crash.commit != target or crash.flight.key not in config.shard_keys():
            crash.clear()
            continue
        try:
            done = _record(session, config, signer, crash, logs, user=user, mode=mode)
        except LedgerError:
            continue
        if done.stored:
            crash.clear()
            yield done


def _record(
    session: Session, config: Config, signer: Signer | None, crash: Crash, logs: Path, *, user: str, mode: str
) -> Recorded:
    key = crash.flight.key
    request = replace(request_of(config, Asked(shard=str(key))), user=user, mode=mode)
    # The driver began on a clean tree; what lies about now, its runs left.
    now = look(session, request.definition)
    before = replace(now, state=replace(now.state, changed=(), untracked=()), shadows=())
    ended_at = max(crash.started_at, datetime.fromtimestamp(crash.last_sign(), UTC))
    ended = ChildExit(
        status=None,
        signal=SIGKILL,
        timed_out=False,
        interrupted=True,
        stalled=False,
        oom=None,
        started_at=crash.started_at,
        ended_at=ended_at,
        duration_ns=round((ended_at - crash.started_at).total_seconds() * 1e9),
        max_rss_bytes=None,
        leftovers=0,
    )
    log = logs / f"{key}.log"
    run = Executed(
        ended=ended,
        started_at=crash.started_at,
        ended_at=ended_at,
        result=_result(session, request, crash, ended),
        argv=crash.argv,
        reasons=(),
        log_text=excerpt(log, LOG_EXCERPT_BYTES, secret_values(session.environ)) if log.exists() else "",
    )
    after = work_tree_state(session.repo.git, scope_paths=request.definition.paths, names=CHAIN_FILES)
    return keep(session, request, signer, before, run, after, turn=nullcontext())


def _result(session: Session, request: RecordRequest, crash: Crash, ended: ChildExit) -> SuiteResult:
    if request.definition.results.kind != "pytest":
        return conclude(reasons=["interrupted"], results=(), full_ids=(), selected_ids=())
    root = session.repo.worktree or Path()
    return result_of_journal(crash.flight.folder / "journal", crash.nonce, ended, root)
