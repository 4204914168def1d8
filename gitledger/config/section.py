"""One map of the configuration under strict reading: knows its path, its keys, and the nearest known key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, NoReturn, TypeVar

from gitledger.config.document import Document, path_of
from gitledger.errors import ConfigError
from gitledger.records.decode import shown
from gitledger.records.limits import MAX_TEXT_BYTES

if TYPE_CHECKING:
    from gitledger.config.document import Value

__all__ = ["Section"]

T = TypeVar("T")
MAX_COUNT = 1_000_000
MAX_ITEMS = 1_000
"""Strings of one list."""


class Section:
    """The map at `path`; null and absent are the same here: every key has its default.

    Getters raise `ConfigError` naming file, line and path. With `known` None any key may stand.
    """

    __slots__ = ("_data", "document", "path")

    def __init__(self, document: Document, value: Value, path: str, known: Collection[str] | None) -> None:
        self.document = document
        self.path = path
        if value is None:
            value = {}
        if not isinstance(value, dict):
            self.fail("", f"expected a map, found {kind(value)}")
        self._data = value
        if known is not None:
            self._refuse_unknown(known)

    def _refuse_unknown(self, known: Collection[str]) -> None:
        for key in self._data:
            if key in known:
                continue
            near = _nearest(key, known, 0.5)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known))}"
            where = self.document.where(self.at(key))
            raise ConfigError("unknown-key", f"{where}: unknown key {self.shown_path(key)}", hint)

    def at(self, key: str) -> str:
        """Return the dotted path of a key."""
        return ".".join(part for part in (self.path, key) if part)

    def shown_path(self, key: str) -> str:
        """Return the dotted path of a key, escaped for people."""
        return shown(self.at(key), 200)[1:-1]

    def fail(self, key: str, text: str, code: str = "config-value") -> NoReturn:
        """Raise the error of one key."""
        where = self.document.where(self.at(key))
        path = self.shown_path(key) or "the configuration"
        raise ConfigError(code, f"{where}: {path}: {text}", f"mend {path_of(self.document.source)}")

    def names(self) -> Iterator[str]:
        """Iterate over the keys in file order."""
        return iter(self._data)

    def raw(self, key: str) -> Value:
        """Return the value as it stands, None where it is absent."""
        return self._data.get(key)

    def has(self, key: str) -> bool:
        """Tell whether the key stands there with a value other than null."""
        return self._data.get(key) is not None

    def child(self, key: str, known: Collection[str] | None) -> Section:
        """Return the map at `key`."""
        return Section(self.document, self.raw(key), self.at(key), known)

    def or_default(self, key: str, read: Callable[[str], T], default: T) -> T:
        """Return `read(key)` where the key stands; a null where null says nothing is an error."""
        if key not in self._data:
            return default
        if self._data[key] is None and default is not None:
            self.fail(key, "expected a value, found null")
        return read(key) if self._data[key] is not None else default

    def text(self, key: str) -> str:
        """Return a string that isn't empty."""
        value = self.raw(key)
        if not isinstance(value, str):
            is_meant_as_text = value is not None and not isinstance(value, list | dict)
            quote = "; quote it" if is_meant_as_text else ""
            self.fail(key, f"expected a string, found {kind(value)}{quote}")
        self._check_text(key, value)
        return value

    def _check_text(self, key: str, value: str) -> None:
        """Refuse what no receipt could hold."""
        if not value.strip():
            self.fail(key, "expected a string that is not empty")
        if len(value.encode()) > MAX_TEXT_BYTES:
            self.fail(key, f"longer than the limit of {MAX_TEXT_BYTES} bytes")

    def parsed(self, key: str, parse: Callable[[str], T]) -> T:
        """Return `parse` of the string; its `ValueError` becomes an error at this key."""
        value = self.text(key)
        try:
            return parse(value)
        except ValueError as error:
            self.fail(key, f"{error}; found {shown(value)}")

    def boolean(self, key: str) -> bool:
        """Return true or false, spelled so."""
        value = self.raw(key)
        if not isinstance(value, bool):
            self.fail(key, f"expected true or false, found {kind(value)}")
        return value

    def integer(self, key: str, *, low: int = 0, high: int = MAX_COUNT) -> int:
        """Return an integer within [low, high]."""
        value = self.raw(key)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(key, f"expected an integer, found {kind(value)}")
        if not low <= value <= high:
            self.fail(key, f"expected {low} to {high}, found {shown(value)}")
        return value

    def choice(self, key: str, choices: tuple[T, ...]) -> T:
        """Return the one of `choices` (strings) that stands there."""
        value = self.raw(key)
        for choice in choices:
            if isinstance(value, str) and value == choice:
                return choice
        near = _nearest(str(value), [str(c) for c in choices], 0.6)
        nearest = f"; did you mean {near[0]}?" if near else ""
        self.fail(key, f"expected {' | '.join(str(c) for c in choices)}, found {shown(value)}{nearest}")

    def items(self, key: str) -> list[Value]:
        """Return the list at `key`."""
        value = self.raw(key)
        if not isinstance(value, list):
            self.fail(key, f"expected a list, found {kind(value)}")
        return value

    def texts(self, key: str, parse: Callable[[str], T]) -> tuple[T, ...]:
        """Return `parse` of each string of the list at `key`; one that stands twice is an error."""
        found: list[T] = []
        items = self.items(key)
        if len(items) > MAX_ITEMS:
            self.fail(key, f"{len(items)} items, more than the limit of {MAX_ITEMS}")
        for i, item in enumerate(items):
            at = f"{key}[{i}]"
            if not isinstance(item, str):
                self.fail(at, f"expected a string, found {kind(item)}; quote it")
            self._check_text(at, item)
            try:
                value = parse(item)
            except ValueError as error:
                self.fail(at, f"{error}; found {shown(item)}")
            if value in found:
                self.fail(at, f"{shown(item)} stands here twice")
            found.append(value)
        return tuple(found)


def kind(value: Value) -> str:
    """Return what people call the type of a YAML value, short strings with their text."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return f"the string {shown(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"the integer {shown(value)}"
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a map"
    return f"the number {value}"


def _nearest(text: str, known: Collection[str], cutoff: float) -> list[str]:
    """Return what of `known` is spelled most like `text`, if anything is to `cutoff`."""
    from difflib import get_close_matches  # for errors alone

    return get_close_matches(text, known, n=1, cutoff=cutoff)
