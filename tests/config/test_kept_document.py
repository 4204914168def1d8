"""A document that was kept says what its text said, and a damaged one says nothing."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.config.document import Document, read_document
from gitledger.config.example import example_config
from gitledger.config.kept_document import decode_document, encode_document
from gitledger.config.load import config_of, load_config
from gitledger.errors import ConfigError

FRACTIONS = st.decimals(allow_nan=False, allow_infinity=False, places=3)
SCALARS = st.none() | st.booleans() | st.integers() | st.text() | FRACTIONS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def typed(value: object) -> object:
    """Return a value with the types of its scalars, which compare equal across types (`1`, `True`, `1.0`)."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return type(value), str(value)


@given(VALUES)
def test_a_kept_document_has_the_same_value(value):
    kept = decode_document(encode_document(Document("c", value, {})), source="c")
    assert typed(kept.root) == typed(value)


@given(VALUES)
def test_a_document_is_kept_as_one_line_of_ascii(value):
    assert b"\n" not in encode_document(Document("c", value, {})).decode("ascii").encode()


def test_a_fraction_keeps_its_spelling_and_a_list_is_no_map():
    text = b"a: 85.50\nb: [fraction, '1.0']\nc: []\nd: {}\ne: [[list]]\n"
    root = decode_document(encode_document(read_document(text, source="c")), source="c").root
    assert root == {"a": Decimal("85.50"), "b": ["fraction", "1.0"], "c": [], "d": {}, "e": [["list"]]}
    assert str(root["a"]) == "85.50"


def test_the_same_configuration_comes_of_a_kept_document():
    text = example_config("5d3c", "alice@example.org").encode()
    kept = decode_document(encode_document(read_document(text, source="c")), source="c")
    assert config_of(kept) == load_config(text, source="c")
    assert list(config_of(kept).shards) == list(load_config(text, source="c").shards)


def test_an_error_is_found_in_a_kept_document_as_well():
    with pytest.raises(ConfigError, match="unknown key"):
        config_of(decode_document(b'{"version":1,"repositori":"demo"}', source="c"))


@pytest.mark.parametrize(
    "damaged",
    [b"", b"{", b"1.5", b"[]", b"[1]", b'["fraction"]', b'["fraction", 1]', b'["fraction", "1", "2"]', b'[["x"]]'],
)
def test_what_was_never_kept_is_refused(damaged):
    with pytest.raises(ValueError):
        decode_document(damaged, source="c")


def test_a_fraction_that_is_none_is_refused():
    with pytest.raises((ValueError, ArithmeticError)):
        decode_document(json.dumps(["fraction", "one"]).encode(), source="c")
