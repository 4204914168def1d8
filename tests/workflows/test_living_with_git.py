"""The ledger among everything else that people do with git, through the installed command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from gitledger.store.ledger import BODIES_REF, RECORDS_REF

CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: "true", results: exit-status}
policy: {allow_carried: true}
carry: {from: FROM}
"""
FILES = {"src/a.py": "x = 1\n", ".gitignore": "__pycache__/\n"}


@pytest.fixture
def make(make_project, make_repo, tmp_path):
    """A project with a bare remote of its own: another one's first commit is no step forward there."""

    def do(config: str = CONFIG.replace("FROM", "ancestors"), *, name: str = "repo"):
        project = make_project(config, FILES, name=name)
        remote = "remote.git" if name == "repo" else f"remote-of-{name}.git"
        make_repo(remote, "--bare")
        project.repo.git("remote", "add", "origin", f"file://{tmp_path}/{remote}")
        project.repo.git("push", "-q", "origin", "HEAD:main")
        return project

    return do


@pytest.fixture
def one(make):
    return make()


@pytest.fixture
def bare(one, tmp_path):
    return type(one.repo)(tmp_path / "remote.git", one.repo.env)


def cloned(project, name: str, *options: str):
    """Return another clone of the remote, ready to record."""
    path = project.path.parent / name
    url = project.repo.git("config", "remote.origin.url")
    project.repo.git("clone", "-q", *options, url, str(path))
    return type(project)(type(project.repo)(path, project.repo.env), project.keys)


def damage(project) -> list[dict]:
    return [item for item in project.ledger("fsck", "--json", expect=None).document["problems"] if item["damage"]]


def records_on(project, commit: str = "HEAD") -> int:
    shown = project.ledger("show", commit, "--json").document
    return len(shown["records"])


# --- clones ----------------------------------------------------------------------------------------------------


def test_s10_a_fresh_depth_1_single_branch_clone_records_publishes_and_verifies(one):
    one.repo.commit({"README.md": "x"})
    one.repo.git("push", "-q", "origin", "HEAD:main")
    one.record("lint")
    one.ledger("sync", "origin")
    shallow = cloned(one, "shallow", "--depth=1", "--single-branch")
    shallow.ledger("sync", "--fetch-only")
    assert shallow.verify() == ("passed", set())
    shallow.record("lint")
    assert shallow.ledger("sync", "--json").document["via"] == "notes"
    one.ledger("sync", "origin")
    assert records_on(one) == 2
    assert one.repo.git("rev-parse", "--is-shallow-repository") == "false"
    assert damage(one) == damage(shallow) == []


@pytest.mark.parametrize(
    "filters", [("--filter=blob:none",), ("--filter=tree:0",), ("--filter=blob:none", "--depth=1")]
)
def test_s23_a_fresh_partial_clone_records_publishes_and_verifies(one, bare, filters):
    bare.git("config", "uploadpack.allowFilter", "true")
    bare.git("config", "uploadpack.allowAnySHA1InWant", "true")
    one.record("lint")
    one.ledger("sync", "origin")
    partial = cloned(one, "partial", *filters)
    partial.ledger("sync", "--fetch-only")
    assert partial.verify() == ("passed", set())
    partial.record("lint")
    partial.ledger("merge")
    assert partial.ledger("sync", "--json").document["lines"] == 2
    one.ledger("sync", "origin")
    assert records_on(one) == 3
    assert damage(one) == damage(partial) == []


def test_s24_a_sha256_repository_from_record_to_verdict(make_repo, make):
    project = make()
    repo = make_repo("sha256", "--object-format=sha256")
    other = type(project)(repo, project.keys)
    tracked = project.repo.git("ls-files").split()
    repo.commit({path: (project.path / path).read_bytes() for path in tracked})
    other.record("lint")
    assert other.plan() == {"lint": ("fresh", "recorded")}
    other.ledger("merge")
    assert other.verify() == ("passed", set())
    assert damage(other) == []
    assert len(other.ledger("show", "HEAD", "--json").document["commit"]) == 64
    other.repo.git("fsck", "--strict")


def test_s07_init_and_plain_fetch_against_a_remote_without_any_ledger(one):
    one.ledger("init")
    one.repo.git("fetch", "-q", "origin")
    one.repo.git("pull", "-q", "origin", "main")


def test_a_plain_fetch_brings_what_a_verdict_needs(one):
    one.record("lint")
    one.ledger("sync", "origin")
    two = cloned(one, "two")
    two.ledger("init")
    two.repo.git("fetch", "-q")
    assert two.verify() == ("passed", set())


# --- publishing ------------------------------------------------------------------------------------------------


def test_s31_a_record_made_after_the_push_is_named_until_it_is_published(one):
    one.ledger("init")
    one.repo.git("push", "-q", "origin", "HEAD:topic")
    one.record("lint")
    assert one.ledger("status", "--json").document["unpublished"] == {"origin": 1}
    assert "1 record not published to origin" in one.ledger("status").out
    plan = one.ledger("plan")
    assert "1 record not published to origin" in plan.err
    assert one.ledger("plan", "--json").document["unpublished"] == {"origin": 1}
    one.repo.commit({"README.md": "x"})
    pushed = subprocess.run(
        ["git", "push", "origin", "HEAD:topic"], cwd=one.path, env=one.repo.env, capture_output=True, text=True, check=True
    )  # fmt: skip
    assert "published 1 record to origin" in pushed.stderr
    assert one.ledger("status", "--json").document["unpublished"] == {"origin": 0}
    assert "not published" not in one.ledger("plan").err


def test_s38_publishing_that_fails_is_exit_3_and_the_next_run_publishes_the_backlog(one, tmp_path):
    one.record("lint")
    (tmp_path / "remote.git").rename(tmp_path / "away.git")
    done = one.ledger("sync", "origin", expect=3)
    assert "[publish-failed]" in done.err
    assert "git ledger sync origin" in done.err
    one.record("lint")
    (tmp_path / "away.git").rename(tmp_path / "remote.git")
    assert one.ledger("sync", "origin", "--json").document["lines"] == 2


PICKY = """#!/bin/sh
while read old new ref; do
  case $ref in refs/notes/*|refs/gitledger/*) ;; *) continue;; esac
  case $new in 0000*) continue;; esac
  for commit in $(git rev-list $new --not --all); do
    [ "$(git log -1 --format='%ae %ce' $commit)" = "bot@example.org bot@example.org" ] || { echo bad author; exit 1; }
    git log -1 --format=%s $commit | grep -qE '^EVIDENCE-1: [0-9]+ records$' || { echo bad message; exit 1; }
  done
done
"""


def test_s19_a_server_that_demands_an_author_and_a_message_gets_them(make, tmp_path):
    text = CONFIG.replace("FROM", "ancestors")
    notes = 'notes: {author: "Bot <bot@example.org>", message: "EVIDENCE-1: {n} records"}\n'
    one = make(text + notes)
    bare = type(one.repo)(tmp_path / "remote.git", one.repo.env)
    bare.write("hooks/pre-receive", PICKY, mode=0o755)
    two = cloned(one, "two")
    for clone in (one, two):
        clone.record("lint")
    one.ledger("sync", "origin")
    two.ledger("sync", "origin")  # unites two histories, which takes a commit too
    one.ledger("sync", "origin")
    assert records_on(one) == records_on(two) == 2
    assert bare.git("log", "-1", "--format=%P", RECORDS_REF).count(" ") == 1


def test_s19_the_same_server_refuses_what_does_not_comply(one, bare):
    bare.write("hooks/pre-receive", PICKY, mode=0o755)
    one.record("lint")
    assert "bad author" in one.ledger("sync", "origin", expect=3).err


def test_s09_s33_whoever_syncs_first_all_hold_the_union(one):
    others = [cloned(one, f"c{number}") for number in range(2)]
    clones = [one, *others]
    for clone in clones:
        clone.record("lint")
    for clone in (*clones, *reversed(clones), *clones):
        clone.ledger("sync", "origin")
    assert {records_on(clone) for clone in clones} == {3}
    trees = {clone.repo.git("rev-parse", f"{ref}^{{tree}}") for clone in clones for ref in (RECORDS_REF,)}
    assert len(trees) == 1


def test_a_sync_speaks_only_of_what_it_took_up_and_names_how_the_rest_of_it_is_published(one, tmp_path):
    one.ledger("sync", "origin")
    server = tmp_path / "other.git"
    one.repo.git("clone", "-q", "--bare", ".", str(server))
    two = cloned(one, "two")
    two.repo.git("remote", "add", "other", str(server))
    two.record("lint")
    two.ledger("sync", "other")
    one.repo.git("remote", "add", "other", str(server))
    one.ledger("sync", "--fetch-only", "other")
    said = one.ledger("sync", "origin").out.splitlines()
    assert said[0] == "origin has everything that was recorded here"
    assert said[1].startswith(
        "1 fetched from other is not at origin: git ledger sync other && git ledger sync origin"
    )
    for remote in ("other", "origin"):
        said = one.ledger("sync", remote).out
    assert said == "published 1 record to origin (notes)\n"
    assert one.ledger("sync", "origin").out == "origin has everything that was recorded here\n"


def test_a_sync_that_publishes_a_body_alone_does_not_speak_of_records(one):
    one.record("lint")
    one.ledger("sync", "origin")
    blob = one.repo.git("hash-object", "-w", "--stdin", input=b"a body")
    one.repo.git("notes", "--ref=gitledger/bodies", "add", "-C", blob, blob)
    assert one.ledger("sync", "origin").out == "published 1 body to origin (notes), which had the records\n"


# --- git notes by hand -----------------------------------------------------------------------------------------


def test_a_line_that_somebody_appends_by_hand_hides_nothing(one):
    one.record("lint")
    one.repo.git("notes", "--ref=gitledger/records", "append", "-m", "reviewed by Carol", "HEAD")
    assert one.verify() == ("passed", set())
    one.record("lint")
    assert one.verify() == ("passed", set())
    assert "reviewed by Carol" in one.repo.git("notes", "--ref=gitledger/records", "show", "HEAD")
    assert {item["kind"] for item in damage(one)} == {"undecodable"}


def test_s16_git_notes_prune_in_a_shallow_clone_and_a_plain_push_lose_nothing_for_good(one, bare):
    one.record("lint")
    one.repo.commit({"README.md": "x"})
    one.record("lint")
    one.repo.git("push", "-q", "origin", "HEAD:main")
    one.ledger("sync", "origin")
    shallow = cloned(one, "shallow", "--depth=1")
    shallow.ledger("sync", "origin")
    shallow.repo.git("notes", "--ref=gitledger/records", "prune")
    assert {item["kind"] for item in damage(shallow)} == {"dropped"}
    shallow.repo.git("push", "-q", "origin", RECORDS_REF)
    assert len(bare.git("notes", "--ref=gitledger/records", "list").splitlines()) == 1
    one.ledger("sync", "origin")
    assert len(bare.git("notes", "--ref=gitledger/records", "list").splitlines()) == 2
    shallow.ledger("sync", "origin")
    assert damage(shallow) == damage(one) == []


def test_a_plain_notes_merge_of_what_was_fetched_is_a_ledger(one):
    two = cloned(one, "two")
    one.record("lint")
    one.ledger("sync", "origin")
    two.record("lint")
    two.repo.git("fetch", "-q", "origin", f"{RECORDS_REF}:refs/notes/theirs")
    two.repo.git("notes", "--ref=gitledger/records", "merge", "-s", "cat_sort_uniq", "refs/notes/theirs")
    two.ledger("sync", "origin")
    assert records_on(two) == 2
    assert damage(two) == []


def test_s43_a_users_own_ref_in_the_way_is_one_clear_warning_that_says_how_to_mend_it(one):
    one.repo.git("notes", "--ref=gitledger", "add", "-m", "mine", "HEAD")
    done = one.ledger("record", "--shard", "lint")
    [line] = [line for line in done.err.splitlines() if line.startswith("warning: ")]
    assert "[ref-conflict]" in line
    mend = line.split("; try: ")[1]
    subprocess.run(mend, shell=True, cwd=one.path, env=dict(one.repo.env), check=True)
    one.ledger("sync", "origin")
    assert records_on(one) == 1
    assert one.repo.git("notes", "--ref=refs/saved/notes/gitledger", "show", "HEAD", check=False) in ("mine", "")


def test_s43_the_same_at_the_remote_leaves_the_ledger_beside_it_where_everybody_reads_it(one, bare):
    """There is no place for the notes at the remote then; the inbox is no worse a place."""
    bare.git("notes", "--ref=gitledger", "add", "-m", "mine", "main")
    one.record("lint")
    assert one.ledger("sync", "origin", "--json").document["via"] == "inbox"
    two = cloned(one, "two")
    two.ledger("sync", "--fetch-only")
    assert two.verify() == ("passed", set())
    assert bare.git("notes", "--ref=gitledger", "show", "main") == "mine"


# --- worktrees, submodules -------------------------------------------------------------------------------------


def test_linked_worktrees_share_one_ledger(one):
    one.repo.git("worktree", "add", "-q", "-b", "side", "../linked")
    linked = type(one)(type(one.repo)(one.path.parent / "linked", one.repo.env), one.keys)
    linked.repo.commit({"README.md": "side"})
    linked.record("lint")
    assert records_on(one, "side") == 1
    one.record("lint")
    assert records_on(linked, "main") == 1
    linked.ledger("sync", "origin")
    assert one.ledger("status", "--json").document["unpublished"] == {"origin": 0}
    assert damage(linked) == []


def test_a_submodule_has_a_ledger_of_its_own(one, make):
    outer = make(name="outer")
    url = str(one.path)
    outer.repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "sub")
    outer.repo.commit(message="with submodule")
    inner = type(one)(type(one.repo)(outer.path / "sub", one.repo.env), one.keys)
    inner.record("lint")
    assert records_on(inner) == 1
    assert "gitledger" not in outer.repo.git("for-each-ref")
    outer.record("lint")
    assert records_on(inner) == 1


# --- history that is rewritten ---------------------------------------------------------------------------------


def test_s15_an_amended_message_is_the_same_tree_and_an_amended_file_is_not(make):
    one = make(CONFIG.replace("FROM", "same-manifest"))
    one.record("lint")
    one.repo.git("commit", "-q", "--amend", "-m", "better words")
    assert one.plan() == {"lint": ("fresh", "unchanged")} or one.plan()["lint"][0] in ("fresh", "carryable")
    one.repo.write("src/a.py", "x = 2\n")
    one.repo.git("commit", "-qa", "--amend", "-m", "other content")
    assert one.plan()["lint"][0] == "stale"


@pytest.mark.parametrize("rewrite", ["amend", "rebase", "squash", "commit-tree"])
def test_evidence_never_follows_a_rewrite_by_place_alone(one, rewrite):
    """`notes.rewriteRef` copies notes onto the rewritten commits; they are about the old ones."""
    one.repo.git("config", "notes.rewriteRef", "refs/notes/gitledger/records")
    one.repo.git("config", "notes.rewriteMode", "overwrite")
    base = one.repo.git("rev-parse", "HEAD")
    one.repo.commit({"src/a.py": "x = 2\n"}, "two")
    one.record("lint")
    old = one.repo.git("rev-parse", "HEAD")
    if rewrite == "amend":
        one.repo.write("src/a.py", "x = 3\n")
        one.repo.git("commit", "-qa", "--amend", "-m", "three")
    elif rewrite == "rebase":
        one.repo.git("checkout", "-q", "-b", "side", base)
        one.repo.commit({"src/b.py": "y = 1\n"}, "beside")
        one.repo.git("checkout", "-q", "main")
        one.repo.git("rebase", "-q", "side")
    elif rewrite == "squash":
        one.repo.commit({"src/a.py": "x = 4\n"}, "four")
        one.repo.git("reset", "-q", "--soft", base)
        one.repo.git("commit", "-qm", "squashed")
    else:
        one.repo.write("src/a.py", "x = 5\n")
        one.repo.git("add", "-A")
        new = one.repo.git("commit-tree", "-p", base, "-m", "plumbed", one.repo.git("write-tree"))
        one.repo.git("reset", "-q", "--hard", new)
        one.repo.git("notes", "--ref=gitledger/records", "copy", old, new)
    verdict, codes = one.verify()
    assert verdict == "failed"
    assert codes & {"never-recorded", "inputs-changed"}
    one.record("lint")
    assert one.verify() == ("passed", set())
    assert records_on(one, old) == 1


def test_replace_refs_and_grafts_move_no_evidence(one):
    one.record("lint")
    good = one.repo.git("rev-parse", "HEAD")
    bad = one.repo.commit({"src/a.py": "x = broken\n"})
    one.repo.git("replace", bad, good)
    (one.path / ".git" / "info").mkdir(exist_ok=True)
    (one.path / ".git" / "info" / "grafts").write_text(f"{bad}\n")
    assert one.plan()["lint"][0] == "stale"
    assert one.ledger("verify", expect=1)
    assert damage(one) == []


@pytest.mark.parametrize(
    "tidy", [("gc", "-q", "--prune=now"), ("repack", "-adfq"), ("pack-refs", "--all"), ("prune",)]
)
def test_tidying_up_loses_nothing(one, tidy):
    one.record("lint")
    one.repo.commit({"README.md": "x"})
    one.ledger("merge")
    one.repo.git("reflog", "expire", "--expire=now", "--all")
    one.repo.git(*tidy)
    assert one.verify() == ("passed", set())
    assert damage(one) == []
    one.record("lint")
    one.ledger("sync", "origin")
    assert damage(one) == []


def test_a_filtered_history_keeps_its_ledger_and_the_new_commits_have_none(one):
    """As `filter-repo` and `filter-branch` leave it: other commits, the old ones collected, the notes untouched."""
    one.record("lint")
    env = dict(one.repo.env) | {"FILTER_BRANCH_SQUELCH_WARNING": "1"}
    subprocess.run(
        ["git", "filter-branch", "-f", "--msg-filter", "sed s/start/begin/", "main"],
        cwd=one.path, env=env, check=True, capture_output=True,
    )  # fmt: skip
    one.repo.git("update-ref", "-d", "refs/original/refs/heads/main")
    one.repo.git("update-ref", "-d", "refs/remotes/origin/main")
    one.repo.git("reflog", "expire", "--expire=now", "--all")
    one.repo.git("gc", "-q", "--prune=now")
    kinds = {item["kind"] for item in one.ledger("fsck", "--json").document["problems"]}
    assert kinds == {"record-orphaned", "unpublished"}
    assert one.verify() == ("failed", {"never-recorded"})
    one.record("lint")
    assert one.verify() == ("passed", set())


def test_push_mirror_from_a_clone_without_the_ledger_is_undone_by_any_clone_that_has_it(one, bare):
    one.record("lint")
    one.ledger("sync", "origin")
    two = cloned(one, "two")
    two.repo.git("push", "-q", "--mirror", "origin")
    assert "gitledger" not in bare.git("for-each-ref")
    assert one.ledger("sync", "origin", "--json").document["via"] == "notes"
    assert {RECORDS_REF, BODIES_REF} <= set(bare.git("for-each-ref", "--format=%(refname)").split())
    three = cloned(one, "three")
    three.ledger("sync", "--fetch-only")
    assert three.verify() == ("passed", set())


def test_s14_packed_refs_held_locked_for_a_second_during_record_and_merge(one):
    one.record("lint")
    one.repo.git("pack-refs", "--all")
    lock = one.path / ".git" / "packed-refs.lock"
    lock.touch()
    release = subprocess.Popen(["sh", "-c", f"sleep 1; rm {lock}"])
    one.record("lint")
    one.ledger("merge")
    release.wait(timeout=60)
    refs = set(one.repo.git("for-each-ref", "--format=%(refname)", "refs/notes", "refs/gitledger").split())
    assert refs == {RECORDS_REF, BODIES_REF}
    assert records_on(one) == 3


# --- cost ------------------------------------------------------------------------------------------------------


def test_s39_verify_starts_as_many_processes_for_many_receipts_as_for_a_few(one, tmp_path: Path):
    def processes() -> int:
        trace = tmp_path / "trace"
        one.ledger("verify", env={"GIT_TRACE2_EVENT": str(trace)})
        events = [json.loads(line) for line in trace.read_text().splitlines()]
        trace.unlink()
        return sum(event["event"] == "start" for event in events)

    one.record("lint")
    few = processes()
    for _ in range(12):
        one.ledger("merge")
    one.record("lint")
    assert processes() == few
