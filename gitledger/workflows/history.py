"""The verdicts on many commits of a history: each is what `verify` says of that commit, at one moment."""

from __future__ import annotations

from collections.abc import Iterator

from gitledger.dataclass import dataclass, replace
from gitledger.errors import LedgerError
from gitledger.records.ids import CommitId
from gitledger.records.tree import CommitInfo
from gitledger.workflows.judge import Verified, verify
from gitledger.workflows.known import Known
from gitledger.workflows.session import Session, moment

__all__ = ["Column", "History", "look_along"]

MAX_WALKED = 10_000
"""How many commits are walked for those that carry evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One commit. `found` is None where it can't be judged; `fault` then says why, as `CODE: message`."""

    commit: CommitInfo
    found: Verified | None
    fault: str = ""


@dataclass(slots=True, kw_only=True)
class History:
    """The commits to be judged, the newest first, and how many carry evidence beside them."""

    session: Session
    known: Known
    commits: tuple[CommitId, ...]
    left_out: int
    policy_from: str | None
    offline_fault: str = ""

    def columns(self) -> Iterator[Column]:
        """Yield each commit with its verdict. What one can't be judged by is said of it, and stops nothing."""
        for commit in self.commits:
            yield self._column(commit)

    def _column(self, commit: CommitId) -> Column:
        info = self.session.repo.commit(commit)
        if self.offline_fault:
            return Column(commit=info, found=None, fault=self.offline_fault)
        try:
            found = verify(self.session, commit, policy_from=self.policy_from, known=self.known)
        except LedgerError as error:
            fault = f"{error.code}: {error.message}"
            if error.code in ("forge-unreachable", "forge-offline"):
                self.offline_fault = fault  # it would be waited for once for each commit
            return Column(commit=info, found=None, fault=fault)
        return Column(commit=info, found=found)


def look_along(
    session: Session, target: CommitId, *, limit: int, policy_from: str | None = None, at: str | None = None
) -> History:
    """Return the target and its ancestors that carry evidence, at most `limit` in all, in the order of a log.

    All are judged by the same moment, `at` or now, and with one reading of the ledger.
    """
    now = moment(session, at)
    fixed = replace(session, now=lambda: now)
    listed = session.repo.git.run("rev-list", "--topo-order", f"--max-count={MAX_WALKED}", target, "--")
    walked = [CommitId(word) for word in listed.text.split()]
    annotated = session.ledger.view().commits()
    having = [commit for commit in walked if commit in annotated or commit == target]
    shown = tuple(having[:limit])
    until = walked.index(shown[-1]) + 1
    order = {commit: place for place, commit in enumerate(walked[:until])}
    return History(
        session=fixed,
        known=Known.of(fixed, order=order),
        commits=shown,
        left_out=len(having) - len(shown),
        policy_from=policy_from,
    )
