"""Strict decoding of JSON that somebody else wrote.

Duplicate keys, NaN, Infinity, second spellings of base64, wrong types and missing fields are refused, and the
refusal names the field's path (`$.predicate.counts.passed`). Unknown fields are ignored: the stored bytes keep
them (DESIGN section 3).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NoReturn, TypeVar

from gitledger.errors import DecodeError
from gitledger.records.limits import MAX_JSON_DEPTH, MAX_TEXT_BYTES

__all__ = ["Reader", "decode_base64", "format_time", "load_json", "parse_time", "shown"]

T = TypeVar("T")
Json = object

_TIME = re.compile(r"\A(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z\Z")
MAX_INT = (1 << 63) - 1


def fail(path: str, text: str) -> NoReturn:
    """Raise the decoding error of one field."""
    raise DecodeError(
        "malformed", f"{path}: {text}", "the record is ignored; `git ledger fsck` lists such records"
    )


def shown(value: object, limit: int = 60) -> str:
    """Return a short, escaped, printable-ASCII spelling of a value from outside."""
    text = ascii(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _no_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                fail("$", f"duplicate key {shown(key)}")
            seen.add(key)
    return result


def _no_constant(text: str) -> NoReturn:
    fail("$", f"{text} is not JSON")


def _int(text: str) -> int:
    if len(text) > 20:
        fail("$", "a number is out of range")
    return int(text)


def load_json(data: bytes, *, limit: int) -> Json:
    """Return the value that UTF-8 JSON `data` spells.

    Raises `DecodeError` for more than `limit` bytes, invalid UTF-8, duplicate keys, NaN or Infinity, numbers of
    more than 20 characters, and nesting deeper than `MAX_JSON_DEPTH`.
    """
    if len(data) > limit:
        fail("$", f"{len(data)} bytes, more than the limit of {limit}")
    depth = deepest = 0
    for byte in re.finditer(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', data):
        first = byte.group()[0]
        if first in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in b"]}":
            depth -= 1
    if deepest > MAX_JSON_DEPTH:
        fail("$", f"nested {deepest} deep, more than the limit of {MAX_JSON_DEPTH}")
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_no_duplicates,
            parse_constant=_no_constant,
            parse_int=_int,
        )
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DecodeError("malformed", f"$: not JSON: {error}", "the record is ignored") from error
    except RecursionError as error:
        raise DecodeError("malformed", "$: nested too deeply", "the record is ignored") from error


def decode_base64(text: str, path: str) -> bytes:
    """Return the bytes of canonical, padded, standard-alphabet base64; any second spelling is refused."""
    try:
        raw = text.encode("ascii")
        data = base64.b64decode(raw, validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise DecodeError("malformed", f"{path}: not base64", "the record is ignored") from error
    if base64.b64encode(data) != raw:
        fail(path, "base64 is not in its canonical spelling")
    return data


def parse_time(text: str) -> datetime:
    """Return the instant that an RFC 3339 time in UTC (`…Z`) names, else raise `ValueError`."""
    match = _TIME.match(text)
    if not match:
        raise ValueError("expected an RFC 3339 time in UTC, as 2026-01-31T12:00:00Z")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    micro = int((match.group(7) or "0").ljust(6, "0")[:6])
    return datetime(year, month, day, hour, minute, second, micro, tzinfo=UTC)


def format_time(when: datetime) -> str:
    """Return the RFC 3339 spelling in UTC, microseconds kept where there are any; `when` must be aware."""
    utc = when.astimezone(UTC)
    text = utc.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{utc.microsecond:06d}Z" if utc.microsecond else f"{text}Z"


class Reader:
    """One JSON object under strict reading; knows its path.

    Getters raise `DecodeError` naming `<path>.<key>`. The object handed in is never changed.
    """

    __slots__ = ("_data", "path")

    def __init__(self, value: Json, path: str = "$") -> None:
        if not isinstance(value, dict):
            fail(path, f"expected an object, found {_kind(value)}")
        self._data: Mapping[str, Json] = value
        self.path = path

    def _at(self, key: str) -> str:
        return f"{self.path}.{key}"

    def raw(self, key: str) -> Json:
        """Return the field as it stands; it must exist."""
        try:
            return self._data[key]
        except KeyError:
            fail(self._at(key), "missing")

    def has(self, key: str) -> bool:
        """Tell whether the field exists and is not null."""
        return self._data.get(key) is not None

    def text(self, key: str, *, limit: int = MAX_TEXT_BYTES) -> str:
        """Return a string of at most `limit` bytes."""
        value = self.raw(key)
        if not isinstance(value, str):
            fail(self._at(key), f"expected a string, found {_kind(value)}")
        if len(value) > limit:
            fail(self._at(key), f"{len(value)} characters, more than the limit of {limit}")
        return value

    def opt_text(self, key: str, *, limit: int = MAX_TEXT_BYTES) -> str | None:
        """Return a string, or None where the field is null or absent."""
        return self.text(key, limit=limit) if self.has(key) else None

    def parsed(self, key: str, parse: Callable[[str], T]) -> T:
        """Return `parse` of the string; its `ValueError` becomes a decoding error at this path."""
        value = self.text(key)
        try:
            return parse(value)
        except ValueError as error:
            raise DecodeError("malformed", f"{self._at(key)}: {error}; found {shown(value)}") from error

    def opt_parsed(self, key: str, parse: Callable[[str], T]) -> T | None:
        """Return `parse` of the string, or None where the field is null or absent."""
        return self.parsed(key, parse) if self.has(key) else None

    def time(self, key: str) -> datetime:
        """Return an RFC 3339 UTC time."""
        return self.parsed(key, parse_time)

    def integer(self, key: str, *, low: int = 0, high: int = MAX_INT) -> int:
        """Return an integer within [low, high]; a boolean or a float is none."""
        value = self.raw(key)
        if isinstance(value, bool) or not isinstance(value, int):
            fail(self._at(key), f"expected an integer, found {_kind(value)}")
        if not low <= value <= high:
            fail(self._at(key), f"expected {low} to {high}, found {shown(value)}")
        return value

    def opt_integer(self, key: str, *, low: int = 0, high: int = MAX_INT) -> int | None:
        """Return an integer, or None where the field is null or absent."""
        return self.integer(key, low=low, high=high) if self.has(key) else None

    def number(self, key: str) -> float:
        """Return a finite number."""
        value = self.raw(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            fail(self._at(key), f"expected a number, found {_kind(value)}")
        if value != value or value in (float("inf"), float("-inf")):
            fail(self._at(key), "expected a finite number")
        return float(value)

    def boolean(self, key: str) -> bool:
        """Return true or false."""
        value = self.raw(key)
        if not isinstance(value, bool):
            fail(self._at(key), f"expected true or false, found {_kind(value)}")
        return value

    def opt_boolean(self, key: str) -> bool | None:
        """Return true or false, or None where the field is null or absent."""
        return self.boolean(key) if self.has(key) else None

    def child(self, key: str) -> Reader:
        """Return the object at `key`."""
        return Reader(self.raw(key), self._at(key))

    def opt_child(self, key: str) -> Reader | None:
        """Return the object at `key`, or None where the field is null or absent."""
        return self.child(key) if self.has(key) else None

    def items(self, key: str, *, limit: int) -> list[Json]:
        """Return the list at `key`, of at most `limit` items."""
        value = self.raw(key)
        if not isinstance(value, list):
            fail(self._at(key), f"expected a list, found {_kind(value)}")
        if len(value) > limit:
            fail(self._at(key), f"{len(value)} items, more than the limit of {limit}")
        return value

    def children(self, key: str, *, limit: int) -> list[Reader]:
        """Return the objects of the list at `key`."""
        return [Reader(item, f"{self._at(key)}[{i}]") for i, item in enumerate(self.items(key, limit=limit))]

    def texts(self, key: str, *, limit: int) -> tuple[str, ...]:
        """Return the strings of the list at `key`."""
        found = []
        for i, item in enumerate(self.items(key, limit=limit)):
            if not isinstance(item, str):
                fail(f"{self._at(key)}[{i}]", f"expected a string, found {_kind(item)}")
            found.append(item)
        return tuple(found)

    def text_map(self, key: str, *, limit: int) -> dict[str, str]:
        """Return the string-to-string object at `key`, of at most `limit` entries."""
        value = self.raw(key)
        if not isinstance(value, dict):
            fail(self._at(key), f"expected an object, found {_kind(value)}")
        if len(value) > limit:
            fail(self._at(key), f"{len(value)} entries, more than the limit of {limit}")
        for name, item in value.items():
            if not isinstance(item, str):
                fail(f"{self._at(key)}.{shown(name)}", f"expected a string, found {_kind(item)}")
        return dict(value)


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    names = {
        bool: "true or false",
        int: "an integer",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), type(value).__name__)
