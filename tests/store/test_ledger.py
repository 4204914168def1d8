"""The ledger: reads are the union of all refs, writes only add to the local ones."""

from __future__ import annotations

import itertools

import pytest

from gitledger.errors import StoreError
from gitledger.records import limits
from gitledger.records.ids import BlobId, CommitId
from gitledger.records.tree import MODE_FOLDER, TreeEntry
from gitledger.store import view as view_module
from gitledger.store.encoding import blob_id
from gitledger.store.ledger import BODIES_REF, INBOX_PREFIX, RECORDS_REF, TRACKING_PREFIX, Ledger, Retry
from gitledger.store.objects import RefUpdate

A, B, C = (CommitId(digit * 40) for digit in "abc")


@pytest.fixture
def new_ledger(make_repo, open_objects):
    """Make the ledger of another repository."""

    def make(name: str) -> Ledger:
        return Ledger(open_objects(make_repo(name).path / ".git"))

    return make


@pytest.fixture
def plant(objects, alice, tree_of_paths):
    """Point a ref at a commit that holds notes: `plant(ref, {A: b"line\\n"})`."""

    def do(ref: str, notes: dict[str, bytes]) -> CommitId:
        tree = tree_of_paths(objects, {oid: objects.write_blob(text) for oid, text in notes.items()})
        commit = objects.write_commit(tree=tree, parents=[], message="planted", identity=alice)
        assert objects.update_refs([RefUpdate(ref, objects.read_ref(ref), commit)])
        return commit

    return do


@pytest.fixture
def plant_inbox(objects, alice, tree_of_paths):
    """Point a ref at an inbox commit with the given records and bodies."""

    def do(ref: str, notes: dict[str, bytes], bodies: tuple[bytes, ...] = ()) -> CommitId:
        records = tree_of_paths(objects, {oid: objects.write_blob(text) for oid, text in notes.items()})
        held = tree_of_paths(objects, {objects.write_blob(body): objects.write_blob(body) for body in bodies})
        entries = [TreeEntry(MODE_FOLDER, "records", records), TreeEntry(MODE_FOLDER, "bodies", held)]
        tree = objects.write_tree(entries)
        commit = objects.write_commit(tree=tree, parents=[], message="inbox", identity=alice)
        assert objects.update_refs([RefUpdate(ref, None, commit)])
        return commit

    return do


def test_an_empty_ledger_holds_nothing(ledger, git_repo):
    assert ledger.commits() == frozenset()
    assert ledger.lines(A) == ()
    assert ledger.body(BlobId("1" * 40)) is None
    assert ledger.local_only("origin") == {}
    assert git_repo.git("for-each-ref") == ""


def test_what_is_appended_is_there_sorted_and_once(ledger, add):
    add(A, b"two", b"one", b"two", bodies=[b"body"])
    add(B, b"three")
    add(A, b"zero")
    assert ledger.lines(A) == (b"one", b"two", b"zero")
    assert ledger.commits() == {A, B}
    oid = blob_id(b"body", "sha1")
    assert ledger.body(oid) == b"body"
    assert ledger.has_body(oid)
    assert ledger.view().bodies() == {oid}


def test_a_repetition_changes_nothing(ledger, add, objects):
    add(A, b"one", bodies=[b"body"])
    before = dict(objects.list_refs("refs/"))
    add(A, b"one", bodies=[b"body"])
    ledger.append({}, [], identity=None, message="")
    ledger.append({A: []}, [], identity=None, message="")
    assert dict(objects.list_refs("refs/")) == before


def test_only_local_refs_are_written_and_bodies_stand_in_a_ref_of_their_own(add, objects):
    add(A, b"one", bodies=[b"body"])
    assert set(objects.list_refs("refs/")) == {RECORDS_REF, BODIES_REF}


def test_a_line_that_is_none_is_refused_before_anything_is_written(add, objects):
    with pytest.raises(StoreError, match="one line"):
        add(A, b"fine", b"a\nb", bodies=[b"body"])
    with pytest.raises(StoreError) as caught:
        add(A, b"x" * (limits.MAX_LINE_BYTES + 1), bodies=[b"body"])
    assert caught.value.code == "line-too-long"
    assert dict(objects.list_refs("refs/")) == {}


def test_a_read_unites_local_tracking_and_inbox_refs_of_all_remotes(ledger, add, plant, plant_inbox):
    add(A, b"local", b"both")
    plant(TRACKING_PREFIX + "origin/records", {A: b"origin\nboth\n", B: b"b\n"})
    plant(TRACKING_PREFIX + "a/fork/records", {A: b"fork\n"})
    plant_inbox(TRACKING_PREFIX + "origin/inbox/x1", {A: b"their inbox\n"})
    plant_inbox(INBOX_PREFIX + "x2", {A: b"own inbox\n"}, (b"inbox body",))
    assert ledger.lines(A) == (b"both", b"fork", b"local", b"origin", b"own inbox", b"their inbox")
    assert ledger.commits() == {A, B}
    assert ledger.body(blob_id(b"inbox body", "sha1")) == b"inbox body"


def test_other_refs_are_no_part_of_the_ledger(ledger, plant):
    plant("refs/notes/commits", {A: b"a user's note\n"})
    plant(TRACKING_PREFIX + "origin/elsewhere", {A: b"x\n"})
    assert ledger.commits() == frozenset()


def test_a_body_counts_only_under_its_own_id(ledger, plant, objects):
    other = objects.write_blob(b"other")
    body = objects.write_blob(b"body")
    plant(BODIES_REF, {body: b"other", other: b"other"})
    assert ledger.body(body) is None
    assert not ledger.has_body(body)
    assert ledger.body(other) == b"other"


def test_a_blob_that_no_body_tree_names_is_no_body(ledger, objects):
    assert ledger.body(objects.write_blob(b"loose")) is None


def test_a_body_over_the_limit_is_none(ledger, add, monkeypatch):
    add(A, b"x", bodies=[b"12345"])
    monkeypatch.setattr(view_module, "MAX_BODY_BYTES", 4)
    assert ledger.body(blob_id(b"12345", "sha1")) is None


def test_garbage_in_a_note_blocks_nobody_and_hides_nothing(ledger, add, plant):
    plant(RECORDS_REF, {A: b"\x00\xff\n\n  \nnot json at all"})
    add(A, b"{}")
    assert ledger.lines(A) == (b"\x00\xff", b"not json at all", b"{}")


@pytest.mark.parametrize("name", ["o/inbox/x", "o/records", "o/bodies"])
@pytest.mark.parametrize("kind", ["blob", "tree", "tag"])
def test_law_7_a_fetched_ref_that_is_no_commit_blocks_nobody(ledger, add, git_repo, name, kind):
    """As a plain `git fetch` brings it, before any sync has looked at it."""
    commit = git_repo.commit({"a": "1"})
    git_repo.git("tag", "-a", "-m", "t", "v1")
    target = {"blob": "HEAD:a", "tree": "HEAD^{tree}", "tag": "v1"}[kind]
    git_repo.git("update-ref", TRACKING_PREFIX + name, git_repo.git("rev-parse", target))
    add(commit, b"line", bodies=[b"body"])
    assert ledger.lines(CommitId(commit)) == (b"line",)
    assert ledger.commits() == {commit}
    assert len(ledger.view().bodies()) == 1
    assert ledger.local_only("o") == {commit: (b"line",)}


def test_a_missing_commit_is_damage_and_no_garbage(ledger, git_repo):
    path = git_repo.path / ".git" / TRACKING_PREFIX / "o" / "records"
    path.parent.mkdir(parents=True)
    path.write_text("1" * 40 + "\n")
    with pytest.raises(StoreError) as caught:
        ledger.commits()
    assert caught.value.code == "object-missing"


def test_a_note_over_its_limit_is_a_fault_and_never_a_silent_cut(ledger, add, plant, monkeypatch):
    plant(TRACKING_PREFIX + "origin/records", {A: b"x" * 50 + b"\n"})
    add(A, b"small")
    assert ledger.faults(A) == ()
    monkeypatch.setattr(view_module, "MAX_NOTE_BYTES", 40)
    assert ledger.lines(A) == (b"small",)
    assert [fault.code for fault in ledger.faults(A)] == ["note-too-large"]
    assert ledger.faults(B) == ()


def test_a_line_over_its_limit_is_returned_and_is_a_fault(ledger, plant):
    long = b"x" * (limits.MAX_LINE_BYTES + 1)
    plant(RECORDS_REF, {A: long + b"\nshort\n"})
    assert ledger.lines(A) == (b"short", long)
    assert [fault.code for fault in ledger.faults(A)] == ["line-too-long"]


def test_a_missing_note_is_an_error_and_not_an_empty_one(ledger, objects, alice, tree_of_paths):
    tree = tree_of_paths(objects, {A: BlobId("1" * 40)})
    objects.update_refs(
        [RefUpdate(RECORDS_REF, None, objects.write_commit(tree=tree, parents=[], message="m", identity=alice))]
    )
    with pytest.raises(StoreError) as caught:
        ledger.lines(A)
    assert caught.value.code == "object-missing"


def test_local_only_names_what_a_remote_lacks(ledger, add, objects, plant, plant_inbox):
    add(A, b"one", b"two")
    add(B, b"b")
    assert ledger.local_only("origin") == {A: (b"one", b"two"), B: (b"b",)}
    objects.update_refs([RefUpdate(TRACKING_PREFIX + "origin/records", None, objects.read_ref(RECORDS_REF))])
    assert ledger.local_only("origin") == {}
    add(A, b"three")
    plant_inbox(INBOX_PREFIX + "x", {C: b"c\n"})
    assert ledger.local_only("origin") == {A: (b"three",), C: (b"c",)}
    plant_inbox(TRACKING_PREFIX + "origin/inbox/y", {A: b"three\n"})
    assert ledger.local_only("origin") == {C: (b"c",)}
    plant(TRACKING_PREFIX + "origin/fork/records", {C: b"c\n"})
    assert ledger.local_only("origin") == {C: (b"c",)}
    assert set(ledger.local_only("elsewhere")) == {A, B, C}


def test_folding_takes_over_a_remotes_history_and_keeps_ones_own(ledger, add, git_repo, plant, alice):
    add(A, b"ours", bodies=[b"our body"])
    ours = git_repo.git("rev-parse", RECORDS_REF)
    theirs = plant(TRACKING_PREFIX + "origin/records", {A: b"theirs\n"})
    ledger.unite_into_local(ledger.tracking_tips("origin"), by=lambda: (alice, "ledger: merge"))
    assert git_repo.git("log", "-1", "--format=%P", RECORDS_REF) == f"{ours} {theirs}"
    assert git_repo.git("notes", "--ref=gitledger/records", "list", A)
    assert ledger.view_of(ledger.local_tips()).lines(A) == (b"ours", b"theirs")
    before = git_repo.git("rev-parse", RECORDS_REF)
    ledger.unite_into_local(ledger.tracking_tips("origin"), by=lambda: (alice, "ledger: merge"))
    assert git_repo.git("rev-parse", RECORDS_REF) == before


def test_folding_moves_forward_where_that_is_all(ledger, add, git_repo, objects, plant, alice):
    theirs = plant(TRACKING_PREFIX + "origin/records", {A: b"theirs\n"})
    ledger.unite_into_local(ledger.tracking_tips("origin"), by=lambda: (alice, "m"))
    assert objects.read_ref(RECORDS_REF) == theirs
    add(A, b"ours")
    ahead = objects.read_ref(RECORDS_REF)
    objects.update_refs([RefUpdate(TRACKING_PREFIX + "origin/records", theirs, ahead)])
    objects.update_refs([RefUpdate(RECORDS_REF, ahead, theirs)])
    ledger.unite_into_local(ledger.tracking_tips("origin"), by=lambda: (alice, "m"))
    assert objects.read_ref(RECORDS_REF) == ahead


def test_folding_equal_trees_of_strange_histories_keeps_both(ledger, add, git_repo, objects, plant, alice):
    """fsck looks in the history of the ref for lines that were dropped, so none of it may vanish."""
    add(A, b"same")
    ours = objects.read_ref(RECORDS_REF)
    theirs = objects.write_commit(
        tree=objects.read_commit(ours).tree, parents=[], message="theirs", identity=alice
    )
    objects.update_refs([RefUpdate(TRACKING_PREFIX + "origin/records", None, theirs)])
    ledger.unite_into_local(ledger.tracking_tips("origin"), by=lambda: (alice, "m"))
    assert objects.read_commit(objects.read_ref(RECORDS_REF)).parents == (ours, theirs)


def test_an_inbox_is_folded_by_content_bodies_first(ledger, git_repo, objects, plant_inbox, alice):
    inbox = plant_inbox(TRACKING_PREFIX + "origin/inbox/x", {A: b"line\n"}, (b"body",))
    ledger.unite_into_local(ledger.tracking_tips("origin"), by=lambda: (alice, "m"))
    local = ledger.view_of(ledger.local_tips())
    assert local.lines(A) == (b"line",)
    assert local.body(blob_id(b"body", "sha1")) == b"body"
    assert inbox not in git_repo.git("rev-list", RECORDS_REF, BODIES_REF).split()


def test_s16_what_git_notes_prune_dropped_elsewhere_comes_back_from_any_clone(
    ledger, add, git_repo, objects, alice
):
    add(A, b"kept")
    tip = objects.read_ref(RECORDS_REF)
    git_repo.git("notes", "--ref=gitledger/records", "remove", A)
    pruned = objects.read_ref(RECORDS_REF)
    objects.update_refs(
        [RefUpdate(RECORDS_REF, pruned, tip), RefUpdate(TRACKING_PREFIX + "o/records", None, pruned)]
    )
    ledger.unite_into_local(ledger.tracking_tips("o"), by=lambda: (alice, "m"))
    assert ledger.view_of(ledger.local_tips()).lines(A) == (b"kept",)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_s33_three_replicas_merged_in_every_order_hold_one_result(git_repo, make_repo, open_objects, alice, order):
    """Each clone fetches the others in its own order; the trees are equal to the byte, bodies too."""
    sources = [make_repo(f"replica{n}") for n in range(3)]
    contents = ({A: [b"a", b"x"]}, {A: [b"a", b"y"], B: [b"b"]}, {C: [b"c"], B: [b"b2"]})
    for n, (repo, records) in enumerate(zip(sources, contents, strict=True)):
        Ledger(open_objects(repo.path / ".git")).append(records, [b"body%d" % n], identity=alice, message="m")
    objects = open_objects(git_repo.path / ".git")
    ledger = Ledger(objects)
    for n in order:
        specs = [f"{ref}:{TRACKING_PREFIX}r{n}/{ref.rpartition('/')[2]}" for ref in (RECORDS_REF, BODIES_REF)]
        git_repo.git("fetch", "-q", str(sources[n].path), *specs)
        ledger.unite_into_local(ledger.tracking_tips(f"r{n}"), by=lambda: (alice, "m"))
    trees = [objects.read_commit(objects.read_ref(ref)).tree for ref in (RECORDS_REF, BODIES_REF)]
    everything = {A: [b"a", b"x", b"y"], B: [b"b", b"b2"], C: [b"c"]}
    at_once = Ledger(open_objects(make_repo("at-once").path / ".git"))
    at_once.append(everything, [b"body%d" % n for n in range(3)], identity=alice, message="m")
    assert trees == [
        at_once._objects.read_commit(at_once._objects.read_ref(ref)).tree for ref in (RECORDS_REF, BODIES_REF)
    ]


def test_retries_are_bounded_and_spread():
    slept: list[float] = []
    draws = itertools.cycle([0.0, 0.9])
    retry = Retry(sleep=slept.append, draw=lambda: next(draws), budget_s=3.0)
    attempts = list(retry.attempts())
    assert attempts == list(range(len(slept) + 1))
    assert sum(slept) == pytest.approx(3.0)
    assert max(slept) <= 1.5 * retry.longest_s
    assert slept[0] < slept[6]
    assert len(set(slept)) > 4


def test_s43_a_users_own_gitledger_ref_stays_and_the_line_lands_beside_it(ledger, add, git_repo):
    commit = git_repo.commit({"a": "1"})
    git_repo.git("notes", "--ref=gitledger", "add", "-m", "mine", commit)
    assert ledger.lines(CommitId(commit)) == ()
    told = []
    ledger.aside = told.append
    add(commit, b"line")
    [kept] = told
    assert kept.error.code == "ref-conflict"
    assert "git update-ref" in kept.error.hint
    assert ledger.lines(CommitId(commit)) == (b"line",)
    assert git_repo.git("notes", "--ref=gitledger", "show", commit) == "mine"
