"""A receipt that contradicts itself can be neither written nor read: no green without green tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gitledger.records.outcomes import Counts, Outcome

CLAIM = ("predicate",)

GREEN_WITHOUT_GROUNDS = {
    "a reason against it": lambda r: replace(r, reasons=("timeout",)),
    "failed tests": lambda r: replace(r, counts=replace(r.counts, passed=96, failed=1)),
    "failed tests (error)": lambda r: replace(r, counts=replace(r.counts, passed=96, error=1)),
    "no tests": lambda r: replace(r, counts=Counts()),
    "tests that never ended": lambda r: replace(r, counts=replace(r.counts, passed=96)),
    "an unfinished session": lambda r: replace(r, session=replace(r.session, finished=False)),
    "a signal": lambda r: replace(r, session=replace(r.session, signal=11)),
    "no test results": lambda r: replace(r, bodies={"log": r.bodies["log"]}),
    "an exit status that is not 0": lambda r: replace(r, session=replace(r.session, exit_status=1)),
    "an exit status that is not 0 (none)": lambda r: replace(r, session=replace(r.session, exit_status=None)),
    "an exit status that is not 0 (unwitnessed)": lambda r: replace(
        r, session=replace(r.session, witnessed=False, exit_status=1)
    ),
}


@pytest.mark.parametrize(("fault", "change"), GREEN_WITHOUT_GROUNDS.items(), ids=GREEN_WITHOUT_GROUNDS.keys())
def test_a_green_receipt_without_grounds_is_not_written(receipt, refused, fault, change):
    error = refused(change(receipt).encode)
    assert error.code == "record-unreadable"
    assert f"$.predicate.outcome: passed, with {fault.partition(' (')[0]}" in error.message


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("reasons",), ["timeout"]),
        (("counts", "passed"), 96),
        (("session", "finished"), False),
        (("session", "signal"), 9),
        (("session", "exit_status"), 2),
        (("bodies",), {}),
    ],
)
def test_a_green_receipt_without_grounds_is_not_read_whoever_signed_it(claims, surgery, refused, path, value):
    shard = claims[0]
    message = refused(shard.read, surgery.put(shard.document(), CLAIM + path, value)).message
    assert message.startswith("$.predicate.outcome: passed, with ")


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.ERROR, Outcome.INCOMPLETE])
@pytest.mark.parametrize("change", GREEN_WITHOUT_GROUNDS.values(), ids=GREEN_WITHOUT_GROUNDS.keys())
def test_a_receipt_that_is_not_green_may_say_all_that(receipt, outcome, change):
    assert replace(change(receipt), outcome=outcome).encode()


def test_a_report_recorded_after_the_fact_has_no_exit_status(receipt):
    session = replace(receipt.session, witnessed=False, exit_status=None)
    assert replace(receipt, session=session).encode()


RED_OR_GREEN = {
    "$.predicate.counts: 101 tests ended": lambda r: replace(r, counts=replace(r.counts, passed=98)),
    "$.predicate.counts.collected: more than the full": lambda r: replace(
        r, collection=replace(r.collection, full_count=99)
    ),
    "$.predicate.repo.dirty: false, beside dirty paths": lambda r: replace(r, repo=replace(r.repo, dirty=False)),
    "$.predicate.session.ended_at: lies before": lambda r: replace(
        r, session=replace(r.session, ended_at=r.session.started_at - timedelta(microseconds=1))
    ),
    "$.predicate.session.mode: expected one of": lambda r: replace(r, session=replace(r.session, mode="CI")),
    "$.predicate.shard.split.index: expected 1 to 2": lambda r: replace(
        r, shard=replace(r.shard, split=replace(r.shard.split, index=3))
    ),
    "$.predicate.shard.attempt: expected 1": lambda r: replace(r, shard=replace(r.shard, attempt=0)),
}


@pytest.mark.parametrize(("message", "change"), RED_OR_GREEN.items(), ids=RED_OR_GREEN.keys())
@pytest.mark.parametrize("outcome", [Outcome.PASSED, Outcome.FAILED])
def test_a_receipt_that_contradicts_itself_is_refused_green_or_red(receipt, refused, message, change, outcome):
    assert message in refused(replace(change(receipt), outcome=outcome).encode).message


def test_a_receipt_is_about_the_commit_that_its_statement_names(claims, surgery, refused):
    for claim in claims[:2]:
        for field, digest in (("commit", "gitCommit"), ("tree", "gitTree")):
            elsewhere = surgery.put(claim.document(), ("subject", 0, "digest", digest), "a" * 40)
            assert refused(claim.read, elsewhere).message.startswith("$.predicate.repo: commit and tree"), field


def shard(merged, place, **changes):
    shards = list(merged.shards)
    shards[place] = replace(shards[place], **changes)
    return replace(merged, shards=tuple(shards))


def test_a_merge_of_nothing_is_not_a_pass(merged, refused):
    empty = replace(merged, shards=(), counts=Counts())
    for outcome in Outcome:
        assert "$.predicate.shards: no shards" in refused(replace(empty, outcome=outcome).encode).message


MERGED = {
    "$.predicate.shards: a shard is named twice": lambda m: shard(m, 1, key=m.shards[0].key),
    "$.predicate.outcome: passed, with a shard that did not": lambda m: shard(m, 0, outcome=Outcome.INCOMPLETE),
    "$.predicate.outcome: passed, with coverage under": lambda m: replace(
        m, coverage=replace(m.coverage, covered=100, passed=False)
    ),
    "$.predicate.coverage.passed: not what the integers": lambda m: replace(
        m, coverage=replace(m.coverage, covered=812)
    ),
    "$.predicate.coverage.threshold: expected more than 0": lambda m: replace(
        m, coverage=replace(m.coverage, threshold="0")
    ),
    "$.predicate.coverage.passed: a threshold": lambda m: replace(m, coverage=replace(m.coverage, threshold=None)),
    "$.predicate.coverage.covered: expected 0 to": lambda m: replace(
        m, coverage=replace(m.coverage, covered=1001)
    ),
    "$.predicate.session.ended_at: lies before": lambda m: replace(
        m, ended_at=m.started_at - timedelta(seconds=1)
    ),
    "$.predicate.counts: not the sum": lambda m: replace(m, counts=replace(m.counts, deselected=0)),
    "$.predicate.repo.dirty: not what the shards say": lambda m: replace(m, repo=replace(m.repo, dirty=False)),
    "$.predicate.shards[0].outcome: passed, with no tests": lambda m: shard(m, 0, counts=Counts()),
    "$.predicate.shards[1].outcome: passed, with": lambda m: shard(
        m, 1, counts=Counts(collected=5, passed=4, failed=1)
    ),
    "$.predicate.shards[1].outcome: passed, with no": lambda m: shard(m, 1, counts=Counts(collected=5, passed=4)),
    "$.predicate.shards[0].ended_at: lies before": lambda m: shard(
        m, 0, ended_at=m.started_at - timedelta(seconds=1)
    ),
    "$.predicate.shards[1].carried.original_commit: not": lambda m: shard(m, 1, commit=m.shards[0].commit),
}


@pytest.mark.parametrize(("message", "change"), MERGED.items(), ids=MERGED.keys())
def test_a_merged_receipt_that_contradicts_itself_is_refused(merged, refused, message, change):
    assert message in refused(change(merged).encode).message


def test_a_merged_receipt_of_a_failed_shard_is_written_as_failed(merged):
    failed = shard(merged, 0, outcome=Outcome.FAILED)
    assert replace(failed, outcome=Outcome.FAILED).encode()
