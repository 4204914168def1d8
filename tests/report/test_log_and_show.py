"""`log` and `show` as people know them from git: pager, colours, a line a commit, ranges."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

PAGER = '#!/bin/sh\necho "LESS=$LESS LV=$LV" >{file}.env\ncat >{file}\n'


@pytest.fixture(scope="module")
def world(tmp_path_factory, make_world):
    """Three shards over six commits."""
    return make_world(tmp_path_factory.mktemp("log"), shards=3, commits=6, seed=4, touched=2, lanes=False)


@pytest.fixture
def asked(world, ledger_in):
    """Return a way to ask the command: what it wrote to stdout and stderr."""

    def run(*args: str, **env: str) -> SimpleNamespace:
        done = subprocess.run(
            ["git", "ledger", *args],
            cwd=world.path,
            env={**environment(world), **env},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return SimpleNamespace(out=done.stdout, err=done.stderr)

    return run


def environment(world) -> dict[str, str]:
    return {**world.env, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{world.env['PATH']}", "TERM": "xterm"}


@pytest.fixture
def on_terminal(world):
    """Return a way to run a command with a terminal for its output; what it shows there comes back."""

    def run(*command: str, **env: str) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        environ = {**environment(world), **env}
        child = subprocess.Popen(
            command,
            cwd=world.path,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        shown, deadline = b"", time.monotonic() + 30
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    chunk = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
                if not chunk:
                    break
                shown += chunk
        status = child.wait(10)
        os.close(ours)
        return status, shown.decode().replace("\r\n", "\n")

    return run


@pytest.fixture
def pager(tmp_path: Path):
    """Return a maker of pagers that keep what they were given: `pager("name")` is its command."""

    def make(name: str) -> str:
        program = tmp_path / f"{name}.sh"
        program.write_text(PAGER.format(file=tmp_path / name))
        program.chmod(0o755)
        return str(program)

    return make


def test_on_a_terminal_the_pager_that_git_would_choose_shows_it(on_terminal, pager, tmp_path):
    status, shown = on_terminal("git", "ledger", "log", PAGER=pager("third"))
    assert (status, shown) == (0, "")
    text = (tmp_path / "third").read_text()
    assert " Start\n" in text
    assert "\x1b[32m" in text, "in colour, for a pager that bears it"
    assert (tmp_path / "third.env").read_text() == "LESS=FRX LV=-c\n"
    chosen = ("git", "-c", f"core.pager={pager('second')}")
    on_terminal(*chosen, "ledger", "show", PAGER=pager("third"), LESS="S")
    assert (tmp_path / "second").read_text().startswith("\x1b[33mcommit ")
    assert (tmp_path / "second.env").read_text() == "LESS=S LV=-c\n", "a person's own setting stands"
    on_terminal(*chosen, "ledger", "log", GIT_PAGER=pager("first"), PAGER=pager("third"))
    assert " Start\n" in (tmp_path / "first").read_text()


@pytest.mark.parametrize(
    "command",
    [
        ("git", "ledger", "log", "--no-pager"),
        ("git", "--no-pager", "ledger", "log"),
        ("git", "-c", "pager.ledger=false", "ledger", "log"),
        ("git", "-c", "core.pager=", "ledger", "log"),
        ("git", "-c", "core.pager=no-such-pager-here", "ledger", "log"),
    ],
    ids=lambda command: " ".join(command[1:]),
)
def test_without_a_pager_or_where_it_cannot_be_started_the_terminal_gets_it(on_terminal, pager, tmp_path, command):
    status, shown = on_terminal(*command, PAGER=pager("unasked"))
    assert status == 0
    assert " Start\n" in shown
    assert "\x1b[3" in shown
    assert not (tmp_path / "unasked").exists()


def test_into_a_pipe_goes_neither_pager_nor_colour(asked, pager, tmp_path):
    found = asked("log", GIT_PAGER=pager("unasked"))
    assert " Start\n" in found.out
    assert "\x1b" not in found.out
    assert not (tmp_path / "unasked").exists()


def test_a_pager_that_is_left_early_is_no_failure(on_terminal):
    assert on_terminal("git", "ledger", "log", GIT_PAGER="head -c 5")[0] == 0


def test_one_line_a_commit_says_how_many_ended_how(world, asked):
    lines = asked("log", "--oneline").out.splitlines()
    logged = json.loads(asked("log", "--json").out)
    assert len(lines) == len(logged) > 3
    for line, entry in zip(lines, logged, strict=True):
        assert line.startswith(f"{entry['commit'][:12]} {entry['summary']} (")
        for outcome in ("passed", "failed", "error"):
            number = sum(
                item["kind"] == "shard" and item["outcome"] == outcome and item["signer"] is not None
                for item in entry["records"]
            )
            assert (f"{number} {outcome}" in line) == bool(number)


def test_fewer_commits_than_there_are_is_said_and_a_range_is_gits(asked):
    found = asked("log", "--oneline", "-n", "1")
    assert len(found.out.splitlines()) == 1
    assert "older commits carry evidence too" in found.err
    found = asked("log", "--oneline", "HEAD~1..HEAD")
    assert len(found.out.splitlines()) == 1
    assert found.err == ""
    assert len(asked("log", "--json", "-n", "2").out) < len(asked("log", "--json").out)


def test_what_a_key_of_nobody_signed_is_never_green(world, asked, tmp_path):
    copy = tmp_path / "copy"
    subprocess.run(
        ["git", "clone", "-q", "--mirror", str(world.path), str(copy / ".git")], check=True, env=world.env
    )
    subprocess.run(["git", "-C", str(copy), "config", "core.bare", "false"], check=True, env=world.env)
    subprocess.run(["git", "-C", str(copy), "reset", "-q", "--hard"], check=True, env=world.env)
    (copy / ".gitledger/allowed_signers").write_text("")
    subprocess.run(["git", "-C", str(copy), "commit", "-qam", "nobody signs"], check=True, env=world.env)
    found = asked("-C", str(copy), "log", FORCE_COLOR="1").out
    strange = [line for line in found.splitlines() if "(no signer)" in line]
    assert any("passed" in line for line in strange)
    assert "\x1b[32m" not in found
    assert "by no signer" in asked("-C", str(copy), "log", "--oneline").out


def test_a_single_record_is_shown_with_what_it_ran_on(asked):
    record = next(item for item in json.loads(asked("log", "--json").out)[0]["records"] if item["kind"] == "shard")
    text = asked("show", record["record"], "--tests").out
    assert text.startswith("commit ")
    assert f"    command  pytest -q tests/{record['name']}\n" in text
    assert f"    tests    {record['counts']['collected']} collected: " in text
    assert "Linux x86_64, Python 3.12.7, pytest 8.3.3" in text
    assert f"tests/{record['name']}/test_it.py::test_unit[0]" in text


def test_show_lists_what_was_measured_the_least_covered_first(asked):
    text = asked("show", "HEAD~4", "--coverage").out
    shares = [line.split() for line in text.splitlines() if line.endswith(".py")]
    assert shares
    assert all(row[0].endswith("%") and row[2].startswith("src/") for row in shares)
    records = json.loads(asked("show", "HEAD~4", "--coverage", "--json").out)["records"]
    measured = {
        file["path"]: f"{file['covered']}/{file['total']}" for item in records for file in item.get("coverage", ())
    }
    assert {row[2]: row[1] for row in shares} == measured
