"""What a commit's own files say of coverage: coverage's configuration, and pytest-cov's options in `addopts`.

Read as coverage and pytest would (coverage 7.17 `config.py`, pytest 9 `findpaths.py`), from the files of a commit:
nothing is executed, no environment is asked.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import ConfigError
from gitledger.records.decode import shown
from gitledger.records.ids import Digest

__all__ = ["CoverageSettings", "Read", "coverage_settings", "irregular"]

Read = Callable[[str], bytes | None]
"""The content of a file of a commit, None where there is none; `ConfigError` for what is there and is no file."""
Parsed = Callable[[str], dict[str, Any] | None]
"""What such a file says."""
_PYTEST_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
_FILE_OPTIONS = ("--cov-config", "--rcfile")
Sections = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageSettings:
    """Thresholds and decimals as their files spell them, None where they say nothing.

    `digest` names everything in those files that decides what is measured and counted.
    """

    fail_under: str | None
    precision: str | None
    option_fail_under: str | None
    option_precision: str | None
    relative_files: bool
    digest: Digest


def coverage_settings(read: Read, commands: Iterable[Sequence[str]] = ()) -> CoverageSettings:
    """Return a commit's settings; `commands` are its shards', which may name configuration files of their own.

    Raises `ConfigError` `coverage-config` for files that coverage or pytest could not read, and for what is no
    regular file (`irregular` tells): both would follow a symbolic link, to a file that nobody compares.
    """
    read = _of_regular_files(read)
    parsed = cache(lambda name: None if (data := read(name)) is None else _parsed(name, data))
    options = _coverage_options(_addopts(parsed))
    sections = _sections(parsed, _option(options, "--cov-config"))
    report = sections.get("report", {})
    named = sorted(
        {
            name
            for words in commands
            for option in _FILE_OPTIONS
            if (name := _option(list(words), option)) is not None
        }
    )
    digested = {
        "named": [[name, hashlib.sha256(read(name) or b"").hexdigest()] for name in named],
        "options": options,
        "sections": sections,
    }
    text = json.dumps(digested, sort_keys=True, default=str)
    return CoverageSettings(
        fail_under=_text(report.get("fail_under")),
        precision=_text(report.get("precision")),
        option_fail_under=_option(options, "--cov-fail-under"),
        option_precision=_option(options, "--cov-precision"),
        relative_files=str(sections.get("run", {}).get("relative_files", "")).lower()
        in ("true", "1", "yes", "on"),
        digest=Digest(hashlib.sha256(text.encode()).hexdigest()),
    )


def irregular(error: ConfigError) -> bool:
    """Tell whether `coverage_settings` raised an error since something that it reads is no regular file."""
    return isinstance(error.__cause__, ConfigError)


def _of_regular_files(read: Read) -> Read:
    def of_regular_file(name: str) -> bytes | None:
        try:
            return read(_plain(name))
        except ConfigError as error:
            raise ConfigError("coverage-config", error.message, error.hint) from error

    return of_regular_file


def _plain(name: str) -> str:
    """Return a path without `.` and empty components; raises `ConfigError` where `..` may lead anywhere."""
    path = posixpath.normpath(name)
    if name.split("/").count("..") > path.split("/").count(".."):  # behind a link it leads elsewhere
        raise ConfigError("coverage-config", f"{shown(name)} holds `..`", f"name it as {shown(path)}")
    return path


def _coverage_options(words: Sequence[str]) -> list[str]:
    """Return pytest-cov's options among `words`, each with the word that may be its value."""
    found: list[str] = []
    for place, word in enumerate(words):
        if word.startswith(("--cov", "--no-cov")):
            found += words[place : place + (1 if "=" in word else 2)]
    return found


def _text(value: Any) -> str | None:
    return None if value is None else str(value).strip()


def _option(words: Sequence[str], name: str) -> str | None:
    """Return the value of the last `NAME=VALUE` or `NAME VALUE` among `words`."""
    found = None
    for place, word in enumerate(words):
        if word == name and place + 1 < len(words):
            found = words[place + 1]
        elif word.startswith(f"{name}="):
            found = word.partition("=")[2]
    return found


def _sections(parsed: Parsed, named: str | None) -> Sections:
    """Return coverage's sections from the first file that is its configuration, as coverage chooses it."""
    for name, is_own in (
        (named or ".coveragerc", True),
        (".coveragerc.toml", True),
        ("setup.cfg", False),
        ("tox.ini", False),
        ("pyproject.toml", False),
    ):
        found = parsed(name)
        if found is None:
            continue
        if name.endswith(".toml"):
            below = found.get("tool", {}).get("coverage", {})
            sections = {**(found if is_own and not below else {}), **below}
        else:
            sections = {
                section.removeprefix("coverage:"): values
                for section, values in found.items()
                if section.startswith("coverage:") or is_own
            }
        if sections or is_own:
            return {key: values for key, values in sections.items() if isinstance(values, dict)}
    return {}


def _parsed(name: str, data: bytes) -> dict[str, Any]:
    try:
        text = data.decode("utf-8")
        return _toml(text) if name.endswith(".toml") else _ini(text)
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError("coverage-config", f"{name} can't be read: {reason}", f"mend {name}") from error


def _toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML file, numbers with a fraction as they are spelt; raises `ValueError`."""
    import tomllib  # loaded for whoever has such a file

    return tomllib.loads(text, parse_float=str)


def _ini(text: str) -> dict[str, Any]:
    """Return the sections of an ini file; raises `ValueError`."""
    from configparser import ConfigParser, Error  # many have no such file

    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
        return {section: dict(parser[section]) for section in parser.sections()}
    except Error as error:
        raise ValueError(str(error)) from error


def _addopts(parsed: Parsed) -> list[str]:
    """Return the words of `addopts` in the one file that pytest takes its configuration from."""
    for name in _PYTEST_FILES:
        found = parsed(name)
        table = None if found is None else _pytest_table(name, found)
        if table is None:
            continue
        value = table.get("addopts", "")
        try:
            return [str(word) for word in value] if isinstance(value, list) else shlex.split(str(value))
        except ValueError as error:
            raise ConfigError(
                "coverage-config", f"{name}: addopts {shown(value)}: {error}", f"mend {name}"
            ) from error
    return []


def _pytest_table(name: str, found: dict[str, Any]) -> dict[str, Any] | None:
    """Return pytest's own table of a file, None where the file is not pytest's."""
    if name == "pyproject.toml":
        table = found.get("tool", {}).get("pytest")
        table = table if table is None else table.get("ini_options", table)
    else:
        table = found.get("tool:pytest" if name == "setup.cfg" else "pytest")
        if table is None and name in ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"):
            table = {}
    return table if isinstance(table, dict) else None
