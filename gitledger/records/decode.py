"""Strict decoding of JSON that somebody else wrote.

Duplicate keys, NaN, Infinity, second spellings of base64, wrong types and missing fields are refused, and the
refusal names the field's path (`$.predicate.counts.passed`). Unknown fields are ignored: the stored bytes keep
them (DESIGN section 3).
"""

from __future__ import annotations

import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import NoReturn, TypeVar

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.records.limits import MAX_INTEGER, MAX_JSON_DEPTH, MAX_NUMBER_CHARACTERS, MAX_TEXT_BYTES
from gitledger.wording import counted

__all__ = ["Reader", "byte_length", "decode_base64", "fail", "format_time", "load_json", "parse_time", "shown"]

T = TypeVar("T")
Word = TypeVar("Word", bound=StrEnum)
Json = object

_TIME = re.compile(r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?Z\Z")
_SHORT = MAX_TEXT_BYTES // 4
"""Characters that are within the limit of a text, however they are encoded."""
_PLAIN_KEY = re.compile(r"\A[A-Za-z0-9_]{1,60}\Z")


def fail(path: str, text: str) -> NoReturn:
    """Raise the decoding error of one field."""
    raise DecodeError("malformed", f"{path}: {text}", "git ledger fsck")


def shown(value: object, limit: int = 60) -> str:
    """Return a short, escaped, printable-ASCII spelling of a value from outside."""
    text = ascii(value[: limit + 1] if isinstance(value, str) else value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def byte_length(text: str) -> int:
    """Return the length of a string in UTF-8, lone surrogates counted as three bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class _RefusedError(ValueError):
    """The parser met what JSON allows, or Python's parser does, and we don't."""


@dataclass(frozen=True, slots=True)
class _Fault:
    """Stands in a parsed document where something was refused, so that its path can be told."""

    text: str


def _refuse(text: str) -> NoReturn:
    raise _RefusedError(text)


def _strict_decoder(refuse: Callable[[str], Json], *, long_integers: bool = True) -> json.JSONDecoder:
    """Return a decoder that hands whatever is refused to `refuse`.

    Without `long_integers` the caller has seen that there are none, and the parser need not ask for each.
    """

    def unique(pairs: list[tuple[str, Json]]) -> Json:
        result = dict(pairs)
        if len(result) == len(pairs):
            return result
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        return refuse(f"duplicate key {shown(twice)}")

    def integer(text: str) -> Json:
        return int(text) if len(text) <= MAX_NUMBER_CHARACTERS else refuse("a number is too long")

    def real(text: str) -> Json:
        value = float(text) if len(text) <= MAX_NUMBER_CHARACTERS else math.inf
        return value if math.isfinite(value) else refuse("a number is out of range or too long")

    return json.JSONDecoder(
        object_pairs_hook=unique,
        parse_constant=lambda text: refuse(f"{text} is not JSON"),
        parse_int=integer if long_integers else None,
        parse_float=real,
    )


_STRICT = _strict_decoder(_refuse)
_QUICK = _strict_decoder(_refuse, long_integers=False)
_LOCATING = _strict_decoder(_Fault)
_KINDS = bytes.maketrans(b"123456789[", b"0" * 9 + b"{")
"""Makes every digit a 0 and both openers a brace, so that one pass each counts and finds them."""
_MANY_DIGITS = b"0" * MAX_NUMBER_CHARACTERS


def load_json(data: bytes, *, limit: int) -> Json:
    """Return the value that UTF-8 JSON `data` spells.

    Raises `DecodeError` for more than `limit` bytes, invalid UTF-8, duplicate keys, NaN or Infinity, numbers that
    overflow or have more than `MAX_NUMBER_CHARACTERS`, and nesting deeper than `MAX_JSON_DEPTH`.
    """
    if len(data) > limit:
        fail("$", f"{len(data)} bytes, more than the limit of {limit}")
    try:
        text = data.decode("utf-8")
        kinds = data.translate(_KINDS)
        # An integer that is too long has this many digits in a row, and few documents have them anywhere.
        decoder = _STRICT if _MANY_DIGITS in kinds else _QUICK
        value: Json = decoder.decode(text)
    except _RefusedError as error:
        _fail_at_place(text, str(error))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DecodeError("malformed", f"$: not JSON: {error}", "git ledger fsck") from error
    except RecursionError as error:
        raise DecodeError("malformed", "$: nested too deeply", "git ledger fsck") from error
    # As many openers as levels are needed, so most records are through with one fast count.
    if kinds.count(b"{") > MAX_JSON_DEPTH and _depth(value) > MAX_JSON_DEPTH:
        fail("$", f"nested deeper than the limit of {MAX_JSON_DEPTH}")
    return value


def _depth(value: Json) -> int:
    """Return how deeply lists and objects are nested, without recursion."""
    depth, level = 0, [value]
    while containers := [item for item in level if isinstance(item, list | dict)]:
        depth += 1
        level = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]
    return depth


def _fail_at_place(text: str, reason: str) -> NoReturn:
    """Raise the decoding error of a document that was refused, naming the path where it can be told."""
    with suppress(ValueError, RecursionError):
        fault = _find_fault(_LOCATING.decode(text), "$", MAX_JSON_DEPTH)
        if fault is not None:
            fail(*fault)
    fail("$", reason)


def _find_fault(value: Json, path: str, levels: int) -> tuple[str, str] | None:
    if isinstance(value, _Fault):
        return path, value.text
    steps: Iterable[tuple[str, Json]] = ()
    if isinstance(value, dict):
        steps = ((f".{key if _PLAIN_KEY.match(key) else shown(key)}", child) for key, child in value.items())
    elif isinstance(value, list):
        steps = ((f"[{i}]", child) for i, child in enumerate(value))
    if levels > 0:
        for step, child in steps:
            found = _find_fault(child, path + step, levels - 1)
            if found is not None:
                return found
    return None


def decode_base64(text: bytes, path: str) -> bytes:
    """Return the bytes of canonical, padded, standard-alphabet base64; any second spelling is refused."""
    try:
        data = binascii.a2b_base64(text)
    except binascii.Error as error:
        raise DecodeError("malformed", f"{path}: not base64", "git ledger fsck") from error
    # The decoder skips what is no base64 and ignores spare bits. The length tells the one: as many letters as the
    # bytes need leave no room for others before the last four. Encoding the end again tells the other.
    last = data[-(len(data) % 3 or 3) :]
    if len(text) != (len(data) + 2) // 3 * 4 or binascii.b2a_base64(last, newline=False) != text[-4:]:
        fail(path, "base64 is not in its canonical spelling")
    return data


def parse_time(text: str) -> datetime:
    """Return the instant that an RFC 3339 time in UTC (`…Z`) names, else raise `ValueError`.

    Digits beyond microseconds are cut off; leap seconds and 24:00, which Python can't hold, are refused.
    """
    if not _TIME.match(text):
        raise ValueError("expected an RFC 3339 time in UTC, as 2026-01-31T12:00:00Z")
    return datetime.fromisoformat(text)


def format_time(when: datetime) -> str:
    """Return the RFC 3339 spelling in UTC, microseconds kept where there are any.

    Raises `ValueError` for a time without a zone: it would mean another instant on another machine.
    """
    if when.tzinfo is None:
        raise ValueError("a time without a zone names no instant")
    utc = when.astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="microseconds" if utc.microsecond else "seconds") + "Z"


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
        value = self._data.get(key)
        if isinstance(value, str) and len(value) <= limit >> 2:  # four bytes a character at most
            return value
        value = self.raw(key)
        if not isinstance(value, str):
            fail(self._at(key), f"expected a string, found {_kind(value)}")
        if byte_length(value) > limit:
            fail(self._at(key), f"{byte_length(value)} bytes, more than the limit of {limit}")
        return value

    def opt_text(self, key: str, *, limit: int = MAX_TEXT_BYTES) -> str | None:
        """Return a string, or None where the field is null or absent."""
        return None if self._data.get(key) is None else self.text(key, limit=limit)

    def parsed(self, key: str, parse: Callable[[str], T]) -> T:
        """Return `parse` of the string; its `ValueError` becomes a decoding error at this path."""
        value = self._data.get(key)
        if not isinstance(value, str) or len(value) > _SHORT:
            value = self.text(key)
        try:
            return parse(value)
        except ValueError as error:
            raise DecodeError("malformed", f"{self._at(key)}: {error}; found {shown(value)}") from error

    def opt_parsed(self, key: str, parse: Callable[[str], T]) -> T | None:
        """Return `parse` of the string, or None where the field is null or absent."""
        return None if self._data.get(key) is None else self.parsed(key, parse)

    def choice(self, key: str, words: type[Word]) -> Word:
        """Return the member of `words` that the string names."""
        value = self.text(key)
        try:
            return words(value)
        except ValueError:
            fail(self._at(key), f"expected one of {', '.join(words)}; found {shown(value)}")

    def time(self, key: str) -> datetime:
        """Return an RFC 3339 UTC time."""
        return self.parsed(key, parse_time)

    def integer(self, key: str, *, low: int = 0, high: int = MAX_INTEGER) -> int:
        """Return an integer within [low, high]; a boolean or a float is none."""
        value = self._data.get(key)
        if type(value) is int and low <= value <= high:
            return value
        value = self.raw(key)
        if isinstance(value, bool) or not isinstance(value, int):
            fail(self._at(key), f"expected an integer, found {_kind(value)}")
        if not low <= value <= high:
            fail(self._at(key), f"expected {low} to {high}, found {shown(value)}")
        return value

    def opt_integer(self, key: str, *, low: int = 0, high: int = MAX_INTEGER) -> int | None:
        """Return an integer, or None where the field is null or absent."""
        return None if self._data.get(key) is None else self.integer(key, low=low, high=high)

    def number(self, key: str) -> float:
        """Return a finite number."""
        value = self.raw(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            fail(self._at(key), f"expected a number, found {_kind(value)}")
        if not math.isfinite(value):
            fail(self._at(key), "expected a finite number")
        return float(value)

    def boolean(self, key: str) -> bool:
        """Return true or false."""
        value = self._data.get(key)
        if value is True or value is False:
            return value
        value = self.raw(key)
        if not isinstance(value, bool):
            fail(self._at(key), f"expected true or false, found {_kind(value)}")
        return value

    def opt_boolean(self, key: str) -> bool | None:
        """Return true or false, or None where the field is null or absent."""
        return self.boolean(key) if self.has(key) else None

    def child(self, key: str) -> Reader:
        """Return the object at `key`."""
        value = self._data.get(key)
        return Reader(self.raw(key) if value is None else value, f"{self.path}.{key}")

    def opt_child(self, key: str) -> Reader | None:
        """Return the object at `key`, or None where the field is null or absent."""
        return None if self._data.get(key) is None else self.child(key)

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
        """Return the strings of the list at `key`, at most `limit` of them."""
        values = self._data.get(key)
        if values == []:  # as most lists are
            return ()
        found = []
        for i, item in enumerate(self.items(key, limit=limit)):
            if not isinstance(item, str):
                fail(f"{self._at(key)}[{i}]", f"expected a string, found {_kind(item)}")
            if byte_length(item) > MAX_TEXT_BYTES:
                fail(f"{self._at(key)}[{i}]", f"more than the limit of {MAX_TEXT_BYTES} bytes")
            found.append(item)
        return tuple(found)

    def opt_texts(self, key: str, *, limit: int) -> tuple[str, ...]:
        """Return the strings of the list at `key`; none where the field is null or absent."""
        return () if self._data.get(key) is None else self.texts(key, limit=limit)

    def integers(self, key: str, *, limit: int) -> tuple[int, ...]:
        """Return the integers, zero and up, of the list at `key`."""
        found = []
        for i, item in enumerate(self.items(key, limit=limit)):
            if isinstance(item, bool) or not isinstance(item, int):
                fail(f"{self._at(key)}[{i}]", f"expected an integer, found {_kind(item)}")
            if not 0 <= item <= MAX_INTEGER:
                fail(f"{self._at(key)}[{i}]", f"expected 0 to {MAX_INTEGER}, found {shown(item)}")
            found.append(item)
        return tuple(found)

    def text_map(self, key: str, *, limit: int) -> dict[str, str]:
        """Return the string-to-string object at `key`, of at most `limit` entries."""
        value = self.raw(key)
        if not isinstance(value, dict):
            fail(self._at(key), f"expected an object, found {_kind(value)}")
        if len(value) > limit:
            fail(self._at(key), f"{counted(len(value), 'entry', 'entries')}, more than the limit of {limit}")
        for name, item in value.items():
            if not isinstance(item, str):
                fail(f"{self._at(key)}.{shown(name)}", f"expected a string, found {_kind(item)}")
            if byte_length(name) > MAX_TEXT_BYTES or byte_length(item) > MAX_TEXT_BYTES:
                fail(f"{self._at(key)}.{shown(name)}", f"more than the limit of {MAX_TEXT_BYTES} bytes")
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
