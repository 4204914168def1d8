"""What a child says of coverage, and what its reader answers, taken as something that anybody may have written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gitledger.records.fragments import lines_of
from gitledger.suites.measured import MeasureError, facts_of, fragment_from, prepare_reading, read_answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "coverage").mkdir()
    return tmp_path


@pytest.fixture
def facts(folder: Path):
    """Return a writer of the child's facts."""

    def write(**changes):
        known = {
            "branch": True,
            "config_file": None,
            "core": "CTracer",
            "cwd": str(folder),
            "data_file": str(folder / "coverage" / "data"),
            "executable": "python",
            "version": "7.17.5",
        }
        (folder / "measured").write_text(json.dumps({**known, **changes}))
        return facts_of(folder)

    return write


def row(**changes):
    known = {
        "branches": 2,
        "executed": [1, 2],
        "missing": [3],
        "path": "src/a.py",
        "taken": [[1, 2]],
        "untaken": [[1, 3]],
        "covered": [2, 1],
    }
    return {**known, **changes}


def answer(*rows, **changes):
    return {"branch": True, "files": list(rows), "outside": [], "outside_count": 0, "version": "7.17.5", **changes}


def blobs(paths):
    return dict.fromkeys(paths, "a" * 40)


def test_a_run_that_measured_nothing_says_nothing(folder):
    assert facts_of(folder) is None


def test_a_data_file_that_earlier_runs_may_have_written_is_not_taken(folder, facts):
    for elsewhere in ("/tree/.coverage", str(folder / "data"), "", str(folder / "coverage" / "x" / "data")):
        with pytest.raises(MeasureError) as caught:
            facts(data_file=elsewhere)
        assert caught.value.code == "coverage-elsewhere"


@pytest.mark.parametrize("text", ["", "[]", "{}", "\xff", '{"branch": 1}', "[" * 9999])
def test_facts_that_are_none_are_a_named_error(folder, text):
    (folder / "measured").write_text(text, encoding="latin-1")
    with pytest.raises(MeasureError):
        facts_of(folder)


def test_nothing_saved_is_nothing_read(folder, facts):
    found = facts()
    assert prepare_reading(found, folder, root=folder, tracked=[]) is None
    (folder / "coverage" / "data").write_bytes(b"x")
    argv, place = prepare_reading(found, folder, root=folder, tracked=["a.py", "b\udcff.py"])
    assert argv[0] == "python"
    assert (place.parent / "tracked").read_bytes() == b"a.py\0b\xff.py"


@pytest.mark.parametrize("text", [None, "", "[1]", '{"error": "DataError: no"}'])
def test_an_answer_that_is_none_is_a_named_error(folder, text):
    if text is not None:
        (folder / "answer").write_text(text)
    with pytest.raises(MeasureError, match=r"can't be read|could not read"):
        read_answer(folder / "answer")


def test_an_answer_becomes_a_fragment(facts):
    fragment = fragment_from(answer(row()), facts(), blobs)
    (file,) = fragment.files
    assert (lines_of(file.statements), lines_of(file.executed)) == ([1, 2, 3], [1, 2])
    assert (file.covered, file.total, fragment.core) == (3, 5, "CTracer")


def test_one_file_under_two_names_is_one_file(facts):
    other = row(executed=[3], missing=[1, 2], taken=[[1, 3]], untaken=[[1, 2]], covered=[1, 1])
    (file,) = fragment_from(answer(row(), other), facts(), blobs).files
    assert (file.covered, file.total) == (5, 5)
    with pytest.raises(MeasureError, match="other statements"):
        fragment_from(answer(row(), row(missing=[3, 4])), facts(), blobs)


BAD = {
    "a line both executed and missing": (row(missing=[2, 3]), {}),
    "counts that are not its lines": (row(covered=[3, 1]), {}),
    "counts that are not its branches": (row(covered=[2, 2]), {}),
    "a line of text": (row(executed=["1"]), {}),
    "a line out of range": (row(executed=[1 << 40]), {}),
    "a branch of three": (row(taken=[[1, 2, 3]]), {}),
    "no path": ({key: value for key, value in row().items() if key != "path"}, {}),
    "a path that leaves": (row(path="../a.py"), {}),
    "another version": (row(), {"version": "7.4.0"}),
    "lines, where the run said branches": (row(), {"branch": False}),
}


@pytest.mark.parametrize(("item", "changes"), BAD.values(), ids=BAD.keys())
def test_an_answer_that_contradicts_itself_is_a_named_error(facts, item, changes):
    with pytest.raises(MeasureError, match="contradicts itself"):
        fragment_from(answer(item, **changes), facts(), blobs)
