"""`git ledger explain` and `git ledger help`: what a word means, and the manual, without a repository."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def outside(tmp_path: Path, hermetic_env: dict[str, str]):
    """Run the command in a folder that is no repository."""

    def run(*args: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).parent / "git-ledger"), *args]
        done = subprocess.run(command, cwd=tmp_path, env=hermetic_env, capture_output=True, text=True, check=False)
        assert done.returncode == expect, done
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def outside_terminal(tmp_path: Path, hermetic_env: dict[str, str]):
    """Run the command with a terminal for its output, in a folder that is no repository; return what it shows."""

    def run(*args: str, **env: str) -> str:
        ours, theirs = pty.openpty()
        command = [str(Path(sys.executable).parent / "git-ledger"), *args]
        child = subprocess.Popen(
            command,
            cwd=tmp_path,
            env={**hermetic_env, "TERM": "xterm", **env},
            stdout=theirs,
            stdin=subprocess.DEVNULL,
        )
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 1 << 16):
                shown += chunk
        except OSError:  # how Linux says that nobody has the terminal open any more
            pass
        os.close(ours)
        assert child.wait(60) == 0
        return shown.decode().replace("\r\n", "\n")

    return run


def test_a_code_is_explained_with_kind_section_and_next_step(outside):
    said = outside("explain", "no-config").stdout
    assert said.startswith("no-config  (error, exit 2)\nConfiguration\n")
    assert "What to do: `git ledger init`" in said


def test_a_code_may_be_pasted_with_its_brackets(outside):
    assert outside("explain", "[not-green]").stdout == outside("explain", "not-green").stdout


@pytest.mark.parametrize(("typed", "nearest"), [("not_green", "not-green"), ("no-confg", "no-config")])
def test_an_unknown_code_is_refused_with_the_nearest(outside, typed, nearest):
    assert f"; try: git ledger explain {nearest}\n" in outside("explain", typed, expect=2).stderr


def test_a_code_like_no_other_is_sent_to_the_list(outside):
    done = outside("explain", "zzzzzz", "--json", expect=2)
    assert json.loads(done.stdout)["error"]["code"] == "unknown-code"
    assert done.stderr.endswith("; try: git ledger explain\n")


def test_without_a_code_all_are_listed_by_section_with_what_they_mean(outside):
    """Hundreds of words in a heap were no list that anybody would read."""
    text = outside("explain").stdout
    documents = json.loads(outside("explain", "--json").stdout)
    lines = [line for line in text.splitlines() if line.startswith("  ")]
    assert [line.split()[0] for line in lines] == [item["code"] for item in documents]
    assert len(lines) > 190
    assert max(map(len, text.splitlines())) <= 80
    for item, line in zip(documents, lines, strict=True):
        exits = ",".join(map(str, item["exit_statuses"]))
        assert re.match(rf"  {item['code']} +{exits} *\S+ \S+", line), line
    assert re.search(r"^  extra-not-rechecked +note The shard's", text, re.M), "what a note is about, too"
    heads = [line for line in text.splitlines()[2:] if line and not line.startswith("  ")]
    assert heads == list(dict.fromkeys(item["section"].partition(" (section")[0] for item in documents))


def test_the_list_fits_the_window_and_goes_through_the_pager_also_where_no_repository_is(outside_terminal):
    narrow = outside_terminal("explain", COLUMNS="60", PAGER="sed s/^/paged:/")
    lines = narrow.splitlines()
    assert all(line.startswith("paged:") for line in lines)
    assert max(len(line.removeprefix("paged:")) for line in lines) <= 60
    assert "\x1b" in outside_terminal("explain", COLUMNS="60", PAGER="cat")


def test_help_lists_commands_and_pages_and_shows_each(outside):
    said = outside("help").stdout
    assert "record " in said
    assert "configuration " in said
    assert outside("help", "record").stdout == outside("record", "--help").stdout
    assert outside("help", "config").stdout.startswith("# Configuration")


def test_help_on_something_unknown_names_the_nearest(outside):
    assert "[unknown-topic]; try: git ledger help tutorial" in outside("help", "tutorail", expect=2).stderr
    assert outside("help", "xyzzy", expect=2).stderr.endswith("[unknown-topic]; try: git ledger help\n")


def test_a_word_of_a_page_s_name_is_enough_where_only_one_has_it(outside):
    assert outside("help", "squash").stdout == outside("help", "squash-merge-teams").stdout


def test_who_asks_for_the_version_is_told_how(outside):
    assert "did you mean `git ledger --version`?" in outside("version", expect=2).stderr


def test_only_shells_are_offered_for_completion(outside):
    said = outside("completion", "sh", expect=2).stderr
    assert "'sh' is not one of bash, zsh, fish" in said
    assert "words" not in said
