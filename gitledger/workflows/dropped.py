"""Records that the ledger held a short while ago and lacks now: what they say against a commit still counts.

Dropping a failure would otherwise turn red into green for whoever reads only this clone. What was dropped makes
nothing green: for that it has to be there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.records.ids import CommitId
from gitledger.records.outcomes import Outcome
from gitledger.records.receipt import ShardReceipt
from gitledger.records.statement import REVOCATION, SHARD_RECEIPT
from gitledger.store.dropped import recently_dropped
from gitledger.store.view import LedgerView
from gitledger.trust.verified import Rejected, open_record
from gitledger.verdict.finding import Finding, note
from gitledger.wording import counted
from gitledger.workflows.session import Session

__all__ = ["Dropped", "look_back"]

_Lines = Mapping[CommitId, tuple[bytes, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Dropped lines by commit: all of them, and those that speak against something."""

    lines: _Lines
    against: _Lines

    def findings(self, commits: Collection[CommitId]) -> Iterator[Finding]:
        """Yield a finding for each of the commits that lost records; it blocks nothing by itself."""
        for commit in sorted(self.lines.keys() & commits):
            count, red = len(self.lines[commit]), len(self.against.get(commit, ()))
            yield note(
                "records-dropped",
                "2",
                commit[:12],
                expected="a ledger that only grows",
                found=f"it lost {counted(count, 'record')} that it held lately; red ones still count: {red}",
                remedy="git ledger sync",
            )


def look_back(session: Session, view: LedgerView) -> Dropped:
    """Return what the records refs of this clone, fetched ones included, held lately and `view` lacks."""
    lines = recently_dropped(session.repo, view)
    against = {commit: tuple(filter(_speaks_against, lost)) for commit, lost in lines.items()}
    return Dropped(lines=lines, against={commit: lost for commit, lost in against.items() if lost})


def _speaks_against(line: bytes) -> bool:
    """Tell whether a line is a revocation, a result that is not green, or nothing that can be read."""
    opened = open_record(line)
    if isinstance(opened, Rejected):
        return opened.key is not None
    if opened.statement.predicate_type == SHARD_RECEIPT:
        try:
            return ShardReceipt.decode(opened.statement).outcome is not Outcome.PASSED
        except DecodeError:
            return True
    return opened.statement.predicate_type == REVOCATION
