"""Strict loading of `shards`."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath
from typing import Literal

from gitledger.config.command import pytest_arguments, split_command
from gitledger.config.quantities import parse_duration, parse_size
from gitledger.config.schema import ResultsConfig, ShardConfig
from gitledger.config.section import Section, kind
from gitledger.records.decode import shown
from gitledger.records.ids import shard_word

__all__ = ["MAX_SHARD_KEYS", "duration", "load_shards"]

MAX_SHARD_KEYS = 10_000
"""Identities of one configuration: shards times variants times parts."""
MAX_SPLIT = 1_000
MAX_SHARD_NAME = 80
"""Leaves room for `-1000-of-1000`."""
MAX_SIZE_BYTES = 1 << 60
RESERVED = re.compile(r"-\d+-of-\d+\Z")
_KNOWN = tuple(name for name in ShardConfig.__dataclass_fields__ if name not in ("name", "command_text"))
_REPORTS: tuple[Literal["junit", "reportlog", "ctrf"], ...] = ("junit", "reportlog", "ctrf")


def load_shards(section: Section) -> dict[str, ShardConfig]:
    """Return the declared shards in file order; raises `ConfigError`."""
    shards = {}
    total = 0
    for name in section.names():
        _check_name(section, name)
        shard = _shard(section.child(name, _KNOWN), name)
        total += (shard.split or 1) * (len(shard.variants) or 1)
        if total > MAX_SHARD_KEYS:
            section.fail(name, f"more than {MAX_SHARD_KEYS} shards, variants and parts")
        shards[name] = shard
    return shards


def _check_name(section: Section, name: str) -> None:
    try:
        shard_word(name[:MAX_SHARD_NAME])  # of records more is taken: parts of a split have longer names
    except ValueError:
        wanted = f"letters, digits, '.', '_', '+' or '-', at most {MAX_SHARD_NAME}, first a letter or digit"
        section.fail(name, f"not a shard's name: expected {wanted}")
    if len(name) > MAX_SHARD_NAME:
        section.fail(name, f"a shard's name has at most {MAX_SHARD_NAME} characters")
    if RESERVED.search(name):
        section.fail(name, "names like N-1-of-3 are reserved for the parts of `split`", "reserved-name")


def _shard(section: Section, name: str) -> ShardConfig:
    command, command_text = _command(section)
    results = _results(section, command)
    shard = ShardConfig(
        name=name,
        paths=section.or_default("paths", lambda key: section.texts(key, str), (".",)),
        extra_paths=section.or_default("extra_paths", lambda key: section.texts(key, str), ()),
        excluded_paths=section.or_default("excluded_paths", lambda key: section.texts(key, str), ()),
        command=command,
        command_text=command_text,
        results=results,
        coverage=section.or_default("coverage", lambda key: section.choice(key, ("none",)), None),
        split=section.or_default("split", lambda key: section.integer(key, low=1, high=MAX_SPLIT), None),
        variants=section.or_default("variants", lambda key: section.texts(key, shard_word), ()),
        gpus=section.or_default("gpus", lambda key: section.integer(key, high=1024), 0),
        memory=section.or_default("memory", lambda key: _size(section, key), None),
        timeout=section.or_default("timeout", lambda key: duration(section, key), None),
    )
    if shard.split is not None and results.kind != "pytest":
        section.fail("split", f"only `results: pytest` can be split, not {results.kind}", "split-unsupported")
    return shard


def _command(section: Section) -> tuple[tuple[str, ...] | None, str | None]:
    value = section.raw("command")
    if value is None:
        return None, None
    if isinstance(value, str):
        words = section.parsed("command", split_command)
        return words, value.strip()
    if not isinstance(value, list):
        section.fail("command", f"expected a string or a list of strings, found {kind(value)}")
    found: list[str] = []
    for i, item in enumerate(value):
        if not isinstance(item, str):
            section.fail(f"command[{i}]", f"expected a string, found {kind(item)}; quote it")
        found.append(item)
    if not found or not found[0].strip():
        section.fail("command", "expected a command")
    return tuple(found), shlex.join(found)


def _results(section: Section, command: tuple[str, ...] | None) -> ResultsConfig:
    value = section.raw("results")
    if value is None:
        if command is None or pytest_arguments(command) is not None:
            return ResultsConfig("pytest")
        section.fail(
            "results" if section.has("results") else "command",
            f"{shown(command[0])} is not plainly pytest; say where results come from: "
            "`results: exit-status`, `results: pytest` or `results: {junit: FILE}`",
            "results-unclear",
        )
    if not isinstance(value, dict):
        return ResultsConfig(section.choice("results", ("pytest", "exit-status")))
    report = section.child("results", _REPORTS)
    kinds = [name for name in _REPORTS if report.raw(name) is not None]
    if len(kinds) != 1:
        section.fail("results", "expected exactly one of junit, reportlog, ctrf with its file")
    found = ResultsConfig(kinds[0], report.parsed(kinds[0], _report_file))
    if found.is_pattern and found.kind != "junit":
        report.fail(found.kind, "a pattern of files is for junit alone; expected one file")
    return found


def _report_file(text: str) -> str:
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or path == PurePosixPath():
        raise ValueError("expected a file below the repository root")
    return str(path)


def _size(section: Section, key: str) -> int:
    if isinstance(section.raw(key), int):
        return section.integer(key, low=1, high=MAX_SIZE_BYTES)
    return section.parsed(key, parse_size)


def duration(section: Section, key: str) -> float:
    """Return seconds: a duration (`2h`), or a bare integer of seconds."""
    if isinstance(section.raw(key), int):
        return float(section.integer(key, low=1))
    return section.parsed(key, parse_duration)
