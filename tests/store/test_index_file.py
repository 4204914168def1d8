"""git's index read at a glance, held against what git itself lists; where we can't read it, git is asked."""

from __future__ import annotations

import hashlib
import os
import random
import struct
import time

import pytest

from gitledger.store import index_file
from gitledger.store.git import Git
from gitledger.store.index_file import Indexed, Suspects, read_index
from gitledger.store.worktree import work_tree_state

LONG = "/".join(["folder-" + "x" * 200] * 20) + "/" + "y" * 200
"""A path longer than the twelve bits that the index has for its length."""


def by_git(repo) -> tuple[Indexed, ...]:
    lines = repo.git("ls-files", "-v", "--stage", "-z").split("\0")[:-1]
    return tuple(entry for entry in map(Indexed.of, lines) if entry.stage == "0")


def index_of(repo) -> bytes:
    return (repo.path / ".git/index").read_bytes()


def plain(repo):
    repo.commit({"a": "1", "sub/b": "2", "sub/c c": "3", "tool": "#!\n"})
    repo.git("update-index", "--chmod=+x", "tool")
    os.symlink("a", repo.path / "link")
    repo.git("add", "link")


def odd_names(repo):
    repo.commit({"ä": "1", 'q"uo\\te': "2", "new\nline": "3", "tab\tbed": "4"})
    (repo.path / os.fsdecode(b"raw-\xff")).write_text("5")
    repo.git("add", "-A")


def long_name(repo):
    repo.git("update-index", "--add", "--cacheinfo", f"100644,{'1' * 40},{LONG}")


def flagged(repo):
    repo.commit({name: name for name in "abcd"})
    repo.git("update-index", "--assume-unchanged", "a")
    repo.git("update-index", "--skip-worktree", "b")
    repo.git("update-index", "--assume-unchanged", "c")
    repo.git("update-index", "--skip-worktree", "c")


def intended(repo):
    repo.commit({"a": "1"})
    repo.write("later", "2")
    repo.git("add", "--intent-to-add", "later")


def unmerged(repo):
    repo.commit({"a": "1", "z": "1"})
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"a": "2"})
    repo.git("checkout", "-q", "main")
    repo.commit({"a": "3"})
    repo.git("merge", "-q", "side", check=False)


def submodule(repo):
    repo.commit({"a": "1"})
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'2' * 40},libs/inner")


def many_extensions(repo):
    plain(repo)
    repo.git("update-index", "--untracked-cache")
    repo.git("-c", "index.threads=4", "update-index", "--force-write-index")


READABLE = [plain, odd_names, long_name, flagged, intended, unmerged, submodule, many_extensions]


@pytest.mark.parametrize("fill", READABLE)
def test_it_reads_what_git_lists(git_repo, fill):
    fill(git_repo)
    found = read_index(index_of(git_repo), written_s=0)
    assert found is not None
    assert tuple(entry._replace(changed_ns=None) for entry in found.entries) == by_git(git_repo)
    assert found.submodules == (("libs/inner",) if fill is submodule else ())


def test_before_the_first_file_there_is_nothing(git_repo):
    git_repo.git("read-tree", "--empty")
    assert read_index(index_of(git_repo), written_s=0) == Suspects((), ())


@pytest.mark.parametrize(
    "options",
    [["--index-version", "4"], ["--split-index"]],
    ids=["version-4", "split"],
)
def test_what_it_can_not_read_is_left_to_git(git_repo, options):
    plain(git_repo)
    git_repo.git("update-index", *options)
    assert read_index(index_of(git_repo), written_s=0) is None
    git_repo.git("update-index", "--assume-unchanged", "a")
    git_repo.write("a", "9")
    assert work_tree_state(Git(git_repo.path, git_repo.env)).changed == ("a", "link", "tool")


def test_an_index_of_another_hash_is_left_to_git(make_repo):
    repo = make_repo("longer", "--object-format=sha256")
    plain(repo)
    assert read_index(index_of(repo), written_s=0) is None


@pytest.mark.parametrize("fill", READABLE)
def test_a_damaged_index_is_never_taken_for_another(git_repo, fill):
    """Cut, or its lengths and flags changed: it is refused, or all of it is read; nothing is left out in silence."""
    fill(git_repo)
    data = index_of(git_repo)
    everything = read_index(data, written_s=0)
    count = struct.unpack_from(">4sII", data)[2]
    chance = random.Random(7)
    for cut in {0, 3, 11, 12, 13, *(chance.randrange(len(data)) for _ in range(200))}:
        assert read_index(data[:cut], written_s=0) in (None, everything)
    for changed in (count - 1, count + 1, 1 << 31):
        assert read_index(data[:8] + struct.pack(">I", changed) + data[12:], written_s=0) is None
    assert read_index(data + b"\0", written_s=0) is None
    assert read_index(data, written_s=0) == everything


def test_an_extension_that_must_be_understood_is_left_to_git(git_repo):
    plain(git_repo)
    body = index_of(git_repo)[:-20]
    told = [(b"link", 3, False), (b"sdir", 3, False), (b"xxxx", 3, False), (b"ZZZZ", 3, True), (b"ZZZZ", 9, False)]
    for name, length, readable in told:
        changed = body + name + struct.pack(">I", length) + b"abc"
        whole = changed + hashlib.sha1(changed, usedforsecurity=False).digest()
        assert (read_index(whole, written_s=0) is not None) == readable, (name, length)


def test_only_what_changed_in_the_second_of_the_index_or_is_flagged_is_suspect(git_repo):
    flagged(git_repo)
    for name in "abcd":
        assert (git_repo.path / name).stat().st_ctime_ns // 10**9 > 0
    noted = max(int((git_repo.path / name).stat().st_ctime) for name in "abcd")
    later = read_index(index_of(git_repo), written_s=noted + 1)
    assert [entry.path for entry in later.entries] == ["a", "b", "c"]
    at_once = read_index(
        index_of(git_repo), written_s=min(int((git_repo.path / n).stat().st_ctime) for n in "abcd")
    )
    assert [entry.path for entry in at_once.entries] == ["a", "b", "c", "d"]


def entry_bytes(chance: random.Random, number: int) -> bytes:
    """Return an entry that git could have written: mostly an ordinary file, at times anything else."""
    ctime = chance.choice([999, 999, 999, 1_000, 1_001, 0, 255, 256, 1 << 24, 0xFFFF_FFFF])
    mode = chance.choice([0o100644, 0o100644, 0o100755, 0o120000, 0o160000])
    name = b"%05d" % number + b"n" * chance.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 30, 0xFFF])
    flags = chance.choice([0, 0, 0, 0, 0, 0x8000, 0x4000, 0x1000, 0x2000]) | min(len(name), 0xFFF)
    more = struct.pack(">H", chance.choice([0x4000, 0x2000])) if flags & 0x4000 else b""
    mtime = chance.choice([ctime, ctime, ctime, 998])
    stat = chance.randbytes(4) + struct.pack(">I", mtime) + chance.randbytes(12)
    entry = struct.pack(">I", ctime) + stat + struct.pack(">I", mode) + chance.randbytes(32)
    entry += struct.pack(">H", flags) + more + name
    return entry + b"\0" * (8 - len(entry) % 8)


@pytest.mark.parametrize("seed", range(60))
def test_ordinary_entries_are_passed_over_in_runs_and_none_of_the_others(monkeypatch, seed):
    chance = random.Random(seed)
    odd = chance.choice([0.02, 0.3, 1])
    ordinary = random.Random(3)
    entries = []
    for number in range(200):
        entry = entry_bytes(chance, number)
        ordinary_one = (b"\0\0\3\xe7", b"\0\0\3\xe7", b"\x81", 0)
        while chance.random() > odd and (entry[:4], entry[8:12], entry[26:27], entry[60] >> 4) != ordinary_one:
            entry = entry_bytes(ordinary, number)
        entries.append(entry)
    data = b"DIRC" + struct.pack(">II", 3, len(entries)) + b"".join(entries)
    data += chance.choice([b"", b"TREE" + struct.pack(">I", 3) + b"abc"]) + chance.choice([bytes(20), b"\7" * 20])
    written_s = chance.choice([0, 1, 256, 1_000, 1_001, 1 << 24, 0xFFFF_FFFF, 1 << 40])
    found = {}
    for run in (1, 2, 3, 7, 200, 201):
        monkeypatch.setattr(index_file, "_RUN", run)
        found[run] = read_index(data, written_s=written_s)
    assert found[201] is not None  # no run at all: each entry by itself
    assert all(one == found[201] for one in found.values())


def test_what_had_its_mtime_set_is_suspect_with_the_change_that_the_index_notes(git_repo):
    git_repo.commit({"a": "1", "b": "1"})
    os.utime(git_repo.path / "a", (10**9, 10**9))
    git_repo.git("update-index", "--refresh")
    found = read_index(index_of(git_repo), written_s=1 << 31)
    assert [entry.path for entry in found.entries] == ["a"]
    assert found.entries[0].changed_ns == (git_repo.path / "a").stat().st_ctime_ns


@pytest.mark.parametrize("written_again", [False, True], ids=["", "and-written-again"])
@pytest.mark.parametrize("kind", ["2", "4", "split"])
def test_an_edit_in_the_second_of_the_index_is_seen_however_the_index_is_written(git_repo, kind, written_again):
    """Also after that second, when git has written the index for another file's sake."""
    git_repo.commit({"a": "1", "b": "1"})
    options = ["--split-index"] if kind == "split" else ["--index-version", kind]
    target = git_repo.path / "a"
    for _ in range(20):  # the edit has to fall into the same second as the index
        git_repo.git("update-index", "--no-split-index")
        old = target.stat().st_mtime_ns - 10_000_000_000
        os.utime(target, ns=(old, old))
        git_repo.git("update-index", "--refresh", *options, check=False)
        noted = int(target.stat().st_ctime)
        target.write_text("2" if target.read_text() == "1" else "1")
        os.utime(target, ns=(old, old))
        edited = target.read_text() == "2"
        hidden = git_repo.git("--no-optional-locks", "status", "--porcelain") == ""
        if edited and hidden and int(target.stat().st_ctime) == noted:
            break
    else:
        pytest.fail("git saw every edit")
    if written_again:
        time.sleep(max(0.0, noted + 1.01 - time.time()))
        git_repo.git("update-index", "--chmod=+x", "b")
        git_repo.git("update-index", "--chmod=-x", "b")
        assert (git_repo.path / ".git/index").stat().st_mtime >= noted + 1
        assert git_repo.git("--no-optional-locks", "status", "--porcelain") == ""
    assert work_tree_state(Git(git_repo.path, git_repo.env)).changed == ("a",)
