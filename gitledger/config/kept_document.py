"""A document as it is kept between two runs: to read YAML takes as long as all that a plan asks of git.

It is JSON of the same value. Numbers with a fraction keep their spelling, and lists say that they are lists. The
lines on which values stood are left out: who finds an error in a kept document reads the text again, to name them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gitledger.config.document import Document

if TYPE_CHECKING:
    from gitledger.config.document import Value

__all__ = ["READER", "decode_document", "encode_document"]

READER = 1
"""Which rules of `read_document` a kept document was read by: one more whenever it reads any text otherwise."""
_LIST, _FRACTION = "list", "fraction"


def encode_document(document: Document) -> bytes:
    """Return a document's value as one line of ASCII, without its end."""
    return json.dumps(_plain(document.root), separators=(",", ":")).encode("ascii")


def decode_document(data: bytes, *, source: str) -> Document:
    """Return the document that `encode_document` was given, without its lines; raises `ValueError`."""
    return Document(source, _value(json.loads(data)), {})


def _plain(value: Value) -> object:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_LIST, *map(_plain, value)]
    if value is None or isinstance(value, bool | int | str):
        return value
    return [_FRACTION, str(value)]


def _value(value: Any) -> Value:
    if isinstance(value, dict):
        return {key: _value(item) for key, item in value.items()}
    if not isinstance(value, list):
        if value is None or isinstance(value, bool | int | str):
            return value
        raise ValueError("a number that no document is kept with")
    tag, *items = value or [None]
    if tag == _LIST:
        return list(map(_value, items))
    if tag == _FRACTION and len(items) == 1 and isinstance(items[0], str):
        from decimal import Decimal

        return Decimal(items[0])
    raise ValueError("a list that no document is kept with")
