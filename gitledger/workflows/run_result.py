"""What a run came to, as one value: its receipts, what could not run, the merge, and the exit status of it all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import EXIT_NO, EXIT_NOT_STORED, EXIT_YES, LedgerError
from gitledger.records.ids import CommitId, RecordId, ShardKey
from gitledger.records.receipt import ShardReceipt
from gitledger.verdict.plan import describe_choice
from gitledger.verdict.union import Union
from gitledger.workflows.merge import Merged
from gitledger.workflows.record import Recorded
from gitledger.workflows.run_attempts import overdrawn

__all__ = ["Brought", "RunResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """A receipt that came from elsewhere, signed and stored here."""

    receipt: ShardReceipt
    record: RecordId
    log_text: str = ""
    stored: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What was asked for, and what came of it. `union` is what stands now, or stood where a signal came.

    `results` are the receipts of each shard in their order, the last of which counts. `faults` are the shards that
    could not be run, `left` those that were not started any more: because of `stopped`, or because of the signal
    `interrupted`.
    """

    commit: CommitId
    asked: tuple[ShardKey, ...]
    union: Union
    results: Mapping[ShardKey, Sequence[Recorded | Brought]] = field(default_factory=dict)
    faults: Mapping[ShardKey, LedgerError] = field(default_factory=dict)
    left: tuple[ShardKey, ...] = ()
    stopped: LedgerError | None = None
    interrupted: int | None = None
    max_attempts: int | None = None
    merge: Merged | None = None
    merge_error: LedgerError | None = None

    @property
    def uncovered(self) -> tuple[ShardKey, ...]:
        """Shards for which nothing stands, green or red: while there are any, nothing is merged."""
        return tuple(choice.shard.key for choice in self.union.choices if choice.result is None)

    @property
    def red(self) -> tuple[ShardKey, ...]:
        """Shards that were asked for and have no green evidence now; those that could not be run at all aside."""
        never = set(self.faults) - set(self.results)
        stale = {choice.shard.key for choice in self.union.choices if choice.verdict == "stale"}
        return tuple(key for key in self.asked if key in stale and key not in never)

    @property
    def overdrawn(self) -> tuple[ShardKey, ...]:
        """Shards that were run more often on this commit than policy allows: verify rejects it."""
        return overdrawn(self.union, self.asked, self.max_attempts)

    @property
    def is_merge_refused(self) -> bool:
        """Tell whether every shard is covered, and there is still no green merged receipt to be had."""
        if self.uncovered:
            return False
        if self.merge_error is not None:
            return self.merge_error.code != "unsigned"
        return self.merge is not None and not self.merge.is_green

    @property
    def is_unstored(self) -> bool:
        """Tell whether something ran of which no receipt is stored; what is needed for it is kept."""
        faulty = any(fault.exit_status == EXIT_NOT_STORED for fault in self.faults.values())
        return faulty or any(not item.stored for items in self.results.values() for item in items)

    @property
    def exit_status(self) -> int:
        """Return 0 only where all that was asked for is green, and the merge if there was one.

        128 and the signal; 3 where a receipt is not stored; 2 where the tree was no longer the commit's; 1 for a
        shard that is not green, or was run too often; 99 where nothing failed and the machine could not run all.
        """
        if self.interrupted is not None:
            return 128 + self.interrupted
        if self.is_unstored:
            return EXIT_NOT_STORED
        if self.merge_error is not None and self.is_merge_refused:
            return self.merge_error.exit_status
        if self.stopped is not None:
            return self.stopped.exit_status
        if self.red or self.overdrawn or self.is_merge_refused:
            return EXIT_NO
        return min((fault.exit_status for fault in self.faults.values()), default=EXIT_YES)

    def encode(self) -> dict[str, Any]:
        """Return the document of `run --json`."""
        rows = {choice.shard.key: describe_choice(choice) for choice in self.union.choices}
        return {
            "commit": self.commit,
            "exit_status": self.exit_status,
            "interrupted": self.interrupted,
            "merge": None if self.merge is None or self.uncovered else self.merge.encode(),
            "not_run": [
                {"code": fault.code, "name": key.name, "reason": fault.message, "variant": key.variant}
                for key, fault in self.faults.items()
            ],
            "not_started": [_named(key) for key in self.left],
            "ran": [_ran(key, item) for key, items in self.results.items() for item in items],
            "shards": [rows[key] for key in self.asked if key in rows],
            "too_many_attempts": [_named(key) for key in self.overdrawn],
            "uncovered": [_named(key) for key in self.uncovered],
            "stopped": None
            if self.stopped is None
            else {"code": self.stopped.code, "reason": self.stopped.message},
        }


def _named(key: ShardKey) -> dict[str, str | None]:
    return {"name": key.name, "variant": key.variant}


def _ran(key: ShardKey, done: Recorded | Brought) -> dict[str, Any]:
    receipt = done.receipt
    return {
        "attempt": receipt.shard.attempt,
        "name": key.name,
        "outcome": receipt.outcome.value,
        "reasons": list(receipt.reasons),
        "record": done.record,
        "seconds": (receipt.session.ended_at - receipt.session.started_at).total_seconds(),
        "stored": done.stored,
        "variant": key.variant,
    }
