"""Commands are words, never shell; pytest is seen through its usual wrappings."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.config.command import _program, pytest_arguments, split_command
from gitledger.config.quantities import parse_duration, parse_size


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("pytest", ()),
        ("pytest -x tests", ("-x", "tests")),
        ("py.test tests", ("tests",)),
        (".venv/bin/pytest tests", ("tests",)),
        ("python -m pytest tests", ("tests",)),
        ("python3.12 -X dev -W error -m pytest tests", ("tests",)),
        ("/usr/bin/python3 -I -m pytest", ()),
        ("env A=1 B='x y' pytest tests", ("tests",)),
        ("env -u A -C sub pytest", ()),
        ("uv run pytest tests", ("tests",)),
        ("uv run --with x --python 3.12 -- pytest tests", ("tests",)),
        ("uv --directory sub run pytest", ()),
        ("poetry run python -m pytest -q", ("-q",)),
        ("hatch -e test run pytest", ()),
        ("coverage run -m pytest tests", ("tests",)),
        ("coverage run --branch --source src -m pytest", ()),
        ("python -m coverage run -m pytest tests", ("tests",)),
        ("env A=1 uv run coverage run -m pytest -x", ("-x",)),
        ("make test", None),
        ("sh -c pytest", None),
        ("tox", None),
        ("uv sync", None),
        ("uv run ruff", None),
        ("python -c pytest", None),
        ("python pytest.py", None),
        ("python -m unittest pytest", None),
        ("coverage report -m pytest", None),
        ("coverage run script.py -m pytest", None),
        ("echo pytest", None),
        ("env", None),
        ("python -m", None),
    ],
)
def test_pytest_is_seen_through_its_wrappings_and_nowhere_else(command: str, arguments: object) -> None:
    assert pytest_arguments(split_command(command)) == arguments


@given(st.text(st.sampled_from("ab./~ \\"), max_size=6))
def test_a_program_is_the_last_part_of_its_path(word: str) -> None:
    assert _program(word) == PurePosixPath(word).name


@pytest.mark.parametrize(
    "command",
    [
        "true && pytest",
        "pytest || true",
        "pytest; true",
        "pytest | tee log",
        "pytest > log",
        "pytest 2>&1",
        "(pytest)",
        "pytest &",
        "pytest $TESTS",
        'pytest "$TESTS"',
        "pytest ${TESTS}",
        "pytest $(ls)",
        "pytest `ls`",
        'pytest "`ls`"',
        "true\nfalse",
        "A=1 pytest",
        "pytest 'open",
        "",
        "   ",
        "''",
    ],
)
def test_what_only_a_shell_would_understand_is_refused(command: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        split_command(command)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sh -c 'a && b > c; $X'", ("sh", "-c", "a && b > c; $X")),
        ('python -c "import os; os._exit(0)"', ("python", "-c", "import os; os._exit(0)")),
        ("pytest -k 'a or (b and not c)'", ("pytest", "-k", "a or (b and not c)")),
        ("pytest -k a$", ("pytest", "-k", "a$")),
        ("pytest \\$X \\; 'it'\\''s'", ("pytest", "$X", ";", "it's")),
        ("pytest tests/test_a.py::test_x[1-2]", ("pytest", "tests/test_a.py::test_x[1-2]")),
        (" pytest \n", ("pytest",)),
    ],
)
def test_quoted_words_are_kept(command: str, words: tuple[str, ...]) -> None:
    assert split_command(command) == words


@given(
    st.lists(st.text(st.characters(codec="ascii", exclude_characters="\0\n"), max_size=6), min_size=1, max_size=4)
)
def test_what_is_accepted_is_what_sh_would_run(parts: list[str]) -> None:
    """Shell-quoted words come through; raw text is refused or split as a real sh splits it."""
    quoted = shlex.join(["w", *parts])
    assert split_command(quoted) == ("w", *parts)
    raw = "w " + " ".join(parts)
    if set(raw) & set("*?[]{}~#!"):  # globs, comments and the like, which we keep as they are
        return
    try:
        words = split_command(raw)
    except ValueError:
        return
    script = f"w() {{ printf '%s\\0' \"$@\"; }}; {raw}"
    printed = subprocess.run(["sh", "-c", script], capture_output=True, check=False).stdout
    assert printed.decode() == ("".join(word + "\0" for word in words[1:]) or "\0")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("2h", 7200), ("1h30m", 5400), ("500ms", 0.5), ("1.5h", 5400), ("1d", 86400)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "s", "30 s", "1m1h", "1s1s", "-1s", "0s", "1e3s", "٣s", "2hours"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"), [("12GiB", 12 << 30), ("12GB", 12 * 10**9), ("1.5KiB", 1536), ("1B", 1), ("2 MiB", 2 << 20)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "12", "12G", "12gb", "0B", "-1MB", "GiB", "1e3B", "٣B"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)
