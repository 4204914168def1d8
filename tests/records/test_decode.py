"""Strict reading of JSON, base64 and times that somebody else wrote."""

from __future__ import annotations

import base64
import itertools
import json
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.errors import DecodeError
from gitledger.records.decode import (
    Reader,
    byte_length,
    decode_base64,
    fail,
    format_time,
    load_json,
    parse_time,
    shown,
)
from gitledger.records.limits import MAX_JSON_DEPTH, MAX_NUMBER_CHARACTERS, MAX_TEXT_BYTES

LIMIT = 1 << 20

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def load(text: str | bytes):
    return load_json(text.encode() if isinstance(text, str) else text, limit=LIMIT)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


# What is no JSON of ours


@given(JSON)
def test_what_json_writes_is_read_back(value):
    assert load(json.dumps(value)) == value


@given(st.binary(max_size=200))
def test_bytes_are_read_or_refused_and_nothing_else(result_of, data):
    assert "\n" not in getattr(result_of(load, data), "message", "")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a":1,"a":1}', "$: duplicate key 'a'"),
        (
            '{"predicate":{"counts":{"passed":1,"failed":0,"passed":2}}}',
            "$.predicate.counts: duplicate key 'passed'",
        ),
        ('{"a":[0,{"b":1,"\\u0062":2}]}', "$.a[1]: duplicate key 'b'"),
        ('{"a b\\n":{"x":1,"x":2}}', "$.'a b\\n': duplicate key 'x'"),
        ("[" * 20 + '{"x":{},"x":{}}' + "]" * 20, "$" + "[0]" * 20 + ": duplicate key 'x'"),
        ('{"a":NaN}', "$.a: NaN is not JSON"),
        ("[1,Infinity]", "$[1]: Infinity is not JSON"),
        ('{"a":[-Infinity]}', "$.a[0]: -Infinity is not JSON"),
        ('{"a":1e999}', "$.a: a number is out of range"),
        ('{"a":-1e999}', "$.a: a number is out of range"),
        ('{"a":' + "1" * (MAX_NUMBER_CHARACTERS + 1) + "}", "$.a: a number is too long"),
        ('{"a":-' + "1" * MAX_NUMBER_CHARACTERS + "}", "$.a: a number is too long"),
        ('{"a":' + "1" * 300_000 + "}", "$.a: a number is too long"),
        ('{"a":0.' + "1" * MAX_NUMBER_CHARACTERS + "}", "$.a: a number is out of range or too long"),
    ],
)
def test_what_pythons_parser_would_take_is_refused_with_its_path(refused, text, path):
    assert refused(load, text).message.startswith(path)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"{",
        b"{}{}",
        b"{},",
        b"{'a':1}",
        b"{a:1}",
        b'{"a":1,}',
        b"[1,]",
        b"nul",
        b"01",
        b"+1",
        b".5",
        b"0x10",
        b'"\n"',
        b'"\x00"',
        b'"\\x"',
        b'"\\ud8"',
        b'"unfinished',
        b"\xff",
        b'"\xc3"',
        b'"\xed\xa0\x80"',  # a surrogate in UTF-8
        b'"\xc0\xaf"',  # an overlong slash
        b"\xef\xbb\xbf{}",  # a byte order mark
        '{"a":1}'.encode("utf-16"),
        b"// no\n{}",
    ],
)
def test_what_is_not_json_is_refused(refused, data):
    assert refused(load, data).message.startswith("$: not JSON")


def test_more_than_the_limit_is_refused_and_the_limit_is_not(refused):
    assert load_json(b'"12"', limit=4) == "12"
    assert "5 bytes, more than the limit of 4" in refused(load_json, b'"123"', limit=4).message


def test_a_lone_surrogate_escape_is_kept_as_git_paths_need_it():
    assert load('"\\udcff"') == "\udcff"


# Depth


@pytest.mark.parametrize("opener", ["[", '{"a":'])
def test_nesting_is_read_up_to_its_limit_and_refused_beyond(refused, opener):
    closer = "]" if opener == "[" else "}"

    def nested(levels: int) -> str:
        return opener * levels + ("1" if opener != "[" else "") + closer * levels

    assert load(nested(MAX_JSON_DEPTH))
    assert f"nested deeper than the limit of {MAX_JSON_DEPTH}" in refused(load, nested(MAX_JSON_DEPTH + 1)).message


def test_depth_and_not_the_number_of_brackets_counts():
    assert len(load("[" + ",".join(["[]"] * 5000) + "]")) == 5000


def test_brackets_inside_strings_are_no_nesting(refused):
    brackets = json.dumps('[{"\\' * 50)
    assert load(f"[{brackets}]") == ['[{"\\' * 50]
    closing = json.dumps("]" * 50)
    deep = f"[{closing}," * (MAX_JSON_DEPTH + 1) + "1" + "]" * (MAX_JSON_DEPTH + 1)
    assert "nested deeper" in refused(load, deep).message


@pytest.mark.parametrize("data", [b"[" * 500_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000])
def test_absurd_nesting_is_refused_and_not_a_crash(refused, data):
    assert refused(load, data).code == "malformed"


@pytest.mark.parametrize(
    "data", [b'"' + b'\\"' * 400_000, b'["' * 300_000, b"1" * 700_000, b'{"' + b"\\" * 700_000]
)
def test_hostile_text_takes_no_more_than_linear_time(refused, data):
    started = time.process_time()
    refused(load, data)
    assert time.process_time() - started < 1.0


# Base64


@given(st.binary(max_size=100))
def test_base64_is_read_back(data):
    assert decode_base64(base64.b64encode(data), "$") == data


@given(st.binary(max_size=12).map(base64.b64encode), st.integers(0, 20), st.binary(min_size=1, max_size=2))
def test_one_value_has_one_base64_spelling(encoded, place, insertion):
    other = encoded[:place] + insertion + encoded[place:]
    try:
        data = decode_base64(other, "$")
    except DecodeError:
        return
    assert base64.b64encode(data) == other


def spells(text: bytes) -> bool:
    """Tell whether encoding what a lenient decoder makes of a text gives it back."""
    try:
        return base64.b64encode(base64.b64decode(text)) == text
    except ValueError:
        return False


def test_every_short_text_is_read_exactly_where_encoding_again_spells_it():
    """Letters, one that leaves spare bits, padding, and what is no base64, in every order."""
    texts = [bytes(text) for size in range(9) for text in itertools.product(b"AB=!", repeat=size)]
    read = {}
    for text in texts:
        with suppress(DecodeError):
            read[text] = decode_base64(text, "$")
    assert all(base64.b64encode(data) == text for text, data in read.items())
    assert len(read) == len(set(read.values()))
    assert set(read) == {text for text in texts if spells(text)}


@pytest.mark.parametrize(
    "text",
    [
        b"QQ",
        b"QQ=",
        b"QR==",  # spare bits set
        b"QQ==\n",
        b" QQ==",
        b"QQ==QQ==",
        b"QQ===",
        b"Q",
        b"=",
        b"_-8=",
        b"QQ=\x00=",
        b"\xc3\xa9",
    ],
)
def test_another_spelling_of_base64_is_refused(refused, text):
    assert refused(decode_base64, text, "$.payload").message.startswith("$.payload: ")


# Times

NEAR_FIRST, NEAR_LAST = (datetime(year, 1, 1, tzinfo=UTC).replace(tzinfo=None) for year in (2, 9998))
TIMES = st.datetimes(timezones=st.just(UTC))


@given(TIMES)
def test_a_time_is_read_back_to_the_microsecond(when):
    assert parse_time(format_time(when)) == when


@given(st.datetimes(min_value=NEAR_FIRST, max_value=NEAR_LAST), st.integers(-1439, 1439))
def test_a_time_is_written_in_utc(when, minutes):
    local = when.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert format_time(local).endswith("Z")
    assert parse_time(format_time(local)) == local


def test_years_have_four_digits():
    assert format_time(datetime(7, 1, 2, tzinfo=UTC)) == "0007-01-02T00:00:00Z"


def test_a_time_without_a_zone_is_not_written():
    with pytest.raises(ValueError, match="without a zone"):
        format_time(NEAR_FIRST)


def test_digits_beyond_microseconds_are_cut_off():
    assert parse_time("2026-01-31T12:00:00.123456789Z") == datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
    assert parse_time("2026-01-31T12:00:00.5Z").microsecond == 500_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-01-31T12:00:00+00:00",
        "2026-01-31T12:00:00z",
        "2026-01-31t12:00:00Z",
        "2026-01-31 12:00:00Z",
        "2026-01-31T12:00Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00.1234567890Z",
        "2026-01-31T12:00:00,5Z",
        "2026-01-31T12:00:00Z\n",
        "2026-01-31T24:00:00Z",
        "2016-12-31T23:59:60Z",  # a leap second that was
        "2026-01-31T12:60:00Z",
        "2026-02-29T12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-00-10T12:00:00Z",
        "2026-01-00T12:00:00Z",
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "-026-01-01T00:00:00Z",
        "2026-W05-6T12:00:00Z",
        "٢٠٢٦-01-31T12:00:00Z",
    ],
)
def test_what_is_no_rfc_3339_time_in_utc_is_refused(text):
    with pytest.raises(ValueError):
        parse_time(text)


# Fields


def test_a_reader_gives_each_type(refused):
    reader = Reader(
        {
            "text": "é",
            "integer": -3,
            "number": 2.5,
            "boolean": False,
            "time": "2026-01-31T12:00:00Z",
            "word": "red",
            "child": {"x": 1},
            "children": [{"x": 1}, {"x": 2}],
            "texts": ["a", "b"],
            "integers": [0, 2**63 - 1],
            "map": {"k": "v"},
            "null": None,
        }
    )
    assert reader.text("text") == "é"
    assert reader.integer("integer", low=-3) == -3
    assert reader.number("number") == 2.5
    assert reader.number("integer") == -3.0
    assert reader.boolean("boolean") is False
    assert reader.time("time") == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert reader.choice("word", Colour) is Colour.RED
    assert reader.child("child").integer("x") == 1
    assert [item.path for item in reader.children("children", limit=2)] == ["$.children[0]", "$.children[1]"]
    assert reader.texts("texts", limit=2) == ("a", "b")
    assert reader.integers("integers", limit=2) == (0, 2**63 - 1)
    assert reader.text_map("map", limit=1) == {"k": "v"}
    for absent in ("null", "nowhere"):
        assert not reader.has(absent)
        assert reader.opt_text(absent) is None
        assert reader.opt_integer(absent) is None
        assert reader.opt_boolean(absent) is None
        assert reader.opt_child(absent) is None
        assert reader.opt_parsed(absent, parse_time) is None
        assert reader.opt_texts(absent, limit=1) == ()


WRONG_TYPES = {
    "text": [None, 1, True, [], {}],
    "integer": [None, "1", 1.0, True, [], -1, 2**63],
    "number": [None, "1", False, [], float("inf"), float("nan")],
    "boolean": [None, 0, 1, "true", []],
    "time": [None, 0, "yesterday"],
    "child": [None, [], "x", 1],
}


@pytest.mark.parametrize(
    ("getter", "value"), [(name, value) for name, values in WRONG_TYPES.items() for value in values]
)
def test_a_value_of_another_type_is_refused_with_its_path(refused, getter, value):
    reader = Reader({"field": value}, "$.predicate")
    assert refused(getattr(reader, getter), "field").message.startswith("$.predicate.field: ")


class Plain(Reader):
    """A reader whose getters look at a field in one way alone, whatever it holds."""

    def text(self, key, *, limit=MAX_TEXT_BYTES):
        value = self.raw(key)
        if not isinstance(value, str):
            fail(f"{self.path}.{key}", f"expected a string, found {KINDS[type(value)]}")
        if byte_length(value) > limit:
            fail(f"{self.path}.{key}", f"{byte_length(value)} bytes, more than the limit of {limit}")
        return value

    def boolean(self, key):
        value = self.raw(key)
        if not isinstance(value, bool):
            fail(f"{self.path}.{key}", f"expected true or false, found {KINDS[type(value)]}")
        return value

    def child(self, key):
        return Plain(self.raw(key), f"{self.path}.{key}")

    def texts(self, key, *, limit):
        items = self.items(key, limit=limit)
        return tuple(Plain({f"{key}[{i}]": item}, self.path).text(f"{key}[{i}]") for i, item in enumerate(items))

    def parsed(self, key, parse):
        value = self.text(key)
        try:
            return parse(value)
        except ValueError as error:
            fail(f"{self.path}.{key}", f"{error}; found {shown(value)}")


KINDS = {
    type(None): "null",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}
LONG = st.sampled_from(["x", "\u00e9", "\U0001f600"]).flatmap(
    lambda letter: st.sampled_from([1, 4096, 4097, 8192, 8193, 16384, 16385]).map(letter.__mul__)
)
GETTERS = {
    "text": lambda reader: reader.text("k"),
    "short text": lambda reader: reader.text("k", limit=3),
    "boolean": lambda reader: reader.boolean("k"),
    "child": lambda reader: (reader.child("k").path, reader.child("k").has("a"), reader.child("k")._data),
    "texts": lambda reader: reader.texts("k", limit=2),
    "number of a text": lambda reader: reader.parsed("k", int),
}
OPTIONAL = {
    "text": lambda reader: reader.opt_text("k"),
    "boolean": lambda reader: reader.opt_boolean("k"),
    "child": lambda reader: (child := reader.opt_child("k")) and (child.path, child._data),
    "texts": lambda reader: reader.opt_texts("k", limit=2),
    "number of a text": lambda reader: reader.opt_parsed("k", int),
    "integer": lambda reader: reader.opt_integer("k", high=9),
}
NONE_THERE = {"texts": ()}


def _got(get, reader):
    try:
        return get(reader)
    except DecodeError as error:
        return error.code, error.message if "more than the limit of 16384" not in error.message else "too long"


@given(
    st.fixed_dictionaries({}, optional={"k": JSON | LONG | st.lists(LONG | st.text(), max_size=3) | st.just("7")})
)
def test_getters_give_and_refuse_what_plain_ones_do(data):
    for get in GETTERS.values():
        assert _got(get, Reader(data)) == _got(get, Plain(data))
    for name, get in OPTIONAL.items():
        wanted = NONE_THERE.get(name) if data.get("k") is None else _got(get, Plain(data))
        assert _got(get, Reader(data)) == wanted


@pytest.mark.parametrize("getter", list(WRONG_TYPES))
def test_a_missing_field_is_refused_with_its_path(refused, getter):
    assert refused(getattr(Reader({}, "$.predicate"), getter), "field").message == "$.predicate.field: missing"


def test_lists_and_maps_are_held_to_types_and_limits(refused):
    reader = Reader(
        {"list": ["a", 1], "bools": [True], "low": [-1], "map": {"a": 1}, "pair": ["a", "b"], "text": "a"}
    )
    cases = {
        "$.list[1]: expected a string, found an integer": lambda: reader.texts("list", limit=9),
        "$.list[0]: expected an integer, found a string": lambda: reader.integers("list", limit=9),
        "$.bools[0]: expected an integer, found true or false": lambda: reader.integers("bools", limit=9),
        "$.low[0]: expected 0 to": lambda: reader.integers("low", limit=9),
        "$.map.'a': expected a string": lambda: reader.text_map("map", limit=9),
        "$.pair: 2 items, more than the limit of 1": lambda: reader.texts("pair", limit=1),
        "$.map: 1 entry, more than the limit of 0": lambda: reader.text_map("map", limit=0),
        "$.text: expected a list, found a string": lambda: reader.items("text", limit=9),
        "$.text: expected an object, found a string": lambda: reader.text_map("text", limit=9),
        "$.pair[0]: expected an object, found a string": lambda: reader.children("pair", limit=9),
        "$.text: expected one of red, blue; found 'a'": lambda: reader.choice("text", Colour),
    }
    for message, call in cases.items():
        assert refused(call).message.startswith(message)


def test_limits_of_text_count_bytes_and_not_characters(refused):
    fits, exceeds = "é" * (MAX_TEXT_BYTES // 2), "é" * (MAX_TEXT_BYTES // 2) + "e"
    reader = Reader(
        {"fits": fits, "exceeds": exceeds, "list": [exceeds], "map": {"k": exceeds}, "keys": {exceeds: "v"}}
    )
    assert reader.text("fits") == fits
    assert f"{MAX_TEXT_BYTES + 1} bytes, more than the limit" in refused(reader.text, "exceeds").message
    assert refused(reader.texts, "list", limit=1).message.startswith("$.list[0]: more than the limit")
    assert refused(reader.text_map, "map", limit=1).message.startswith("$.map.'k': more than the limit")
    assert "more than the limit" in refused(reader.text_map, "keys", limit=1).message


def test_a_lone_surrogate_has_a_length(refused):
    assert Reader({"a": "\udcff" * 4}).text("a", limit=12)
    assert refused(Reader({"a": "\udcff" * 4}).text, "a", limit=11)


def test_reading_changes_nothing():
    data = {"a": {"b": ["c"]}}
    Reader(data).child("a").texts("b", limit=1)
    assert data == {"a": {"b": ["c"]}}


@given(st.text() | st.integers() | st.lists(st.text(), max_size=3))
def test_what_is_shown_is_short_printable_ascii(value):
    text = shown(value)
    assert len(text) <= 60
    assert text.isascii()
    assert text.isprintable()
