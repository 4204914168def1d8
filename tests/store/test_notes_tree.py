"""Notes trees: any fan-out is read, two levels are written, git reads and writes the same refs."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitledger.errors import StoreError
from gitledger.records.ids import BlobId, CommitId
from gitledger.records.tree import MODE_FILE, MODE_FOLDER, MODE_SYMLINK, TreeEntry
from gitledger.store.notes_tree import NotesTrees

ID = "ab" + "cd" + "ef" + "0" * 34
SAME_START = "abcd" + "1" * 36
REF = "refs/notes/gitledger/records"


def spelled(oid: str, depth: int) -> str:
    """Return the path of a note at a fan-out of `depth` levels."""
    return "/".join([*(oid[2 * n : 2 * n + 2] for n in range(depth)), oid[2 * depth :]])


def keep_least(oid: str, blobs: frozenset[BlobId]) -> BlobId:
    return min(blobs)


def nothing(blob: BlobId) -> tuple[str, ...]:
    """What most notes here claim to be a note of."""
    return ()


@pytest.fixture
def trees(objects):
    return NotesTrees(objects)


@pytest.fixture
def blobs(objects):
    return [objects.write_blob(b"%d\n" % n) for n in range(4)]


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 19])
def test_a_note_is_found_at_any_depth(objects, trees, blobs, tree_of_paths, depth):
    tree = tree_of_paths(objects, {spelled(ID, depth): blobs[0], "README": blobs[1]})
    assert trees.find(tree, ID) == {blobs[0]}
    assert trees.find(tree, SAME_START) == frozenset()
    assert trees.notes([tree], nothing) == {ID: {blobs[0]}}


def test_all_paths_of_one_object_count_upper_case_too(objects, trees, blobs, tree_of_paths):
    paths = {ID: blobs[0], spelled(ID, 1): blobs[1], spelled(ID, 2): blobs[2], spelled(ID, 2).upper(): blobs[3]}
    tree = tree_of_paths(objects, paths)
    assert trees.find(tree, ID) == set(blobs)
    assert trees.notes([tree], nothing) == {ID: set(blobs)}


def test_what_is_no_note_is_none(objects, trees, blobs, tree_of_paths):
    """Folders with a note's name, links, names that are short or no hex (git's notes.c calls them non-notes)."""
    folder = tree_of_paths(objects, {"x": blobs[0]})
    entries = [
        TreeEntry(MODE_FOLDER, ID, folder),
        TreeEntry(MODE_SYMLINK, SAME_START, blobs[0]),
        TreeEntry(MODE_FILE, "ab", blobs[0]),
        TreeEntry(MODE_FILE, ID[:-1], blobs[0]),
        TreeEntry(MODE_FILE, "g" + ID[1:], blobs[0]),
        TreeEntry(MODE_FOLDER, "zz", folder),
    ]
    tree = objects.write_tree(entries)
    assert trees.notes([tree], nothing) == {}
    assert trees.find(tree, ID) == frozenset()
    joined = trees.join([tree], {"cd" + ID[2:]: frozenset({blobs[1]})}, keep_least)
    assert set(entries) < set(objects.read_tree(joined))


def test_the_last_pair_of_digits_is_a_note_and_no_folder(objects, trees, blobs, tree_of_paths):
    tree = tree_of_paths(objects, {spelled(ID, 19) + "/aa": blobs[0]})
    assert trees.notes([tree], nothing) == {}


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 5])
def test_an_update_folds_every_spelling_into_two_levels(
    objects, trees, blobs, tree_of_paths, paths_of_tree, depth
):
    old = tree_of_paths(objects, {spelled(ID, depth): blobs[0], spelled(SAME_START, depth): blobs[1]})
    new = trees.join([old], {ID: frozenset({blobs[2]})}, lambda oid, found: max(found))
    assert paths_of_tree(objects, new) == {
        spelled(ID, 2): max(blobs[0], blobs[2]),
        spelled(SAME_START, 2): blobs[1],
    }


def test_only_touched_folders_are_rewritten(objects, trees, blobs, tree_of_paths, paths_of_tree):
    other, near = "ff" + ID[2:], "ab" + "99" + ID[4:]
    old = tree_of_paths(objects, {spelled(other, 3): blobs[0], spelled(near, 4): blobs[1], ID: blobs[2]})
    new = trees.join([old], {ID: frozenset({blobs[3]})}, keep_least)
    paths = paths_of_tree(objects, new)
    assert paths == {
        spelled(other, 3): blobs[0],
        spelled(near, 4): blobs[1],
        spelled(ID, 2): min(blobs[2], blobs[3]),
    }


def test_foreign_entries_survive_at_every_level(objects, trees, blobs, tree_of_paths, paths_of_tree):
    foreign = {
        "README": blobs[0],
        "ab/x": blobs[0],
        "ab/cd/y": blobs[0],
        "ab/cd/ef/z": blobs[1],
        "dir/a/b": blobs[1],
    }
    old = tree_of_paths(objects, foreign | {spelled(ID, 3): blobs[2]})
    new = trees.join([old], {ID: frozenset({blobs[2]})}, keep_least)
    assert paths_of_tree(objects, new) == foreign | {spelled(ID, 2): blobs[2]}


def test_a_foreign_blob_in_the_place_of_a_folder_makes_room(objects, trees, blobs):
    old = objects.write_tree([TreeEntry(MODE_FILE, "ab", blobs[0])])
    new = trees.join([old], {ID: frozenset({blobs[1]})}, keep_least)
    assert trees.find(new, ID) == {blobs[1]}


def test_an_empty_join_is_the_empty_tree_and_a_settled_none_removes(objects, trees, blobs, tree_of_paths):
    empty = objects.write_tree([])
    assert trees.join([], {}, keep_least) == empty
    tree = tree_of_paths(objects, {ID: blobs[0]})
    assert trees.join([tree], {ID: frozenset({blobs[1]})}, lambda oid, found: None) == empty


def test_a_missing_folder_is_an_error_and_not_an_empty_one(objects, trees):
    tree = objects.write_tree([TreeEntry(MODE_FOLDER, "ab", "1" * 40)])
    for attempt in (lambda: trees.find(tree, ID), lambda: trees.notes([tree], nothing)):
        with pytest.raises(StoreError) as caught:
            attempt()
        assert caught.value.code == "object-missing"
    assert trees.find(tree, "cd" + ID[2:]) == frozenset()


def test_beyond_skips_shared_folders_only_where_they_stand(objects, trees, blobs, tree_of_paths):
    """One folder under two prefixes is two sets of notes."""
    rest = spelled(ID, 1).partition("/")[2]
    theirs = tree_of_paths(objects, {f"ab/{rest}": blobs[0]})
    own = tree_of_paths(objects, {f"ab/{rest}": blobs[0], f"cd/{rest}": blobs[0]})
    assert trees.beyond([own], [theirs], nothing) == {"cd" + ID[2:]: {blobs[0]}}


class Counting:
    """Counts the folders that are read and written."""

    def __init__(self, objects):
        self.reads, self.writes, self._objects = 0, 0, objects

    def __getattr__(self, name):
        return getattr(self._objects, name)

    def tree_bytes(self, tree):
        self.reads += 1
        return self._objects.tree_bytes(tree)

    def write_tree(self, entries):
        self.writes += 1
        return self._objects.write_tree(entries)

    def write_tree_bytes(self, raw):
        self.writes += 1
        return self._objects.write_tree_bytes(raw)


def test_s25_look_up_and_update_among_20000_notes_touch_one_folder_a_level(git_repo, open_objects):
    ids = [f"{n * 2654435761 % 2**32:08x}" + "7" * 32 for n in range(20_000)]
    head = f"commit {REF}\ncommitter A <a@x> 1700000000 +0000\ndata 2\nm\n"
    notes = "".join(f"M 644 inline {spelled(oid, 2)}\ndata 2\nx\n\n" for oid in ids)
    git_repo.git("fast-import", "--quiet", input=(head + notes).encode())
    objects = Counting(open_objects(git_repo.path / ".git"))
    tree = objects.read_commit(objects.read_ref(REF)).tree
    new = objects.write_blob(b"new\n")

    assert NotesTrees(objects).find(tree, ids[777])
    assert (objects.reads, objects.writes) == (3, 0)
    objects.reads = 0
    updated = NotesTrees(objects).join([tree], {ids[777]: frozenset({new})}, lambda oid, found: new)
    assert updated != tree
    assert (objects.reads, objects.writes) == (3, 3)
    assert len(NotesTrees(objects).notes([updated], nothing)) == 20_000
    again = NotesTrees(objects).join([updated, tree], {ids[777]: frozenset({new})}, lambda oid, found: new)
    assert (again, objects.writes) == (updated, 3)  # what changes nothing writes nothing
    objects.reads = 0
    assert set(NotesTrees(objects).beyond([updated], [tree], nothing)) == {ids[777]}
    assert objects.reads <= 6


def test_s25_a_flat_tree_becomes_two_levels_with_the_first_update(objects, trees, blobs, tree_of_paths):
    ids = [f"{n * 2654435761 % 2**32:08x}" + "7" * 32 for n in range(600)]
    flat = tree_of_paths(objects, dict.fromkeys(ids, blobs[0]))
    tree = trees.join([flat], {"ab" * 20: frozenset({blobs[1]})}, keep_least)
    for folder in (tree, objects.read_tree(tree)[7].oid):
        assert {entry.mode for entry in objects.read_tree(folder)} == {MODE_FOLDER}
    assert trees.notes([tree], nothing) == {oid: {blobs[0]} for oid in ids} | {"ab" * 20: {blobs[1]}}


def test_git_reads_what_we_write(ledger, add, git_repo):
    commits = [git_repo.commit({"a": str(n)}) for n in range(3)]
    for commit in commits:
        add(commit, b"line of " + commit.encode())
    notes = ("notes", "--ref=gitledger/records")
    assert git_repo.git(*notes, "show", commits[1]) == f"line of {commits[1]}"
    assert sorted(line.split()[1] for line in git_repo.git(*notes, "list").splitlines()) == sorted(commits)
    assert git_repo.git("log", "-1", "--notes=gitledger/records", "--format=%N") == f"line of {commits[2]}"


def test_we_read_what_git_writes_and_both_go_on_from_there(ledger, add, git_repo):
    notes = ("notes", "--ref=gitledger/records")
    commits = [git_repo.commit({"a": str(n)}) for n in range(40)]
    for commit in commits[:20]:
        add(commit, b"ours")
    for commit in commits:
        git_repo.git(*notes, "append", "-m", "theirs", commit)
    for commit in commits[:20]:
        assert ledger.lines(CommitId(commit)) == (b"ours", b"theirs")
    assert ledger.commits() == set(commits)
    for commit in commits:
        add(commit, b"again")
    assert git_repo.git(*notes, "show", commits[0]).split() == ["again", "ours", "theirs"]
    assert ledger.lines(CommitId(commits[30])) == (b"again", b"theirs")


def test_git_merges_our_notes_across_fan_outs(ledger, add, git_repo, tree_of_paths, objects, alice):
    commits = [git_repo.commit({"a": str(n)}) for n in range(5)]
    for commit in commits:
        add(commit, b"a")
    blob = objects.write_blob(b"b\n")
    flat = tree_of_paths(objects, dict.fromkeys(commits, blob))
    other = objects.write_commit(tree=flat, parents=[], message="m", identity=alice)
    git_repo.git("update-ref", "refs/notes/other", other)
    git_repo.git("notes", "--ref=gitledger/records", "merge", "-q", "-s", "cat_sort_uniq", "refs/notes/other")
    assert {ledger.lines(CommitId(commit)) for commit in commits} == {(b"a", b"b")}


OIDS = ["abcd" + "0" * 36, "abcd" + "1" * 36, "ab00" + "2" * 36, "ff" + "3" * 38]
placed = st.dictionaries(st.tuples(st.sampled_from(OIDS), st.integers(0, 4)), st.integers(0, 3), max_size=6)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(placed, placed)
def test_find_notes_and_beyond_agree_in_every_fan_out(objects, blobs, tree_of_paths, own, theirs):
    def plant(placing):
        return tree_of_paths(objects, {spelled(oid, depth): blobs[n] for (oid, depth), n in placing.items()})

    def expected(placing):
        return {oid: {blobs[n] for (other, _), n in placing.items() if other == oid} for oid, _ in placing}

    mine, yours = plant(own), plant(theirs)
    trees = NotesTrees(objects)
    assert trees.notes([mine], nothing) == expected(own)
    assert all(trees.find(mine, oid) == expected(own).get(oid, set()) for oid in OIDS)
    both = {oid: expected(own).get(oid, set()) | expected(theirs).get(oid, set()) for oid in OIDS}
    assert trees.notes([mine, yours], nothing) == {oid: found for oid, found in both.items() if found}
    beyond = trees.beyond([mine], [yours], nothing)
    assert all(expected(own)[oid] >= found for oid, found in beyond.items())
    for oid, found in expected(own).items():
        assert found <= expected(theirs).get(oid, set()) | beyond.get(oid, set())
    assert trees.beyond([mine], [mine], nothing) == {}


@pytest.fixture
def endless(objects, blobs):
    """A tree of 19 small objects that spells 256 ** 19 notes; or, with `of_folders`, none at all."""

    def make(*, of_folders: bool = False):
        rest = TreeEntry(MODE_FOLDER if of_folders else MODE_FILE, "00", blobs[0])
        tree = objects.write_tree([] if of_folders else [rest])
        for _ in range(19):
            tree = objects.write_tree([TreeEntry(MODE_FOLDER, f"{n:02x}", tree) for n in range(256)])
        return tree

    return make


@pytest.mark.parametrize("of_folders", [False, True])
def test_a_folder_that_repeats_itself_without_end_is_told_within_seconds(trees, objects, endless, of_folders):
    """It blocks no listing; only what would have to rewrite it refuses to."""
    tree = endless(of_folders=of_folders)
    other = objects.write_tree([TreeEntry(MODE_FOLDER, "ab", objects.write_tree([]))])
    start = time.perf_counter()
    assert (ID[:38] + "00" in trees.noted([tree], lambda blob: [ID[:38] + "00"])) is not of_folders
    assert len(trees.notes([tree], nothing)) < 10_000
    trees.beyond([tree], [other], nothing)
    trees.beyond([tree], [endless(of_folders=not of_folders)], nothing)
    assert trees.repeats([tree])
    assert trees.repeats([tree], [other])
    assert not trees.repeats([tree], [tree])
    with pytest.raises(StoreError) as caught:
        trees.join([tree], {ID: frozenset({objects.write_blob(b"x")})}, keep_least)
    assert caught.value.code == "notes-tree-repeats"
    assert time.perf_counter() - start < 60
    found = trees.find(tree, ID[:38] + "00")
    assert len(found) == (0 if of_folders else 1)


def test_an_honest_folder_is_hidden_by_no_repetition_of_it(trees, objects, blobs, endless):
    """Whoever puts it into a thousand other places, so that it is first met there, hides none of its notes."""
    ids = [f"{ID[:4]}{n:036x}" for n in range(40)]
    notes = {oid: objects.write_blob(oid.encode()) for oid in ids}
    honest = objects.write_tree([TreeEntry(MODE_FILE, oid[4:], blob) for oid, blob in notes.items()])
    everywhere = objects.write_tree([TreeEntry(MODE_FOLDER, f"{n:02x}", honest) for n in range(256)])
    tree = objects.write_tree([TreeEntry(MODE_FOLDER, f"{n:02x}", everywhere) for n in range(256)])
    claims = {blob: [oid] for oid, blob in notes.items()}
    for found in (
        trees.noted([tree], claims.__getitem__),
        trees.notes([tree], claims.__getitem__),
        trees.beyond([tree], [objects.write_tree([])], claims.__getitem__),
    ):
        assert set(ids) <= set(found)
        assert len(found) < 256 * 256 * 40 / 4
    assert trees.notes([tree], claims.__getitem__)[ids[7]] == {notes[ids[7]]}


def test_a_look_up_among_folders_of_every_spelling_reads_each_once(objects, blobs):
    """`ab`, `aB`, `Ab` and `AB` are one folder; four a level would be 4 ** 19 ways to one note."""
    tree = objects.write_tree([TreeEntry(MODE_FILE, "ab", blobs[0])])
    for _ in range(19):
        tree = objects.write_tree([TreeEntry(MODE_FOLDER, name, tree) for name in ("ab", "aB", "Ab", "AB")])
    counting = Counting(objects)
    assert NotesTrees(counting).find(tree, "ab" * 20) == {blobs[0]}
    assert counting.reads == 20


def test_a_union_that_need_not_look_into_a_folder_without_end_does_not(trees, objects, endless):
    tree = endless()
    other = objects.write_tree([TreeEntry(MODE_FOLDER, "ab", objects.write_tree([]))])
    assert trees.join([tree, other], {}, keep_least) == tree


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 19])
def test_what_is_noted_is_what_has_notes_in_any_spelling(objects, trees, blobs, tree_of_paths, depth):
    ids = [f"{n * 2654435761 % 2**32:08x}" + f"{n:032x}" for n in range(40)]
    tree = tree_of_paths(objects, {spelled(oid, depth): blobs[n % 2] for n, oid in enumerate(ids)})
    other = tree_of_paths(objects, {spelled(ID.upper(), depth): blobs[0], "README": blobs[1], "ab/x": blobs[1]})
    assert trees.noted([tree, other], nothing) == set(trees.notes([tree, other], nothing)) == {*ids, ID}
    assert trees.noted([], nothing) == frozenset()


def test_a_folder_that_stands_twice_or_out_of_order_is_read_whole(objects, git_repo, trees, blobs):
    """git refuses to make such a tree; whoever pushes one must not hide a note in it."""
    leaves = [objects.write_tree([TreeEntry(MODE_FILE, ID[2:], blob)]) for blob in blobs[:2]]
    rows = [b"40000 ff\0" + bytes.fromhex(leaves[0]), *(b"40000 ab\0" + bytes.fromhex(leaf) for leaf in leaves)]
    words = ("hash-object", "-t", "tree", "-w", "--literally", "--stdin")
    tree = git_repo.git(*words, input=b"".join(rows))
    assert trees.find(tree, ID) == set(blobs[:2])
    assert trees.noted([tree], nothing) == {ID, "ff" + ID[2:]}
    joined = trees.join([tree], {ID: frozenset({blobs[2]})}, lambda oid, found: max(found))
    assert trees.find(joined, ID) == {max(blobs[:3])}
