"""Flaky: tests whose outcome changed while nothing that their shard declares as input did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from datetime import datetime
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.records.bodies import TestResult, check_body, decode_tests
from gitledger.records.decode import format_time
from gitledger.records.ids import CommitId, ShardKey
from gitledger.records.receipt import ShardReceipt
from gitledger.records.statement import SHARD_RECEIPT
from gitledger.store.view import LedgerView
from gitledger.trust.verified import Opened, Rejected, Verified, open_record
from gitledger.workflows.known import Known
from gitledger.workflows.session import Session
from gitledger.workflows.trusted import Trusted, load_trusted

__all__ = ["FlakyTest", "flaky_tests"]


@dataclass(slots=True)
class FlakyTest:
    """One test of one shard under one manifest: how often it ended how, and how many attempts more it took."""

    key: ShardKey
    node_id: str
    outcomes: dict[str, int] = field(default_factory=dict)
    reruns: int = 0
    last_change: datetime | None = None

    @property
    def is_flaky(self) -> bool:
        """Tell whether it ended in more than one way, or passed only after another attempt."""
        return len(self.outcomes) > 1 or self.reruns > 0

    def encode(self) -> dict[str, Any]:
        """Return the JSON object of `flaky --json`."""
        return {
            "last_seen": format_time(self.last_change) if self.last_change else None,
            "name": self.key.name,
            "node_id": self.node_id,
            "outcomes": dict(sorted(self.outcomes.items())),
            "reruns": self.reruns,
            "variant": self.key.variant,
        }


def flaky_tests(
    session: Session, target: CommitId, *, policy_from: str | None = None, known: Known | None = None
) -> list[FlakyTest]:
    """Return the flaky tests of the whole ledger, those with the most bad ends first.

    Counted are clean, witnessed receipts by keys that belong to a signer of the policy; receipts of other
    definitions or inputs are never compared. `known` has read the ledger already. Raises what reading the policy
    raises.
    """
    trusted = load_trusted(session.repo, target, policy_from)
    view = session.ledger.view() if known is None else known.view
    open_line = _open_line if known is None else known.open_line
    found: dict[tuple[object, ...], FlakyTest] = {}
    for receipt in _receipts(view, trusted, open_line):
        where = (receipt.key, receipt.shard.definition_digest, receipt.manifest.digest)
        for result in _results(view, receipt):
            identity = (*where, result.node_id)
            test = found.setdefault(identity, FlakyTest(receipt.key, result.node_id))
            test.outcomes[result.outcome.value] = test.outcomes.get(result.outcome.value, 0) + 1
            test.reruns += result.attempts - 1
            test.last_change = max(test.last_change or receipt.session.ended_at, receipt.session.ended_at)
    flaky = [test for test in found.values() if test.is_flaky]
    return sorted(flaky, key=lambda test: (-_bad(test), str(test.key), test.node_id))


def _bad(test: FlakyTest) -> int:
    return test.reruns + test.outcomes.get("failed", 0) + test.outcomes.get("error", 0)


OpenLine = Callable[[CommitId, bytes], Opened]


def _open_line(commit: CommitId, line: bytes) -> Opened:
    return open_record(line, commit=commit)


def _receipts(view: LedgerView, trusted: Trusted, open_line: OpenLine) -> Iterator[ShardReceipt]:
    """Yield the receipts that count, each once, whatever notes it stands on."""
    seen = set()
    for commit in view.commits():
        for line in view.lines(commit):
            opened = open_line(commit, line)
            if isinstance(opened, Rejected) or opened.statement.predicate_type != SHARD_RECEIPT:
                continue
            try:
                receipt = ShardReceipt.decode(opened.statement)
            except DecodeError:
                continue
            if opened.id in seen or receipt.repository != trusted.config.repository:
                continue
            if receipt.repo.dirty or not receipt.session.witnessed or not _is_signed(opened, receipt, trusted):
                continue
            seen.add(opened.id)
            yield receipt


def _is_signed(opened: Any, receipt: ShardReceipt, trusted: Trusted) -> bool:
    if not isinstance(opened, Verified):
        return trusted.config.policy.accepts_unsigned
    return bool(set(trusted.signers.principals(opened.key, receipt.session.ended_at)))


def _results(view: LedgerView, receipt: ShardReceipt) -> tuple[TestResult, ...]:
    ref = receipt.bodies.get("tests")
    blob = view.body(ref.oid) if ref is not None else None
    if ref is None or blob is None:
        return ()
    try:
        check_body(ref, blob)
        return decode_tests(blob)
    except DecodeError:
        return ()
