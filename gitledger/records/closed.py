"""Reading of objects whose keys are closed: each must be there, and none may be too many.

Records at large keep and ignore what they don't know. A capability report does not: whoever reads one must see all
that it says, and write it again byte for byte. So a spelling that would be written differently is refused too.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from gitledger.records.decode import Reader, fail, format_time, shown

__all__ = ["child", "closed", "exact_time", "opt_real", "real", "word"]


def closed(value: object, path: str, keys: Iterable[str]) -> Reader:
    """Return a reader of an object that has exactly `keys`; raises `DecodeError` naming the one too many."""
    reader = Reader(value, path)
    expected = set(keys)
    if isinstance(value, dict) and value.keys() != expected:
        for key in sorted(value.keys() - expected):
            fail(path, f"unknown key {shown(key)}")
        fail(f"{path}.{min(expected - value.keys())}", "missing")
    return reader


def child(reader: Reader, key: str, keys: Iterable[str]) -> Reader:
    """Return a reader of the object at `key`, which has exactly `keys`."""
    return closed(reader.raw(key), f"{reader.path}.{key}", keys)


def exact_time(reader: Reader, key: str) -> datetime:
    """Return an RFC 3339 UTC time in the one spelling that `format_time` gives it."""
    when = reader.time(key)
    if format_time(when) != reader.text(key):
        fail(f"{reader.path}.{key}", "a time that would be written differently")
    return when


def real(reader: Reader, key: str, *, low: float = 0.0) -> float:
    """Return a number that is spelled as a real one and is no less than `low`."""
    value = reader.number(key)
    if not isinstance(reader.raw(key), float):
        fail(f"{reader.path}.{key}", "expected a real number, as 12.0")
    if value < low:
        fail(f"{reader.path}.{key}", f"expected at least {low}, found {value}")
    return value


def opt_real(reader: Reader, key: str) -> float | None:
    """Return what `real` does, or None where the field is null."""
    return real(reader, key) if reader.has(key) else None


def word(reader: Reader, key: str, words: tuple[str, ...]) -> str:
    """Return a string that is one of `words`."""
    value = reader.text(key)
    if value not in words:
        fail(f"{reader.path}.{key}", f"expected one of {', '.join(words)}; found {shown(value)}")
    return value
