"""Which back end opens a repository, that both write the same ledger, and what only git's plumbing can open."""

from __future__ import annotations

import os

import pytest

from gitledger.errors import StoreError, UsageError
from gitledger.records.ids import BlobId, CommitId
from gitledger.store.encoding import blob_id
from gitledger.store.git import Git
from gitledger.store.gitplumbing import PlumbingObjects
from gitledger.store.late_libgit import LateLibgit
from gitledger.store.ledger import BODIES_REF, RECORDS_REF, Ledger
from gitledger.store.libgit import LibgitObjects
from gitledger.store.objects import Identity
from gitledger.store.repository import open_repository
from gitledger.store.sync import Sync, publish

ALICE = Identity("Alice <\n", "alice@example.org")
MESSAGE = "ledger: 1 records\n\nÜnïcode \0 and no newline at the end"


def two_histories(ledger: Ledger, commits: list[str]) -> None:
    """Write something that uses every way in which objects are made."""
    for number, commit in enumerate(commits):
        ledger.append({CommitId(commit): [b"%d" % number]}, [b"body %d" % number], identity=ALICE, message=MESSAGE)
    ledger.append({CommitId(commits[0]): [b"more"]}, [], identity=ALICE, message=MESSAGE)


def test_a_ledger_written_by_one_back_end_is_the_other_ones_to_the_byte(make_repo, hermetic_env):
    commits = [f"{number:02x}" * 20 for number in (1, 1, 2, 3, 171)]
    tips = []
    for name in ("libgit", "plumbing"):
        repo = make_repo(name)
        git_dir = repo.path / ".git"
        ticks = iter(range(1_700_000_000, 1_800_000_000))
        clock = lambda ticks=ticks: float(next(ticks))  # noqa: E731
        objects = (
            LibgitObjects(git_dir, clock)
            if name == "libgit"
            else PlumbingObjects(Git(git_dir, hermetic_env, git_dir=git_dir), clock)
        )
        two_histories(Ledger(objects), commits)
        tips.append([repo.git("rev-parse", ref) for ref in (RECORDS_REF, BODIES_REF)])
        repo.git("fsck", "--strict")
    assert tips[0] == tips[1]


def test_each_reads_and_goes_on_with_what_the_other_wrote(git_repo, hermetic_env):
    git_dir = git_repo.path / ".git"
    one = Ledger(LibgitObjects(git_dir))
    two = Ledger(PlumbingObjects(Git(git_dir, hermetic_env, git_dir=git_dir)))
    commit = CommitId("a" * 40)
    for number in range(4):
        (one, two)[number % 2].append({commit: [b"%d" % number]}, [b"b%d" % number], identity=ALICE, message="m")
        assert one.lines(commit) == two.lines(commit) == tuple(b"%d" % n for n in range(number + 1))
    assert one.view().bodies() == two.view().bodies()


# --- S24: object formats and kinds of refs ---------------------------------------------------------------------


def test_an_ordinary_repository_is_opened_by_the_fast_back_end(git_repo):
    objects = open_repository(git_repo.path, env=git_repo.env).objects
    assert isinstance(objects, LateLibgit)
    assert isinstance(objects.load(), LibgitObjects)


def test_s24_a_sha256_repository_records_publishes_and_reads(make_repo):
    remote = make_repo("remote.git", "--bare", "--object-format=sha256")
    sides = []
    for name in ("one", "two"):
        repo = make_repo(name, "--object-format=sha256")
        repo.git("remote", "add", "origin", f"file://{remote.path}")
        sides.append(repo)
    head = CommitId(sides[0].commit({"a": "1"}))
    assert len(head) == 64
    for number, repo in enumerate(sides):
        repository = open_repository(repo.path, env=repo.env)
        assert isinstance(repository.objects, PlumbingObjects)
        ledger = Ledger(repository.objects)
        ledger.append({head: [b"line %d" % number]}, [b"body %d" % number], identity=ALICE, message="m")
        publish(Sync(repository=repository, ledger=ledger, remote="origin", by=lambda: (ALICE, "ledger: sync")))
    assert ledger.lines(head) == (b"line 0", b"line 1")
    assert all(ledger.has_body(blob_id(b"body %d" % number, "sha256")) for number in range(2))
    assert set(remote.git("notes", "--ref=gitledger/records", "show", head).split("\n")) == {"line 0", "line 1"}
    remote.git("fsck", "--strict")


def test_s24_a_reftable_repository_works_or_is_one_clear_error(make_repo, tmp_path):
    """Git 2.45 and newer can make one; an older git can't even say what it is."""
    probe = make_repo("probe")
    probe.git("init", "-q", "--ref-format=reftable", str(tmp_path / "refs"), check=False)
    if (tmp_path / "refs" / ".git" / "reftable").is_dir():
        repo = type(probe)(tmp_path / "refs", probe.env)
        head = CommitId(repo.commit({"a": "1"}))
        repository = open_repository(repo.path, env=repo.env)
        assert isinstance(repository.objects, PlumbingObjects)
        ledger = Ledger(repository.objects)
        two_histories(ledger, [head])
        assert ledger.lines(head) == (b"0", b"more")
        return
    probe.git("config", "core.repositoryFormatVersion", "1")
    probe.git("config", "extensions.refStorage", "reftable")
    with pytest.raises(UsageError) as caught:
        open_repository(probe.path, env=probe.env)
    assert caught.value.code == "repository-unsupported"
    assert "refstorage" in caught.value.message.lower()
    assert "\n" not in str(caught.value)


# --- S23: partial clones ---------------------------------------------------------------------------------------


@pytest.fixture
def partial(make_repo, tmp_path):
    """A blobless clone without a work tree, of a remote with two commits; its fetches are counted."""
    source = make_repo("source")
    first = source.commit({"a": "one", "d/b": "two"})
    second = source.commit({"a": "three"})
    for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        source.git("config", key, "true")
    clones = make_repo("clones")
    clones.git("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{source.path}", "partial")
    clone = type(source)(clones.path / "partial", source.env)
    count = tmp_path / "fetches"
    wrapper = tmp_path / "upload-pack"
    wrapper.write_text(f'#!/bin/sh\necho x >> {count}\nexec git upload-pack "$@"\n')
    wrapper.chmod(0o755)
    clone.git("config", "remote.origin.uploadpack", str(wrapper))

    class Partial:
        repo, commits = clone, (CommitId(first), CommitId(second))

        def fetches(self) -> int:
            return len(count.read_text().split()) if count.exists() else 0

    return Partial()


@pytest.mark.parametrize("extension", [False, True])
def test_s23_missing_blobs_of_a_blobless_clone_are_fetched_by_git(partial, extension):
    if extension:
        partial.repo.git("config", "core.repositoryFormatVersion", "1")
        partial.repo.git("config", "extensions.partialClone", "origin")
    repository = open_repository(partial.repo.path, env=partial.repo.env)
    assert isinstance(repository.objects, PlumbingObjects)
    assert repository.file_at(partial.commits[0], "d/b") == b"two"
    assert partial.fetches() == 1
    assert repository.file_at(partial.commits[0], "d/b") == b"two"
    assert partial.fetches() == 1


def test_s23_a_blobless_clone_records_and_publishes_and_its_ledger_has_its_blobs(partial, make_repo):
    source = make_repo("other")
    source.git("remote", "add", "origin", partial.repo.git("config", "remote.origin.url"))
    other = open_repository(source.path, env=source.env)
    theirs = Ledger(other.objects)
    theirs.append({partial.commits[0]: [b"theirs"]}, [b"their body"], identity=ALICE, message="m")
    publish(Sync(repository=other, ledger=theirs, remote="origin", by=lambda: (ALICE, "ledger: sync")))

    repository = open_repository(partial.repo.path, env=partial.repo.env)
    ledger = Ledger(repository.objects)
    ledger.append({partial.commits[0]: [b"ours"]}, [b"our body"], identity=ALICE, message="m")
    assert (
        publish(
            Sync(repository=repository, ledger=ledger, remote="origin", by=lambda: (ALICE, "ledger: sync"))
        ).via
        == "notes"
    )
    before = partial.fetches()
    assert ledger.lines(partial.commits[0]) == (b"ours", b"theirs")
    assert ledger.body(blob_id(b"their body", "sha1")) == b"their body"
    assert partial.fetches() == before


def test_a_commit_that_a_partial_clone_lacks_is_absent_and_not_asked_for(partial):
    """Notes of commits that this clone doesn't have would else cost a connection each."""
    objects = open_repository(partial.repo.path, env=partial.repo.env).objects
    for digit in "123":
        assert objects.read_commit(CommitId(digit * 40)) is None
        assert objects.object_kind(digit * 40) is None
    assert partial.fetches() == 0


def test_bodies_that_the_ledger_lacks_are_not_asked_of_the_remote_ahead(partial):
    """Whoever can write a line can name bodies in it: a verdict would else wait for the remote once for each."""
    repository = open_repository(partial.repo.path, env=partial.repo.env)
    ledger = Ledger(repository.objects)
    ledger.append({partial.commits[0]: [b"line"]}, [b"a body"], identity=ALICE, message="m")
    held, beside = blob_id(b"a body", "sha1"), BlobId(partial.repo.git("rev-parse", "HEAD:d/b"))
    view = ledger.view()
    view.read_ahead([held, BlobId("1" * 40), BlobId("2" * 40), beside])
    assert partial.fetches() == 0
    assert (view.body(held), view.body(BlobId("1" * 40)), view.body(beside)) == (b"a body", None, None)
    assert partial.fetches() == 0


def test_a_promised_object_that_nobody_can_give_is_an_error_and_not_absent(partial):
    partial.repo.git("config", "remote.origin.url", "/nowhere")
    repository = open_repository(partial.repo.path, env=partial.repo.env)
    with pytest.raises(StoreError) as caught:
        repository.file_at(partial.commits[0], "d/b")
    assert caught.value.code == "object-unavailable"
    assert repository.commit(partial.commits[0]).summary == "change"
    promised = BlobId(partial.repo.git("rev-parse", f"{partial.commits[0]}:d/b"))
    with pytest.raises(StoreError):
        repository.objects.blob_size(promised)
    assert repository.objects.blob_size(BlobId("1" * 40)) is None


# --- the processes behind it -----------------------------------------------------------------------------------


def test_a_look_up_starts_no_process_of_its_own(git_repo, hermetic_env, tmp_path):
    trace = tmp_path / "trace"
    git_dir = git_repo.path / ".git"
    env = hermetic_env | {"GIT_TRACE2_EVENT": str(trace)}
    ledger = Ledger(PlumbingObjects(Git(git_dir, env, git_dir=git_dir)))
    commits = [CommitId(f"{number:02x}" * 20) for number in range(30)]
    ledger.append({commit: [b"line"] for commit in commits}, [], identity=ALICE, message="m")
    trace.unlink()
    view = ledger.view()
    assert all(view.lines(commit) == (b"line",) for commit in commits)
    assert trace.read_text().count('"event":"start"') <= 7


def test_a_reader_that_died_is_started_again(git_repo, hermetic_env):
    git_dir = git_repo.path / ".git"
    objects = PlumbingObjects(Git(git_dir, hermetic_env, git_dir=git_dir))
    blob = objects.write_blob(b"x")
    assert objects.read_blob(blob) == b"x"
    child = objects._anywhere._talk._running._child
    os.kill(child.pid, 9)
    child.wait(timeout=60)
    other = objects.write_blob(b"y")
    with pytest.raises(StoreError):
        objects.read_blob(other)
    assert objects.read_blob(other) == b"y"


def test_a_repository_of_another_user_that_safe_directory_lets_in_is_read_and_written(make_repo):
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    repo = make_repo("theirs", "--object-format=sha256")
    repo.git("config", "--global", "safe.directory", "*")
    head = CommitId(repo.commit({"a": "1"}))
    for path in (repo.path, repo.path / ".git"):
        os.chown(path, 12345, 12345)
    ledger = Ledger(open_repository(repo.path, env=repo.env).objects)
    two_histories(ledger, [head])
    assert ledger.lines(head) == (b"0", b"more")
