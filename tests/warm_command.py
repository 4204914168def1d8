"""A `git-ledger` that has already started: forks a process of its own for each command that a test runs.

Thousands of commands run in these tests, and half of what each costs is the interpreter and its imports. This
server imports the commands once and forks for each request: the code, the process, its environment, folder, streams
and exit status are those of the installed command; only its start is saved. What a start itself does is tested by
what runs the installed script: the documents (tests/architecture) and the command line (tests/cli).

    warm_command.py SOCKET          listen there until standard input ends

A request is one JSON object {argv, cwd, env, umask} with the three standard streams as passed file descriptors; the
answer is the exit status, spelled as git spells it for a command of its own: 128 and the signal.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import threading
import time

PARENTS = ("gitledger.cli", "gitledger.workflows", "gitledger.report", "gitledger.store")
"""Rooms whose modules are imported at once; they import the others as far as commands use them."""


def load() -> None:
    """Import what commands import."""
    for name in PARENTS:
        room = importlib.import_module(name)
        for module in pkgutil.iter_modules(room.__path__, f"{name}."):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def receive(connection: socket.socket) -> tuple[dict, list[int]]:
    """Return a request and its three streams."""
    size = array.array("i").itemsize * 3
    data, found, _, _ = connection.recvmsg(1 << 16, socket.CMSG_SPACE(size))
    streams = array.array("i")
    for _, _, raw in found:
        streams.frombytes(raw[:size])
    while not data.endswith(b"\n"):
        data += connection.recv(1 << 16)
    return json.loads(data), list(streams)


def become(request: dict, streams: list[int]) -> None:
    """Make this process what the command's would be: streams, folder, environment, and no open file besides."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 1024)
    os.umask(request["umask"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    if "pygit2" in sys.modules:  # libgit2 looked for the user's files when it was loaded
        import pygit2
        from pygit2.enums import ConfigLevel

        home = os.environ.get("HOME", "")
        pygit2.settings.search_path[ConfigLevel.GLOBAL] = home
        pygit2.settings.search_path[ConfigLevel.XDG] = (
            f"{os.environ.get('XDG_CONFIG_HOME') or home + '/.config'}/git"
        )
    sys.argv = request["argv"]


def command(request: dict, streams: list[int]) -> int:
    """Run the command in this process and return its exit status."""
    status: object = 1
    try:
        become(request, streams)
        from gitledger.cli.app import main

        main()
    except SystemExit as stop:
        status = stop.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    return status if isinstance(status, int) else int(status is not None)


def serve(connection: socket.socket) -> None:
    """Run one request in a process below this one, and answer with how it ended."""
    request, streams = receive(connection)
    child = os.fork()
    if child == 0:
        status = command(request, streams)
        with contextlib.suppress(BaseException):
            threading._shutdown()
            atexit._run_exitfuncs()
        os._exit(status & 0xFF)
    for stream in streams:
        os.close(stream)
    _, ended = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(ended)
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(b"%d\n" % (code if code >= 0 else 128 - code))


def main() -> None:
    """Listen until the tests are over: then standard input ends."""
    load()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen(64)
    assert threading.active_count() == 1, "a fork beside a thread"
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if sys.stdin in ready:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            serve(connection)
            os._exit(0)
        connection.close()


if __name__ == "__main__":
    main()
