"""`git ledger explain` and `git ledger help`: what a word means, and the manual, without a repository."""

from __future__ import annotations

import json
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


def test_a_code_is_explained_with_kind_section_and_next_step(outside):
    said = outside("explain", "no-config").stdout
    assert said.startswith("no-config  (error, exit 2)\nConfiguration (section 11)\n")
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


def test_without_a_code_all_are_listed(outside):
    listed = outside("explain").stdout.split()
    assert len(listed) == len(set(listed)) > 190
    documents = json.loads(outside("explain", "--json").stdout)
    assert [item["code"] for item in documents] == listed


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
