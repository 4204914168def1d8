"""What a run shows: one rewritten line on a terminal, lines and a heartbeat elsewhere, and shards' output whole."""

from __future__ import annotations

import io
import os
import pty
import subprocess
from pathlib import Path

import pytest

from gitledger.cli.output import Output
from gitledger.cli.run_screen import HEARTBEAT_S, Screen
from gitledger.machine.admission import Grant, Need
from gitledger.records.ids import ShardKey
from gitledger.workflows.drive import Attempt, Job

CONFIG = """\
version: 1
repository: demo
shards:
  a: {paths: [src], command: [sh, -c, "echo one; sleep 1.2; printf two"], results: exit-status}
  b: {paths: [src], command: [sh, -c, "echo other"], results: exit-status}
"""


def test_a_terminal_gets_one_line_that_is_rewritten_and_whole_lines_of_the_shards(make_project):
    project = make_project(CONFIG, {"src/a": "1"})
    mine, theirs = pty.openpty()
    child = subprocess.Popen(
        ["git-ledger", "run", "--jobs", "2", "--tail"],
        cwd=project.path,
        env={**project.repo.env, "TERM": "xterm", "COLUMNS": "80"},
        stdout=theirs,
        stderr=theirs,
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
    text = said.decode()
    assert "\r\x1b[K" in text
    assert "0 of 2 done; running" in text or "1 of 2 done; running" in text
    shown = [line.rpartition("\x1b[K")[2] for line in text.replace("\r\n", "\n").split("\n")]
    assert {"a | one", "a | two", "b | other"} <= set(shown)
    assert any(line.startswith("merge: passed") or "merge: passed" in line for line in shown)


class Buffered(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.buffer = io.BytesIO()


@pytest.fixture
def screen(tmp_path: Path) -> Screen:
    output = Output(directory=tmp_path, environ={}, quiet=False, verbose=False, color=False)
    return Screen(output=output, slots=1, logs=tmp_path, tail=Buffered(), is_live=False)


def attempt(name: str, *, began_s: float = 0.0) -> Attempt:
    job = Job(key=ShardKey(name), need=Need(), estimate_s=600.0)
    return Attempt(job=job, number=1, grant=Grant(), began_s=began_s, alone=False)


def test_elsewhere_a_line_a_minute_says_that_it_lives(screen, capsys):
    screen.tick([attempt("a")], [])
    assert capsys.readouterr().err == "", "the first minute is not over"

    screen._said_s -= HEARTBEAT_S
    screen.tick([attempt("a")], [Job(key=ShardKey("b"), need=Need(), estimate_s=60.0)])

    err = capsys.readouterr().err
    assert err.startswith("git ledger: 0 of 2 done; running a (")
    assert "left" in err
    screen.tick([attempt("a")], [])
    assert capsys.readouterr().err == ""


def test_lines_of_shards_are_never_mixed_whatever_pieces_they_come_in(screen):
    a, b = ShardKey("a"), ShardKey("b")
    for key, data in ((a, b"fir"), (b, b"other\nlin"), (a, b"st\nsec"), (b, b"e\n"), (a, b"ond")):
        screen.echo(key, data)
    screen._flush(a)
    assert screen.tail.buffer.getvalue() == b"b | other\na | first\nb | line\na | second\n"


def test_a_line_without_end_is_shown_in_pieces_and_not_kept_for_ever(screen):
    for _ in range(100):
        screen.echo(ShardKey("a"), b"x" * 1000)
    assert len(screen.tail.buffer.getvalue()) > 60_000
