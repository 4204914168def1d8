"""Coverage of a union: exact arithmetic, and a refusal wherever a number would only look like one (section 8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.records.fragments import FileCoverage, Fragment, bits_of, encode_fragment
from gitledger.records.ids import ShardKey
from gitledger.verdict.coverage import percent, unite_files
from gitledger.verdict.situation import CoverageRule

A, B = "src/a.py", "src/b.py"


@pytest.fixture
def measure(blob):
    """Return a maker of fragments: executed lines by path, of sources that have ten statements each."""

    def make(executed: dict[str, Iterable[int]], *, sources=None, statements=range(1, 11), **changes) -> Fragment:
        files = tuple(
            FileCoverage(
                path=path,
                blob=blob((sources or {}).get(path, path)),
                statements=bits_of(statements),
                executed=bits_of(lines),
                **changes.get("branches", {}),
            )
            for path, lines in sorted(executed.items())
        )
        rest = {name: value for name, value in changes.items() if name != "branches"}
        return Fragment(**{"version": "7.17.5", "core": "CTracer", "branch": False, "files": files, **rest})

    return make


@pytest.fixture
def covered(world):
    """A world of two shards that measure two files of ten statements; the threshold is 50."""
    world.declare("l2")
    world.sources = {A: A, B: B}
    world.coverage = CoverageRule(threshold="50")
    return world


def claim(world):
    return world.union().coverage.claim


def record(world, one, two, **given):
    return world.record("l1", fragment=one, **given), world.record("l2", fragment=two, started=2)


def test_fragments_are_united_line_by_line_and_the_threshold_is_applied_once(covered, measure):
    record(covered, measure({A: range(1, 6), B: []}), measure({A: [5, 6], B: [1, 2, 3, 4]}))
    found = claim(covered)
    assert (found.covered, found.total, found.threshold, found.passed) == (10, 20, "50", True)
    assert covered.codes() == set()


def test_where_a_measured_shard_has_nothing_the_threshold_is_said_to_be_unjudged(covered, measure):
    world = covered
    world.record("l1", fragment=measure({A: range(1, 11), B: range(1, 11)}))
    assert claim(world) is None
    assert world.codes() == {"never-recorded"}
    assert world.codes(blocking=False) == {"coverage-unjudged"}
    (found,) = (item for item in world.judge().findings if item.code == "coverage-unjudged")
    assert found.found == "not judged, nothing stands for l2"
    world.coverage = CoverageRule()
    assert world.codes(blocking=False) == set()
    world.coverage = CoverageRule(threshold="50")
    world.record("l2", fragment=measure({A: [1]}), started=2)
    assert world.codes() == world.codes(blocking=False) == set()


def test_under_the_threshold_the_verdict_fails_and_a_merge_is_written_as_failed(covered, measure):
    record(covered, measure({A: [1], B: []}), measure({A: [2], B: [3]}))
    assert covered.codes() == {"coverage-under"}
    receipt = covered.situation()
    assert receipt.coverage.threshold == "50"
    covered.merge()
    held = covered.situation().snapshots[0].receipt
    assert (held.outcome.value, held.coverage.covered, held.coverage.passed) == ("failed", 3, False)


def test_f02_only_the_threshold_changes_and_the_verdict_is_computed_anew(covered, measure):
    record(covered, measure({A: range(1, 6)}), measure({B: range(1, 6)}))
    for threshold, codes in (("50", set()), ("50.1", {"coverage-under"}), ("100", {"coverage-under"})):
        covered.coverage = CoverageRule(threshold=threshold)
        assert covered.codes() == codes


def test_c04_nothing_measured_meets_no_threshold(covered, measure):
    record(covered, measure({}), measure({}))
    assert "coverage-empty" in covered.codes()
    assert claim(covered) is None


def test_a_threshold_over_shards_of_which_none_measures_is_not_a_pass(covered):
    covered.declare("l1", "l2", measured=False)
    covered.record("l1")
    covered.record("l2", started=2)
    assert covered.codes() == {"coverage-empty"}


def test_c01_a_missing_fragment_is_named_whatever_the_others_add_up_to(covered, measure):
    covered.record("l1", fragment=measure({A: range(1, 11), B: range(1, 11)}))
    covered.record("l2", started=2)
    assert covered.codes() == {"coverage-missing"}
    assert covered.stands("l2") == ("stale", "coverage-missing")
    assert claim(covered) is None


def test_c01_of_a_failed_shard_too(covered, measure):
    covered.record("l1", fragment=measure({A: range(1, 11)}))
    covered.record("l2", started=2, outcome="failed")
    assert covered.codes() == {"not-green", "coverage-missing"}


def test_a_shard_that_says_coverage_none_needs_no_fragment(covered, measure):
    covered.declare("l2", measured=False)
    covered.record("l1", fragment=measure({A: range(1, 11)}))
    covered.record("l2", started=2)
    assert covered.codes() == set()
    assert (claim(covered).covered, claim(covered).total) == (10, 10)


def test_an_older_green_without_a_fragment_is_not_carried(covered, measure):
    covered.record("l1", fragment=measure({A: range(1, 11)}))
    covered.record("l2", on="parent")
    assert covered.stands("l2") == ("stale", "coverage-missing")


def broken(fragment: Fragment) -> dict[str, bytes]:
    good = encode_fragment(fragment)
    return {"empty": b"", "truncated": good[:-5], "garbage": b"SQLite format 3\0", "version": b"\x09" + good[1:]}


@pytest.mark.parametrize("how", ["empty", "truncated", "garbage", "version"])
def test_c01_an_unreadable_fragment_is_refused(covered, measure, how):
    bad = broken(measure({B: range(1, 11)}))[how]
    record(covered, measure({A: range(1, 11)}), bad)
    assert covered.codes() == {"coverage-unreadable"}
    assert claim(covered) is None


def test_c01_a_fragment_that_is_not_here_is_refused(covered, measure):
    fragment = measure({B: range(1, 11)})
    record(covered, measure({A: range(1, 11)}), fragment)
    for oid, content in list(covered.bodies.items()):
        if content == encode_fragment(fragment):
            del covered.bodies[oid]
    assert covered.codes() == {"coverage-unreadable"}


def test_c01_another_fragment_than_the_receipt_names_is_refused(covered, measure):
    """It can be read; only its digest says that it is not what the run measured."""
    fragment = measure({B: [1]})
    record(covered, measure({A: range(1, 11)}), fragment)
    for oid, content in list(covered.bodies.items()):
        if content == encode_fragment(fragment):
            covered.bodies[oid] = encode_fragment(measure({B: range(1, 11)}))
    assert covered.codes() == {"coverage-unreadable"}


def test_c02_two_shards_with_identical_fragments_both_count_as_present(covered, measure):
    record(covered, measure({A: range(1, 11)}), measure({A: range(1, 11)}))
    assert covered.codes() == set()
    assert (claim(covered).covered, claim(covered).total) == (10, 10)


def test_c03_branches_in_one_shard_only_are_refused(covered, measure):
    record(covered, measure({A: range(1, 11)}), measure({A: range(1, 11)}, branch=True))
    assert covered.codes() == {"coverage-branch"}


def test_versions_of_coverage_that_differ_are_refused_and_cores_are_said(covered, measure):
    record(covered, measure({A: range(1, 11)}), measure({A: range(1, 11)}, version="7.16.0"))
    assert covered.codes() == {"coverage-versions"}
    record(covered, measure({A: range(1, 11)}), measure({A: range(1, 11)}, core="SysMonitor"), started=4)
    covered.record("l2", started=8, fragment=measure({A: range(1, 11)}, core="SysMonitor"))
    assert covered.codes() == set()
    assert "coverage-core" in covered.codes(blocking=False)


def test_c06_another_source_than_the_commits_is_refused_where_it_was_measured_here(covered, measure):
    record(covered, measure({A: range(1, 11)}), measure({B: range(1, 11)}, sources={B: "edited"}))
    assert covered.codes() == {"coverage-source"}


def test_c06_and_dropped_and_said_where_it_was_carried(covered, measure):
    old = measure({A: range(1, 11), B: range(1, 11)}, sources={A: "as it was"})
    covered.record("l1", on="parent", fragment=old)
    covered.record("l2", fragment=measure({A: [1], B: []}))
    assert covered.codes() == set()
    assert (claim(covered).covered, claim(covered).total) == (11, 20)
    note = next(item for item in covered.judge().findings if item.code == "coverage-cut")
    assert (note.subject, A in note.found) == ("l1", True)


def test_a_changed_file_that_nobody_measured_anew_does_not_vanish_from_the_total(covered, measure):
    covered.record("l1", on="parent", fragment=measure({A: [], B: range(1, 11)}, sources={A: "as it was"}))
    covered.record("l2", fragment=measure({B: range(1, 11)}))
    assert covered.codes() == {"coverage-unmeasured"}
    del covered.sources[A]
    assert covered.codes() == set()


def test_one_source_analysed_in_two_ways_is_refused(covered, measure):
    record(covered, measure({A: [1]}), measure({A: [1]}, statements=range(1, 3)))
    assert covered.codes() == {"coverage-disagrees"}


def test_other_versions_of_python_may_see_other_statements_and_all_count(covered, measure):
    covered.merge_environment = "off"
    covered.record("l1", fragment=measure({A: range(1, 11)}, statements=range(1, 11)))
    covered.record(
        "l2",
        started=2,
        fragment=measure({A: range(2, 12)}, statements=range(2, 12)),
        environment={"python": "3.13.0"},
    )
    assert covered.codes() == set()
    assert (claim(covered).covered, claim(covered).total) == (11, 11)


def test_several_shards_of_each_version_of_python_are_held_to_their_own_version(covered, measure):
    """Each of the second pair sees what its version saw before, though by then the union is of both."""
    covered.declare("l3", "l4")
    covered.merge_environment = "off"
    for place, (shard, first) in enumerate({"l1": 1, "l2": 2, "l3": 1, "l4": 2}.items()):
        lines = range(first, first + 10)
        python = {"python": f"3.{11 + first}.0"}
        fragment = measure({A: lines}, statements=lines)
        covered.record(shard, started=2 * place, fragment=fragment, environment=python)
    assert covered.codes() == set()
    assert (claim(covered).covered, claim(covered).total) == (11, 11)
    lines = range(3, 13)  # what no shard of its version saw
    covered.record("l4", started=20, fragment=measure({A: lines}, statements=lines), environment=python)
    assert covered.codes() == {"coverage-disagrees"}


def test_without_a_threshold_faults_are_notes_and_there_is_no_number(covered, measure):
    covered.coverage = CoverageRule()
    covered.record("l1", fragment=measure({A: range(1, 11)}))
    covered.record("l2", started=2)
    assert claim(covered) is None
    assert covered.codes() == set()
    assert "coverage-missing" in covered.codes(blocking=False)
    covered.record("l2", started=4, fragment=measure({A: range(1, 11)}))
    assert (claim(covered).covered, claim(covered).threshold, claim(covered).passed) == (10, None, None)


def test_a_snapshot_whose_coverage_is_not_what_stands_now_is_outdated(covered, measure):
    record(covered, measure({A: range(1, 11)}), measure({B: range(1, 11)}))
    covered.merge()
    assert covered.codes(blocking=False) == set()
    covered.coverage = CoverageRule(threshold="10")
    assert covered.codes(blocking=False) == set()
    covered.declare("l2", measured=False)
    assert covered.codes(blocking=False) == {"snapshot-outdated"}


@pytest.mark.parametrize(
    ("covered_", "total", "text"), [(2, 3, "66.66"), (999, 1000, "99.90"), (1, 1, "100.00"), (0, 0, "0")]
)
def test_the_percentage_is_never_rounded_up(covered_, total, text):
    from gitledger.records.merged import CoverageClaim

    assert percent(CoverageClaim(covered=covered_, total=total, threshold=None, precision=0, passed=None)) == text


RUN = st.tuples(st.frozensets(st.integers(1, 9)), st.frozensets(st.integers(0, 5)))
POSSIBLE = [(line, line + step) for line in (1, 4, 7) for step in (1, 2)]


def file_of(run) -> FileCoverage:
    lines, arcs = run
    taken = frozenset(POSSIBLE[place] for place in arcs)
    return FileCoverage(
        path=A,
        blob="a" * 40,
        statements=bits_of(range(1, 10)),
        executed=bits_of(lines),
        branches=len(POSSIBLE),
        taken=taken,
        untaken=frozenset(POSSIBLE) - taken,
    )


def unite(*runs):
    parts = [(ShardKey(f"s{place}"), None, (file_of(run),)) for place, run in enumerate(runs)]
    files, faults = unite_files(parts)
    assert not faults
    return files[0]


@given(st.lists(RUN, min_size=1, max_size=5), st.randoms())
def test_law_the_union_is_that_of_the_sets_in_any_order(runs, random):
    found = unite(*runs)
    lines = frozenset().union(*(run[0] for run in runs))
    arcs = frozenset().union(*(run[1] for run in runs))
    assert found == file_of((lines, arcs))
    assert (found.covered, found.total) == (len(lines) + len(arcs), 9 + 6)
    random.shuffle(runs)
    assert unite(*runs) == found == unite(*runs, *runs)


def test_c06_lines_of_two_sources_are_never_united():
    one, other = file_of(({1}, ())), replace(file_of(({2}, ())), blob="b" * 40)
    _, (fault,) = unite_files([(ShardKey("s0"), None, (one,)), (ShardKey("s1"), None, (other,))])
    assert (fault.code, fault.subject) == ("coverage-disagrees", "s1")
