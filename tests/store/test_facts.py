"""Facts of one commit's tree."""

from __future__ import annotations

import os

import pytest

from gitledger.errors import StoreError
from gitledger.records.ids import TreeId
from gitledger.records.tree import MODE_FOLDER, MODE_GITLINK, MODE_SYMLINK
from gitledger.store.facts import CommitFacts, TreeCache
from gitledger.store.libgit import LibgitObjects


class Counting:
    """A back end that counts the trees it reads."""

    def __init__(self, objects) -> None:
        self._objects = objects
        self.trees_read = 0

    def tree_bytes(self, tree):
        self.trees_read += 1
        return self._objects.tree_bytes(tree)

    def __getattr__(self, name):
        return getattr(self._objects, name)


@pytest.fixture
def repo(git_repo):
    git_repo.write("src/deep/a.py", "a = 1\n")
    git_repo.write("src/b.py", "b = 1\n")
    (git_repo.path / os.fsdecode(b"src/\xff.py")).write_bytes(b"")
    (git_repo.path / "link").symlink_to("src/b.py")
    git_repo.commit()
    git_repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    git_repo.git("commit", "-q", "-m", "a submodule")
    return git_repo


@pytest.fixture
def objects(repo):
    return Counting(LibgitObjects(repo.path / ".git"))


def facts_of(repo, objects, commit="HEAD", cache=None) -> CommitFacts:
    return CommitFacts(objects, TreeId(repo.git("rev-parse", f"{commit}^{{tree}}")), cache)


def test_every_entry_is_what_git_says_it_is(repo, objects):
    facts = facts_of(repo, objects)
    for path in ("src", "src/deep", "src/deep/a.py", "src/b.py", "link", "sub"):
        found = facts.entry(path)
        mode, kind, oid = repo.git("ls-tree", "HEAD", path).split("\t")[0].split(" ")
        assert (f"{found.mode:06o}", found.kind, found.oid) == (mode, kind, oid)
        assert found.name == path.rpartition("/")[2]
    assert facts.entry("").oid == facts.tree == repo.git("rev-parse", "HEAD^{tree}")
    assert (facts.entry("link").mode, facts.entry("sub").mode) == (MODE_SYMLINK, MODE_GITLINK)
    assert facts.entry("").mode == MODE_FOLDER


@pytest.mark.parametrize(
    "path", ["none", "src/none", "src/b.py/x", "link/x", "sub/x", "src/", "/src", "src//deep", "."]
)
def test_only_an_exact_path_names_something(repo, objects, path):
    assert facts_of(repo, objects).entry(path) is None
    assert facts_of(repo, objects).children(path) == ()


def test_children_come_in_gits_order_and_names_outside_utf8_are_kept(repo, objects):
    facts = facts_of(repo, objects)
    assert [entry.name for entry in facts.children("src")] == ["b.py", "deep", os.fsdecode(b"\xff.py")]
    assert [entry.name for entry in facts.children("")] == ["link", "src", "sub"]
    assert facts.children("src/b.py") == ()
    assert facts.entry(os.fsdecode(b"src/\xff.py")) is not None


def test_a_name_spelled_in_escapes_is_not_the_name_that_the_bytes_spell(repo, objects):
    repo.commit({"é": "1"})
    facts = facts_of(repo, objects)
    assert facts.entry("é") is not None
    assert facts.entry("\udcc3\udca9") is None
    assert facts.entry("\ud800") is None


@pytest.mark.parametrize("names", [(b"a", b"a"), (b"a", b"src/a"), (b".", b"a"), (b"..", b"a")])
def test_a_tree_that_git_never_writes_is_refused_by_whatever_reads_it(repo, objects, names):
    blob = repo.git("hash-object", "-w", "--stdin", input=b"1")
    raw = b"".join(b"100644 %s\0%s" % (name, bytes.fromhex(blob)) for name in names)
    tree = TreeId(repo.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", input=raw))
    for look in (
        lambda: CommitFacts(objects, tree).entry("a"),
        lambda: CommitFacts(objects, tree).children(""),
    ):
        with pytest.raises(StoreError) as caught:
            look()
        assert caught.value.code == "object-corrupt"
        assert caught.value.message.count("'") == 2, "the quotes around the name are in pairs"


@pytest.mark.parametrize("mode", ["120777", "40755", "100640", "100600", "160755", "777", "0", "0120777"])
def test_a_tree_with_a_mode_that_git_never_writes_is_refused_by_whatever_reads_it(repo, objects, mode):
    blob = repo.git("hash-object", "-w", "--stdin", input=b"1")
    raw = b"100644 a\0%b%b b\0%b" % (bytes.fromhex(blob), mode.encode(), bytes.fromhex(blob))
    tree = TreeId(repo.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", input=raw))
    for look in (
        lambda: CommitFacts(objects, tree).entry("a"),
        lambda: CommitFacts(objects, tree).entry("b"),
        lambda: CommitFacts(objects, tree).entry("b/c"),
        lambda: CommitFacts(objects, tree).named("", ("b", "c")),
        lambda: CommitFacts(objects, tree).children(""),
        lambda: CommitFacts(objects, tree).stored(""),
        lambda: CommitFacts(objects, tree).differing(facts_of(repo, objects)),
    ):
        with pytest.raises(StoreError, match="holds 'b' with mode") as caught:
            look()
        assert caught.value.code == "object-corrupt"


@pytest.mark.parametrize("mode", ["100664", "0100644", "0100664"])
def test_modes_that_git_has_written_and_padded_ones_are_read(repo, objects, mode):
    blob = repo.git("hash-object", "-w", "--stdin", input=b"1")
    raw = b"%b a\0%b" % (mode.encode(), bytes.fromhex(blob))
    tree = TreeId(repo.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", input=raw))
    for found in (CommitFacts(objects, tree).entry("a"), *CommitFacts(objects, tree).children("")):
        assert found == (int(mode, 8), "a", blob)


def test_a_name_whose_bytes_stand_in_an_id_only_names_nothing(repo, objects):
    blob = bytes.fromhex(repo.git("hash-object", "-w", "--stdin", input=b"1"))
    raw = b"100644 a\0" + b" bee\0".ljust(20, b"x") + b"100644 b\0" + blob
    tree = TreeId(repo.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", input=raw))
    facts = CommitFacts(objects, tree)
    assert facts.entry("bee") is None
    assert facts.entry("b").oid == blob.hex()


def test_blobs_are_read_and_absent_ones_are_none(repo, objects):
    facts = facts_of(repo, objects)
    assert facts.blob(facts.entry("src/b.py").oid) == b"b = 1\n"
    assert facts.blob("1" * 40) is None


def test_a_tree_is_read_once_however_many_commits_have_it(repo, objects):
    cache = TreeCache(objects)
    first = facts_of(repo, objects, cache=cache)
    for _ in range(3):
        first.entry("src/deep/a.py")
        first.children("src/deep")
    assert objects.trees_read == 3
    repo.commit({"new": "1"})
    facts_of(repo, objects, cache=cache).entry("src/deep/a.py")
    assert objects.trees_read == 4


def test_a_tree_that_this_clone_lacks_is_an_error_and_not_an_absence(objects):
    with pytest.raises(StoreError) as caught:
        CommitFacts(objects, TreeId("2" * 40)).entry("src")
    assert caught.value.code == "object-missing"


def test_where_two_commits_differ_is_named_folder_by_folder_and_nothing_else_is_read(git_repo):
    git_repo.commit({"src/a/one.py": "1", "src/a/two.py": "2", "src/b/one.py": "1", "data": "d", "same/x/y": "1"})
    (git_repo.path / "data").unlink()
    git_repo.write("src/a/one.py", "changed")
    git_repo.write("src/b/one.py", "1", mode=0o755)
    git_repo.commit({"data/new/deep.py": "n", "src/a/three.py": "3"})
    objects = Counting(LibgitObjects(git_repo.path / ".git"))
    cache = TreeCache(objects)
    old, new = facts_of(git_repo, objects, "HEAD~", cache), facts_of(git_repo, objects, "HEAD", cache)
    found = old.differing(new)
    named = {"", "src", "src/a", "src/a/one.py", "src/a/three.py", "src/b", "src/b/one.py", "data"}
    assert (found.paths, found.turned) == (named, {"data"})
    assert objects.trees_read == 8, "the roots, src, src/a and src/b, of each commit"
    assert new.differing(old) == found
    assert not old.differing(old).paths
    listed = git_repo.git("diff-tree", "-r", "--name-only", "HEAD~", "HEAD").split("\n")
    assert all(path in found.paths or path.startswith("data/") for path in listed)
