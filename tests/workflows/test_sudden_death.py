"""kill -9, full disks, read-only mounts, stale locks, clocks that jump: the ledger is as before, or as after (law 6).

`GITLEDGER_KILLS` says how many kills are tried (50 unless given; 500 takes minutes).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from gitledger.store.ledger import BODIES_REF, RECORDS_REF

STEPS = {"record", "merge", "revoke", "sync"}
KILLS = int(os.environ.get("GITLEDGER_KILLS", "50"))
CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: "true", results: exit-status}
"""
PRELUDE = """
import os, sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from gitledger.errors import StoreError
from gitledger.trust.find_key import find_key
from gitledger.trust.open_signer import open_signer
from gitledger.workflows.asked import Asked, request_of
from gitledger.workflows.fsck import fsck
from gitledger.workflows.merge import merge
from gitledger.workflows.publish import sync_with
from gitledger.workflows.record import record
from gitledger.workflows.target import head_of
from gitledger.workflows.revoke import revoke
from gitledger.workflows.session import open_session
from gitledger.workflows.trusted import read_config
home = Path(os.environ["HOME"])
def enter(now=lambda: datetime.now(UTC)):
    return open_session(Path("."), environ=os.environ, home=home, now=now)
session = enter()
choice = find_key(None, environ=os.environ, config=session.repo.config, home=home)
signer = open_signer(choice, environ=os.environ)
request = request_of(read_config(session.repo, head_of(session)), Asked(
    shard="lint", variant=None, command=(), paths=(), extra_paths=(), excluded_paths=(), report=None))
def one(session=session):
    done = record(session, request, signer)
    assert done.stored, done.error
    return done.record
"""
WORK = (
    PRELUDE
    + """
import signal
def work(number):
    made = None
    while True:
        session = enter()
        if number % 4 == 0:
            made = one(session)
            print("record", made, flush=True)
        elif number % 4 == 1:
            print("merge", merge(session, head_of(session), signer, user="alice").record, flush=True)
        elif number % 4 == 2:
            print("revoke", revoke(session, made, signer, reason="killed", user="alice").record, flush=True)
        else:
            try:
                sync_with(session, "origin")
                print("sync", number, flush=True)
            except StoreError as error:  # what a killed one's git still holds: `git ledger sync` exits with 3, too
                assert error.code in ("ref-locked", "publish-failed", "git-failed"), error
        number += 1
for start in sys.stdin:
    worker = os.fork()
    if worker == 0:
        signal.alarm(60)
        print("worker", os.getpid(), flush=True)
        work(int(start))
    print("ended", -os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]), flush=True)
"""
)
CHECK = (
    PRELUDE
    + """
import json
found = fsck(session)
view = session.ledger.view()
from gitledger.trust.verified import open_record
lines = [line for commit in view.commits() for line in view.lines(commit)]
print(json.dumps({"problems": [problem.encode() for problem in found.problems],
                  "records": [open_record(line).id for line in lines]}))
"""
)


@pytest.fixture
def project(make_project, make_repo):
    project = make_project(CONFIG, {"src/a.py": "x = 1\n", ".gitignore": "__pycache__/\n"})
    bare = make_repo("remote.git", "--bare")
    project.repo.git("remote", "add", "origin", str(bare.path))
    project.repo.git("push", "-q", "origin", "main")
    return project


def python(project, code: str, **options) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=project.path, env=dict(project.repo.env),
        **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options,
    )  # fmt: skip


def ask(project, code: str) -> str:
    child = python(project, code)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err.decode()
    return out.decode()


def check(project) -> tuple[list[dict], set[str]]:
    found = json.loads(ask(project, CHECK))
    return found["problems"], set(found["records"])


ROUND = (
    PRELUDE
    + """
import time
started = time.monotonic()
made = one()
merge(session, head_of(session), signer, user="alice")
revoke(session, made, signer, reason="killed", user="alice")
sync_with(session, "origin")
print(time.monotonic() - started)
"""
)


def killed(parent, chance: random.Random, pace_s: float) -> list[list[str]]:
    """Let the parent fork a worker, kill that at some moment of a round, and return what it had done.

    The moment is some while after none to three steps, so that each step is reached however slow the machine is.
    """
    parent.stdin.write(b"3\n" if chance.random() < 0.4 else b"0\n")
    parent.stdin.flush()
    words = iter(lambda: parent.stdout.readline().decode().split(), [])
    _, worker = next(words, (None, None))
    assert worker, parent.communicate()[1].decode()
    done: list[list[str]] = []
    for said in itertools.islice(words, chance.randrange(4)):
        assert said[0] in STEPS, f"{said}: {parent.communicate(timeout=60)[1].decode()}"
        done.append(said)
    time.sleep(chance.random() * pace_s)
    os.kill(int(worker), signal.SIGKILL)
    for said in words:
        if said == ["ended", str(int(signal.SIGKILL))]:
            return done
        assert said[0] in STEPS, f"{said}: {parent.communicate(timeout=60)[1].decode()}"
        done.append(said)
    raise AssertionError(parent.communicate()[1].decode())


def unnoted_locks(git_dir: Path) -> list[Path]:
    """Return lock files of refs that no account names: of a writer killed between making one and noting it.

    A `git fetch` or `git push` outlives the worker that started it and holds locks of its own: it gets a second.
    """

    def seen() -> set[tuple[Path, int]]:
        found = set()
        for path in (*git_dir.rglob("refs/**/*.lock"), *(git_dir / "gitledger").glob("*.[0-9]*")):
            with contextlib.suppress(FileNotFoundError):
                found.add((path, path.stat().st_ino))
        noted = {inode for path, inode in found if path.suffix != ".lock"}
        return {(path, inode) for path, inode in found if path.suffix == ".lock" and inode not in noted}

    first = seen()
    if first:
        time.sleep(1)
        first &= seen()
    return [path for path, _ in first]


def test_law_6_killed_at_any_moment_of_record_merge_revoke_and_sync(project):
    """Each run goes on from what the last kill left, with nothing tidied up in between.

    But for a lock file that its writer had no time to note, some microseconds: as with git's own, the next command
    names it, and a person removes it. Here that is done at once, and may hardly happen.
    """
    removed = 0
    chance = random.Random(int(os.environ.get("GITLEDGER_SEED", "6")))
    said: set[str] = set()
    words: Counter[str] = Counter()
    pace_s = float(ask(project, ROUND)) / len(STEPS)
    parent = python(project, WORK, stdin=subprocess.PIPE)
    for number in range(KILLS):
        done = killed(parent, chance, pace_s)
        for lock in unnoted_locks(project.path / ".git"):
            lock.unlink()
            removed += 1
        words.update(word for word, _ in done)
        said |= {made for word, made in done if word != "sync"}
        if number % 10 == 9 or number == KILLS - 1:
            problems, records = check(project)
            assert [problem for problem in problems if problem["damage"]] == []
            assert said <= records
    parent.communicate(timeout=60)
    ask(project, PRELUDE + "one(); sync_with(enter(), 'origin')")
    problems, records = check(project)
    assert {problem["kind"] for problem in problems} <= {"body-orphaned", "unfinished"}
    assert said <= records
    assert len(said) >= KILLS / 5
    assert removed <= max(2, KILLS / 50)
    print(f"{KILLS} kills, done before them: {dict(words)}; in the ledger {len(records)} records")
    assert set(words) == STEPS
    git_dir = project.path / ".git"
    assert not list(git_dir.rglob("refs/**/*.lock"))
    left = {path.name.split("-")[0] for path in (git_dir / "gitledger").iterdir()}
    assert left <= {"looked", "seen"}, "what the next look, or the next sync, need not ask again"
    project.repo.git("fsck", "--strict", "--no-dangling")
    shown = project.repo.git("ls-remote", "origin", "refs/notes/gitledger/records").split()[0]
    assert shown == project.repo.git("rev-parse", RECORDS_REF)


# --- disks -----------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A file system of four megabytes of its own."""
    if os.geteuid() != 0:
        pytest.skip("LOUDLY: only root can mount a small disk; full and read-only disks were not tried")
    where = tmp_path / "disk"
    where.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(where)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"LOUDLY: mount is not allowed here: {mounted.stderr.decode()}")
    yield where
    subprocess.run(["umount", "-l", str(where)], check=True)


@pytest.fixture
def on_disk(small_disk, project):
    """The project, moved to the small disk."""
    shutil.move(project.path, small_disk / "repo")
    return type(project)(type(project.repo)(small_disk / "repo", project.repo.env), project.keys)


def test_law_6_a_full_disk_leaves_the_ledger_as_it_was(on_disk, small_disk):
    before = json.loads(on_disk.ledger("record", "--shard", "lint", "--json").out)["record"]
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    tips = on_disk.repo.git("for-each-ref")
    for left in (0, 4096, 8192, 16384, 24576, 32768):
        os.truncate(filler, filler.stat().st_size - left)
        done = on_disk.ledger("record", "--shard", "lint", "--json", expect=None)
        stored = json.loads(done.out).get("stored", False)
        assert done.status == (0 if stored else 3), done
        if not stored:
            assert "store-unwritable" in done.err + done.out
            is_as_it_was = on_disk.repo.git("for-each-ref", RECORDS_REF) in tips
            assert is_as_it_was or "recorded what lint had come to, which was not stored then" in done.err
        tips = on_disk.repo.git("for-each-ref")
    filler.unlink()
    on_disk.record("lint")
    problems, records = check(on_disk)
    assert {problem["kind"] for problem in problems} <= {"body-orphaned", "unpublished"}
    assert before in records
    assert list((on_disk.path / ".git/gitledger/flight").iterdir()) == [], "what could not be stored then is now"


def test_law_6_a_read_only_disk_is_one_clear_error_and_reading_goes_on(on_disk, small_disk):
    on_disk.record("lint")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = on_disk.ledger("record", "--shard", "lint", expect=3)
    assert "store-unwritable" in done.err
    on_disk.ledger("sync", "origin")  # publishing needs nothing to be written here
    assert len(on_disk.ledger("log", "--json").document[0]["records"]) == 1
    assert on_disk.ledger("fsck")
    assert on_disk.verify() == ("passed", set())


# --- locks and leftovers ---------------------------------------------------------------------------------------

DIE = """
import os, sys, signal
from pathlib import Path
from gitledger.records.ids import CommitId
from gitledger.store import libgit
from gitledger.store.ledger import Ledger
from gitledger.store.objects import Identity
class Dying(libgit.LibgitObjects):
    def _compare(self, update):
        if update.name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGKILL)
        super()._compare(update)
Ledger(Dying(Path(".git"))).append({CommitId("a" * 40): [b"x"]}, [b"y"], identity=Identity("A", "a@x"), message="m")
"""


@pytest.mark.parametrize("ref", [RECORDS_REF, BODIES_REF])
def test_a_lock_whose_holder_was_killed_stops_nobody(project, ref):
    project.record("lint")
    died = subprocess.run([sys.executable, "-c", DIE, ref], cwd=project.path, env=project.repo.env, check=False)
    assert died.returncode == -signal.SIGKILL
    assert (project.path / ".git" / f"{ref}.lock").exists()
    started = time.monotonic()
    project.record("lint")
    assert time.monotonic() - started < 5
    assert not (project.path / ".git" / f"{ref}.lock").exists()
    assert not [path for path in (project.path / ".git/gitledger").rglob("*") if path.is_file()]


def test_a_lock_that_is_really_held_is_not_swept_with_a_dead_ones(project):
    """Somebody tidied up by hand, and another git has taken the lock since."""
    died = subprocess.run(
        [sys.executable, "-c", DIE, RECORDS_REF], cwd=project.path, env=project.repo.env, check=False
    )
    assert died.returncode == -signal.SIGKILL
    lock = project.path / ".git" / f"{RECORDS_REF}.lock"
    lock.unlink()
    lock.write_text("another's")
    done = project.ledger("record", "--shard", "lint")
    assert "ref-locked" in done.err
    assert f"rm {lock}" in done.err
    assert lock.read_text() == "another's"
    assert project.plan()["lint"][0] == "fresh"


def test_old_temporary_folders_are_swept_by_the_next_run_and_young_or_busy_ones_are_not(project, tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    long_ago = time.time() - 3 * 24 * 3600
    for name in ("gitledger-old", "gitledger-busy", "gitledger-young", "other-old"):
        (temporary / name).mkdir()
        file = temporary / name / "file"
        file.write_text("x")
        if name != "gitledger-young":
            for path in (file, temporary / name):
                os.utime(path, (long_ago, long_ago))
    with (temporary / "gitledger-busy" / "file").open():
        project.record("lint", env={"TMPDIR": str(temporary)})
    assert {path.name for path in temporary.iterdir()} == {"gitledger-busy", "gitledger-young", "other-old"}


def test_unfinished_objects_of_killed_writers_are_swept_by_a_sync(project):
    folder = project.path / ".git" / "objects" / "ab"
    folder.mkdir(exist_ok=True)
    long_ago = time.time() - 3 * 24 * 3600
    for name, is_old in (("tmp_object_git2_a1b2c3", True), ("tmp_object_git2_d4e5f6", False)):
        (folder / name).write_bytes(b"half")
        if is_old:
            os.utime(folder / name, (long_ago, long_ago))
    project.ledger("sync", "origin")
    assert [path.name for path in folder.glob("tmp_*")] == ["tmp_object_git2_d4e5f6"]


# --- clocks ----------------------------------------------------------------------------------------------------


def test_a_clock_that_jumps_back_and_forth_loses_nothing(project):
    code = (
        PRELUDE
        + """
from gitledger.store.ledger import Ledger
from gitledger.store.libgit import LibgitObjects
for days in (0, 400, -400, 4000, -20000, 0):
    jumped = enter(now=lambda: datetime.now(UTC) + timedelta(days=days))
    objects = LibgitObjects(jumped.repo.git_dir, clock=lambda: 1e9 + days * 86400)
    print(one(replace(jumped, ledger=Ledger(objects))), flush=True)
sync_with(enter(), "origin")
"""
    )
    said = set(ask(project, code).split())
    problems, records = check(project)
    assert problems == []
    assert said == records
    assert len(said) == 6


def test_the_journal_of_a_read_only_home_is_no_matter(project, tmp_path):
    """Nothing is written outside the repository and the folder for temporary files."""
    home = Path(project.repo.env["HOME"])
    before = sorted(path.name for path in home.iterdir())
    project.record("lint")
    assert sorted(path.name for path in home.iterdir()) == before
