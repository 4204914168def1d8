"""Two clones and a remote: what is recorded anywhere ends up everywhere, whoever was first, and nothing is forced.

The remotes are real bare repositories by path. A wrapper around `git receive-pack` plants races where a real one
would happen: between what the remote told the client and the moment at which it updates its refs.
"""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gitledger.errors import StoreError, UsageError
from gitledger.records.ids import CommitId
from gitledger.store.ledger import Ledger, Retry
from gitledger.store.objects import Identity
from gitledger.store.refs import BODIES_REF, INBOX_PREFIX, RECORDS_REF
from gitledger.store.remote import choose_remote, tracking_refspecs
from gitledger.store.repository import open_repository
from gitledger.store.sync import Sync, fetch, publish

ALICE = Identity("Alice", "alice@example.org")
NOTHING_LOST = Retry(sleep=lambda _: None, budget_s=0.5, first_s=0.1, longest_s=0.1)


class Clone:
    """A clone that records lines and syncs."""

    def __init__(self, repo) -> None:
        self.repo = repo
        self.repository = open_repository(repo.path, env=repo.env)
        self.ledger = Ledger(self.repository.objects)

    @property
    def head(self) -> CommitId:
        return CommitId(self.repo.git("rev-parse", "HEAD"))

    def record(self, *lines: bytes, bodies=(), commit=None) -> None:
        self.ledger.append({commit or self.head: lines}, bodies, identity=ALICE, message="record")

    def sync(self, retry: Retry = NOTHING_LOST, **options) -> Sync:
        # Each command opens its repository anew, as in real life.
        repository = open_repository(self.repo.path, env=self.repo.env)
        return Sync(
            repository=repository,
            ledger=Ledger(repository.objects),
            remote="origin",
            by=lambda: (ALICE, "ledger: sync"),
            retry=retry,
            **options,
        )

    def publish(self, **options):
        return publish(self.sync(**options))

    def fetch(self) -> None:
        fetch(self.sync())

    def lines(self, commit=None) -> tuple[bytes, ...]:
        return self.ledger.lines(commit or self.head)

    def local(self) -> set[bytes]:
        """The lines of the local notes alone, as plain git shows them."""
        shown = self.repo.git("notes", "--ref=gitledger/records", "show", "HEAD", check=False)
        return set(shown.encode().split())

    def is_shallow(self) -> str:
        return self.repo.git("rev-parse", "--is-shallow-repository")


@pytest.fixture
def remote(make_repo):
    """A bare remote with one commit and no ledger."""
    seed = make_repo("seed")
    seed.commit({"a": "1"})
    seed.commit({"a": "2"})
    bare = make_repo("remote.git", "--bare")
    seed.git("push", "-q", str(bare.path), "main")
    return bare


@pytest.fixture
def clone(remote, make_repo):
    """A maker of clones of the remote."""

    def make(name: str, *options: str) -> Clone:
        repo = make_repo(name)
        repo.git("remote", "add", "origin", f"file://{remote.path}")
        repo.git("fetch", "-q", *options, "origin", "main")
        repo.git("reset", "-q", "--hard", "FETCH_HEAD")
        return Clone(repo)

    return make


@pytest.fixture
def on_receive(tmp_path):
    """Let a script run, at the first push of a clone (or at every one), once the remote has been reached."""

    def plant(clone: Clone, script: str, *, once: bool = True) -> Path:
        count = tmp_path / f"{clone.repo.path.name}.pushes"
        wrapper = tmp_path / f"{clone.repo.path.name}.receive-pack"
        guard = '[ "$(wc -l < "$count")" -gt 1 ] ||' if once else ""
        wrapper.write_text(
            f'#!/bin/sh\ncount={count}\necho x >> "$count"\n{guard} {{ {script}\n}}\nexec git receive-pack "$@"\n'
        )
        wrapper.chmod(0o755)
        clone.repo.git("config", "remote.origin.receivepack", str(wrapper))
        return count

    return plant


def pushes(count: Path) -> int:
    return len(count.read_text().split())


def notes_of(repo) -> set[str]:
    shown = repo.git("notes", "--ref=gitledger/records", "show", "main", check=False)
    return set(shown.split())


def inbox_of(repo) -> list[str]:
    return repo.git("for-each-ref", "--format=%(refname)", INBOX_PREFIX).split()


# --- the plain way ---------------------------------------------------------------------------------------------


def test_what_is_published_is_plain_notes_at_the_remote(clone, remote):
    one = clone("one")
    one.record(b"r1", b"r2", bodies=[b"body"])
    result = one.publish()
    assert (result.via, result.lines, result.bodies, result.attempts) == ("notes", 2, 1, 1)
    assert notes_of(remote) == {"r1", "r2"}
    blob = one.repo.git("hash-object", str(one.repo.write("b", "body")))
    assert remote.git("cat-file", "blob", blob) == "body"
    assert one.ledger.local_only("origin") == {}


def test_a_second_publication_pushes_nothing(clone, on_receive):
    one = clone("one")
    one.record(b"r1")
    one.publish()
    count = on_receive(one, ":")
    assert one.publish().via == "nothing"
    assert not count.exists()


def test_an_empty_ledger_is_in_sync_with_an_empty_remote(clone, remote):
    assert clone("one").publish().via == "nothing"
    assert "gitledger" not in remote.git("for-each-ref")


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_s09_two_clones_record_offline_and_both_hold_the_union(clone, order):
    both = {"a": clone("a"), "b": clone("b")}
    both["a"].record(b"from-a", b"same", bodies=[b"body-a"])
    both["b"].record(b"from-b", b"same", bodies=[b"body-b"])
    for name in (*order, order[0]):
        both[name].publish()
    for one in both.values():
        assert one.lines() == (b"from-a", b"from-b", b"same")
        assert one.local() == {b"from-a", b"from-b", b"same"}
        assert len(one.ledger.view().bodies()) == 2
        assert one.publish().via == "nothing"


def test_unrelated_refspecs_and_settings_of_the_user_change_nothing(clone, remote):
    one = clone("one")
    one.record(b"theirs")
    one.publish()
    two = clone("two")
    two.record(b"mine")
    before = two.repo.git("rev-parse", RECORDS_REF)
    for key, value in {
        "remote.origin.fetch": "+refs/notes/*:refs/notes/*",
        "remote.origin.mirror": "true",
        "fetch.prune": "true",
        "push.followTags": "true",
        "remote.origin.tagOpt": "--tags",
    }.items():
        two.repo.git("config", key, value)
    two.repo.git("tag", "-a", "-m", "x", "v1")
    two.fetch()
    assert two.repo.git("rev-parse", RECORDS_REF) == before
    two.publish()
    assert notes_of(remote) == {"theirs", "mine"}
    assert remote.git("tag") == ""
    assert not (two.repo.path / ".git/FETCH_HEAD").read_text().count("gitledger")


# --- S07: a remote without a ledger ----------------------------------------------------------------------------


def test_s07_a_remote_without_any_ledger_is_fetched_without_error(clone):
    one = clone("one")
    for refspec in tracking_refspecs("origin"):
        one.repo.git("config", "--add", "remote.origin.fetch", refspec)
    one.repo.git("fetch", "-q")
    one.fetch()
    assert one.lines() == ()


def test_a_plain_fetch_with_the_refspecs_is_seen_at_once(clone):
    one, two = clone("one"), clone("two")
    one.record(b"r1", bodies=[b"body"])
    one.publish()
    for refspec in tracking_refspecs("origin"):
        two.repo.git("config", "--add", "remote.origin.fetch", refspec)
    two.repo.git("fetch", "-q")
    assert two.lines() == (b"r1",)
    assert two.local() == set()
    two.record(b"r2")
    assert two.publish().lines == 1
    assert two.ledger.local_only("origin") == {}


# --- S03: lost races -------------------------------------------------------------------------------------------


def test_s03_a_race_lost_before_the_push_lands_beside_the_notes_and_is_folded_in_later(clone, remote, on_receive):
    one, two = clone("one"), clone("two")
    two.record(b"first")
    one.record(b"second", bodies=[b"body"])
    count = on_receive(one, f"git -C {two.repo.path} push -q origin {RECORDS_REF} >/dev/null 2>&1")
    result = one.publish()
    assert (result.via, result.attempts, result.lines, pushes(count)) == ("inbox", 2, 1, 2)
    assert notes_of(remote) == {"first"}
    assert len(inbox_of(remote)) == 1
    assert one.ledger.local_only("origin") == {}

    two.fetch()
    assert two.lines() == (b"first", b"second")
    assert two.ledger.view().bodies()
    result = two.publish()
    assert (result.via, result.lines, result.folded) == ("notes", 0, 1)
    assert notes_of(remote) == {"first", "second"}
    assert inbox_of(remote) == []
    one.publish()
    assert one.lines() == (b"first", b"second")
    assert "inbox" not in one.repo.git("for-each-ref") + two.repo.git("for-each-ref")


def lose_a_race(one, two, on_receive) -> None:
    """Let `two` publish, at the moment of the first push of `one`."""
    two.publish()  # it has what is there already, so that plain git can push what it adds
    two.record(b"first", bodies=[b"body of first"])
    on_receive(one, f"git -C {two.repo.path} push -q origin {RECORDS_REF} {BODIES_REF} >/dev/null 2>&1")


def paths_in(remote, ref: str) -> list[str]:
    return remote.git("ls-tree", "-r", "--name-only", ref).split()


def test_s03_what_lands_beside_the_notes_is_what_the_remote_lacks_and_no_more(clone, remote, on_receive):
    one, two = clone("one"), clone("two")
    old, new = ("".join(word.ljust(40, digit)) for word, digit in (("a", "0"), ("b", "1")))
    one.record(b"r0", bodies=[b"body of r0"], commit=CommitId(old))
    one.publish()
    one.record(b"r1", bodies=[b"body of r1"], commit=CommitId(new))
    one.record(b"r2", commit=CommitId(old))
    lose_a_race(one, two, on_receive)
    result = one.publish()
    assert (result.via, result.lines, result.bodies) == ("inbox", 2, 1)
    [inbox] = inbox_of(remote)
    assert [path.replace("/", "") for path in paths_in(remote, f"{inbox}:records")] == [old, new]
    assert len(paths_in(remote, f"{inbox}:bodies")) == 1
    assert remote.git("cat-file", "blob", f"{inbox}:records/{old[:2]}/{old[2:4]}/{old[4:]}") == "r2"

    three = clone("three")
    three.fetch()
    assert three.lines(CommitId(old)) == (b"r0", b"r2")
    assert three.lines(CommitId(new)) == (b"r1",)
    assert len(three.ledger.view().bodies()) == 3
    three.publish()
    assert inbox_of(remote) == []
    assert len(paths_in(remote, RECORDS_REF)) == 3


@pytest.mark.parametrize("why", ["more than few", "a note that nobody could append"])
def test_s03_where_that_is_much_or_can_not_be_written_all_of_it_lands_there(
    clone, remote, on_receive, monkeypatch, why
):
    one, two = clone("one"), clone("two")
    one.record(b"r0", commit=CommitId("a" * 40))
    one.publish()
    one.record(b"r1", commit=CommitId("b" * 40))
    lose_a_race(one, two, on_receive)
    name = "gitledger.store.sync._FEW" if why == "more than few" else "gitledger.store.union.MAX_LINE_BYTES"
    monkeypatch.setattr(name, 0)
    assert one.publish().via == "inbox"
    [inbox] = inbox_of(remote)
    assert [path[:2] for path in paths_in(remote, f"{inbox}:records")] == ["aa", "bb"]


def test_who_publishes_what_needs_no_uniting_is_not_asked_who_unites(clone):
    one, two = clone("one"), clone("two")
    one.record(b"r1")

    def nobody():
        raise LookupError

    assert publish(replace(one.sync(), by=nobody)).via == "notes"
    two.record(b"r2")
    with pytest.raises(LookupError):
        publish(replace(two.sync(), by=nobody))
    assert two.publish().via == "notes"


def test_s03_a_race_lost_while_the_remote_updates_its_refs_is_tried_again(clone, remote):
    """The remote's own hook moves the ref: git answers with "failed to update ref" or "cannot lock ref"."""
    one = clone("one")
    one.record(b"r0")
    one.publish()
    other = remote.git("commit-tree", "-m", "other", "-p", RECORDS_REF, f"{RECORDS_REF}^{{tree}}")
    hook = remote.write(
        "hooks/pre-receive",
        f"#!/bin/sh\nunset GIT_QUARANTINE_PATH\n[ -e moved ] || git update-ref {RECORDS_REF} {other}\n"
        "touch moved\nexit 0\n",
        mode=0o755,
    )
    one.record(b"r1", bodies=[b"body"])
    result = one.publish()
    assert (result.via, result.attempts) == ("inbox", 2)
    hook.unlink()
    assert remote.git("rev-parse", RECORDS_REF) == other
    assert remote.git("for-each-ref", BODIES_REF) == ""  # all or none
    assert one.publish().folded == 1
    assert notes_of(remote) == {"r0", "r1"}


def test_s03_where_the_inbox_is_refused_the_notes_are_tried_again(clone, remote, on_receive):
    one, two = clone("one"), clone("two")
    two.record(b"first")
    one.record(b"second")
    remote.write("hooks/update", f"#!/bin/sh\ncase $1 in {INBOX_PREFIX}*) exit 1;; esac\n", mode=0o755)
    count = on_receive(one, f"git -C {two.repo.path} push -q origin {RECORDS_REF} >/dev/null 2>&1")
    result = one.publish()
    assert (result.via, result.attempts, pushes(count)) == ("notes", 3, 3)
    assert notes_of(remote) == {"first", "second"}


def test_s03_lost_races_are_bounded_and_pauses_have_jitter(clone, remote):
    one = clone("one")
    one.record(b"r1")
    (remote.path / "refs/notes/gitledger").mkdir(parents=True)
    for name in (RECORDS_REF, "refs/gitledger"):
        (remote.path / f"{name}.lock" if name == RECORDS_REF else remote.path / name).write_text("")
    pauses: list[float] = []
    retry = Retry(sleep=pauses.append, draw=random.Random(1).random, budget_s=3.0, first_s=0.1, longest_s=1.0)
    with pytest.raises(StoreError) as caught:
        one.publish(retry=retry)
    assert caught.value.code == "publish-failed"
    assert caught.value.exit_status == 3
    assert sum(pauses) == pytest.approx(3.0)
    assert 3 <= len(pauses) <= 10
    assert len({round(pause, 6) for pause in pauses}) == len(pauses)
    assert one.local() == {b"r1"}


@pytest.mark.parametrize("status", [1, 128])
def test_s03_a_failure_without_an_answer_for_any_ref_is_not_tried_again(clone, on_receive, status):
    one = clone("one")
    one.record(b"r1", bodies=[b"body"])
    count = on_receive(one, f"echo 'fatal: Authentication failed' >&2; exit {status}", once=False)
    with pytest.raises(StoreError) as caught:
        one.publish()
    assert (caught.value.code, caught.value.exit_status, pushes(count)) == ("publish-failed", 3, 1)
    assert "git ledger sync origin" in caught.value.hint


def test_s03_a_connection_that_breaks_in_the_middle_is_made_anew(clone, on_receive):
    """As `git daemon` breaks it with 64 clients at its door."""
    one = clone("one")
    one.record(b"r1", bodies=[b"body"])
    count = on_receive(one, "echo 'fatal: read error: Connection reset by peer' >&2; exit 128")
    assert one.publish().lines == 1
    assert pushes(count) == 2


def test_a_hook_that_says_no_is_not_asked_again(clone, remote, on_receive):
    one = clone("one")
    one.record(b"r1")
    remote.write("hooks/pre-receive", "#!/bin/sh\necho 'no notes here' >&2\nexit 1\n", mode=0o755)
    count = on_receive(one, ":", once=False)
    with pytest.raises(StoreError) as caught:
        one.publish()
    assert caught.value.code == "publish-failed"
    assert "no notes here" in caught.value.message
    assert pushes(count) == 1


def test_a_remote_that_hangs_ends_within_the_time_given(clone, on_receive):
    one = clone("one")
    one.record(b"r1")
    on_receive(one, "sleep 60", once=False)
    with pytest.raises(StoreError) as caught:
        one.publish(timeout_s=1.0)
    assert caught.value.code == "publish-failed"


@pytest.mark.parametrize("records_refused", [False, True])
def test_a_server_that_cannot_do_all_or_none_gets_the_bodies_first(clone, remote, records_refused):
    remote.git("config", "receive.advertiseAtomic", "false")
    if records_refused:
        remote.write("hooks/update", f"#!/bin/sh\n[ $1 != {RECORDS_REF} ]\n", mode=0o755)
    one = clone("one")
    one.record(b"r1", bodies=[b"body"])
    if records_refused:
        with pytest.raises(StoreError):
            one.publish()
    else:
        assert one.publish().via == "notes"
    assert remote.git("for-each-ref", BODIES_REF)
    assert bool(remote.git("for-each-ref", RECORDS_REF)) is not records_refused


def test_an_all_or_none_push_leaves_no_bodies_where_the_records_are_refused(clone, remote):
    remote.write("hooks/update", f"#!/bin/sh\n[ $1 != {RECORDS_REF} ]\n", mode=0o755)
    one = clone("one")
    one.record(b"r1", bodies=[b"body"])
    with pytest.raises(StoreError):
        one.publish()
    assert "gitledger" not in remote.git("for-each-ref")


# --- S38: the backlog ------------------------------------------------------------------------------------------


def test_s38_what_could_not_be_published_is_published_by_the_next_run(clone, remote):
    one = clone("one")
    one.record(b"r1")
    url = one.repo.git("config", "remote.origin.url")
    one.repo.git("config", "remote.origin.url", str(remote.path) + ".gone")
    with pytest.raises(StoreError) as caught:
        one.publish()
    assert (caught.value.code, caught.value.exit_status) == ("publish-failed", 3)
    one.record(b"r2")
    assert set(one.ledger.local_only("origin")[one.head]) == {b"r1", b"r2"}
    one.repo.git("config", "remote.origin.url", url)
    assert one.publish().lines == 2
    assert notes_of(remote) == {"r1", "r2"}


def test_a_failed_fetch_alone_is_an_error_too(clone, remote):
    one = clone("one")
    one.repo.git("config", "remote.origin.url", str(remote.path) + ".gone")
    with pytest.raises(StoreError) as caught:
        one.fetch()
    assert caught.value.code == "fetch-failed"


# --- S10: shallow clones ---------------------------------------------------------------------------------------


def test_s10_a_shallow_clone_records_and_pushes_and_no_full_clone_becomes_shallow(clone, remote):
    full = clone("full")
    full.record(b"old", bodies=[b"old body"])
    full.publish()
    full.record(b"older")
    full.publish()

    shallow = clone("shallow", "--depth=1")
    assert shallow.is_shallow() == "true"
    shallow.record(b"new", bodies=[b"new body"])
    assert shallow.publish().via == "notes"
    assert shallow.lines() == (b"new", b"old", b"older")
    assert shallow.is_shallow() == "true"

    assert remote.git("rev-parse", "--is-shallow-repository") == "false"
    full.publish()
    assert full.lines() == (b"new", b"old", b"older")
    assert full.is_shallow() == "false"
    assert full.repo.git("fsck", "--connectivity-only", check=True) is not None
    assert remote.git("rev-list", "--count", RECORDS_REF) == "4"


def test_s10_notes_that_were_themselves_fetched_with_a_depth_can_be_added_to_and_pushed(clone, remote):
    full = clone("full")
    for number in range(3):
        full.record(b"r%d" % number)
        full.publish()
    shallow = clone("shallow", "--depth=1")
    shallow.repo.git("fetch", "-q", "--depth=1", "origin", *tracking_refspecs("origin"))
    shallow.record(b"new")
    assert shallow.publish().via == "notes"
    full.publish()
    assert full.lines() == (b"new", b"r0", b"r1", b"r2")
    assert full.is_shallow() == "false"
    assert remote.git("rev-parse", "--is-shallow-repository") == "false"


def test_s10_a_shallow_clone_that_records_before_it_ever_fetched_a_cut_ledger(clone):
    full = clone("full")
    for number in range(3):
        full.record(b"r%d" % number)
        full.publish()
    shallow = clone("shallow", "--depth=1")
    shallow.record(b"new")
    shallow.repo.git("fetch", "-q", "--depth=1", "origin", *tracking_refspecs("origin"))
    assert shallow.publish().via == "notes"
    full.publish()
    assert full.lines() == (b"new", b"r0", b"r1", b"r2")


# --- S16: grow only --------------------------------------------------------------------------------------------


def test_s16_lines_that_were_deleted_here_are_restored_by_a_sync(clone):
    one = clone("one")
    one.record(b"r1", b"r2")
    one.publish()
    one.repo.git("notes", "--ref=gitledger/records", "remove", "HEAD")
    assert one.local() == set()
    one.publish()
    assert one.local() == {b"r1", b"r2"}


@pytest.mark.parametrize("gone", ["rewound", "deleted"])
@pytest.mark.parametrize("fetch_first", [False, True])
def test_s16_lines_that_the_remote_dropped_are_restored_from_what_was_fetched_before(
    clone, remote, gone, fetch_first
):
    one, two = clone("one"), clone("two")
    one.record(b"r1")
    one.publish()
    first = remote.git("rev-parse", RECORDS_REF)
    one.record(b"r2")
    one.publish()
    two.fetch()
    if gone == "rewound":
        remote.git("update-ref", RECORDS_REF, first)
    else:
        remote.git("update-ref", "-d", RECORDS_REF)
    if fetch_first:
        two.fetch()
        assert two.lines() == (b"r1", b"r2")
    assert two.publish().via == "notes"
    assert notes_of(remote) == {"r1", "r2"}


def test_s16_an_inbox_that_was_deleted_before_anyone_folded_it_in_is_not_lost_here(clone, remote, on_receive):
    one, two, three = clone("one"), clone("two"), clone("three")
    two.record(b"first")
    one.record(b"second")
    on_receive(one, f"git -C {two.repo.path} push -q origin {RECORDS_REF} >/dev/null 2>&1")
    assert one.publish().via == "inbox"
    three.fetch()
    remote.git("update-ref", "-d", inbox_of(remote)[0])
    three.fetch()
    assert three.lines() == (b"first", b"second")


@pytest.mark.parametrize("garbage", ["main", "main:a", "main^{tree}"])
def test_an_inbox_ref_that_is_garbage_blocks_nobody_and_is_left_alone(clone, remote, garbage):
    one = clone("one")
    one.record(b"r1")
    remote.git("update-ref", f"{INBOX_PREFIX}garbage", remote.git("rev-parse", garbage))
    assert one.publish().via == "notes"
    assert one.publish().via == "nothing"
    assert inbox_of(remote) == [f"{INBOX_PREFIX}garbage"]
    assert one.lines() == (b"r1",)


def endless(repo, note: bytes, part: str = "records") -> str:
    """Store a ledger commit of a few kilobytes whose tree spells 256 ** 19 notes, and return it."""
    entry = f"100644 blob {repo.git('hash-object', '-w', '--stdin', input=note)}\t00\n"
    for _ in range(19):
        tree = repo.git("mktree", input=entry.encode())
        entry = "".join(f"040000 tree {tree}\t{n:02x}\n" for n in range(256))
    root = repo.git("mktree", input=entry.encode())
    tree = repo.git("mktree", input=f"040000 tree {root}\t{part}\n".encode()) if part else root
    return repo.git("commit-tree", "-m", "x", tree)


@pytest.mark.parametrize("part", ["records", "bodies"])
def test_law_7_an_inbox_whose_tree_has_no_end_blocks_nobody_and_is_left_alone(clone, remote, part):
    one, two, empty = clone("one"), clone("two"), clone("empty")
    one.record(b"r1", bodies=[b"b1"])
    remote.git("update-ref", f"{INBOX_PREFIX}endless", endless(remote, b"x\n", part))
    assert empty.publish().via == "nothing"
    assert empty.repo.git("for-each-ref", "refs/notes") == ""
    assert one.publish().via == "notes"
    assert one.publish().via == "nothing"
    assert one.head in one.ledger.commits()
    assert len(one.ledger.view().bodies()) == 1
    two.record(b"r2", bodies=[b"b2"])
    assert two.publish().via == "notes"
    assert notes_of(remote) == {"r1", "r2"}
    assert inbox_of(remote) == [f"{INBOX_PREFIX}endless"]
    assert len(remote.git("ls-tree", RECORDS_REF).splitlines()) == 1


def test_law_7_the_remotes_notes_whose_tree_has_no_end_are_gone_around(clone, remote):
    """Whoever may push to the notes can push this too; what is published then lies beside them, and is read."""
    one, two = clone("one"), clone("two")
    remote.git("update-ref", RECORDS_REF, endless(remote, b"x\n", ""))
    one.record(b"r1", bodies=[b"b1"])
    one.fetch()
    one.record(b"r2")
    assert one.publish().via in ("notes", "inbox")
    two.fetch()
    assert set(two.lines()) == {b"r1", b"r2"}
    two.record(b"r3")
    two.publish()
    one.fetch()
    assert set(one.lines()) == {b"r1", b"r2", b"r3"}


def test_an_inbox_ref_that_moved_meanwhile_is_not_deleted(clone, remote, on_receive):
    one, two = clone("one"), clone("two")
    two.record(b"first")
    one.record(b"second")
    on_receive(one, f"git -C {two.repo.path} push -q origin {RECORDS_REF} >/dev/null 2>&1")
    one.publish()
    [ref] = inbox_of(remote)
    other = remote.git("commit-tree", "-m", "other", f"{ref}^{{tree}}")
    on_receive(two, f"git -C {remote.path} update-ref {ref} {other}", once=False)
    assert two.publish().folded == 1
    assert remote.git("rev-parse", ref) == other


def test_a_fold_that_loses_its_race_leaves_folding_to_the_winner(clone, remote, on_receive):
    one, two, three = clone("one"), clone("two"), clone("three")
    two.record(b"first")
    one.record(b"second")
    on_receive(one, f"git -C {two.repo.path} push -q origin {RECORDS_REF} >/dev/null 2>&1")
    one.publish()
    before = inbox_of(remote)
    three.record(b"third")
    three.repo.git("fetch", "-q", "origin", f"+{RECORDS_REF}:refs/gitledger/remotes/origin/records")
    three.sync().unite(three.ledger.tracking_tips("origin"))
    on_receive(two, f"git -C {three.repo.path} push -q origin {RECORDS_REF} >/dev/null 2>&1")
    result = two.publish()
    assert (result.via, result.attempts, result.folded) == ("nothing", 1, 0)
    assert inbox_of(remote) == before


def test_the_remotes_own_clone_folds_its_inbox_too(clone, remote, on_receive):
    one, two = clone("one"), clone("two")
    two.record(b"first")
    one.record(b"second")
    on_receive(one, f"git -C {two.repo.path} push -q origin {RECORDS_REF} >/dev/null 2>&1")
    one.publish()
    two.repo.git("fetch", "-q", "origin", f"{INBOX_PREFIX}*:{INBOX_PREFIX}*")
    two.publish()
    assert inbox_of(two.repo) == []
    assert two.local() == {b"first", b"second"}


def test_no_ref_is_ever_forced(clone, remote):
    """A remote that refuses whatever isn't a fast-forward sees nothing to refuse."""
    remote.git("config", "receive.denyNonFastForwards", "true")
    one, two = clone("one"), clone("two")
    tips = []
    for turn in range(4):
        (one, two)[turn % 2].record(b"r%d" % turn)
        assert (one, two)[turn % 2].publish().via == "notes"
        tips.append(remote.git("rev-parse", RECORDS_REF))
    for old, new in itertools.pairwise(tips):
        remote.git("merge-base", "--is-ancestor", old, new)


def test_the_clones_own_pre_push_hook_is_not_entered_again(clone, tmp_path):
    one = clone("one")
    one.record(b"r1")
    one.repo.write(".git/hooks/pre-push", f"#!/bin/sh\ntouch {tmp_path}/entered\nexit 1\n", mode=0o755)
    one.publish()
    assert not (tmp_path / "entered").exists()


def test_our_own_hooks_are_told_that_they_run_inside_of_a_push(clone, tmp_path):
    one = clone("one")
    one.record(b"r1")
    one.repo.write(
        ".git/hooks/reference-transaction", f"#!/bin/sh\necho $GITLEDGER_IN_PUSH > {tmp_path}/seen\n", mode=0o755
    )
    clone("two").publish()
    two = clone("three")
    two.record(b"r2")
    two.publish()
    one.publish()
    assert (tmp_path / "seen").read_text() == "1\n"


WRITER = """
import random, sys
from dataclasses import replace
from pathlib import Path
from gitledger.store.ledger import Ledger, Retry
from gitledger.store.objects import Identity
from gitledger.store.repository import open_repository
from gitledger.store.sync import Sync, publish
import os
repository = open_repository(Path(sys.argv[1]), env=os.environ)
ledger = Ledger(repository.objects)
alice = Identity("Alice", "alice@example.org")
ledger.append({repository.head(): [sys.argv[2].encode()]}, [sys.argv[2].encode()], identity=alice, message="x")
publish(Sync(repository=repository, ledger=ledger, remote="origin", by=lambda: (alice, "ledger: sync")))
"""


def run_writers(folders, env) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), f"w{number}"], env=env, stderr=subprocess.PIPE
        )
        for number, folder in enumerate(folders)
    ]
    for child in children:
        _, said = child.communicate(timeout=120)
        assert child.returncode == 0, said.decode()


@pytest.mark.parametrize("shared", [False, True])
def test_s09_many_writers_at_once_all_reach_the_remote(clone, remote, hermetic_env, shared):
    writers = 8
    clones = [clone("shared")] * writers if shared else [clone(f"c{number}") for number in range(writers)]
    run_writers([one.repo.path for one in clones], hermetic_env)
    last = clone("last")
    last.publish()
    assert last.lines() == tuple(sorted(b"w%d" % number for number in range(writers)))
    assert len(last.ledger.view().bodies()) == writers
    assert inbox_of(remote) == []


# --- which remote ----------------------------------------------------------------------------------------------


def test_the_remote_is_the_argument_else_the_branchs_else_the_only_one(clone):
    one = clone("one")

    def choose(argument=None):
        return choose_remote(open_repository(one.repo.path, env=one.repo.env), argument)

    assert choose() == "origin"
    one.repo.git("remote", "add", "upstream", "elsewhere")
    with pytest.raises(UsageError) as caught:
        choose()
    assert caught.value.code == "no-remote"
    one.repo.git("config", "branch.main.remote", "upstream")
    assert choose() == "upstream"
    assert choose("origin") == "origin"
    one.repo.git("config", "branch.main.remote", ".")
    with pytest.raises(UsageError):
        choose()
    with pytest.raises(UsageError):
        choose("https://example.org/x.git")
    for name in ("origin", "upstream"):
        one.repo.git("remote", "remove", name)
    with pytest.raises(UsageError) as caught:
        choose()
    assert caught.value.code == "no-remote"
