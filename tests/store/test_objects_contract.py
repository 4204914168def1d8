"""The contract of `GitObjects`, held by every back end in conftest's list."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitledger.errors import StoreError, UsageError
from gitledger.records.ids import BlobId, CommitId, TreeId
from gitledger.records.tree import MODE_EXECUTABLE, MODE_FILE, MODE_FOLDER, MODE_GITLINK, MODE_SYMLINK, TreeEntry
from gitledger.store.objects import RefUpdate

REF = "refs/notes/gitledger/records"
ABSENT = "1" * 40


@pytest.fixture(params=["libgit", "late libgit", "plumbing"])
def back_end(request) -> str:
    return request.param


@pytest.fixture
def commits(objects, alice):
    """Three commits without parents."""
    tree = objects.write_tree([])
    return [objects.write_commit(tree=tree, parents=[], message=f"{n}", identity=alice) for n in range(3)]


def test_absent_objects_are_none_and_so_are_objects_of_another_kind(objects, commits):
    blob = objects.write_blob(b"x")
    assert objects.read_blob(BlobId(ABSENT)) is None
    assert objects.blob_size(BlobId(ABSENT)) is None
    assert objects.read_tree(TreeId(ABSENT)) is None
    assert objects.read_commit(CommitId(ABSENT)) is None
    assert objects.read_parents(CommitId(ABSENT)) is None
    assert objects.read_commit(CommitId(blob)) is None
    assert objects.read_blob(BlobId(commits[0])) is None
    assert objects.blob_size(BlobId(commits[0])) is None
    assert objects.read_tree(TreeId(blob)) is None


def test_an_abbreviated_or_longer_id_names_nothing(objects):
    blob = objects.write_blob(b"x")
    for name in (blob[:12], blob + "0" * 24, ""):
        assert objects.read_blob(BlobId(name)) is None
        assert objects.blob_size(BlobId(name)) is None


@pytest.mark.parametrize("content", [b"", b"a\0b", b"\xff" * 70_000], ids=["empty", "nul", "binary"])
def test_blobs_come_back_byte_for_byte_and_git_reads_them(objects, git_repo, content):
    blob = objects.write_blob(content)
    assert objects.read_blob(blob) == content
    assert objects.blob_size(blob) == len(content)
    assert git_repo.git("cat-file", "-s", blob) == str(len(content))


names = st.binary(min_size=1, max_size=6).filter(
    lambda name: not {0, 47} & set(name) and name not in (b".", b"..")
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(names, st.sampled_from([MODE_FILE, MODE_EXECUTABLE, MODE_SYMLINK, MODE_FOLDER])))
def test_trees_come_back_entry_for_entry_as_git_orders_them(objects, git_repo, wanted):
    blob, empty = objects.write_blob(b"x"), objects.write_tree([])
    entries = [
        TreeEntry(mode, os.fsdecode(name), empty if mode == MODE_FOLDER else blob) for name, mode in wanted.items()
    ]
    tree = objects.write_tree(entries)
    read = objects.read_tree(tree)
    assert read is not None
    assert set(read) == set(entries)
    listing = "".join(f"{e.mode:06o} {e.kind} {e.oid}\t{e.name}\0" for e in entries)
    made_by_git = git_repo.git("mktree", "-z", input=listing.encode("utf-8", "surrogateescape"))
    assert tree == made_by_git


def test_odd_modes_and_gitlinks_are_kept(objects):
    blob = objects.write_blob(b"x")
    entries = (TreeEntry(0o100664, "old", blob), TreeEntry(MODE_GITLINK, "sub", ABSENT))
    assert objects.read_tree(objects.write_tree(entries)) == entries


def test_a_commit_is_what_git_shows(objects, git_repo, alice):
    tree = objects.write_tree([])
    first = objects.write_commit(tree=tree, parents=[], message="ledger: one\n\nmore", identity=alice)
    second = objects.write_commit(tree=tree, parents=[first], message="two", identity=alice)
    info = objects.read_commit(first)
    assert (info.tree, info.parents, info.summary) == (tree, (), "ledger: one")
    assert objects.read_parents(second) == (first,)
    shown = git_repo.git("log", "-1", "--format=%an <%ae> %cn <%ce> %ct", second)
    seconds = int(objects.read_commit(second).committed_at.timestamp())
    assert shown == f"Alice <alice@example.org> Alice <alice@example.org> {seconds}"


def test_replace_refs_and_grafts_change_nothing(objects, git_repo, open_objects, commits):
    child = git_repo.git("commit-tree", "-p", commits[0], "-m", "child", objects.read_commit(commits[0]).tree)
    git_repo.git("replace", child, commits[1])
    info = git_repo.path / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "grafts").write_text(f"{child} {commits[2]}\n")
    reopened = open_objects(git_repo.path / ".git")
    assert reopened.read_parents(CommitId(child)) == (commits[0],)
    assert reopened.read_commit(CommitId(child)).parents == (commits[0],)


def test_a_commit_with_hostile_headers_is_read_or_refused_in_one_line(objects, git_repo):
    tree = objects.write_tree([])
    far = f"tree {tree}\nauthor A <a@x> 99999999999999 +0000\ncommitter A <a@x> -5 +0000\n\nm\n"
    oid = git_repo.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", input=far.encode())
    info = objects.read_commit(CommitId(oid))
    assert (info.authored_at.year, info.committed_at.year) == (9999, 1969)
    for raw in (b"tree\n\n", b"", b"parent 12", f"tree {tree}\nauthor x\ncommitter y\n\n".encode()):
        oid = git_repo.git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", input=raw)
        with pytest.raises(StoreError, match="can't be read") as caught:
            objects.read_commit(CommitId(oid))
        assert caught.value.code == "object-corrupt"


def test_a_tree_that_an_old_tool_wrote_with_padded_modes_is_read(objects, git_repo):
    empty = objects.write_tree([])
    raw = b"040000 a\0" + bytes.fromhex(empty)
    oid = git_repo.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", input=raw)
    assert objects.read_tree(TreeId(oid)) == (TreeEntry(MODE_FOLDER, "a", empty),)


def test_a_tree_with_hostile_bytes_is_refused(objects, git_repo):
    for raw in (
        b"100644 a",
        b"100644 a\0abc",
        b"x a\0" + bytes(20),
        b"100644 \0" + bytes(20),
        b"100644 a\0" + bytes(20) + b"!",
    ):
        oid = git_repo.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", input=raw)
        with pytest.raises(StoreError) as caught:
            objects.read_tree(TreeId(oid))
        assert caught.value.code == "object-corrupt"


def test_a_corrupt_loose_object_is_an_error_and_never_content(objects, git_repo, open_objects):
    blob = objects.write_blob(b"true content")
    path = git_repo.path / ".git" / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(b"garbage")
    with pytest.raises(StoreError) as caught:
        open_objects(git_repo.path / ".git").read_blob(blob)
    assert caught.value.code == "object-corrupt"


def test_an_object_under_another_ones_id_is_an_error_and_never_content(objects, git_repo, open_objects):
    """Well packed, but not what its name says: git itself looks only at some of these."""
    folder = git_repo.path / ".git" / "objects"
    blob, other = objects.write_blob(b"true content"), objects.write_blob(b"another's content")
    path = folder / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes((folder / other[:2] / other[2:]).read_bytes())
    with pytest.raises(StoreError) as caught:
        open_objects(git_repo.path / ".git").read_blob(blob)
    assert caught.value.code == "object-corrupt"


def test_refs_are_created_moved_and_deleted_only_from_their_old_value(objects, git_repo, commits):
    one, two, three = commits
    assert objects.read_ref(REF) is None
    assert not objects.update_refs([RefUpdate(REF, one, two)])
    assert objects.update_refs([RefUpdate(REF, None, one)])
    assert not objects.update_refs([RefUpdate(REF, None, two)])
    assert not objects.update_refs([RefUpdate(REF, two, three)])
    assert objects.read_ref(REF) == one == git_repo.git("rev-parse", REF)
    assert objects.update_refs([RefUpdate(REF, one, two)])
    assert not objects.update_refs([RefUpdate(REF, one, None)])
    assert objects.read_ref(REF) == two
    assert objects.update_refs([RefUpdate(REF, two, None)])
    assert objects.read_ref(REF) is None
    assert git_repo.git("for-each-ref") == ""


@pytest.mark.parametrize("packed", [False, True])
def test_packed_refs_are_compared_too(objects, git_repo, commits, packed):
    one, two, _ = commits
    git_repo.git("update-ref", REF, one)
    if packed:
        git_repo.git("pack-refs", "--all")
    assert not objects.update_refs([RefUpdate(REF, None, two)])
    assert not objects.update_refs([RefUpdate(REF, two, one)])
    assert objects.update_refs([RefUpdate(REF, one, two)])
    assert git_repo.git("rev-parse", REF) == two
    assert objects.update_refs([RefUpdate(REF, two, None)])
    assert git_repo.git("for-each-ref") == ""


def test_several_refs_move_together_or_not_at_all(objects, git_repo, commits):
    one, two, three = commits
    assert objects.update_refs([RefUpdate("refs/notes/a", None, one), RefUpdate("refs/notes/b", None, two)])
    moved = [
        RefUpdate("refs/notes/a", one, three),
        RefUpdate("refs/notes/c", None, one),
        RefUpdate("refs/notes/b", one, None),
    ]
    assert not objects.update_refs(moved)
    assert dict(objects.list_refs("refs/notes/")) == {"refs/notes/a": one, "refs/notes/b": two}
    assert not list((git_repo.path / ".git" / "refs").rglob("*.lock"))


def test_an_update_to_the_same_value_only_compares(objects, commits):
    one, two, _ = commits
    objects.update_refs([RefUpdate(REF, None, one)])
    assert objects.update_refs([RefUpdate(REF, one, one), RefUpdate("refs/notes/b", None, two)])
    assert not objects.update_refs([RefUpdate(REF, two, two), RefUpdate("refs/notes/b", two, one)])
    assert objects.read_ref("refs/notes/b") == two


def test_listing_sees_loose_and_packed_refs_below_a_prefix_and_no_others(objects, git_repo, commits):
    one, two, _ = commits
    prefix = "refs/gitledger/remotes/"
    git_repo.git("update-ref", prefix + "origin/records", one)
    git_repo.git("update-ref", "refs/gitledger/remotes-else", one)
    git_repo.git("pack-refs", "--all")
    git_repo.git("update-ref", prefix + "a/b/inbox/x", two)
    (git_repo.path / ".git" / prefix / "a" / "records.lock").touch()
    expected = {prefix + "origin/records": one, prefix + "a/b/inbox/x": two}
    assert dict(objects.list_refs(prefix)) == expected
    git_repo.git("update-ref", prefix + "origin/records", two)
    assert objects.list_refs(prefix)[prefix + "origin/records"] == two
    assert dict(objects.list_refs("refs/nothing/")) == {}


def test_a_held_lock_is_an_error_of_its_own_that_names_the_lock(objects, git_repo, commits):
    lock = git_repo.path / ".git" / f"{REF}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    with pytest.raises(StoreError) as caught:
        objects.update_refs([RefUpdate(REF, None, commits[0])])
    assert caught.value.code == "ref-locked"
    assert str(lock) in caught.value.hint
    lock.unlink()
    assert objects.update_refs([RefUpdate(REF, None, commits[0])])


def test_a_failed_lock_leaves_no_other_lock_behind(objects, git_repo, commits):
    lock = git_repo.path / ".git" / "refs" / "notes" / "b.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    with pytest.raises(StoreError):
        objects.update_refs(
            [RefUpdate("refs/notes/a", None, commits[0]), RefUpdate("refs/notes/b", None, commits[1])]
        )
    lock.unlink()
    assert objects.read_ref("refs/notes/a") is None
    assert objects.update_refs([RefUpdate("refs/notes/a", None, commits[0])])


@pytest.mark.parametrize("packed", [False, True])
def test_s43_a_ref_where_a_folder_must_be_says_how_to_mend_it(objects, git_repo, commits, packed):
    git_repo.git("update-ref", "refs/notes/gitledger", commits[1])
    if packed:
        git_repo.git("pack-refs", "--all")
    with pytest.raises(StoreError) as caught:
        objects.update_refs([RefUpdate(REF, None, commits[0])])
    assert caught.value.code == "ref-conflict"
    assert "refs/notes/gitledger" in caught.value.message
    assert git_repo.git("for-each-ref", "--format=%(refname)") == "refs/notes/gitledger"
    subprocess.run(caught.value.hint, shell=True, cwd=git_repo.path, env=git_repo.env, check=True)
    assert objects.update_refs([RefUpdate(REF, None, commits[0])])
    assert objects.read_ref("refs/saved/notes/gitledger") == commits[1]


@pytest.mark.parametrize("taken", ["refs/notes/gitledger", REF + "/below"])
def test_s43_a_packed_ref_in_the_way_is_seen_where_no_reflog_is_kept(make_repo, open_objects, alice, taken):
    """In a bare repository nothing else stops libgit2 from making `a/b` beside a packed `a`."""
    bare = make_repo("bare.git", "--bare")
    objects = open_objects(bare.path)
    commit = objects.write_commit(tree=objects.write_tree([]), parents=[], message="m", identity=alice)
    bare.git("update-ref", taken, commit)
    bare.git("pack-refs", "--all")
    with pytest.raises(StoreError) as caught:
        objects.update_refs([RefUpdate(REF, None, commit)])
    assert caught.value.code == "ref-conflict"
    assert dict(objects.list_refs("refs/")) == {taken: commit}


@pytest.mark.parametrize("packed", [False, True])
def test_a_ref_can_not_be_made_where_others_lie_below_it(objects, git_repo, commits, packed):
    git_repo.git("update-ref", REF + "/below", commits[1])
    if packed:
        git_repo.git("pack-refs", "--all")
    with pytest.raises(StoreError) as caught:
        objects.update_refs([RefUpdate(REF, None, commits[0])])
    assert caught.value.code == "ref-conflict"


def test_a_symbolic_ref_is_followed_when_read_and_refused_when_written(objects, git_repo, commits):
    git_repo.git("update-ref", "refs/notes/other", commits[0])
    git_repo.git("symbolic-ref", REF, "refs/notes/other")
    assert objects.read_ref(REF) == commits[0]
    with pytest.raises(StoreError) as caught:
        objects.update_refs([RefUpdate(REF, commits[0], commits[1])])
    assert caught.value.code == "ref-conflict"
    assert objects.read_ref("refs/notes/other") == commits[0]


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from gitledger.errors import StoreError
from gitledger.store.libgit import LibgitObjects
objects = LibgitObjects(Path(sys.argv[1]))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    objects.write_blob(bytes(range(256)) * 1000)
except StoreError as error:
    print(error.code)
"""


def test_a_full_disk_is_one_clear_error(git_repo):
    """A file size limit makes the write fail as a full disk does."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(git_repo.path / ".git")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "store-unwritable"
    assert git_repo.git("count-objects") == "0 objects, 0 kilobytes"


def test_garbage_in_a_ref_is_one_clear_error(objects, git_repo, commits):
    path = git_repo.path / ".git" / REF
    path.parent.mkdir(parents=True)
    path.write_text("garbage")
    for attempt in (
        lambda: objects.read_ref(REF),
        lambda: objects.update_refs([RefUpdate(REF, None, commits[0])]),
    ):
        with pytest.raises(StoreError) as caught:
            attempt()
        assert caught.value.code == "ref-unreadable"


def test_linked_worktrees_share_notes_refs_and_have_their_own_head(git_repo, open_objects):
    main = git_repo.commit({"a": "1"})
    git_repo.git("worktree", "add", "-q", "-b", "side", "../linked")
    linked = open_objects(git_repo.path / ".git" / "worktrees" / "linked")
    assert linked.update_refs([RefUpdate(REF, None, CommitId(main))])
    assert linked.list_refs("refs/notes/") == {REF: main}
    assert git_repo.git("rev-parse", REF) == main
    git_repo.commit({"a": "2"})
    assert linked.read_ref("HEAD") == main


def test_objects_that_git_packs_meanwhile_are_found(objects, git_repo, alice):
    blob = objects.write_blob(b"x")
    tree = objects.write_tree([TreeEntry(MODE_FILE, "a", blob)])
    commit = objects.write_commit(tree=tree, parents=[], message="m", identity=alice)
    objects.update_refs([RefUpdate(REF, None, commit)])
    git_repo.git("gc", "-q", "--prune=now")
    assert objects.read_ref(REF) == commit
    assert objects.read_blob(blob) == b"x"


def test_a_folder_that_is_no_repository_is_a_usage_error(tmp_path: Path, open_objects):
    with pytest.raises(UsageError) as caught:
        getattr(open_objects(tmp_path), "load", lambda: None)()
    assert caught.value.code == "repository-unsupported"
