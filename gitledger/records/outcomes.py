"""Outcomes of tests and of shards, and the worst-of rule."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.records.decode import Reader, fail
from gitledger.wording import counted

__all__ = ["Counts", "Outcome", "TestOutcome", "worst"]


class TestOutcome(StrEnum):
    """How one test ended, over every report of every phase (DESIGN section 8)."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"

    @property
    def is_bad(self) -> bool:
        """Tell whether it keeps its shard from passing."""
        return self in (TestOutcome.FAILED, TestOutcome.ERROR)


class Outcome(StrEnum):
    """How one run of a shard ended. Only `PASSED` is green."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    INCOMPLETE = "incomplete"


_ORDER = (Outcome.PASSED, Outcome.INCOMPLETE, Outcome.ERROR, Outcome.FAILED)


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Return `FAILED` if any failed, else `ERROR`, else `INCOMPLETE`, else `PASSED`; of nothing: `INCOMPLETE`."""
    found = list(outcomes)
    return max(found, key=_ORDER.index) if found else Outcome.INCOMPLETE


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Numbers of tests. `collected` is after deselection and cut; `deselected` stand beside it."""

    collected: int = 0
    passed: int = 0
    failed: int = 0
    error: int = 0
    skipped: int = 0
    xfailed: int = 0
    xpassed: int = 0
    deselected: int = 0

    @property
    def ended(self) -> int:
        """The number of tests with a terminal outcome."""
        return self.passed + self.failed + self.error + self.skipped + self.xfailed + self.xpassed

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in _NAMES})

    @classmethod
    def of(cls, outcomes: Iterable[TestOutcome], *, collected: int, deselected: int = 0) -> Counts:
        """Return the counts of test outcomes; ids without an outcome show as `collected - ended`."""
        found = list(outcomes)
        numbers = {outcome.value: found.count(outcome) for outcome in TestOutcome}
        return cls(**numbers, collected=collected, deselected=deselected)

    def encode(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {name: getattr(self, name) for name in _NAMES}

    @classmethod
    def decode(cls, reader: Reader) -> Counts:
        """Return the counts at `reader`; raises `DecodeError` where more tests ended than were collected."""
        counts = cls(**{name: reader.integer(name) for name in _NAMES})
        if counts.ended > counts.collected:
            fail(reader.path, f"{counted(counts.ended, 'test')} ended but only {counts.collected} were collected")
        return counts


_NAMES = ("collected", "passed", "failed", "error", "skipped", "xfailed", "xpassed", "deselected")
