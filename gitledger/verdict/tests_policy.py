"""What policy demands of single tests: skips that were expected, tests that must have run, checks that held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gitledger.dataclass import dataclass
from gitledger.records.ids import NodeId, ShardKey
from gitledger.records.outcomes import TestOutcome
from gitledger.verdict.finding import Finding, blocking, note
from gitledger.verdict.memory import Memory
from gitledger.verdict.pins import accepting
from gitledger.verdict.results import told
from gitledger.verdict.select import Choice

__all__ = ["TestLists", "judge_tests"]

_PASSING = frozenset({TestOutcome.PASSED, TestOutcome.XPASSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class TestLists:
    """The files that policy names, as sets of node ids; None where policy names none.

    `pinned` are the shards of the policy's ref where these alone may answer for a required test: a shard that the
    judged change adds is the change's own word. None: every shard may. `source` is that ref as it is
    typed.
    """

    __test__ = False

    expected_skips: frozenset[str] | None = None
    required_tests: frozenset[str] | None = None
    allow_skipped: bool = False
    pinned: frozenset[ShardKey] | None = None
    source: str = "origin/main"

    @property
    def names_tests(self) -> bool:
        """Tell whether policy names any tests at all."""
        return self.expected_skips is not None or self.required_tests is not None


def judge_tests(choices: Iterable[Choice], lists: TestLists, memory: Memory) -> Iterator[Finding]:
    """Yield what the results of the union leave to be desired, one finding a shard or list."""
    ran: dict[NodeId, set[TestOutcome]] = {}
    passed_in: dict[str, set[ShardKey]] = {}
    for choice in choices:
        said = told(choice.results, memory)
        yield from _skips(choice, said.skipped, lists)
        yield from _checks(choice, said.failed_checks)
        for item in choice.results if lists.names_tests else ():
            ran.setdefault(item.node_id, set()).add(item.outcome)
            if item.outcome in _PASSING:
                passed_in.setdefault(item.node_id, set()).add(choice.shard.key)
    yield from _stale_skips(ran, lists)
    yield from _required(passed_in, lists)


def _some(ids: Iterable[str]) -> str:
    listed = sorted(ids)
    more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
    return ", ".join(ascii(item)[1:-1] for item in listed[:3]) + more


def _skips(choice: Choice, skipped: Sequence[NodeId], lists: TestLists) -> Iterator[Finding]:
    unexpected = [item for item in skipped if item not in (lists.expected_skips or frozenset())]
    if not unexpected:
        return
    make = note if lists.allow_skipped else blocking
    yield make(
        "skipped-tests",
        "11",
        choice.shard.key,
        expected="no skipped tests but those in policy.expected_skips",
        found=f"{len(unexpected)} skipped: {_some(unexpected)}",
        remedy="list them in policy.expected_skips, or say --allow-skipped",
    )


def _stale_skips(ran: Mapping[NodeId, set[TestOutcome]], lists: TestLists) -> Iterator[Finding]:
    """Yield entries of the skip list that did not skip: the list is exact, so that it can't rot."""
    stale = [
        item
        for item in lists.expected_skips or frozenset()
        if TestOutcome.SKIPPED not in ran.get(NodeId(item), set())
    ]
    if stale:
        yield blocking(
            "expected-skip-stale",
            "11",
            "policy.expected_skips",
            expected="every listed test to be skipped",
            found=f"{len(stale)} were not: {_some(stale)}",
            remedy="take them out of the list",
        )


def _required(passed_in: Mapping[str, set[ShardKey]], lists: TestLists) -> Iterator[Finding]:
    """Yield where the tests that passed are not exactly those listed.

    An expected failure is none: a change must not free a required test by marking it `xfail`. Skipped tests and
    expected failures that the list does not name are no matter of this list.
    """
    if lists.required_tests is None:
        return
    missing = [item for item in lists.required_tests if not _counted(passed_in.get(item, set()), lists)]
    if missing or not lists.required_tests:
        found = f"{len(missing)} did not pass or are not there: {_some(missing)}" if missing else "an empty list"
        added = {key for item in missing for key in passed_in.get(item, ())}
        if added:
            found += (
                f"; passing in {_some(map(str, added))} doesn't count: the policy's ref declares no such shard"
            )
        yield blocking(
            "required-tests",
            "11",
            "policy.required_tests",
            expected="every listed test to have passed",
            found=found,
            remedy=accepting(lists.source) if added else "record the shard that holds them, or mend the list",
        )
    extra = passed_in.keys() - lists.required_tests
    if extra:
        yield blocking(
            "required-tests-stale",
            "11",
            "policy.required_tests",
            expected="the list to name every test that passed",
            found=f"{len(extra)} are not in it: {_some(extra)}",
            remedy="add them to the list",
        )


def _counted(shards: set[ShardKey], lists: TestLists) -> set[ShardKey]:
    return shards if lists.pinned is None else shards & lists.pinned


def _checks(choice: Choice, failed: Sequence[str]) -> Iterator[Finding]:
    if failed:
        yield blocking(
            "check-failed",
            "11",
            choice.shard.key,
            expected="every comparison check to hold",
            found=f"{len(failed)} failed: {_some(failed)}",
            remedy="git ledger show --tests --failed",
        )
