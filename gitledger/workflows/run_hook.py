"""What a push may still run: the stale shards of the commit that is checked out, within the time of a hook."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gitledger.dataclass import dataclass
from gitledger.errors import LedgerError
from gitledger.machine.child import GRACE_S
from gitledger.machine.interrupts import Interrupts
from gitledger.records.ids import CommitId
from gitledger.trust.signer import Signer
from gitledger.wording import counted
from gitledger.workflows.drive import Watch
from gitledger.workflows.run import RunRequest, run
from gitledger.workflows.session import Session

__all__ = ["PushRun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PushRun:
    """How a hook runs shards. `signer` is asked for only where something has to run."""

    signer: Callable[[], Signer]
    user: str
    watch: Watch

    def of(self, session: Session, commit: CommitId, *, policy_from: str | None, left_s: float) -> str:
        """Run what is stale within `left_s` seconds; return in words what came of it. What ran is recorded."""
        if session.repo.head() != commit:
            return f"{commit[:12]} is not checked out, so nothing was run"
        if left_s <= GRACE_S:
            return "no time left to run shards; `git ledger run` does"
        # What is told to stop takes its grace, and the receipts some time: both are part of the hook's.
        stop_s = max(left_s / 2, left_s - 2 * GRACE_S)
        try:
            signer = self.signer()
            with Interrupts() as interrupts, _told_after(stop_s, interrupts):
                request = RunRequest(user=self.user, policy_from=policy_from, wait_s=1.0)
                done = run(session, request, signer, watch=self.watch, interrupts=interrupts)
        except LedgerError as error:
            return f"nothing was run: {error}"
        ran = counted(len(done.results), "shard")
        if done.interrupted is not None:
            return f"the hook's time was up after {ran}; `git ledger run` goes on from there"
        return f"ran {ran}"


@contextmanager
def _told_after(seconds: float, interrupts: Interrupts) -> Iterator[None]:
    """Tell what runs inside to stop after a time."""
    timer = threading.Timer(seconds, interrupts.tell, [signal.SIGTERM])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
