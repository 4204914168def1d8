"""libgit2 is loaded when it pays, and until then nothing is told otherwise than it would tell it."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from gitledger.errors import StoreError
from gitledger.records.ids import BlobId, CommitId
from gitledger.store import late_libgit
from gitledger.store.cat_file import MAX_KEPT_EACH_BYTES
from gitledger.store.conversation import Conversation
from gitledger.store.encoding import blob_id
from gitledger.store.ledger import Ledger
from gitledger.store.libgit import LibgitObjects
from gitledger.store.objects import GitObjects, RefUpdate
from gitledger.store.ref_files import OddRef, RefFiles
from gitledger.store.repository import open_repository

REF = "refs/notes/gitledger/records"


@pytest.fixture
def repo(git_repo):
    git_repo.commit({"a": "1", "folder/b": "2"})
    return git_repo


def opened(repo):
    return open_repository(repo.path, env=repo.env)


def is_loaded(objects) -> bool:
    return isinstance(objects._whole, LibgitObjects)


def test_a_few_reads_load_nothing_and_start_one_process(repo, tmp_path):
    trace = tmp_path / "trace"
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from gitledger.store.ledger import Ledger\n"
        "from gitledger.store.repository import open_repository\n"
        "repository = open_repository(Path(sys.argv[1]), env=dict(os.environ))\n"
        "Ledger(repository.objects).view().lines('1' * 40)\n"
        "head = repository.head()\n"
        "assert repository.file_at(head, 'folder/b') == b'2'\n"
        "assert not {'pygit2', 'ssl', 'socket', 'tarfile'} & sys.modules.keys()\n"
    )
    env = repo.env | {"GIT_TRACE2_EVENT": str(trace)}
    done = subprocess.run(
        [sys.executable, "-c", code, repo.path], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert trace.read_text().count('"event":"start"') == 3  # rev-parse, config, cat-file


def test_whoever_writes_loads_it(repo):
    objects = opened(repo).objects
    blob = objects.write_blob(b"x")
    assert is_loaded(objects)
    assert objects.read_blob(blob) == b"x"


def test_what_is_written_meanwhile_is_read(repo):
    reading, writing = opened(repo).objects, opened(repo).objects
    head = reading.read_ref("HEAD")
    assert reading.read_commit(head) is not None
    assert writing.update_refs([RefUpdate(REF, None, head)])
    assert reading.read_ref(REF) == head
    assert reading.read_blob(writing.write_blob(b"new")) == b"new"
    repo.git("gc", "-q", "--prune=now")
    assert (reading.read_ref(REF), reading.list_refs("refs/notes/")) == (head, {REF: head})
    assert writing.update_refs([RefUpdate(REF, head, None)])
    assert (reading.read_ref(REF), reading.list_refs("refs/notes/")) == (None, {})
    assert not is_loaded(reading)


def test_whoever_reads_much_goes_over_to_it(repo, monkeypatch):
    monkeypatch.setattr(late_libgit, "_FEW", 10)
    objects = opened(repo).objects
    blob = BlobId(repo.git("rev-parse", "HEAD:a"))
    for number in range(12):
        assert objects.read_blob(blob) == b"1"
        assert is_loaded(objects) == (number >= 10)
    assert objects._few._talk._running._child.wait(60) == 0  # git ends by itself, and nobody waited for it


def test_what_was_being_asked_of_git_as_it_was_told_to_end_is_answered_by_libgit2(repo):
    objects = opened(repo).objects
    tree, blob = (repo.git("rev-parse", name) for name in ("HEAD^{tree}", "HEAD:a"))
    assert objects.tree_bytes(tree) is not None
    objects._few.hang_up()
    assert objects.read_blob(BlobId(blob)) == b"1"
    assert is_loaded(objects)


def test_what_git_can_not_read_is_said_as_libgit2_says_it(repo):
    blob = repo.git("rev-parse", "HEAD:a")
    path = repo.path / ".git" / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(b"garbage")
    said = []
    for objects in (opened(repo).objects, LibgitObjects(repo.path / ".git")):
        with pytest.raises(StoreError) as caught:
            objects.read_blob(BlobId(blob))
        said.append((caught.value.code, caught.value.message))
    assert said[0] == said[1]


@pytest.mark.parametrize("content", [b"", b"zz\n", b"0123\n", b"ref: refs/heads/loop\n", b"ref: ../HEAD\n"])
def test_a_ref_that_is_not_plain_is_left_to_libgit2(repo, content):
    (repo.path / ".git/refs/heads/loop").write_bytes(content)
    outcomes = []
    for objects in (opened(repo).objects, LibgitObjects(repo.path / ".git")):
        try:
            outcomes.append(objects.read_ref("refs/heads/loop"))
        except StoreError as error:
            outcomes.append((error.code, error.message))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    "name",
    ["ORIG_HEAD", "refs/bisect/bad", "refs/heads/a..b", "refs/heads/x.lock/y", "refs/../HEAD", "refs/heads/.a"],
)
def test_names_that_are_not_plain_are_left_to_libgit2(repo, name):
    (repo.path / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
    if ".." not in name:
        (repo.path / ".git" / name).write_text(repo.git("rev-parse", "HEAD") + "\n")
    objects = opened(repo).objects
    assert objects.read_ref(name) == LibgitObjects(repo.path / ".git").read_ref(name)
    assert is_loaded(objects)


def test_threads_take_turns(repo):
    blobs = []
    writer = opened(repo).objects
    for number in range(20):
        blobs.append((writer.write_blob(b"%d" % number * 50_000), b"%d" % number * 50_000))
    objects = opened(repo).objects
    with ThreadPoolExecutor(8) as pool:
        kinds = pool.map(objects.blob_size, [blob for blob, _ in blobs * 10])
        found = list(pool.map(objects.read_blob, [blob for blob, _ in blobs * 10]))
    assert found == [content for _, content in blobs * 10]
    assert list(kinds) == [len(content) for _, content in blobs * 10]
    assert not is_loaded(objects)


def test_what_is_read_ahead_is_asked_for_at_once_and_read_as_ever(repo, monkeypatch):
    asked = []
    ask = Conversation.ask
    monkeypatch.setattr(
        Conversation, "ask", lambda self, question: (asked.append(question), ask(self, question))[1]
    )
    writer = opened(repo).objects
    blobs = {writer.write_blob(b"%d" % number): b"%d" % number for number in range(1_200)}
    large = writer.write_blob(b"x" * (MAX_KEPT_EACH_BYTES + 1))
    monkeypatch.setattr(late_libgit, "_FEW", 10_000)
    objects = opened(repo).objects
    objects.read_ahead([*blobs, large, "1" * 40, "no id"])
    assert len(asked) == 6
    assert {blob: objects.read_blob(blob) for blob in blobs} == blobs
    assert objects.blob_size(next(iter(blobs))) == 1
    assert len(asked) == 6
    assert objects.read_blob(BlobId("1" * 40)) is None
    assert len(objects.read_blob(large)) == MAX_KEPT_EACH_BYTES + 1
    assert objects.read_commit(CommitId(next(iter(blobs)))) is None
    assert not is_loaded(objects)


def test_a_damaged_object_among_those_read_ahead_spoils_no_other(repo):
    writer = opened(repo).objects
    blobs = {writer.write_blob(b"%d" % number): b"%d" % number for number in range(9)}
    damaged = sorted(blobs)[4]
    path = repo.path / ".git" / "objects" / damaged[:2] / damaged[2:]
    path.chmod(0o644)
    path.write_bytes(b"garbage")
    objects = opened(repo).objects
    objects.read_ahead(sorted(blobs))
    for blob, content in blobs.items():
        if blob != damaged:
            assert objects.read_blob(blob) == content
    assert not is_loaded(objects)
    with pytest.raises(StoreError, match=damaged):
        objects.read_blob(damaged)


def test_no_more_is_kept_than_there_is_room_for(repo, monkeypatch):
    monkeypatch.setattr("gitledger.store.cat_file.MAX_KEPT_BYTES", 10)
    writer = opened(repo).objects
    blobs = {writer.write_blob(b"%d" % number * 4): b"%d" % number * 4 for number in range(9)}
    objects = opened(repo).objects
    objects.read_ahead(blobs)
    assert sum(len(content) for _, content in objects._few._kept.values()) == 8
    assert {blob: objects.read_blob(blob) for blob in blobs} == blobs


def test_once_loaded_nothing_stands_between(repo):
    objects = opened(repo).objects
    whole = objects.load()
    methods = [name for name, value in vars(GitObjects).items() if callable(value) and not name.startswith("_")]
    assert len(methods) > 10
    assert all(getattr(objects, name).__self__ is whole for name in methods)


def test_bodies_of_a_ledger_are_read_ahead_in_a_few_questions(repo, monkeypatch, alice):
    bodies = [b"\1%d" % number for number in range(300)]
    Ledger(opened(repo).objects).append({}, bodies, identity=alice, message="m")
    asked = []
    ask = Conversation.ask
    monkeypatch.setattr(
        Conversation, "ask", lambda self, question: (asked.append(question), ask(self, question))[1]
    )
    view = Ledger(opened(repo).objects).view()
    oids = [blob_id(body, "sha1") for body in bodies]
    view.read_ahead(oids)
    assert [view.body(oid) for oid in oids] == bodies
    assert len(asked) <= 12


HEADS = {
    "a branch": (b"ref: refs/heads/other\n", False),
    "a branch without a commit": (b"ref: refs/heads/unborn\n", False),
    "a packed branch": (b"ref: refs/heads/packed\n", False),
    "written by another tool": (b"ref:refs/heads/other", False),
    "a commit": (None, False),
    "a branch of odd letters": ("ref: refs/heads/łódź\n".encode(), True),
    "a symbolic branch": (b"ref: refs/heads/alias\n", False),
    "what stands for itself": (b"ref: refs/heads/loop\n", True),
    "no branch": (b"ref: refs/remotes/origin/main\n", False),
}


@pytest.mark.parametrize("head", HEADS)
def test_what_head_names_is_what_git_says(repo, head):
    content, is_for_git = HEADS[head]
    for name in ("packed", "other", "łódź"):
        repo.git("branch", name)
    repo.git("pack-refs", "--all")
    repo.git("commit", "-q", "--allow-empty", "-m", "more")
    repo.git("symbolic-ref", "refs/heads/alias", "refs/heads/other")
    (repo.path / ".git/refs/heads/loop").write_text("ref: refs/heads/loop\n")
    (repo.path / ".git/HEAD").write_bytes(content or repo.git("rev-parse", "HEAD").encode())
    place = repo.path / ".git"
    try:
        found = RefFiles(place, place).named_by("HEAD")
        assert not is_for_git
        assert (found or "") == repo.git("symbolic-ref", "-q", "HEAD", check=False)
    except OddRef:
        assert is_for_git
    if head != "what stands for itself":  # git itself gives up
        said = repo.git("symbolic-ref", "-q", "HEAD", check=False)
        expected = said.removeprefix("refs/heads/") if said.startswith("refs/heads/") else None
        assert opened(repo).branch() == expected


def test_a_head_that_is_a_link_is_for_git(repo):
    head = repo.path / ".git/HEAD"
    head.unlink()
    head.symlink_to("refs/heads/main")
    with pytest.raises(OddRef):
        RefFiles(repo.path / ".git", repo.path / ".git").named_by("HEAD")
    assert opened(repo).branch() == "main"


def test_a_worktree_has_a_head_of_its_own(repo, tmp_path):
    repo.git("worktree", "add", "-q", "-b", "beside", str(tmp_path / "beside"))
    assert open_repository(tmp_path / "beside", env=repo.env).branch() == "beside"
    assert opened(repo).branch() == "main"


def test_a_folder_of_refs_that_cant_be_read_is_not_an_empty_one(repo):
    folder = repo.path / ".git/refs/notes/gitledger"
    folder.parent.mkdir(parents=True)
    refs = RefFiles(repo.path / ".git", repo.path / ".git")
    assert refs.below("refs/notes/gitledger/") == {}
    folder.symlink_to(folder.name)  # root reads everything but a loop
    with pytest.raises(OddRef):
        refs.below("refs/notes/gitledger/")
