"""Nobody waits for git's look at the work tree who has been told already that nothing comes of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).parent / "git-ledger")
LOOKS_S = 30
"""How long git looks here: on a network, or at a million files."""
AT_ONCE_S = 15
BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
CONFIG = """\
version: 1
repository: demo
shards: {lint: {command: "true", results: exit-status}}
policy: {signer_mode: open}
"""


@pytest.fixture(params=["small", "large"])
def slow(request, git_repo, tmp_path) -> Iterator[tuple[dict[str, str], Path, Path]]:
    """The environment of a repository whose git takes long to look, its folder, and a file that comes when it does.

    Of a large index the look is begun before anything else is.
    """
    git_repo.commit({".gitledger/config.yaml": CONFIG})
    if request.param == "large":
        git_repo.git("hash-object", "-w", "--stdin", input=b"")
        lines = "".join(f"100644 {BLOB} 0\tlib/file-{number:06}.txt\n" for number in range(6_000))
        git_repo.git("update-index", "--add", "--index-info", input=lines.encode())
    looks, folder = tmp_path / "looks", tmp_path / "bin"
    folder.mkdir()
    git = folder / "git"
    git.write_text(
        f'#!/bin/sh\ncase "$*" in *" status "*) echo $$ >> {looks}; sleep {LOOKS_S};; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    git.chmod(0o755)
    yield {**git_repo.env, "PATH": f"{folder}{os.pathsep}{git_repo.env['PATH']}"}, git_repo.path, looks
    for pid in looks.read_text().split() if looks.exists() else ():
        try:
            os.killpg(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            continue


@pytest.mark.parametrize("words", [["record", "--shard", "nix"], ["record", "--nix"]])
def test_an_error_is_said_and_the_command_ends_at_once(slow, words):
    env, folder, _ = slow
    began_s = time.monotonic()
    done = subprocess.run(
        [COMMAND, *words], cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert time.monotonic() - began_s < AT_ONCE_S
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr


@pytest.mark.parametrize("words", [["record", "--shard", "lint", "--unsigned"], ["plan"]])
def test_ctrl_c_ends_it_at_once(slow, words):
    env, folder, looks = slow
    child = subprocess.Popen([COMMAND, *words], cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
    until_s = time.monotonic() + 30
    while not looks.exists() and time.monotonic() < until_s:
        time.sleep(0.02)
    time.sleep(0.7)  # the rest is loaded, and waits for git
    began_s = time.monotonic()
    child.send_signal(signal.SIGINT)
    said = child.communicate(timeout=60)[1]
    assert time.monotonic() - began_s < AT_ONCE_S
    assert (child.returncode, "Traceback" in said) == (130, False), said
