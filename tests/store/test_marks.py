"""Marks and the file that keeps them: believed only as a whole, by the same rules, and from the same user."""

from __future__ import annotations

import fcntl
import os
import random
from pathlib import Path

import pytest

from gitledger.records.ids import BlobId, CommitId, TreeId
from gitledger.store.marks import MARK_BYTES, Marks, look, look_again
from gitledger.store.marks_file import read_marks, write_marks

RULES = "rules"
NONE = Marks(id_bytes=20)


def mark(kind: int, what: int = 0) -> bytes:
    return bytes([kind]) + what.to_bytes(MARK_BYTES - 1, "big")


def oid(number: int) -> str:
    return f"{number:08x}" * 5


MARKS_OF = {BlobId(oid(n)): frozenset({mark(1, n % 2), mark(2, n)} if n % 3 else ()) for n in range(9)}
NOTES = {oid(100 + n): frozenset({BlobId(oid(n))}) for n in range(8)} | {
    oid(200): frozenset({BlobId(oid(1)), BlobId(oid(8))})
}
PLACES = {"00": frozenset({TreeId(oid(7))}), "": frozenset({TreeId(oid(8))})}


def of_blobs(blobs):
    return {blob: MARKS_OF[blob] for blob in blobs}


def at_place(prefix, trees):
    return (NOTES if prefix else {}), frozenset(trees)


@pytest.fixture
def marks() -> Marks:
    found = look_again(NONE, PLACES, at_place, of_blobs)
    assert found is not None
    return found


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "gitledger" / "marks"


def test_marks_are_found_by_commit_and_commits_by_mark(marks):
    assert marks.rows == 10
    assert marks.having({mark(2, 4)}) == {oid(104)}
    assert marks.having({mark(2, 1), mark(2, 8)}) == {oid(101), oid(200)}
    assert marks.having({mark(2, 3)}) == marks.having(set()) == frozenset()
    assert marks.of_kind(1)[CommitId(oid(200))] == {mark(1, 1), mark(1, 0)}
    assert marks.of_kind(2).keys() == {oid(100 + n) for n in (1, 2, 4, 5, 7)} | {oid(200)}
    assert marks.by_blob() == MARKS_OF
    assert look(20, NOTES, of_blobs).by_blob() == MARKS_OF


def test_only_what_is_new_is_looked_at(marks):
    asked: list[str] = []
    places = {**PLACES, "01": frozenset({TreeId(oid(9))})}

    def read(prefix, trees):
        asked.append(prefix)
        return {oid(300): frozenset({BlobId(oid(3))})}, frozenset(trees)

    found = look_again(marks, places, read, lambda blobs: dict.fromkeys(blobs))
    assert asked == ["01"]
    assert found.rows == 11
    assert found.by_blob() == MARKS_OF
    moved = {**PLACES, "00": frozenset({TreeId(oid(6))})}
    again = look_again(found, moved, at_place, lambda blobs: {blob: pytest.fail("known") for blob in blobs})
    assert again.by_blob() == MARKS_OF
    assert again.rows == 10, "what is at no place any more is gone"


@pytest.mark.parametrize("places", [{"": 8, "00": 7, "01": 7, "02": 6}, {"": 7, "00": 7, "01": 6}])
def test_folders_in_several_places_are_no_business_of_marks(marks, places):
    asked = {prefix: frozenset({TreeId(oid(tree))}) for prefix, tree in places.items()}
    read: list[str] = []

    def at(prefix, trees):
        read.append(prefix)
        return at_place(prefix, trees)

    assert look_again(NONE, asked, at, of_blobs) is None
    assert read == list(asked)[:-1], "nor are they followed into all of their places"
    assert look_again(marks, asked, at_place, of_blobs) is None, "known ones neither"
    assert look_again(NONE, PLACES, lambda prefix, trees: None, of_blobs) is None


def test_a_kept_file_gives_the_marks_back(marks, file):
    assert read_marks(file, RULES, 20) == NONE
    assert write_marks(file, RULES, marks)
    assert read_marks(file, RULES, 20) == marks
    assert write_marks(file, RULES, NONE)
    assert read_marks(file, RULES, 20) == NONE
    assert [path.name for path in file.parent.iterdir()] == ["marks"]


def test_marks_by_other_rules_or_of_other_ids_are_not_believed(marks, file):
    write_marks(file, RULES, marks)
    assert read_marks(file, "other rules", 20) == NONE
    assert read_marks(file, RULES, 32) == Marks(id_bytes=32)


def test_a_damaged_file_is_as_good_as_none(marks, file):
    write_marks(file, RULES, marks)
    whole = file.read_bytes()
    draw = random.Random(1)
    for at in (*range(60), *draw.sample(range(len(whole)), 300)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << draw.randrange(8))]) + whole[at + 1 :])
        assert read_marks(file, RULES, 20) == NONE, at
        file.write_bytes(whole[:at])
        assert read_marks(file, RULES, 20) == NONE, at
    file.write_bytes(whole + b"\0")
    assert read_marks(file, RULES, 20) == NONE


def test_a_file_that_others_could_have_written_is_not_believed(marks, file):
    write_marks(file, RULES, marks)
    for mode in (0o620, 0o602):
        file.chmod(mode)
        assert read_marks(file, RULES, 20) == NONE
    assert write_marks(file, RULES, marks)
    assert read_marks(file, RULES, 20) == marks
    elsewhere = file.with_name("elsewhere")
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert read_marks(file, RULES, 20) == NONE
    file.unlink()
    os.mkfifo(file)
    assert read_marks(file, RULES, 20) == NONE, "nor does it wait for anybody"
    file.unlink()
    file.mkdir()
    assert read_marks(file, RULES, 20) == NONE
    assert not write_marks(file, RULES, marks)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give a file away")
def test_another_users_file_is_not_believed(marks, file):
    write_marks(file, RULES, marks)
    os.chown(file, 12345, -1)
    assert read_marks(file, RULES, 20) == NONE


def test_who_was_killed_while_writing_is_taken_over_from_and_who_still_writes_is_let_be(marks, file):
    file.parent.mkdir()
    new = file.with_name("marks.new")
    new.write_bytes(b"half of it")
    with new.open("r+b") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        assert not write_marks(file, RULES, marks)
        assert new.read_bytes() == b"half of it"
    assert write_marks(file, RULES, marks)
    assert read_marks(file, RULES, 20) == marks
    assert not new.exists()
    assert not write_marks(file / "below", RULES, marks), "where nothing can be written, nothing is"
