"""docs/reference/commands.md is what `help --all` writes, and what it says of exit codes is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gitledger import errors
from gitledger.cli.app import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs/reference/commands.md").read_text("utf-8")


@pytest.fixture(scope="module")
def said():
    """Run the installed command outside of any repository."""

    def run(*args: str) -> str:
        command = [str(Path(sys.executable).parent / "git-ledger"), *args]
        return subprocess.run(command, cwd="/", capture_output=True, text=True, check=True).stdout

    return run


def test_the_page_is_what_help_prints(said):
    assert said("help", "--all") == PAGE, "git ledger help --all > docs/reference/commands.md"


def test_every_command_and_exit_status_stands_on_the_page():
    assert re.findall(r"^## (.+)$", PAGE, re.M) == ["Exit codes", "Everywhere", *COMMANDS]
    listed = {int(number) for number in re.findall(r"^\| (\d+) \| ", PAGE, re.M)}
    assert listed == {value for name, value in vars(errors).items() if name.startswith("EXIT_")} | {130, 141}


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_examples_keep_their_lines_in_the_help(said, name):
    """A raw docstring spells click's mark as two characters; it must not be shown as they are."""
    text = said(name, "-h") if name else said("-h")
    assert "\\b" not in text
    assert "\b" not in text
    assert not [line for line in text.splitlines() if line.count("git ledger") > 2]
