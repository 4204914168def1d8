"""Strict YAML: one document of plain maps, lists and scalars, every value with its line.

Read from parser events instead of through a YAML loader, so what a loader would do silently is an error here:
duplicate keys, anchors and aliases, tags, keys that are no strings, several documents. Scalars follow YAML 1.2
and not 1.1: `yes`, `on`, `010`, `1:30` and `1_000` are text. Numbers with a fraction become `Decimal` and
so keep their spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING, NoReturn

from gitledger.dataclass import dataclass
from gitledger.errors import ConfigError

if TYPE_CHECKING:
    from decimal import Decimal  # most configurations have no such number

    Value = None | bool | int | Decimal | str | list["Value"] | dict[str, "Value"]

__all__ = ["MAX_CONFIG_BYTES", "MAX_CONFIG_DEPTH", "Document", "Value", "path_of", "read_document"]

MAX_CONFIG_BYTES = 1 << 20
"""A configuration file."""
MAX_CONFIG_DEPTH = 20
"""Nesting of maps and lists in a configuration file."""
MAX_DIGITS = 100

_PURE = re.compile(r"[\t\r\x85\u2028\u2029\ufeff?%|>]|:[^ \n]|^(?:---|\.\.\.)", re.MULTILINE)
"""Where libyaml and PyYAML's own parser are known to part ways: tabs, byte order marks, `?` and `:` in flow, block
scalars, document markers. A text with any of these is read by PyYAML's, wherever git-ledger runs."""
_INTEGER = re.compile(r"\A-?(?:0|[1-9][0-9]*)\Z")
_FRACTION = re.compile(r"\A-?(?:0|[1-9][0-9]*)\.[0-9]+\Z")
_WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}

_COMMIT = re.compile(r"\A[0-9a-f]{4,64}:")


@dataclass(frozen=True, slots=True)
class Document:
    """The root value, and the line (from 1) at which the value of each dotted path stands."""

    source: str
    root: Value
    lines: dict[str, int]

    def where(self, path: str) -> str:
        """Return `source:line`, with the line of `path` or of its nearest ancestor."""
        while path not in self.lines and path:
            path = path.rpartition(".")[0]
        return f"{self.source}:{self.lines.get(path, 1)}"


@dataclass(slots=True)
class _Open:
    """A map or list under construction."""

    path: str
    value: dict[str, Value] | list[Value]
    key: str | None = None


@dataclass(slots=True)
class _Builder:
    source: str
    lines: dict[str, int] = field(default_factory=dict)
    stack: list[_Open] = field(default_factory=list)
    roots: list[Value] = field(default_factory=list)

    def fail(self, line: int, text: str) -> NoReturn:
        raise ConfigError("config-syntax", f"{self.source}:{line}: {text}", f"mend {path_of(self.source)}")

    def child_path(self, line: int) -> str:
        if not self.stack:
            return ""
        top = self.stack[-1]
        if isinstance(top.value, list):
            return f"{top.path}[{len(top.value)}]"
        if top.key is None:
            self.fail(line, "a key must be a string")
        return f"{top.path}.{top.key}" if top.path else top.key

    def add(self, value: Value) -> None:
        """Put a value where it belongs; its path is already noted."""
        if not self.stack:
            self.roots.append(value)
            return
        top = self.stack[-1]
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is not None:
            top.value[top.key] = value
            top.key = None

    def open(self, value: dict[str, Value] | list[Value], line: int) -> None:
        if len(self.stack) >= MAX_CONFIG_DEPTH:
            self.fail(line, f"nested deeper than the limit of {MAX_CONFIG_DEPTH}")
        path = self.child_path(line)
        self.lines[path] = line
        self.add(value)
        self.stack.append(_Open(path, value))

    def scalar(self, text: str, *, plain: bool, line: int) -> None:
        value = self.resolve(text, line) if plain else text
        if isinstance(value, str) and ("\0" in value or _has_surrogate(value)):
            self.fail(line, "a string holds NUL or a lone surrogate")
        top = self.stack[-1] if self.stack else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            if not isinstance(value, str):
                self.fail(line, f"a key must be a string; quote {text!a}")
            if value in top.value:
                self.fail(line, f"duplicate key {value!a}")
            top.key = value
            return
        self.lines[self.child_path(line)] = line
        self.add(value)

    def resolve(self, text: str, line: int) -> Value:
        if text in _WORDS:
            return _WORDS[text]
        if len(text) > MAX_DIGITS and (_INTEGER.match(text) or _FRACTION.match(text)):
            self.fail(line, f"a number of {len(text)} digits")
        if _INTEGER.match(text):
            return int(text)
        if not _FRACTION.match(text):
            return text
        from decimal import Decimal

        return Decimal(text)


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)


def path_of(source: str) -> str:
    """Return the file that somebody can edit: `source` without the commit (`03fe…:PATH`) that it was read from."""
    return _COMMIT.sub("", source)


def read_document(text: bytes, *, source: str) -> Document:
    """Return the one document that UTF-8 `text` holds; `source` names it in messages.

    Raises `ConfigError` (`config-syntax`, `config-too-large`), naming the line.
    """
    if len(text) > MAX_CONFIG_BYTES:
        raise ConfigError(
            "config-too-large",
            f"{source}: {len(text)} bytes, more than the limit of {MAX_CONFIG_BYTES}",
            f"shorten {path_of(source)}",
        )
    builder = _Builder(source)
    try:
        decoded = text.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise ConfigError("config-syntax", f"{source}:{line}: not UTF-8", f"mend {path_of(source)}") from error
    for event in _events(decoded, source):
        _consume(builder, event)
    if not builder.roots:
        anew = 'rm "$(git rev-parse --show-toplevel)/.gitledger/config.yaml" && git ledger init'
        raise ConfigError("config-syntax", f"{source}: is empty", anew)
    return Document(source, builder.roots[0], builder.lines)


def _events(text: str, source: str) -> Iterator[object]:
    import yaml

    loader = yaml.SafeLoader if _PURE.search(text) else getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}" if mark else source
        problem = " ".join(str(error.problem or error.context or "not YAML").split())
        raise ConfigError("config-syntax", f"{where}: {problem}", f"mend {path_of(source)}") from error
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        problem = ascii(" ".join(str(error).split())[:120])[1:-1]
        raise ConfigError("config-syntax", f"{source}: not YAML: {problem}", f"mend {path_of(source)}") from error


def _consume(builder: _Builder, event: object) -> None:
    import yaml

    if not isinstance(event, yaml.Event):
        return
    line = event.start_mark.line + 1 if event.start_mark else 1
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
        builder.fail(line, "anchors and aliases are not supported")
    if getattr(event, "tag", None) is not None:
        builder.fail(line, "tags are not supported")
    if isinstance(event, yaml.DocumentStartEvent) and builder.roots:
        builder.fail(line, "a second document; one is expected")
    if isinstance(event, yaml.ScalarEvent):
        builder.scalar(event.value, plain=not event.style, line=line)
    elif isinstance(event, yaml.MappingStartEvent):
        builder.open({}, line)
    elif isinstance(event, yaml.SequenceStartEvent):
        builder.open([], line)
    elif isinstance(event, yaml.CollectionEndEvent):
        builder.stack.pop()
