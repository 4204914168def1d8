"""What a forge shows of a verdict: within its limits, and driven by nobody who named a test."""

from __future__ import annotations

from gitledger.report.summary import cell, summary_text
from gitledger.report.summary_annotations import MAX_ANNOTATIONS, annotation_lines
from gitledger.verdict.finding import Finding, blocking, note

HOSTILE = "a|b\n## c <img src=x> `d` [e](f) @g \u202e \x1b[31m ::error::h"
DOCUMENT = {
    "verdict": "failed",
    "commit": "c" * 40,
    "judged": "the head of pull request 7",
    "policy": {"from": "origin/main", "commit": "d" * 40},
    "shards": [],
}


def finding(subject: str = "s"):
    return blocking("never-recorded", "7", subject, expected="e", found="f", remedy="r")


def test_a_name_from_outside_is_shown_and_does_nothing():
    shown = cell(HOSTILE)
    assert not set(shown) & set("\\`*_[]<>|~!@\n\x1b\u202e")
    line = summary_text(DOCUMENT, [finding(HOSTILE)]).splitlines()
    assert sum("never-recorded" in text for text in line) == 1
    (command,) = annotation_lines([finding(HOSTILE)])
    assert "\n" not in command
    assert "%0A" in command


def test_a_summary_stays_below_what_the_forge_drops_and_says_what_is_missing():
    rows = [
        {
            "name": f"shard-{number}-" + "é" * 150,
            "variant": None,
            "verdict": "stale",
            "reason": "r",
            "outcome": None,
        }
        for number in range(3_000)
    ]
    text = summary_text(
        {**DOCUMENT, "shards": rows}, [finding()] * 3_000 + [note("n", "7", "s", expected="", found="")]
    )
    assert len(text.encode()) < 1 << 20
    assert "more lines of shards: `git ledger verify` shows all" in text
    small = summary_text({**DOCUMENT, "shards": rows}, [finding()], limit=5_000)
    assert len(small.encode()) <= 5_000
    assert small.startswith("## ❌")


def test_of_eleven_annotations_ten_are_shown_and_the_last_says_so():
    assert len(annotation_lines([finding()] * MAX_ANNOTATIONS)) == MAX_ANNOTATIONS
    lines = annotation_lines([finding()] * (MAX_ANNOTATIONS + 5))
    assert len(lines) == MAX_ANNOTATIONS
    assert lines[-1].endswith("::6 more findings, in this step's log")
    assert annotation_lines([note("n", "7", "s", expected="", found="")]) == []


def test_a_finding_about_a_line_of_a_file_is_shown_there():
    (command,) = annotation_lines([finding("line 12, job gate")], file="a,b.yml")
    assert command.startswith("::error file=a%2Cb.yml,line=12,title=")


def test_what_many_shards_share_is_an_item_and_so_is_what_mends_them():
    """Forty lines of the same hide the one that is another."""

    def asking(code: str, name: str, found: str) -> Finding:
        remedy = f"git ledger record --shard {name}"
        return blocking(code, "6", name, expected="a green receipt", found=found, remedy=remedy)

    same = [asking("never-recorded", f"s{number:02}", "never recorded") for number in range(40)]
    own = [asking("inputs-changed", name, f"src/{name}") for name in ("x", "y")]
    lines = summary_text(DOCUMENT, [*same, *own], run="git ledger run --policy-from main").splitlines()
    mending = "expected a green receipt; try: git ledger run --policy-from main"
    assert "### 42 reasons against it" in lines
    start = lines.index("### 42 reasons against it") + 2
    assert lines[start : start + 4] == [
        f"- **never-recorded** s00, s01, s02 and 37 more: never recorded; {mending}",
        "- **inputs-changed** x: src/x",
        "- **inputs-changed** y: src/y",
        f"  - of each of these: {mending}",
    ]
