"""Several writers, a lost race, a held lock, a kill: nothing lost, nothing half (laws 2, 3, 6)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from gitledger.errors import StoreError
from gitledger.records.ids import CommitId
from gitledger.records.tree import MODE_FOLDER, TreeEntry
from gitledger.store.encoding import blob_id
from gitledger.store.inbox import Aside
from gitledger.store.ledger import BODIES_REF, INBOX_PREFIX, RECORDS_REF, Ledger
from gitledger.store.libgit import LibgitObjects
from gitledger.store.objects import RefUpdate

A = CommitId("a" * 40)
B = CommitId("b" * 40)
KILLS = 8
"""Of one writer of lines; the workflows' tests of sudden death kill whole commands, many more times."""

WRITER = """
import os, sys
from pathlib import Path
from gitledger.records.ids import CommitId
from gitledger.store.git import Git
from gitledger.store.gitplumbing import PlumbingObjects
from gitledger.store.ledger import Ledger
from gitledger.store.libgit import LibgitObjects
from gitledger.store.objects import Identity
git_dir, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
git = Git(git_dir, os.environ, git_dir=git_dir)
ledger = Ledger(LibgitObjects(git_dir, durable=False) if sys.argv[4] == "libgit" else PlumbingObjects(git))
for n in range(count):
    body = f"body {name} {n}".encode()
    commit = CommitId(f"{n % 7:x}" * 40)
    ledger.append({commit: [f"{name} {n}".encode()]}, [body], identity=Identity("A", "a@x"), message="m")
    print(n, flush=True)
"""


def start_writer(git_dir, name: str, count: int, back_end: str = "libgit") -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(git_dir), name, str(count), back_end],
        env={**os.environ, "GIT_TEST_FSYNC": "0"},  # nobody pulls the plug here
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # a line that is read alone must not take along those behind it
    )


def all_lines(ledger: Ledger) -> list[bytes]:
    view = ledger.view()
    return [line for commit in view.commits() for line in view.lines(commit)]


@pytest.mark.parametrize(("back_ends", "each"), [(("libgit",), 50), (("libgit", "plumbing"), 6)])
def test_s01_eight_processes_record_into_one_clone_and_all_are_there(git_repo, back_ends, each):
    """400 receipts through the fast back end; fewer where both back ends race each other."""
    objects = LibgitObjects(git_repo.path / ".git")
    writers = [
        start_writer(git_repo.path / ".git", f"w{n}", each, back_ends[n % len(back_ends)]) for n in range(8)
    ]
    for writer in writers:
        _, stderr = writer.communicate(timeout=300)
        assert writer.returncode == 0, stderr.decode()
    ledger = Ledger(objects)
    assert sorted(all_lines(ledger)) == sorted(f"w{n} {i}".encode() for n in range(8) for i in range(each))
    bodies = {blob_id(f"body w{n} {i}".encode(), "sha1") for n in range(8) for i in range(each)}
    assert ledger.view().bodies() == bodies
    assert git_repo.git("rev-list", "--count", RECORDS_REF) == str(8 * each)
    assert not list((git_repo.path / ".git" / "refs").rglob("*.lock"))
    git_repo.git("fsck", "--strict")


class Meddling:
    """The objects of a repository in which somebody else acts right before the next update of a ref."""

    def __init__(self, objects, act):
        self._objects, self._act, self.attempts = objects, act, 0

    def __getattr__(self, name):
        return getattr(self._objects, name)

    def update_refs(self, updates):
        self.attempts += 1
        self._act(self.attempts, updates)
        return self._objects.update_refs(updates)


@pytest.mark.parametrize("ref", [RECORDS_REF, BODIES_REF])
@pytest.mark.parametrize("existing", [False, True])
def test_s02_a_ref_that_moves_before_the_update_is_built_upon_anew(objects, alice, add, ref, existing):
    if existing:
        add(A, b"first", bodies=[b"first body"])
    rival = Ledger(objects)

    def act(attempt, updates):
        if attempt <= 3 and updates[0].name == ref:
            rival.append({A: [b"rival %d" % attempt]}, [b"rival body %d" % attempt], identity=alice, message="m")

    meddling = Meddling(objects, act)
    Ledger(meddling).append({A: [b"ours"]}, [b"our body"], identity=alice, message="m")
    rounds = [n for n in range(1, 4) if b"rival %d" % n in rival.lines(A)]
    assert rounds
    # A rival beside the bodies moves the records too, on whose old value ours were built.
    assert meddling.attempts == 2 + len(rounds) + (ref == BODIES_REF)
    first = [b"first"] if existing else []
    assert rival.lines(A) == tuple(sorted([*first, b"ours", *(b"rival %d" % n for n in rounds)]))
    assert rival.has_body(blob_id(b"our body", "sha1"))
    assert all(rival.has_body(blob_id(b"rival body %d" % n, "sha1")) for n in rounds)


def test_s02_folding_is_built_anew_too(objects, alice, add, git_repo):
    add(A, b"first")
    theirs = objects.write_commit(tree=objects.write_tree([]), parents=[], message="theirs", identity=alice)
    objects.update_refs([RefUpdate("refs/gitledger/remotes/o/records", None, theirs)])

    def act(attempt, updates):
        if attempt == 1:
            Ledger(objects).append({A: [b"rival"]}, [], identity=alice, message="m")

    ledger = Ledger(Meddling(objects, act))
    ledger.unite_into_local(ledger.tracking_tips("o"), by=lambda: (alice, "m"))
    assert ledger.lines(A) == (b"first", b"rival")
    assert theirs in git_repo.git("rev-list", RECORDS_REF).split()


def test_a_ref_that_never_holds_still_keeps_the_line_beside_it_and_says_why(objects, alice, impatient):
    told: list[Aside] = []

    def act(attempt, updates):
        if updates[0].name == RECORDS_REF:
            Ledger(objects).append({A: [b"rival %d" % attempt]}, [], identity=alice, message="m")

    meddling = Meddling(objects, act)
    Ledger(meddling, retry=impatient, aside=told.append).append({A: [b"ours"]}, [], identity=alice, message="m")
    assert [kept.error.code for kept in told] == ["ref-contended"]
    assert b"ours" in Ledger(objects).lines(A)


@pytest.mark.parametrize("lock", [f"{RECORDS_REF}.lock", f"{BODIES_REF}.lock", "packed-refs.lock"])
def test_s14_a_lock_that_is_held_for_a_while_is_waited_for(objects, alice, add, git_repo, lock):
    add(A, b"first", bodies=[b"b"])
    path = git_repo.path / ".git" / lock
    path.touch()
    timer = threading.Timer(0.5, path.unlink)
    timer.start()
    try:
        add(A, b"second", bodies=[b"c"])
    finally:
        timer.join()
    assert Ledger(objects).lines(A) == (b"first", b"second")
    assert set(objects.list_refs("refs/")) == {RECORDS_REF, BODIES_REF}


@pytest.mark.parametrize("ref", [RECORDS_REF, BODIES_REF])
def test_a_lock_that_stays_keeps_what_is_written_in_the_inbox_until_the_next_append(
    objects, alice, impatient, git_repo, ref
):
    told: list[Aside] = []
    ledger = Ledger(objects, retry=impatient, aside=told.append)
    ledger.append({A: [b"before"]}, [b"old"], identity=alice, message="m")
    path = git_repo.path / ".git" / f"{ref}.lock"
    path.touch()
    ledger.append({A: [b"x"]}, [b"body"], identity=alice, message="m")
    [kept] = told
    assert kept.error.code == "ref-locked"
    assert str(path) in kept.error.hint
    assert set(objects.list_refs(INBOX_PREFIX)) == {kept.ref}
    assert ledger.lines(A) == (b"before", b"x")
    assert ledger.has_body(objects.write_blob(b"body"))

    path.unlink()
    ledger.append({B: [b"after"]}, [], identity=alice, message="m")
    assert not objects.list_refs(INBOX_PREFIX)
    assert ledger.lines(A) == (b"before", b"x")
    assert ledger.has_body(objects.write_blob(b"body"))
    assert len(told) == 1


def test_where_not_even_the_inbox_can_be_written_the_error_is_the_first_one(objects, alice, impatient, git_repo):
    for path in (git_repo.path / ".git" / f"{RECORDS_REF}.lock", git_repo.path / ".git" / f"{INBOX_PREFIX}a.lock"):
        path.parent.mkdir(parents=True)
        path.touch()
    ledger = Ledger(objects, retry=impatient, token=lambda: "a")
    with pytest.raises(StoreError) as caught:
        ledger.append({A: [b"x"]}, [], identity=alice, message="m")
    assert caught.value.code == "ref-locked"
    assert RECORDS_REF in caught.value.hint


def test_what_else_lies_in_the_inbox_is_neither_folded_nor_deleted(objects, alice, git_repo, add):
    mine = git_repo.commit({"a": "1"})
    git_repo.git("update-ref", f"{INBOX_PREFIX}mine", mine)
    add(A, b"x")
    assert set(objects.list_refs(INBOX_PREFIX)) == {f"{INBOX_PREFIX}mine"}


def test_law_3_no_reader_ever_sees_a_line_before_its_body(objects, git_repo, back_end):
    each = 25 if back_end == "libgit" else 10
    writers = [start_writer(git_repo.path / ".git", f"w{n}", each, back_end) for n in range(2)]
    ledger = Ledger(objects)
    seen = 0
    try:
        while any(writer.poll() is None for writer in writers):
            view = ledger.view()
            lines = [line for commit in view.commits() for line in view.lines(commit)]
            missing = [line for line in lines if not view.has_body(blob_id(b"body " + line, "sha1"))]
            assert missing == []
            seen = max(seen, len(lines))
    finally:
        for writer in writers:
            writer.communicate(timeout=60)
    assert seen > 0
    assert len(all_lines(ledger)) == 2 * each


def test_law_3_the_bodies_ref_moves_first(objects, alice):
    order = []
    ledger = Ledger(Meddling(objects, lambda _, updates: order.extend(update.name for update in updates)))
    ledger.append({A: [b"x"]}, [b"body"], identity=alice, message="m")
    assert order == [BODIES_REF, RECORDS_REF]


def test_law_3_a_fetch_in_the_middle_of_a_listing_shows_no_line_without_its_body(objects, alice, add):
    """The first listing saw the bodies ref before a fetch and the records ref after it."""
    prefix = "refs/gitledger/remotes/o/"
    empty = objects.write_commit(tree=objects.write_tree([]), parents=[], message="m", identity=alice)
    add(A, b"line", bodies=[b"body"])
    records, bodies = objects.read_ref(RECORDS_REF), objects.read_ref(BODIES_REF)
    objects.update_refs([
        RefUpdate(prefix + "records", None, records), RefUpdate(prefix + "bodies", None, bodies),
        RefUpdate(RECORDS_REF, records, None), RefUpdate(BODIES_REF, bodies, None),
    ])  # fmt: skip

    class Torn(Meddling):
        listings = 0

        def list_refs(self, listed):
            found = dict(self._objects.list_refs(listed))
            if listed.startswith("refs/gitledger/remotes/"):
                self.listings += 1
                if self.listings == 1:
                    found[prefix + "bodies"] = empty
            return found

    view = Ledger(Torn(objects, lambda *_: None)).view()
    assert view.lines(A) == (b"line",)
    assert view.has_body(blob_id(b"body", "sha1"))


def test_a_reader_beside_a_fold_loses_no_line(objects, alice, add):
    """An inbox is folded and deleted between two looks at the refs."""
    add(A, b"line")
    tip = objects.read_ref(RECORDS_REF)
    records = TreeEntry(MODE_FOLDER, "records", objects.read_commit(tip).tree)
    inbox = objects.write_commit(tree=objects.write_tree([records]), parents=[], message="m", identity=alice)
    objects.update_refs([RefUpdate(RECORDS_REF, tip, None), RefUpdate(INBOX_PREFIX + "x", None, inbox)])

    class Folding(Meddling):
        looks = 0

        def fold(self):
            self.looks += 1
            if self.looks == 2:
                objects.update_refs(
                    [RefUpdate(RECORDS_REF, None, tip), RefUpdate(INBOX_PREFIX + "x", inbox, None)]
                )

        def read_ref(self, name):
            self.fold()
            return self._objects.read_ref(name)

        def list_refs(self, prefix):
            if prefix == INBOX_PREFIX:
                self.fold()
            return self._objects.list_refs(prefix)

    assert Ledger(Folding(objects, lambda *_: None)).lines(A) == (b"line",)


def test_law_6_a_killed_writer_leaves_before_or_after(objects, git_repo, back_end):
    """Each is killed at a random moment; what it said was stored is there, and the next one goes on."""
    chance = random.Random(6)
    git_dir = git_repo.path / ".git"
    said = {}
    for n in range(KILLS):
        writer = start_writer(git_dir, f"k{n}", 10_000, back_end)
        writer.stdout.readline()
        time.sleep(chance.random() * 0.08)
        writer.send_signal(signal.SIGKILL)
        out, _ = writer.communicate(timeout=60)
        said[n] = 1 + len(out.splitlines())
        for lock in git_dir.rglob("refs/**/*.lock"):
            lock.unlink()  # what git leaves as well, and names in its error
        ledger = Ledger(objects)
        view = ledger.view()
        lines = [line for commit in view.commits() for line in view.lines(commit)]
        mine = [line for line in lines if line.startswith(b"k%d " % n)]
        assert len(mine) - said[n] in (0, 1)
        assert all(view.body(blob_id(b"body " + line, "sha1")) == b"body " + line for line in lines)
    assert len(lines) >= sum(said.values()) >= KILLS
    git_repo.git("fsck", "--strict", "--no-dangling")
