"""Fsck names each kind of damage, reports what is none, and repairs nothing."""

from __future__ import annotations

import base64
import json
import os

import pytest

from gitledger.records.ids import CommitId
from gitledger.store.git import Git
from gitledger.store.ledger import BODIES_REF, RECORDS_REF, Ledger
from gitledger.store.libgit import LibgitObjects
from gitledger.store.objects import Identity
from gitledger.workflows.fsck import DAMAGE, NOTES

ALICE = Identity("Alice", "alice@example.org")


def kinds(project, expect: int | None = None) -> dict[str, list[str]]:
    """Return the subjects of the problems by kind; the exit status must fit them."""
    done = project.ledger("fsck", "--json", expect=expect)
    document = done.document
    found: dict[str, list[str]] = {}
    for problem in document["problems"]:
        assert problem["kind"] in DAMAGE | NOTES
        assert problem["damage"] is (problem["kind"] in DAMAGE)
        assert problem["detail"]
        found.setdefault(problem["kind"], []).append(problem["subject"])
    is_damaged = bool(DAMAGE & set(found))
    assert (done.status, document["verdict"]) == ((1, "damaged") if is_damaged else (0, "clean"))
    return found


@pytest.fixture
def recorded(project):
    project.record("alpha")
    return project


@pytest.fixture
def append(recorded):
    """Add lines to HEAD as a faulty writer would."""

    def do(*lines: bytes, commit: str | None = None, bodies=()) -> None:
        ledger = Ledger(LibgitObjects(recorded.path / ".git"))
        head = CommitId(commit or recorded.repo.git("rev-parse", "HEAD"))
        ledger.append({head: lines}, bodies, identity=ALICE, message="m")

    return do


def line_of(project) -> dict:
    return json.loads(project.repo.git("notes", "--ref=gitledger/records", "show", "HEAD"))


def encoded(document: dict) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def bodies_of(project) -> list[str]:
    names = project.repo.git("ls-tree", "-r", "--name-only", BODIES_REF).split()
    return [name.replace("/", "") for name in names]


def test_an_empty_ledger_is_clean(project):
    assert kinds(project, 0) == {}


def test_a_ledger_with_receipts_is_clean_and_says_what_it_looked_at(recorded):
    recorded.record("beta")
    recorded.ledger("merge")
    checked = recorded.ledger("fsck", "--json").document["checked"]
    assert (checked["commits"], checked["records"]) == (1, 3)
    assert checked["bodies"] >= 2
    assert kinds(recorded, 0) == {}
    assert recorded.ledger("fsck").out.splitlines()[-1].startswith("clean: 3 records on 1 commit,")


def test_s31_unpublished_alone_is_no_damage(recorded, make_repo):
    bare = make_repo("remote.git", "--bare")
    recorded.repo.git("remote", "add", "origin", str(bare.path))
    assert kinds(recorded, 0) == {"unpublished": ["origin"]}
    assert recorded.ledger("status", "--json").document["unpublished"] == {"origin": 1}
    recorded.ledger("sync", "origin")
    assert kinds(recorded, 0) == {}


def test_a_missing_body_and_a_missing_note(recorded):
    repo = recorded.repo
    body = bodies_of(recorded)[0]
    (recorded.path / ".git/objects" / body[:2] / body[2:]).unlink()
    assert [subject.split()[0] for subject in kinds(recorded, 1)["body-missing"]]
    note = repo.git("notes", "--ref=gitledger/records", "list", "HEAD")
    (recorded.path / ".git/objects" / note[:2] / note[2:]).unlink()
    assert f"note of {repo.git('rev-parse', 'HEAD')}" in kinds(recorded, 1)["unreadable"]


def test_a_body_dropped_from_the_bodies_ref_is_missing_and_dropped(recorded):
    [body, *_] = bodies_of(recorded)
    recorded.repo.git("notes", "--ref=gitledger/bodies", "remove", body)
    found = kinds(recorded, 1)
    assert found["dropped"] == [body]
    assert len(found["body-missing"]) == 1


def test_a_corrupt_body(recorded):
    path = next(recorded.path / ".git/objects" / body[:2] / body[2:] for body in bodies_of(recorded))
    path.chmod(0o644)
    path.write_bytes(b"garbage")
    assert set(kinds(recorded, 1)) == {"body-corrupt"}


def test_a_forged_record(recorded, append):
    document = line_of(recorded)
    payload = json.loads(base64.b64decode(document["payload"]))
    payload["predicate"]["counts"]["passed"] += 1
    document["payload"] = base64.b64encode(encoded(payload)).decode()
    append(encoded(document))
    assert set(kinds(recorded, 1)) == {"forged"}


def test_a_misplaced_record(recorded, append):
    line = encoded(line_of(recorded))
    other = recorded.repo.commit({"README.md": "x"})
    append(line, commit=other)
    found = kinds(recorded, 1)
    assert set(found) == {"misplaced"}
    assert found["misplaced"][0].startswith(other[:12])


def test_a_body_under_a_false_path(recorded):
    blob = recorded.repo.git("hash-object", "-w", "--stdin", input=b"x")
    recorded.repo.git("notes", "--ref=gitledger/bodies", "add", "-C", blob, recorded.repo.git("rev-parse", "HEAD"))
    assert set(kinds(recorded, 1)) == {"misplaced"}


@pytest.mark.parametrize("line", [b"not json", b"{}", b"\xff\x00"])
def test_an_undecodable_line(recorded, append, line):
    append(line)
    assert set(kinds(recorded, 1)) == {"undecodable"}


def test_s16_a_record_that_an_earlier_state_of_the_ref_held(recorded):
    """`git notes remove`, as `git notes prune` does for commits that a shallow clone lacks."""
    record = recorded.ledger("log", "--json").document[0]["records"][0]["record"]
    recorded.repo.git("notes", "--ref=gitledger/records", "remove", "HEAD")
    head = recorded.repo.git("rev-parse", "HEAD")
    found = kinds(recorded, 1)
    assert found["dropped"] == [f"{head[:12]} {record}"]
    assert "body-orphaned" in found


def test_s16_a_ref_that_was_set_back_is_seen_through_its_reflog(recorded):
    first = recorded.repo.git("rev-parse", RECORDS_REF)
    recorded.record("beta")
    recorded.repo.git("update-ref", RECORDS_REF, first)
    assert len(kinds(recorded, 1)["dropped"]) == 1


def test_law_6_what_a_killed_writer_logged_and_never_did_is_no_damage(recorded):
    """The log is written before the ref moves; a state that the ref never had has lost nothing."""
    before = recorded.repo.git("rev-parse", RECORDS_REF)
    never = recorded.record("beta")["record"]
    after = recorded.repo.git("rev-parse", RECORDS_REF)
    (recorded.path / ".git" / RECORDS_REF).write_text(f"{before}\n")
    head = recorded.repo.git("rev-parse", "HEAD")
    assert kinds(recorded, 0)["unfinished"] == [f"{head[:12]} {never}"]
    recorded.repo.git("update-ref", RECORDS_REF, after)
    recorded.repo.git("update-ref", RECORDS_REF, before)
    assert kinds(recorded, 1)["dropped"] == [f"{head[:12]} {never}"]


def test_s16_what_the_remote_dropped_and_this_clone_still_has_is_no_damage(recorded, make_repo):
    bare = make_repo("remote.git", "--bare")
    recorded.repo.git("remote", "add", "origin", str(bare.path))
    recorded.ledger("sync", "origin")
    bare.git("notes", "--ref=gitledger/records", "remove", recorded.repo.git("rev-parse", "HEAD"))
    recorded.ledger("sync", "--fetch-only", "origin")
    assert "dropped" not in kinds(recorded, 0)
    recorded.ledger("sync", "origin")
    assert kinds(recorded, 0) == {}


def test_a_note_over_its_limit(recorded, append):
    append(b"x" * 100)
    big = b"y" * ((1 << 20) + 1)
    tree = recorded.repo.git("hash-object", "-w", "--stdin", input=big)
    recorded.repo.git("notes", "--ref=gitledger/records", "add", "-f", "-C", tree, "HEAD")
    assert {"limit-exceeded", "undecodable", "dropped"} <= set(kinds(recorded, 1))


def test_leftovers_are_named_and_are_no_damage(recorded, append):
    """An inbox, a body without its record, a lock, a ref of somebody else, a note of a commit that is not here."""
    repo = recorded.repo
    append(bodies=[b"left behind"])
    records = repo.git("rev-parse", f"{RECORDS_REF}^{{tree}}")
    tree = repo.git("mktree", input=f"040000 tree {records}\trecords\n".encode())
    repo.git("update-ref", "refs/gitledger/inbox/1", repo.git("commit-tree", "-m", "x", tree))
    repo.git("update-ref", "refs/gitledger/inbox/2", "HEAD")
    (recorded.path / ".git" / f"{RECORDS_REF}.lock").touch()
    found = kinds(recorded, 0)
    assert set(found) == {"inbox", "foreign-ref", "body-orphaned", "lock"}
    assert found["inbox"] == ["refs/gitledger/inbox/1"]
    assert found["foreign-ref"] == ["refs/gitledger/inbox/2"]


def test_law_7_a_ref_whose_tree_has_no_end_is_named_and_hides_nothing(recorded):
    """The honest folder of HEAD's note is put into 65,536 places, and that into a fetched inbox."""
    repo, head = recorded.repo, recorded.repo.git("rev-parse", "HEAD")
    ref = "refs/gitledger/remotes/origin/inbox/1"
    tree = repo.git("rev-parse", f"{RECORDS_REF}:{head[:2]}/{head[2:4]}")
    for _ in range(2):
        tree = repo.git("mktree", input="".join(f"040000 tree {tree}\t{n:02x}\n" for n in range(256)).encode())
    tree = repo.git("mktree", input=f"040000 tree {tree}\trecords\n".encode())
    repo.git("update-ref", ref, repo.git("commit-tree", "-m", "x", tree))
    repo.git("update-ref", "-d", RECORDS_REF)
    found = kinds(recorded, 1)
    assert found["repeats"] == [ref]
    assert len(found["misplaced"]) < 1_000
    assert [entry["commit"] for entry in recorded.ledger("log", "--json").document] == [head]
    assert recorded.plan()["alpha"] == ("fresh", "recorded")


def test_a_record_whose_commit_is_gone_is_orphaned(recorded):
    git = Git(recorded.path, dict(recorded.repo.env))
    recorded.repo.git("checkout", "-q", "--orphan", "other")
    recorded.repo.commit({"README.md": "x"})
    recorded.repo.git("branch", "-D", "main")
    recorded.repo.git("reflog", "expire", "--expire=now", "--all")
    git.run("gc", "-q", "--prune=now")
    assert set(kinds(recorded, 0)) == {"record-orphaned"}


def test_a_local_ref_that_is_no_commit_is_damage(recorded):
    blob = recorded.repo.git("hash-object", "-w", "--stdin", input=b"x")
    path = recorded.path / ".git" / RECORDS_REF
    path.write_text(f"{blob}\n")
    assert "ref-garbage" in kinds(recorded, 1)


def test_nothing_is_repaired_and_nothing_is_written(recorded, append):
    append(b"not json")
    recorded.repo.git("notes", "--ref=gitledger/bodies", "remove", bodies_of(recorded)[0])
    before = recorded.repo.git("for-each-ref"), sorted(os.listdir(recorded.path / ".git/objects"))
    kinds(recorded, 1)
    assert before == (recorded.repo.git("for-each-ref"), sorted(os.listdir(recorded.path / ".git/objects")))


def test_what_others_wrote_is_shown_escaped(recorded, append):
    append(b'{"payload":"\x1b[31m"}')
    assert "\x1b" not in recorded.ledger("fsck", expect=1).out
