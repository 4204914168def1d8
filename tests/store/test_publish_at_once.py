"""Many clones of one remote, each publishing one record at the same moment.

`GITLEDGER_CLONES` says how many (16 unless given; 64 takes a minute). Plain git with a fetch-merge-push loop needs
many times as long as one after another, and more pushes with every clone; here a lost race goes beside the notes.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from gitledger.records.ids import CommitId
from gitledger.store.ledger import Ledger
from gitledger.store.objects import Identity
from gitledger.store.refs import INBOX_PREFIX
from gitledger.store.repository import open_repository
from gitledger.store.sync import Sync, fetch, publish

CLONES = int(os.environ.get("GITLEDGER_CLONES", "16"))
MAX_PUSHES = 3
ALICE = Identity("Alice", "alice@example.org")
PUBLISHER = """
import os, sys, time
from pathlib import Path
from gitledger.store.ledger import Ledger
from gitledger.store.objects import Identity
from gitledger.store.repository import open_repository
from gitledger.store.sync import Sync, publish
alice = Identity("Alice", "alice@example.org")
def sync(folder):
    repository = open_repository(Path(folder), env=os.environ)
    return Sync(repository=repository, ledger=Ledger(repository.objects), remote="origin", identity=alice)
syncs = [sync(folder) for folder in sys.argv[1:]]
for one in syncs:
    name = one.repository.worktree.name.encode()
    one.ledger.append({one.repository.head(): [name]}, [b"body of " + name], identity=alice, message="m")
print("ready", flush=True)
sys.stdin.readline()
for one in syncs:
    done = publish(one)
    print(done.via, done.attempts, flush=True)
"""


class Setting:
    """A bare remote, its clones, and what a set of them came to."""

    def __init__(self, make_repo, env, url=None) -> None:
        self.make_repo, self.env = make_repo, dict(env) | {"GIT_TEST_FSYNC": "0"}
        seed = make_repo("seed")
        self.head = CommitId(seed.commit({"a": "1"}))
        self.bare = make_repo("remote.git", "--bare")
        seed.git("push", "-q", str(self.bare.path), "main")
        self.url = url or f"file://{self.bare.path}"

    def clones(self, prefix: str, count: int) -> list[Path]:
        folders = []
        for number in range(count):
            repo = self.make_repo(f"{prefix}{number}")
            repo.git("remote", "add", "origin", self.url)
            repo.git("fetch", "-q", "origin", "main")
            repo.git("reset", "-q", "--hard", "FETCH_HEAD")
            folders.append(repo.path)
        return folders

    def publish(self, folders: list[Path], *, at_once: bool) -> tuple[float, list[int]]:
        """Return the seconds that it took and the pushes of each clone; all is ready before the clock runs."""
        groups = [[folder] for folder in folders] if at_once else [folders]
        children = [
            subprocess.Popen(
                [sys.executable, "-c", PUBLISHER, *map(str, group)],
                env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for group in groups
        ]  # fmt: skip
        for child in children:
            assert child.stdout.readline() == "ready\n", child.communicate()[1]
        started = time.monotonic()
        for child in children:
            child.stdin.write("go\n")
            child.stdin.flush()
        pushes = []
        for child in children:
            out, err = child.communicate(timeout=600)
            assert child.returncode == 0, err
            pushes += [int(line.split()[1]) for line in out.splitlines()]
        return time.monotonic() - started, pushes

    def last(self) -> tuple[tuple[bytes, ...], int]:
        """Return the lines and the number of bodies that a fresh clone reads, and fold everything in."""
        [folder] = self.clones(f"fresh{time.monotonic_ns()}-", 1)
        repository = open_repository(folder, env=self.env)
        ledger = Ledger(repository.objects)
        sync = Sync(repository=repository, ledger=ledger, remote="origin", identity=ALICE)
        fetch(sync)
        before = ledger.lines(self.head), len(ledger.view().bodies())
        publish(sync)
        assert self.bare.git("for-each-ref", INBOX_PREFIX) == ""
        noted = self.bare.git("notes", "--ref=gitledger/records", "show", self.head).split()
        assert [line.encode() for line in noted] == list(before[0])
        return before


def report(what: str, count: int, serial_s: float, at_once_s: float, pushes: list[int]) -> None:
    print(
        f"{what}: {count} clones, one after another {serial_s:.2f} s, at once {at_once_s:.2f} s, "
        f"{sum(pushes)} pushes, at most {max(pushes)} by one"
    )


def race(setting: Setting, what: str, count: int = CLONES) -> None:
    serial_s, _ = setting.publish(setting.clones("serial", count), at_once=False)
    at_once_s, pushes = setting.publish(setting.clones("racing", count), at_once=True)
    report(what, count, serial_s, at_once_s, pushes)
    lines, bodies = setting.last()
    names = [f"{prefix}{number}".encode() for prefix in ("serial", "racing") for number in range(count)]
    assert lines == tuple(sorted(names))
    assert bodies == 2 * count
    assert max(pushes) <= MAX_PUSHES
    assert at_once_s <= serial_s * 1.2


def test_s09_all_clones_publish_at_the_same_moment_by_path(make_repo, hermetic_env):
    race(Setting(make_repo, hermetic_env), "by path")


def test_s09_all_clones_publish_at_the_same_moment_over_git_daemon(make_repo, hermetic_env, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    setting = Setting(make_repo, hermetic_env, f"git://127.0.0.1:{port}/remote.git")
    words = ["--reuseaddr", "--export-all", "--enable=receive-pack", "--max-connections=0", f"--port={port}"]
    daemon = subprocess.Popen(
        ["git", "daemon", *words, "--listen=127.0.0.1", f"--base-path={setting.bare.path.parent}"],
        env=hermetic_env, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        for _ in range(100):
            if (
                subprocess.run(
                    ["git", "ls-remote", "-q", setting.url], env=hermetic_env, capture_output=True
                ).returncode
                == 0
            ):
                break
            time.sleep(0.1)
        race(setting, "over git daemon")
    finally:
        os.killpg(daemon.pid, 15)
        daemon.wait()


def test_s09_a_remote_whose_hook_takes_two_seconds(make_repo, hermetic_env):
    """Whoever pushes meanwhile loses, and is beside the notes with the next push: two waits, and not a queue."""
    setting = Setting(make_repo, hermetic_env)
    setting.bare.write("hooks/pre-receive", "#!/bin/sh\nsleep 2\n", mode=0o755)
    count = 20 if CLONES > 16 else 6
    at_once_s, pushes = setting.publish(setting.clones("racing", count), at_once=True)
    report("with a hook of 2 s", count, 2.0 * count, at_once_s, pushes)
    lines, bodies = setting.last()
    assert len(lines) == bodies == count
    assert max(pushes) <= MAX_PUSHES
    assert at_once_s < 2.0 * count


def test_the_pushes_of_each_are_really_counted(make_repo, hermetic_env):
    """A clone alone pushes once; the figure is not made up of a constant."""
    setting = Setting(make_repo, hermetic_env)
    _, pushes = setting.publish(setting.clones("alone", 1), at_once=True)
    assert pushes == [1]
