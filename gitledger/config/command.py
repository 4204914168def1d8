"""A shard's command: its words, and whether it is pytest that it runs.

No shell is involved, ever. What only a shell would understand is refused and not passed on as an argument:
`true && pytest` would else run `true` with three arguments, and be green.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

__all__ = ["pytest_arguments", "split_command", "wrapped_arguments"]

_ASSIGNMENT = re.compile(r"\A[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = re.compile(r"\A(?:python|pypy)[0-9.]*\Z")
_PLAIN = re.compile(r"[A-Za-z0-9_./=:,+@%-]+(?: [A-Za-z0-9_./=:,+@%-]+)*\Z")
"""Words that neither a shell nor `shlex` reads as anything but themselves, with one space between them."""
_EXPANSION = re.compile(r"\A\$(?:[A-Za-z_0-9@*#?!({$'\"-])")
_PYTEST_WORD = re.compile(r"\A(?:pytest|py\.test)(?:-[0-9.]+)?\Z")
_PYTEST_MODULE = re.compile(r"\A-[A-Za-z]*mpytest\Z")
_MODULE_OPTION = re.compile(r"\A-[A-Za-z]*m\Z")
_RUNNERS = frozenset({"uv", "poetry", "pipenv", "hatch", "pdm", "rye", "pixi"})
# Options of the prefixes that take their value as a word of its own.
_VALUED = {
    "env": {"-u", "--unset", "-C", "--chdir"},
    "python": {"-X", "-W", "--check-hash-based-pycs"},
    "coverage": {
        "--concurrency",
        "--context",
        "--data-file",
        "--debug",
        "--include",
        "--omit",
        "--rcfile",
        "--source",
    },
    "runner": {
        "-p",
        "--python",
        "--with",
        "--with-editable",
        "--with-requirements",
        "--extra",
        "--group",
        "--no-group",
        "--only-group",
        "--package",
        "--project",
        "--directory",
        "-C",
        "--env-file",
        "-e",
        "--environment",
        "--index",
        "--default-index",
        "-P",
    },
}


def split_command(text: str) -> tuple[str, ...]:
    """Return the words of a command line, split and unquoted as POSIX sh does.

    Raises `ValueError` where only a shell could run it: operators, expansions, several lines, a leading
    assignment, or a quote that isn't closed.
    """
    text = text.strip(" \t\n")
    is_plain = _PLAIN.match(text) is not None
    needs_shell = None if is_plain else _shell_syntax(text)
    if needs_shell:
        raise ValueError(
            f'{needs_shell} needs a shell and none is used; quote it, or write [sh, -c, "…"] and say `results`'
        )
    try:
        words = tuple(text.split(" ") if is_plain else shlex.split(text))
    except ValueError as error:
        raise ValueError(f"not a command line: {str(error).lower()}") from error
    if not words or not words[0]:
        raise ValueError("expected a command")
    if _ASSIGNMENT.match(words[0]):
        raise ValueError(f"a leading assignment needs a shell; write `env {words[0]} …`")
    return words


def _shell_syntax(text: str) -> str | None:
    """Return a name of the first thing in `text` that a shell would act on and `shlex` would not."""
    quote = ""
    skip = False
    for i, char in enumerate(text):
        if skip:
            skip = False
        elif quote == "'":
            quote = "" if char == "'" else quote
        elif char == "\\":
            if quote and text[i + 1 : i + 2] in ("$", "`"):
                return f"`\\{text[i + 1]}` in double quotes"  # sh drops the backslash, shlex keeps it
            if text[i + 1 : i + 2] == "\n":
                return "a command of several lines"
            skip = True
        elif char == "`" or (char == "$" and _EXPANSION.match(text[i : i + 2])):
            return f"`{char}`"
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "\n\r":
            return "a command of several lines"
        elif char in ";&|<>()":
            return f"`{char}`"
    return None


def pytest_arguments(command: Sequence[str]) -> tuple[str, ...] | None:
    """Return what follows `pytest` in a command that runs it, or None where it is not plainly pytest.

    Seen through: `env …`, `uv run …` and its kin, `python -m …`, `coverage run -m …`. A shell, make, tox and
    the like are not looked into.
    """
    words = list(command)
    while words:
        program = _program(words.pop(0))
        if program in ("pytest", "py.test"):
            return tuple(words)
        if program == "env":
            words = _after_options(words, _VALUED["env"])
            while words and _ASSIGNMENT.match(words[0]):
                words.pop(0)
        elif program in _RUNNERS:
            words = _after_options(words, _VALUED["runner"])
            if words[:1] != ["run"]:
                return None
            words = _after_options(words[1:], _VALUED["runner"])
        elif _PYTHON.match(program) or program == "coverage":
            module = _module(program, words)
            if module is None:
                return None
            words = module
        else:
            return None
    return None


def wrapped_arguments(command: Sequence[str]) -> tuple[str, ...] | None:
    """Return what follows pytest in a command that wraps it (`timeout 60 pytest …`), None where no word names it.

    A guess, for who binds what the arguments name; `pytest_arguments` says what is plainly pytest. A word behind
    an option may be its value (`srun -J pytest -c 8 pytest tests`): it counts where no other does.
    """
    found: int | None = None
    for i, word in enumerate(command):
        if _PYTEST_MODULE.match(word):
            return tuple(command[i + 1 :])
        if not _PYTEST_WORD.match(_program(word)):
            continue
        before = command[i - 1] if i else ""
        if before == "--" or not before.startswith("-") or "=" in before or _MODULE_OPTION.match(before):
            return tuple(command[i + 1 :])
        found = i if found is None else found
    return None if found is None else tuple(command[found + 1 :])


def _program(word: str) -> str:
    """Return the last part of the path that a word is; most are one word alone."""
    return PurePosixPath(word).name if "/" in word or word == "." else word


def _module(program: str, words: list[str]) -> list[str] | None:
    """Return the words from the module on of `python -m MODULE …` or `coverage run -m MODULE …`."""
    valued = _VALUED["python"]
    if program == "coverage":
        if words[:1] != ["run"]:
            return None
        words, valued = words[1:], _VALUED["coverage"]
    rest = _after_options(words, valued, stop="-m")
    return rest[1:] if rest[:1] == ["-m"] and len(rest) > 1 else None


def _after_options(words: list[str], valued: set[str], *, stop: str = "--") -> list[str]:
    """Return `words` from the first that is no option (nor the value of one), or from `stop` on."""
    i = 0
    while i < len(words) and words[i].startswith("-") and words[i] != stop:
        i += 2 if words[i] in valued else 1
    return words[i + 1 :] if words[i : i + 1] == ["--"] else words[i:]
