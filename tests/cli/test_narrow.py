"""Help in windows of any width: nothing is cut off, and an example that is broken is still a command."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from gitledger.cli.app import COMMANDS, app
from gitledger.cli.narrow import Formatter


def help_of(name: str, monkeypatch: pytest.MonkeyPatch, columns: int) -> str:
    """Return a command's help as a window of that many columns gets it."""
    monkeypatch.setenv("COLUMNS", str(columns))
    with app.make_context("git ledger", [], resilient_parsing=True) as root:
        command = app.get_command(root, name)
        assert command is not None
        return command.make_context(name, [], parent=root, resilient_parsing=True).get_help()


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_is_wider_than_the_window_and_no_word_is_lost(name, columns, monkeypatch):
    wide = help_of(name, monkeypatch, 200)
    text = help_of(name, monkeypatch, columns)
    assert [line for line in text.splitlines() if len(line) > columns] == []
    words = lambda found: re.sub(r"[\s\\-]", "", found)  # noqa: E731 - where lines are broken makes no difference
    assert words(text) == words(wide)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_that_is_broken_is_the_command_that_it_was(name, monkeypatch):
    """Wrapped at the window's edge, `--from` and its value were two commands."""

    def examples(text: str) -> list[list[str]]:
        joined = re.sub(r" \\\n +", " ", text)
        found = re.findall(r"^  (git .+?)(?: {2,}.*)?$", joined, re.MULTILINE)
        return [shlex.split(line, comments=True) for line in found]

    assert examples(help_of(name, monkeypatch, 40)) == examples(help_of(name, monkeypatch, 200))


def test_lines_that_fit_stay_in_their_columns():
    formatter = Formatter(width=60)
    formatter.write_text("\b\ngit ledger plan      what must run\ngit ledger run       run it")
    assert formatter.getvalue() == "git ledger plan      what must run\ngit ledger run       run it\n"


def test_a_narrow_window_gets_what_it_can_show_and_a_very_narrow_one_the_least(monkeypatch):
    for columns, width in ((40, 38), (10, 30), (300, 78)):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert Formatter().width == width
    assert isinstance(
        app.make_context("git ledger", [], resilient_parsing=True).make_formatter(), click.HelpFormatter
    )
