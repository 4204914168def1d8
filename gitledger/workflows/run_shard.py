"""One shard of a run: told from the others by its devices, recorded under the driver's one signer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import field
from pathlib import Path

from gitledger.config.schema import Config
from gitledger.dataclass import dataclass, replace
from gitledger.errors import InternalError, LedgerError, MachineError, UsageError
from gitledger.machine.interrupts import Interrupts
from gitledger.records.ids import CommitId, ShardKey
from gitledger.trust.signer import Signer
from gitledger.verdict.attempts import is_counted
from gitledger.workflows.asked import Asked, request_of
from gitledger.workflows.drive import Attempt, Ended, NotAlone, Stop
from gitledger.workflows.flight import take_off
from gitledger.workflows.mend import to_mend_dirt
from gitledger.workflows.record import look, record
from gitledger.workflows.request import Before, RecordRequest, nearer
from gitledger.workflows.run_attempts import may_retry
from gitledger.workflows.session import Session, open_session

__all__ = ["ShardRuns", "became_dirty"]


@dataclass(slots=True, kw_only=True)
class ShardRuns:
    """What the runs of one driver share. `config` declares the shards, `left` holds the attempts that each has.

    Each thread has a session of its own, since git's library serves one at a time; they sign and store one after
    the other.
    """

    session: Session
    config: Config
    left: dict[ShardKey, int | None]
    target: CommitId
    signer: Signer | None
    interrupts: Interrupts
    held: tuple[int, ...]
    stall_s: float | None
    timeout_s: float | None
    mode: str
    pass_agent: bool
    user: str
    echo: Callable[[ShardKey, bytes], None] | None
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _own: threading.local = field(default_factory=threading.local)

    def record(self, attempt: Attempt, began: Callable[[], None], ended: Callable[[], None]) -> Ended:
        """Run and record one attempt, in a thread of its own; raises `Stop`, `NotAlone` and `InternalError`."""
        if self.interrupts.received:
            raise Stop
        key = attempt.job.key
        try:
            request = self._request(key)
            session = self._session(attempt)
            before = look(session, request.definition)
            self._require_clean(before, alone=attempt.alone)
            with take_off(self.folder / "flight", key) as flight:
                request = replace(request, flight=flight, began=began)
                done = record(session, request, self.signer, before=before, turn=self._turn, ended=ended)
                if done.stored:
                    flight.clear()
        except InternalError:
            raise
        except LedgerError as error:
            return Ended(fault=error)
        left = self.left.get(key)
        if left is not None and is_counted(done.receipt):
            left = self.left[key] = left - 1
        return Ended(recorded=done, may_retry=done.stored and may_retry(done.receipt, left))

    def _request(self, key: ShardKey) -> RecordRequest:
        request = request_of(self.config, Asked(shard=str(key)))
        echo = self.echo
        return replace(
            request,
            timeout_s=nearer(request.timeout_s, self.timeout_s),
            stall_s=self.stall_s,
            mode=self.mode,
            pass_agent=self.pass_agent,
            user=self.user,
            echo=None if echo is None else lambda data: echo(key, data),
            log=self.log_of(key),
            interrupts=self.interrupts,
            held=self.held,
        )

    @property
    def folder(self) -> Path:
        """The folder in which a driver keeps logs, and notes of what is under way."""
        return self.session.repo.git_dir / "gitledger"

    def log_of(self, key: ShardKey) -> Path:
        """Return the file that a shard's output goes to while it runs; the next run writes it anew."""
        logs = self.folder / "logs"
        try:
            logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            text = f"the folder {logs} can't be made: {error.strerror}"
            raise MachineError("log-unwritable", text, "make room for it") from error
        return logs / f"{key}.log"

    def _session(self, attempt: Attempt) -> Session:
        """Return this thread's session, with the variables that an attempt was granted."""
        shared = self.session
        own: Session | None = getattr(self._own, "session", None)
        if own is None:
            own = self._own.session = open_session(
                shared.repo.worktree or Path(),
                environ=shared.environ,
                home=shared.home,
                now=shared.now,
                offline=shared.offline,
                aside=shared.ledger.aside,
            )
        return replace(own, environ={**shared.environ, **attempt.grant.variables})

    def _require_clean(self, before: Before, *, alone: bool) -> None:
        """Refuse to run on another commit than the others, or on a tree that is not the commit's."""
        if before.head != self.target:
            text = f"HEAD moved from {self.target[:12]} to {before.head[:12]}; commits are never mixed"
            raise Stop(UsageError("head-moved", text, "git ledger run (it begins with what is stale there)"))
        dirt = {*before.state.changed, *before.state.untracked, *before.shadows}
        if dirt and not alone:
            raise NotAlone
        if dirt:
            untracked = (*before.state.untracked, *before.shadows)
            raise Stop(became_dirty(dirt, to_mend_dirt(self.session.repo, before.state.changed, untracked)))


def became_dirty(dirt: Collection[str], mend: str) -> UsageError:
    """Return the error for a work tree that is no more the commit's, in these paths; `mend` is what to do."""
    text = f"the work tree is not the commit's any more: {', '.join(sorted(dirt)[:5])}"
    return UsageError("became-dirty", text, f"let the command clean up, or {mend}; `git ledger run` resumes")
