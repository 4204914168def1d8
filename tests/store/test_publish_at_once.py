"""Many clones of one remote, each publishing one record at the same moment.

`GITLEDGER_CLONES` says how many: 64 is the goal, by hand, and takes some minutes over all transports; unless it is
given, the suite has a dozen by path and fewer elsewhere, where the same code runs and only starting costs. Plain git
with a fetch-merge-push loop needs many times as long as one after another, and more pushes with every clone; here a
lost race goes beside the notes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gitledger.records.ids import CommitId
from gitledger.store.ledger import Ledger
from gitledger.store.objects import Identity
from gitledger.store.refs import INBOX_PREFIX
from gitledger.store.repository import open_repository
from gitledger.store.sync import Sync, fetch, publish

CLONES = int(os.environ.get("GITLEDGER_CLONES", "12"))
IS_FULL = CLONES >= 64
FEWER = CLONES if IS_FULL else CLONES // 2
HOOK_S = 2 if IS_FULL else 1
MAX_PUSHES = 3
PATIENCE_S = 240
"""After this a test gives up, whatever hangs."""
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
    return Sync(repository=repository, ledger=Ledger(repository.objects), remote="origin", by=lambda: (alice, "ledger: sync"))
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


@contextlib.contextmanager
def bounded(children: list[subprocess.Popen[str]]) -> Iterator[None]:
    """End the children when all is over, and after `PATIENCE_S` in any case."""

    def end() -> None:
        for child in children:
            child.kill()

    watch = threading.Timer(PATIENCE_S, end)
    watch.start()
    try:
        yield
    finally:
        watch.cancel()
        end()


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
        """Return the folders of clones: one that git made, and copies of it."""
        first = self.make_repo(f"{prefix}0", "--template=")
        first.git("remote", "add", "origin", self.url)
        first.git("fetch", "-q", "origin", "main")
        first.git("reset", "-q", "--hard", "FETCH_HEAD")
        folders = [first.path.with_name(f"{prefix}{number}") for number in range(count)]
        for folder in folders[1:]:
            shutil.copytree(first.path, folder)
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
        with bounded(children):
            for child in children:
                assert child.stdout.readline() == "ready\n", child.communicate()[1]
            started = time.monotonic()
            for child in children:
                child.stdin.write("go\n")
                child.stdin.flush()
            pushes = []
            for child in children:
                out, err = child.communicate()
                assert child.returncode == 0, err
                pushes += [int(line.split()[1]) for line in out.splitlines()]
            return time.monotonic() - started, pushes

    def last(self) -> tuple[tuple[bytes, ...], int]:
        """Return the lines and the number of bodies that a fresh clone reads, and fold everything in."""
        [folder] = self.clones(f"fresh{time.monotonic_ns()}-", 1)
        repository = open_repository(folder, env=self.env)
        ledger = Ledger(repository.objects)
        sync = Sync(repository=repository, ledger=ledger, remote="origin", by=lambda: (ALICE, "ledger: sync"))
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
    assert not IS_FULL or at_once_s <= serial_s * 1.2  # a measurement, by hand: no test of the suite is timed


def test_s09_all_clones_publish_at_the_same_moment_by_path(make_repo, hermetic_env):
    race(Setting(make_repo, hermetic_env), "by path")


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_s09_all_clones_publish_at_the_same_moment_over_git_daemon(make_repo, hermetic_env, port):
    setting = Setting(make_repo, hermetic_env, f"git://127.0.0.1:{port}/remote.git")
    words = ["--reuseaddr", "--export-all", "--enable=receive-pack", "--max-connections=0", f"--port={port}"]
    daemon = subprocess.Popen(
        ["git", "daemon", *words, "--listen=127.0.0.1", f"--base-path={setting.bare.path.parent}"],
        env=hermetic_env, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10):
                break
            time.sleep(0.1)
        race(setting, "over git daemon", FEWER)
    finally:
        os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait(timeout=60)


class HttpBackend(BaseHTTPRequestHandler):
    """`git http-backend` behind a web server, as a forge has it; `server.root` holds the repositories."""

    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        content = self.body()
        env = self.server.env | {
            "REQUEST_METHOD": self.command, "PATH_INFO": path, "QUERY_STRING": query, "REMOTE_USER": "alice",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(content)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "GIT_PROJECT_ROOT": str(self.server.root), "GIT_HTTP_EXPORT_ALL": "1",
        }  # fmt: skip
        done = subprocess.run(
            ["git", "http-backend"], env=env, input=content, capture_output=True, timeout=PATIENCE_S, check=True
        )
        head, _, page = done.stdout.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = next((value for name, value in fields if name == "Status"), "200")
        self.send_response(int(status.split()[0]))
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def do_POST(self) -> None:
        self.do_GET()

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        content = b""
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def log_message(self, *args: object) -> None:
        pass


class BusyServer(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


def test_s09_all_clones_publish_at_the_same_moment_over_http(make_repo, hermetic_env, tmp_path):
    with BusyServer(("127.0.0.1", 0), HttpBackend) as server:
        setting = Setting(make_repo, hermetic_env, f"http://127.0.0.1:{server.server_port}/remote.git")
        server.env, server.root = setting.env, tmp_path
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            race(setting, "over git http-backend", FEWER)
        finally:
            server.shutdown()


def test_s09_a_remote_whose_hook_takes_its_time(make_repo, hermetic_env):
    """Whoever pushes meanwhile loses, and is beside the notes with the next push: two waits, and not a queue."""
    setting = Setting(make_repo, hermetic_env)
    setting.bare.write("hooks/pre-receive", f"#!/bin/sh\nsleep {HOOK_S}\n", mode=0o755)
    count = 20 if IS_FULL else 6
    at_once_s, pushes = setting.publish(setting.clones("racing", count), at_once=True)
    report(f"with a hook of {HOOK_S} s", count, HOOK_S * count, at_once_s, pushes)
    lines, bodies = setting.last()
    assert len(lines) == bodies == count
    assert max(pushes) <= MAX_PUSHES
    assert at_once_s < HOOK_S * count


def test_the_pushes_of_each_are_really_counted(make_repo, hermetic_env):
    """A clone alone pushes once; the figure is not made up of a constant."""
    setting = Setting(make_repo, hermetic_env)
    _, pushes = setting.publish(setting.clones("alone", 1), at_once=True)
    assert pushes == [1]
