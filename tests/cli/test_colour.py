"""Colour is for terminals, and for whoever asks; documents have none, and nothing is told by colour alone."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from gitledger.cli.output import wants_color

CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: "true", results: exit-status}
  other: {paths: [src], command: "true", results: exit-status}
"""
ESCAPE = "\x1b["


@pytest.mark.parametrize(
    ("environ", "on_terminal", "elsewhere"),
    [
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({}, False, False),  # as git takes a terminal that nobody named
        ({"TERM": "xterm", "NO_COLOR": "1"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, False),  # no-color.org: present *and not empty*
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
        ({"TERM": "xterm", "FORCE_COLOR": "0"}, True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ({"TERM": "xterm", "GIT_PAGER_IN_USE": "true"}, True, True),  # git -p: its pager shows colours
    ],
)
def test_who_gets_colour(environ, on_terminal, elsewhere):
    mine, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal, Path(os.devnull).open("w") as other:
        assert wants_color(terminal, environ, no_color=False) is on_terminal
        assert wants_color(other, environ, no_color=False) is elsewhere
        assert wants_color(terminal, environ, no_color=True) is False
    os.close(mine)


@pytest.fixture
def half(make_project):
    """One shard is recorded, the other is stale."""
    project = make_project(CONFIG, {"src/a": "1"})
    project.record("lint")
    return project


def test_every_report_has_colour_where_it_is_asked_for_and_the_same_words_where_not(half):
    for args, status in ((("plan",), 0), (("verify",), 1), (("status",), 0), (("show",), 0), (("log",), 0)):
        plain = half.ledger(*args, expect=status).out
        coloured = half.ledger(*args, expect=status, env={"FORCE_COLOR": "1"}).out
        assert ESCAPE not in plain
        assert ESCAPE in coloured, args
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain, args
        assert half.ledger("--no-color", *args, expect=status, env={"FORCE_COLOR": "1"}).out == plain
        assert half.ledger(*args, "--no-color", expect=status, env={"FORCE_COLOR": "1"}).out == plain


def test_documents_and_errors_have_none(half):
    for args, status in ((("plan", "--json"), 0), (("verify", "--json"), 1), (("run", "nonsuch"), 2)):
        done = half.ledger(*args, expect=status, env={"FORCE_COLOR": "1"})
        assert ESCAPE not in done.out + done.err, args


def test_a_run_shows_no_progress_line_on_a_dumb_terminal(half):
    mine, theirs = pty.openpty()
    child = subprocess.Popen(
        ["git-ledger", "run"], cwd=half.path, env={**half.repo.env, "TERM": "dumb"}, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = b""
    try:
        while block := os.read(mine, 65536):
            said += block
    except OSError:
        pass  # the other end is closed: the run is over
    os.close(mine)
    assert child.wait(60) == 0
    assert b"merge: passed" in said
    assert b"\x1b" not in said
    assert b"\r\n" in said
    assert b"\r" not in said.replace(b"\r\n", b"")
