"""Lock files of the dead are told from those of the living by what the kernel and the file system say."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from pathlib import Path

import pytest

from gitledger.records.ids import CommitId
from gitledger.store.durable import sync_files
from gitledger.store.held import holding, sweep_dead
from gitledger.store.ledger import BODIES_REF, RECORDS_REF, Ledger
from gitledger.store.libgit import LibgitObjects

REF = RECORDS_REF


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """The lock file of a ref, just made."""
    path = tmp_path / f"{REF}.lock"
    path.parent.mkdir(parents=True)
    path.write_text("")
    return path


def die(tmp_path: Path, *refs: str) -> None:
    """Leave behind what a process leaves that is killed inside of a transaction on `refs`."""
    held = holding(tmp_path)
    account = held.__enter__()
    for ref in refs:
        account.note(ref)
    os.close(account._file)  # the kernel's part: whatever the dead process had open is closed
    account._file, account._account, account._links = None, None, []
    held.__exit__(None, None, None)


def accounts(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "gitledger").iterdir())


def test_a_transaction_that_ends_leaves_nothing(tmp_path, lock):
    with holding(tmp_path) as held:
        held.note(REF)
        assert len(accounts(tmp_path)) == 2
    assert accounts(tmp_path) == []
    assert lock.exists()


def test_the_lock_of_a_dead_process_is_removed_once(tmp_path, lock):
    die(tmp_path, REF)
    assert sweep_dead(tmp_path) == (lock,)
    assert not lock.exists()
    assert accounts(tmp_path) == []
    assert sweep_dead(tmp_path) == ()


def test_the_lock_of_a_living_process_stays(tmp_path, lock):
    with holding(tmp_path) as held:
        held.note(REF)
        assert sweep_dead(tmp_path) == ()
        assert lock.exists()
        assert len(accounts(tmp_path)) == 2


def test_a_lock_that_was_made_anew_since_is_another_ones(tmp_path, lock):
    die(tmp_path, REF)
    lock.unlink()
    lock.write_text("another's")
    assert sweep_dead(tmp_path) == ()
    assert lock.read_text() == "another's"
    assert accounts(tmp_path) == []


def test_a_lock_that_became_the_ref_before_the_kill_is_no_lock(tmp_path, lock):
    die(tmp_path, REF)
    ref = lock.with_suffix("")
    lock.rename(ref)
    lock.write_text("the next writer's")
    assert sweep_dead(tmp_path) == ()
    assert lock.exists()
    assert ref.exists()


def test_a_kill_before_the_lock_was_made_leaves_nothing_to_remove(tmp_path, lock):
    lock.unlink()
    die(tmp_path, REF)
    assert sweep_dead(tmp_path) == ()
    assert accounts(tmp_path) == []


@pytest.mark.parametrize("text", ["", "garbage", "x\n", "a.0 ../../etc/passwd\n", "\xff\n"])
def test_an_account_that_is_garbage_removes_nothing(tmp_path, lock, text):
    folder = tmp_path / "gitledger"
    folder.mkdir()
    (folder / "a.held").write_bytes(text.encode("latin-1"))
    assert sweep_dead(tmp_path) == ()
    assert lock.exists()


def test_without_an_account_the_transaction_goes_on(tmp_path, lock):
    """As on a full disk, or where somebody put a file in the folder's place."""
    (tmp_path / "gitledger").write_text("")
    with holding(tmp_path) as held:
        held.note(REF)
    assert sweep_dead(tmp_path) == ()
    assert lock.exists()


def test_an_account_that_another_sweeper_works_on_is_left_to_it(tmp_path, lock):
    die(tmp_path, REF)
    [account] = [path for path in accounts(tmp_path) if path.suffix == ".held"]
    with account.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert sweep_dead(tmp_path) == ()
        assert lock.exists()
    assert sweep_dead(tmp_path) == (lock,)


def seen_by(asked):
    """Return an `fsync` that waits for nothing and notes what it was asked for, and by which thread."""

    def fsync(file):
        asked.append((os.readlink(f"/proc/self/fd/{file}"), threading.get_ident()))

    return fsync


def test_what_is_made_durable_is_asked_for_file_by_file_with_its_folders(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(os, "fsync", seen_by(asked))
    begun = []
    monkeypatch.setattr(os, "posix_fadvise", lambda *_: begun.append(len(asked)))
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / "one").write_text("1")
    sync_files(str(tmp_path / path) for path in ("ab/one", "cd/packed meanwhile"))
    assert sorted(path for path, _ in asked) == sorted(
        map(str, (tmp_path, tmp_path / "ab", tmp_path / "ab" / "one"))
    )
    assert {thread for _, thread in asked} == {threading.get_ident()}  # a quick disk is waited for as one goes
    assert begun == [0]  # the disk was told of the content before anything was waited for


def test_a_slow_disk_is_asked_for_the_rest_at_once_and_for_nothing_less(tmp_path, monkeypatch):
    asked = []
    note = seen_by(asked)

    def slow(file):
        time.sleep(0.02)
        note(file)

    monkeypatch.setattr(os, "fsync", slow)
    files = [tmp_path / f"{number:02x}" / "object" for number in range(6)]
    for file in files:
        file.parent.mkdir()
        file.write_text("x")
    sync_files(map(str, files))
    assert sorted(path for path, _ in asked) == sorted(
        str(path) for path in {tmp_path, *files, *(file.parent for file in files)}
    )
    assert len({thread for _, thread in asked}) > 2


def test_what_the_disk_refuses_is_raised_from_any_thread(tmp_path, monkeypatch):
    files = [tmp_path / f"{number:02x}" for number in range(4)]
    for file in files:
        file.write_text("x")

    for patience_s in (1.0, 0.0):

        def refuse(file):
            if os.readlink(f"/proc/self/fd/{file}") == str(files[-1]):
                raise OSError(errno.EIO, "refused")

        monkeypatch.setattr("gitledger.store.durable._PATIENCE_S", patience_s)
        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(OSError, match="refused"):
            sync_files(map(str, files))


def test_every_new_object_is_on_the_disk_before_the_first_ref_moves_and_all_in_one_go(
    git_repo, alice, monkeypatch
):
    git_dir = git_repo.path / ".git"
    waits: list[set[str]] = []

    def note(paths):
        files = {"".join(path.split("/")[-2:]) for path in paths}
        assert git_repo.git("for-each-ref") == ""
        waits.append(files)

    monkeypatch.setattr("gitledger.store.libgit.sync_files", note)
    ledger = Ledger(LibgitObjects(git_dir))
    ledger.append({CommitId("a" * 40): [b"line"]}, [b"body"], identity=alice, message="m")
    reachable = git_repo.git("rev-list", "--objects", "--no-object-names", RECORDS_REF, BODIES_REF).split()
    assert [waits[0]] == waits
    assert waits[0] == set(reachable)
