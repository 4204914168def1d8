"""A part on the recorder's side: was it just that part, and what every part sees counts once."""

from __future__ import annotations

import pytest

from gitledger.records.bodies import TestResult
from gitledger.records.outcomes import TestOutcome
from gitledger.records.receipt import Split
from gitledger.suites.cut import read_durations
from gitledger.suites.part import is_the_part, of_part, with_companion
from gitledger.suites.result import conclude

FULL = [f"t/test_{name}.py::test_{n}" for name in "abc" for n in (1, 2)]
NO_DURATIONS = read_durations(None)


def run(selected, *, full=FULL, whole=()):
    """A green run of `selected` from `full`, with files that were skipped as a whole."""
    results = [TestResult(node_id=name, outcome=TestOutcome.PASSED) for name in selected]
    results += [TestResult(node_id=name, outcome=TestOutcome.SKIPPED, phase="collect") for name in whole]
    return conclude(
        reasons=(), results=results, full_ids=[*full, *whole], selected_ids=[*selected, *whole], finished=True
    )


@pytest.mark.parametrize("index", [1, 2, 3])
def test_the_part_is_recognised_whatever_order_it_ran_in(index):
    mine = FULL[2 * index - 2 : 2 * index]
    for selected in (mine, mine[::-1]):
        assert is_the_part(run(selected), Split(index=index, total=3), NO_DURATIONS)


@pytest.mark.parametrize(
    "selected",
    [FULL[:1], FULL[:3], FULL[2:4], [], FULL, [FULL[0], FULL[0]]],
    ids=["one dropped", "one too many", "another part", "nothing", "everything", "one twice"],
)
def test_whatever_else_ran_is_not_the_part(selected):
    assert not is_the_part(run(selected), Split(index=1, total=3), NO_DURATIONS)


def test_other_durations_make_it_another_part():
    durations = NO_DURATIONS._replace(tests_us={FULL[0]: 10**9})
    assert is_the_part(run(FULL[2:]), Split(index=2, total=2), durations)
    assert not is_the_part(run(FULL[4:]), Split(index=2, total=2), durations)


def test_more_parts_than_files_are_nobodys_part():
    assert not is_the_part(run(FULL[:2]), Split(index=1, total=4), NO_DURATIONS)


def test_a_file_that_was_skipped_as_a_whole_counts_in_the_first_part_alone():
    parts = []
    for index in (1, 2, 3):
        found = run(FULL[2 * index - 2 : 2 * index], whole=["t/test_z.py"])
        split = Split(index=index, total=3)
        assert is_the_part(found, split, NO_DURATIONS)
        parts.append(of_part(found, split))
    assert [part.counts.skipped for part in parts] == [1, 0, 0]
    assert [part.counts.collected for part in parts] == [3, 2, 2]
    assert len({part.full_digest for part in parts}) == 1
    ids = [item.node_id for part in parts for item in part.results]
    assert sorted(ids) == sorted([*FULL, "t/test_z.py"])
    assert all(part.counts.collected + part.counts.deselected == 7 for part in parts)


def test_the_child_gets_its_part_its_durations_and_a_data_file_of_its_own(tmp_path):
    env = with_companion(
        {"PYTEST_PLUGINS": "mine", "COVERAGE_FILE": "/elsewhere"},
        folder=tmp_path,
        split=Split(index=2, total=3),
        durations=b"{}",
    )
    assert env["GITLEDGER_PART"] == "2/3"
    assert env["PYTEST_PLUGINS"] == "mine,_gitledger_companion_plugin"
    assert env["COVERAGE_FILE"] == str(tmp_path / "coverage" / "data")
    assert (tmp_path / "durations").read_bytes() == b"{}"
    names = sorted(path.stem.removeprefix("_gitledger_") for path in tmp_path.glob("*.py"))
    assert names == ["companion", "companion_plugin", "cut"]
