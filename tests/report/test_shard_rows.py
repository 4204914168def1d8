"""Rows of shards: short in every window, with what many share told once below, and nothing told twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gitledger.records.ids import Digest, ShardKey
from gitledger.report.shards import plan_text, verdict_text
from gitledger.report.text import finding_lines
from gitledger.verdict.finding import blocking
from gitledger.verdict.select import Choice
from gitledger.verdict.situation import TargetShard
from gitledger.verdict.union import Union

KEY = "SHA256:hKUZpbHue8EPaStT6U5D7+P4K/U6nSGc5B/zUmMVPJM"
GIST = f"a run of these inputs that {KEY} signed does not count (unknown-signer)"
FOR_WHOM = "expected a green receipt, fresh or carried"


def stale(name: str, reason: str = "untrusted", **words: object) -> Choice:
    digest = Digest("0" * 64)
    shard = TargetShard(key=ShardKey(name, None), definition=digest, digest_with=lambda _: digest)
    return Choice(shard=shard, verdict="stale", reason=reason, **words)


def by_a_stranger(number: int) -> Choice:
    record = f"{number:012x}"
    detail = f"record {record} of 2026-01-31 covers these inputs, but its signature does not count: {KEY}"
    return stale(f"shard-{number:02}", detail=detail, remark=f"{record}: unknown-signer", gist=GIST)


def union(*choices: Choice) -> Union:
    return Union(choices=choices, fields=(), faults=(), notes=(), revoked=frozenset())


def plan_lines(*choices: Choice, width: int | None = None) -> list[str]:
    return plan_text(union(*choices), (), commit="c" * 40, color=False, width=width).splitlines()


def verdict_lines(*choices: Choice, run: str = "git ledger run") -> list[str]:
    findings = [
        blocking(
            choice.reason,
            "6",
            choice.shard.key,
            expected="a green receipt, fresh or carried",
            found=choice.detail,
            remedy=f"git ledger record --shard {choice.shard.key} (with a key)",
            gist=choice.gist,
        )
        for choice in choices
    ]
    text = verdict_text(
        passed=False,
        commit="c" * 40,
        policy="self",
        union=union(*choices),
        findings=findings,
        ignored=[(f"{number:012x}", "unknown-signer") for number in range(len(choices))],
        color=False,
        run=run,
    )
    return text.splitlines()


@pytest.mark.parametrize("number", [3, 40])
@pytest.mark.parametrize("width", [80, 200, None])
def test_a_reason_that_many_shards_share_is_told_once_below_short_rows(number, width):
    lines = plan_lines(*map(by_a_stranger, range(number)), width=width)
    rows, rest = lines[1 : number + 1], lines[number + 1 :]
    assert rows[2] == "  ✗ shard-02  stale  untrusted  000000000002: unknown-signer"
    assert max(map(len, rows)) < 80
    more = " and 37 more" if number == 40 else ""
    assert rest[0] == f"  · shard-00, shard-01, shard-02{more}: {GIST} [untrusted]"
    assert rest[1:] == [f"0 fresh, 0 carryable, {number} stale"]


def test_shards_of_other_reasons_are_told_apart():
    other = replace(by_a_stranger(1), gist=GIST.replace("unknown-signer", "key-revoked"))
    lines = plan_lines(by_a_stranger(0), other, stale("plain", "never-recorded"))
    assert [line.partition(":")[0] for line in lines if line.startswith("  ·")] == ["  · shard-00", "  · shard-01"]


def test_a_detail_that_a_row_has_no_room_for_is_told_whole_below_and_one_that_fits_is_not():
    long = "pattern-unmatched: " + "nothing matches here " * 8
    lines = plan_lines(
        stale("broken", "malformed", detail=long), stale("old", "too-old", detail="older"), width=80
    )
    assert lines[1].startswith("  ✗ broken  stale  malformed  pattern-unmatched: ")
    assert lines[1].endswith("…")
    assert len(lines[1]) <= 80
    assert lines[2] == "  ✗ old     stale  too-old    older"
    assert lines[3:-1] == [f"  · broken: {long} [malformed]"]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_as_many_changed_paths_are_named_as_there_is_room_for_and_the_others_counted(width):
    paths = tuple(f"src/some/folder/module_{number}.py" for number in range(9))
    (row,) = (
        line for line in plan_lines(stale("a", "inputs-changed", changed_paths=paths), width=width) if "✗" in line
    )
    named = [path for path in paths if path in row]
    assert row.endswith(f"module_{max(len(named) - 1, 0)}.py and {9 - max(len(named), 1)} more")
    assert len(row) <= max(width, 66)
    assert len(named) == {40: 0, 80: 1, 120: 2}[width]


def test_a_verdict_says_of_a_shard_once_what_is_wrong_and_of_many_what_mends_all():
    other = stale("other", "never-recorded", detail="no run yet", changed_paths=("src/a.py",))
    lines = verdict_lines(*map(by_a_stranger, range(40)), other)
    assert sum(GIST in line for line in lines) == 1
    assert "  ✗ other     stale  never-recorded" in lines, "the finding tells the rest"
    assert f"      {FOR_WHOM}; try: git ledger run  # with a key" in lines
    assert f"      {FOR_WHOM}; try: git ledger record --shard other  # with a key" in lines
    assert "  · ignored 000000000000, 000000000001, 000000000002 and 38 more: unknown-signer" in lines
    assert len(lines) == 1 + 41 + 4 + 1 + 1


def test_what_mends_many_is_a_run_by_the_policy_that_judged():
    lines = verdict_lines(*map(by_a_stranger, range(2)), run="git ledger run --policy-from origin/main")
    assert f"      {FOR_WHOM}; try: git ledger run --policy-from origin/main  # with a key" in lines


def test_shards_of_one_reason_with_inputs_of_their_own_are_mended_by_one_line():
    changed = [stale(f"shard-{number}", "inputs-changed", detail=f"src/{number}.py") for number in range(4)]
    lines = verdict_lines(*changed)
    assert [line for line in lines if "src/" in line] == [
        f"  ✗ shard-{number}: src/{number}.py [inputs-changed]" for number in range(4)
    ]
    assert [line for line in lines if "try: " in line] == [f"      {FOR_WHOM}; try: git ledger run  # with a key"]


def test_what_no_run_of_stale_shards_would_mend_is_told_for_each():
    """Inputs that disagree are fresh: `git ledger run` would leave them as they are."""
    words = {"expected": "python 3.12 as in a", "found": "python 3.11"}
    findings = [
        blocking("inputs-disagree", "7", name, **words, remedy=f"git ledger record --shard {name}")
        for name in "bc"
    ]
    assert [line for line in finding_lines(findings, color=False) if "try:" in line] == [
        f"      expected python 3.12 as in a; try: git ledger record --shard {name}" for name in "bc"
    ]
