"""Where the encoding has no sign for it: the words stand, our own signs are spelt in ASCII, and nothing is broken."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gitledger.cli.streams import PLAIN

ROOT = Path(__file__).parents[2]
COMMAND = str(Path(sys.executable).parent / "git-ledger")
ASCII = {"PYTHONIOENCODING": "ascii"}
COMMANDS = (
    "init",
    "plan",
    "status",
    "verify",
    "merge",
    "log",
    "log --oneline",
    "show --tests",
    "gate --policy-from HEAD",
    "fsck",
    "lanes",
    "explain dirty",
    "help",
    "help tutorial",
    "run --help",
)


def read_terminal(args: list[str], cwd: Path, env: dict[str, str]) -> bytes:
    """Return what a command writes to a terminal, as the terminal gets it."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [COMMAND, *args], cwd=cwd, env=env, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL
    )
    os.close(theirs)
    found = b""
    try:
        while chunk := os.read(ours, 1 << 16):
            found += chunk
    except OSError:  # the terminal is closed: how Linux says that nobody writes any more
        pass
    os.close(ours)
    assert child.wait(60) == 0
    return found


def test_every_command_speaks_ascii_without_escapes_or_question_marks(project):
    """`\\u25cf tests  fresh` was what a plan looked like."""
    project.record("alpha")
    project.repo.commit({"src/beta.py": "def beta():\n    return 2  # mended\n"})
    for words in COMMANDS:
        done = project.ledger(*words.split(), env=ASCII, expect=None)
        for text in (done.out, done.err):
            assert text.isascii(), words
            assert not re.search(r"\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|Traceback", text), (words, text)
    plan = project.ledger("plan", env=ASCII).out
    assert "  o alpha  carryable  unchanged" in plan
    assert "  x beta   stale" in plan


def test_what_others_wrote_is_escaped_and_our_signs_keep_their_columns(project):
    project.repo.commit({"src/ä.py": "x = 1\n"}, message="größer → besser")
    project.record("alpha")
    out = project.ledger("log", env=ASCII).out
    assert r"gr\xf6\xdfer -> besser" in out
    assert r"gr\xf6\xdfer \x" not in out


def test_a_terminal_of_the_c_locale_gets_ascii_and_a_pipe_what_it_always_got(project):
    """Python writes UTF-8 under LC_ALL=C, which is right for a log file, and not where somebody looks."""
    env = {**project.repo.env, "TERM": "xterm"}
    plain = read_terminal(["plan"], project.path, {**env, "LC_ALL": "C"})
    assert b"x alpha" in plain
    assert plain.isascii()
    assert "✗ alpha".encode() in read_terminal(["plan"], project.path, {**env, "LC_ALL": "C.UTF-8"})
    assert "✗ alpha" in project.ledger("plan", env={"LC_ALL": "C"}).out


def test_every_sign_that_we_write_has_something_to_stand_for_it():
    """A sign that is added to a message must not come out as an escape."""
    used: dict[str, str] = {}
    for path in [
        *(ROOT / "gitledger").rglob("*.py"),
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "gitledger/report/codes.md",
    ]:
        for char in path.read_text("utf-8"):
            if not char.isascii():
                used.setdefault(char, path.name)
    assert len(used) > 5
    assert {char: where for char, where in used.items() if char not in {*PLAIN, "é"}} == {}
    assert all(text.isascii() for text in PLAIN.values())


@pytest.mark.parametrize("columns", [60, 100])
def test_rows_of_shards_fit_the_terminal_that_they_are_shown_in(project, columns):
    """A row that the terminal breaks is two rows to the eye."""
    names = {f"tests/alpha/test_with_a_long_name_{number}.py": "x = 1\n" for number in range(5)}
    project.record("alpha")
    project.repo.commit(names)
    env = {**project.repo.env, "TERM": "xterm", "COLUMNS": str(columns), "NO_COLOR": "1"}
    for command in ("plan", "status"):
        lines = read_terminal([command], project.path, env).decode().splitlines()
        (row,) = (line for line in lines if "inputs-changed" in line)
        assert len(row) <= columns
        assert ("; …" in row) == (columns == 100), "where it was right is said where there is room for it"
        assert re.search(r"_\d\.py and [34] more$", row)
    assert "_0.py, tests/alpha/test_with_a_long_name_1.py and 3 more" in project.ledger("plan").out, (
        "a pipe has room"
    )
