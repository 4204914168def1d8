"""The laws of the union, of lines and of trees (DESIGN section 2, law 1), and its limits (law 7)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitledger.errors import StoreError
from gitledger.records.ids import CommitId
from gitledger.records.limits import MAX_BODY_BYTES, MAX_LINE_BYTES, MAX_NOTE_BYTES, MAX_NOTE_LINES
from gitledger.store import union as union_module
from gitledger.store.notes_tree import NotesTrees
from gitledger.store.union import (
    Union,
    note_faults,
    require_body,
    require_line,
    split_lines,
    unite_lines,
)

note = st.lists(st.sampled_from([b"a", b"b", b"\xff\0 ", b"c\r", b"", b"  ", b'{"a":1}']), max_size=6).map(
    b"\n".join
)


@given(note, note, note)
def test_lines_unite_as_a_semilattice(a, b, c):
    assert unite_lines(a, b) == unite_lines(b, a)
    assert unite_lines(unite_lines(a, b), c) == unite_lines(a, unite_lines(b, c)) == unite_lines(a, b, c)
    assert unite_lines(a, a) == unite_lines(a) == unite_lines(unite_lines(a))
    assert split_lines([a, b]) == split_lines([unite_lines(a, b)])


@given(note, note)
def test_no_line_is_lost_or_changed(a, b):
    united = unite_lines(a, b)
    assert set(united.split(b"\n")) - {b""} == {line for x in (a, b) for line in x.split(b"\n") if line.strip()}
    assert united == b"" or united.endswith(b"\n")
    assert b"\n\n" not in united


def test_lines_are_sorted_unique_and_without_blanks():
    assert unite_lines(b"b\na\n\n", b"  \nb", b"") == b"a\nb\n"
    assert unite_lines() == b""


def test_s33_garbage_is_kept_as_it_is_and_hides_nothing():
    garbage = b"{\x00\xff not json\r"
    assert unite_lines(b"real\n", garbage) == b"real\n" + garbage + b"\n"


@pytest.mark.parametrize("line", [b"", b"  ", b"a\nb", b"a\n"])
def test_what_is_no_line_is_not_written(line):
    with pytest.raises(StoreError) as caught:
        require_line(line)
    assert caught.value.code == "not-a-line"


def test_limits_when_writing():
    require_line(b"x" * MAX_LINE_BYTES)
    with pytest.raises(StoreError) as caught:
        require_line(b"x" * (MAX_LINE_BYTES + 1))
    assert caught.value.code == "line-too-long"
    require_body(bytes(MAX_BODY_BYTES))
    with pytest.raises(StoreError) as caught:
        require_body(bytes(MAX_BODY_BYTES + 1))
    assert caught.value.code == "body-too-large"


def test_limits_when_reading_are_faults_each_with_its_code():
    commit = CommitId("1" * 40)
    assert note_faults(commit, b"x" * MAX_LINE_BYTES + b"\n" + b"y\n" * (MAX_NOTE_LINES - 1)) == ()
    codes = [fault.code for fault in note_faults(commit, b"y\n" * (MAX_NOTE_LINES + 1))]
    assert codes == ["note-too-many-lines"]
    codes = [fault.code for fault in note_faults(commit, b"x" * (MAX_LINE_BYTES + 1))]
    assert codes == ["line-too-long"]
    codes = [fault.code for fault in note_faults(commit, b"x" * (MAX_NOTE_BYTES + 1))]
    assert codes == ["note-too-large", "line-too-long"]


# Ids that share folders, at depths from flat to four, one object at several paths of one tree, foreign entries.
OIDS = ["abcd" + "0" * 36, "abcd" + "1" * 36, "ab00" + "2" * 36, "ff" + "3" * 38]
TEXTS = [b"a\n", b"b\n", b"b\na\n\n", b"a\nb\n", b"\x00garbage"]
records_paths = st.dictionaries(
    st.tuples(st.sampled_from(OIDS), st.integers(0, 4)), st.sampled_from(TEXTS), max_size=5
)
foreign = st.dictionaries(
    st.sampled_from(["README", "ab", "ab/x", "ab/cd/y", "abcd/z"]), st.sampled_from(TEXTS), max_size=2
)


def spelled(oid: str, depth: int) -> str:
    return "/".join([*(oid[2 * n : 2 * n + 2] for n in range(depth)), oid[2 * depth :]])


@pytest.fixture
def plant(objects, tree_of_paths):
    def do(placing, strange=None):
        paths = {spelled(oid, depth): objects.write_blob(text) for (oid, depth), text in placing.items()}
        for path, text in (strange or {}).items():
            if not any(known.startswith(path + "/") for known in paths):
                paths[path] = objects.write_blob(text)
        blocked = [path for path in paths if any(other.startswith(path + "/") for other in paths)]
        return tree_of_paths(objects, {path: blob for path, blob in paths.items() if path not in blocked})

    return do


@pytest.fixture
def union(objects):
    return Union(objects, NotesTrees(objects))


def content(union: Union, tree):
    """Return a records tree as what it means: lines by object."""
    notes = union.trees.notes([tree], lambda blob: ())
    lines = {oid: split_lines(union.objects.read_blob(blob) for blob in blobs) for oid, blobs in notes.items()}
    return {oid: found for oid, found in lines.items() if found}


hermetic = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@hermetic
@given(st.lists(st.tuples(records_paths, foreign), min_size=3, max_size=3))
def test_s33_trees_of_records_unite_as_a_semilattice_to_the_very_tree_id(plant, union, three):
    a, b, c = (plant(*parts) for parts in three)
    ab, bc = union.records([a, b]), union.records([b, c])
    assert ab == union.records([b, a])
    assert union.records([ab, c]) == union.records([a, bc]) == union.records([b, union.records([c, a])])
    assert union.records([ab, c]) == union.records([a, b, c])
    assert union.records([a, a]) == union.records([a]) == a
    assert union.records([ab, a]) == union.records([ab, ab]) == ab


@hermetic
@given(records_paths, records_paths)
def test_the_union_of_trees_has_the_lines_of_both_whatever_the_fan_out(plant, union, left, right):
    a, b = plant(left), plant(right)
    lines: dict[str, set[bytes]] = {}
    for (oid, _), text in [*left.items(), *right.items()]:
        lines.setdefault(oid, set()).update(split_lines([text]))
    joined = union.records([a, b])
    assert content(union, joined) == {oid: tuple(sorted(found)) for oid, found in lines.items()}
    flat = plant({(oid, 0): unite_lines(*found) for oid, found in lines.items()})
    assert content(union, union.records([flat, joined])) == content(union, joined)


true_bodies = st.lists(st.tuples(st.sampled_from(TEXTS), st.integers(0, 3)), max_size=3)
false_bodies = st.dictionaries(
    st.tuples(st.sampled_from(OIDS), st.integers(0, 3)), st.sampled_from(TEXTS), max_size=2
)


@pytest.fixture
def plant_bodies(objects, plant):
    def do(true, false=None):
        return plant({(objects.write_blob(text), depth): text for text, depth in true} | (false or {}))

    return do


@hermetic
@given(st.lists(true_bodies, min_size=3, max_size=3))
def test_s33_trees_of_bodies_unite_as_a_semilattice_to_the_very_tree_id(plant_bodies, union, three):
    a, b, c = map(plant_bodies, three)
    abc = union.bodies([union.bodies([a, b]), c])
    assert abc == union.bodies([a, union.bodies([b, c])]) == union.bodies([c, b, a])
    assert union.bodies([a, b]) == union.bodies([b, a])
    assert union.bodies([abc, a]) == abc == union.bodies([abc])


@hermetic
@given(st.lists(st.tuples(true_bodies, false_bodies), min_size=3, max_size=3))
def test_false_paths_change_nothing_in_what_a_union_of_bodies_holds(objects, plant_bodies, union, three):
    """Folders that are rewritten drop them; equal folders are taken unread, and readers ignore them."""
    a, b, c = (plant_bodies(*parts) for parts in three)
    true = {objects.write_blob(text) for texts, _ in three for text, _ in texts}
    for joined in (union.bodies([union.bodies([a, b]), c]), union.bodies([a, union.bodies([b, c])])):
        found = union.trees.notes([joined], lambda blob: ())
        assert {oid for oid, blobs in found.items() if oid in blobs} == true


def test_an_entry_whose_path_is_not_its_blobs_id_is_dropped(objects, plant, union, paths_of_tree):
    false = plant({(OIDS[0], 2): b"a\n"})
    blob = objects.write_blob(b"b\n")
    assert paths_of_tree(objects, union.bodies([false], [blob])) == {
        spelled(OIDS[0], 2): objects.write_blob(b"a\n"),
        spelled(blob, 2): blob,
    }
    near = plant({(blob[:4] + "0" * 36, 2): b"a\n"})
    assert paths_of_tree(objects, union.bodies([near], [blob])) == {spelled(blob, 2): blob}


def test_an_addition_may_not_make_a_note_exceed_its_limits(plant, union, monkeypatch):
    monkeypatch.setattr(union_module, "MAX_NOTE_LINES", 2)
    full = plant({(OIDS[0], 2): b"a\nb\n"})
    assert union.records([full], {CommitId(OIDS[0]): b"b\n"}) == full
    with pytest.raises(StoreError) as caught:
        union.records([full], {CommitId(OIDS[0]): b"c\n"})
    assert caught.value.code == "note-too-many-lines"


def test_a_note_of_others_over_the_limits_blocks_no_union(plant, union, monkeypatch):
    monkeypatch.setattr(union_module, "MAX_NOTE_LINES", 2)
    a, b = plant({(OIDS[0], 2): b"a\nb\nc\n"}), plant({(OIDS[0], 2): b"d\n"})
    assert content(union, union.records([a, b])) == {OIDS[0]: (b"a", b"b", b"c", b"d")}
