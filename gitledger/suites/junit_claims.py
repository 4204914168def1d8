"""What a JUnit report says beside its tests' own elements: words of attributes, and the counts of its suites.

Words come from CTest, GoogleTest (`result="suppressed"`), Ginkgo, behave and Pester. A count may be too small:
pytest writes two cases for a call and a teardown that failed, outer suites may leave inner ones out. What counts
more than it holds has lost a test, or hides one: libtest and gotestsum can leave out what was skipped.

Three writers count something else under `tests`: pytest subtests as well (junitxml.py, `add_stats`), Catch2 and
doctest assertions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gitledger.dataclass import dataclass
from gitledger.records.decode import shown
from gitledger.records.outcomes import TestOutcome

__all__ = ["Claims", "word_outcome"]

_RAN = frozenset({"completed", "executed", "ok", "pass", "passed", "run", "success", "succeeded", "successful"})
_SKIPPED = frozenset({"disabled", "ignored", "notrun", "pending", "skip", "skipped", "suppressed", "untested"})
_FAILED = frozenset({"fail", "failed", "failure"})
_SKIP_COUNTS = ("skipped", "disabled", "ignored", "skips", "skip")


def word_outcome(word: str) -> TestOutcome | None:
    """Return what a test's `status` or `result` says of its end, None where nothing speaks against it.

    A word that nobody here knows is an error: it must not pass for a pass.
    """
    plain = word.strip().lower().replace("_", "").replace("-", "")
    if not plain or plain in _RAN:
        return None
    if plain in _SKIPPED:
        return TestOutcome.SKIPPED
    return TestOutcome.FAILED if plain in _FAILED else TestOutcome.ERROR


@dataclass(slots=True)
class _Suite:
    tests: int
    skips: int
    cases: int = 0
    skipped: int = 0


@dataclass(slots=True)
class Claims:
    """The suites that are open, each with what it counts and what it held so far; `faults` are in words."""

    faults: list[str] = field(default_factory=list)
    _open: list[_Suite] = field(default_factory=list)
    _is_pytest: bool = False

    def open(self, attributes: Mapping[str, str]) -> None:
        """Begin a suite."""
        name = attributes.get("name")
        self._is_pytest = self._is_pytest or name in ("pytest", "pytest tests")
        counts_tests = not (self._is_pytest or _counts_assertions(attributes))
        self._open.append(
            _Suite(
                tests=self._number("tests", attributes) if counts_tests else 0,
                skips=max(self._number(count, attributes) for count in _SKIP_COUNTS),
            )
        )

    def case(self, skips: int) -> None:
        """Count a test of the suite that is open; it may hold several skips (pytest's subtests)."""
        self._open[-1].cases += 1
        self._open[-1].skipped += skips

    def close(self) -> None:
        """End a suite; an outer one may count the tests of an inner one, or not."""
        suite = self._open.pop()
        for held, claimed, what in ((suite.cases, suite.tests, "tests"), (suite.skipped, suite.skips, "skipped")):
            if claimed > held:
                self.faults.append(f"it counts {claimed} {what} where it holds {held}")
        if self._open:
            self._open[-1].cases += suite.cases
            self._open[-1].skipped += suite.skipped

    def _number(self, name: str, attributes: Mapping[str, str]) -> int:
        text = attributes.get(name, "").strip() or "0"
        if text.isascii() and text.isdigit() and len(text) < 20:
            return int(text)
        self.faults.append(f"{name} is no number: {shown(text)}")
        return 0


def _counts_assertions(attributes: Mapping[str, str]) -> bool:
    """Tell Catch2 (whose host is always `tbd`) and doctest."""
    return attributes.get("hostname") == "tbd" or "doctest_version" in attributes
