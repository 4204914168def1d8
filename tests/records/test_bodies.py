"""Bodies: bulk data, read as if an enemy had written it."""

from __future__ import annotations

import datetime
import hashlib
import struct
import tracemalloc
import zlib
from dataclasses import FrozenInstanceError, replace

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitledger.errors import DecodeError
from gitledger.records import bodies
from gitledger.records.bodies import (
    NO_RESULTS,
    BodyRef,
    Check,
    Inputs,
    TestResult,
    check_body,
    collection_digest,
    decode_inputs,
    decode_log,
    decode_results,
    decode_tests,
    encode_inputs,
    encode_log,
    encode_tests,
    pack,
    unpack,
)
from gitledger.records.decode import Reader
from gitledger.records.ids import NodeId
from gitledger.records.limits import (
    MAX_BODY_BYTES,
    MAX_BODY_LIST,
    MAX_BODY_UNPACKED_BYTES,
    MAX_NODE_ID_BYTES,
    MAX_TEXT_BYTES,
)
from gitledger.records.outcomes import Counts, TestOutcome

TEXT = st.text(st.characters(categories=None))
"""Any string, lone surrogates and NUL included."""
RESULTS = st.lists(
    st.builds(
        TestResult,
        node_id=TEXT.map(NodeId),
        outcome=st.sampled_from(TestOutcome),
        phase=st.sampled_from([None, "setup", "call", "teardown", "collect"]),
        duration_ns=st.integers(0, 2**63 - 1) | st.integers(0, 10**6).map(lambda micro: micro * 1000),
        attempts=st.integers(1, 100),
        checks=st.lists(st.builds(Check, name=TEXT, passed=st.booleans(), detail=TEXT), max_size=3).map(tuple),
    ),
    max_size=5,
).map(tuple)


def body_of(raw: bytes) -> bytes:
    """Return a body around any bytes in the place of msgpack."""
    return b"\x01" + zlib.compress(raw)


def body_with(**changes) -> bytes:
    value = {"kind": "tests", "unit_ns": 1, "columns": [["t.py::a"], [0], [0], [5], [1], [[]]]} | changes
    return body_of(msgpack.packb(value))


# Round trips


@given(RESULTS)
def test_results_are_read_back_as_written(results):
    assert decode_tests(encode_tests(results)) == results


def test_results_without_checks_are_as_good_as_any_other():
    """They are filled a column at a time; nobody can tell, and nobody can change them afterwards."""
    plain = [
        TestResult(node_id=NodeId("t.py::a"), outcome=TestOutcome.PASSED, phase="call", duration_ns=7, attempts=2),
        TestResult(node_id=NodeId("t.py::\u00e9"), outcome=TestOutcome.FAILED),
    ]
    checked = replace(plain[0], node_id=NodeId("t.py::b"), checks=(Check(name="close", passed=True),))
    read = decode_tests(encode_tests(plain))
    assert read == tuple(plain)
    assert read == decode_tests(encode_tests([*plain, checked]))[:2]
    assert [hash(item) for item in read] == [hash(item) for item in plain]
    assert (read[0].outcome, read[1].phase, read[1].checks) == (TestOutcome.PASSED, None, ())
    with pytest.raises(FrozenInstanceError):
        read[0].attempts = 1


PLAIN = RESULTS.map(lambda found: tuple(replace(result, checks=()) for result in found))


@given(RESULTS | PLAIN)
def test_columns_say_what_the_results_say_one_by_one(results):
    columns = decode_results(encode_tests(results))
    assert tuple(columns) == tuple(columns) == results
    assert (len(columns), bool(columns)) == (len(results), bool(results))
    assert columns.node_ids == tuple(result.node_id for result in results)
    counts = Counts.of((result.outcome for result in results), collected=9, deselected=2)
    assert columns.counts(collected=9, deselected=2) == counts
    for ways in ((), (TestOutcome.SKIPPED,), (TestOutcome.FAILED, TestOutcome.ERROR), tuple(TestOutcome)):
        assert columns.ended(*ways) == [result.node_id for result in results if result.outcome in ways]
    assert columns.failed_checks == tuple(
        f"{result.node_id}: {check.name}" for result in results for check in result.checks if not check.passed
    )


@given(PLAIN)
def test_plain_columns_are_the_results_that_are_read_row_by_row(results):
    """What is told a column at a time is what the rows, each looked at by itself, come to."""
    blob = encode_tests(results)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies, "_are_plain", lambda columns, unit: False)
        by_rows = decode_results(blob)
    assert decode_results(blob) == by_rows


def test_no_results_are_none_of_anything():
    assert tuple(NO_RESULTS) == NO_RESULTS.node_ids == NO_RESULTS.failed_checks == ()
    assert NO_RESULTS.counts(collected=0) == Counts()
    assert tuple(decode_results(encode_tests([]))) == ()


def test_u07_odd_node_ids_are_kept_exactly_and_never_merged(results):
    read = decode_tests(encode_tests(results))
    assert read == results
    assert len({result.node_id for result in read}) == len(results)


@given(TEXT)
def test_a_log_is_read_back_as_written(text):
    assert decode_log(encode_log(text)) == text


@given(RESULTS)
def test_the_same_results_are_the_same_body(results):
    assert encode_tests(results) == encode_tests(list(results))


def test_no_results_are_a_body_too():
    assert decode_tests(encode_tests([])) == ()


def test_whole_microseconds_take_less_room_than_nanoseconds(results):
    finer = [
        TestResult(node_id=r.node_id, outcome=r.outcome, duration_ns=r.duration_ns + 1) for r in results[:100]
    ]
    assert len(encode_tests(results[:100])) < len(encode_tests(finer)) - 50


# The reference


def test_a_reference_names_the_blob_as_git_does(git_repo, results):
    blob = encode_tests(results)
    ref = BodyRef.of(blob)
    assert git_repo.git("hash-object", "--stdin", input=blob) == ref.oid
    assert ref.sha256 == hashlib.sha256(blob).hexdigest()
    assert BodyRef.decode(Reader(ref.encode())) == ref


def test_a_reference_in_a_sha256_repository(make_repo):
    repo = make_repo("wide", "--object-format=sha256")
    assert repo.git("hash-object", "--stdin", input=b"body") == BodyRef.of(b"body", object_format="sha256").oid


def test_t05_a_body_with_any_byte_changed_is_not_the_one_named_and_never_a_crash(result_of, results):
    blob = encode_tests(results[95:])
    ref = BodyRef.of(blob)
    check_body(ref, blob)
    for place in range(len(blob)):
        for flip in (1, 0x80):
            changed = blob[:place] + bytes([blob[place] ^ flip]) + blob[place + 1 :]
            with pytest.raises(DecodeError):
                check_body(ref, changed)
            assert "\n" not in getattr(result_of(decode_tests, changed), "message", "")


def test_a_body_that_is_cut_or_longer_is_not_the_one_named(refused):
    blob = encode_log("text")
    for changed in (blob[:-1], blob + b"\x00", b""):
        assert refused(check_body, BodyRef.of(blob), changed).code == "body-corrupt"


# What is no body


@settings(max_examples=300)
@given(st.binary(max_size=60).flatmap(lambda raw: st.sampled_from([raw, b"\x01" + raw, body_of(raw)])))
def test_bytes_are_a_body_or_refused_and_nothing_else(result_of, blob):
    for decode in (unpack, decode_tests, decode_log):
        assert "\n" not in getattr(result_of(decode, blob), "message", "")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 2**64 - 1)
    | st.floats()
    | st.text(max_size=3)
    | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300)
@given(st.integers(0, 5), st.lists(VALUES, max_size=2), st.sampled_from(["column", "columns", "unit_ns", "kind"]))
def test_a_tests_body_of_wrong_values_is_refused_and_nothing_else(result_of, place, value, field):
    columns = [["t.py::a"], [0], [0], [5], [1], [[]]]
    if field == "column":
        columns[place] = value
        blob = body_with(columns=columns)
    else:
        blob = body_with(**{field: value})
    read = result_of(decode_tests, blob)
    if isinstance(read, DecodeError):
        assert "$." in read.message
    else:
        assert decode_tests(encode_tests(read)) == read


WRONG_RESULTS = {
    "$.columns[0][0]": [[7], [0], [0], [5], [1], [[]]],
    "$.columns[1][0]": [["a"], [6], [0], [5], [1], [[]]],
    "$.columns[1][0]: unknown": [["a"], [-1], [0], [5], [1], [[]]],
    "$.columns[1][0]: unknown outcome": [["a"], [False], [0], [5], [1], [[]]],
    "$.columns[2][0]": [["a"], [0], [5], [5], [1], [[]]],
    "$.columns[2][0]: unknown": [["a"], [0], [None], [5], [1], [[]]],
    "$.columns[2][0]: unknown phase": [["a"], [0], [True], [5], [1], [[]]],
    "$.columns[3][0]": [["a"], [0], [0], [-1], [1], [[]]],
    "$.columns[3][0]: duration": [["a"], [0], [0], [1.5], [1], [[]]],
    "$.columns[3][0]: duration: expected": [["a"], [0], [0], [2**63], [1], [[]]],
    "$.columns[4][0]": [["a"], [0], [0], [5], [0], [[]]],
    "$.columns[4][0]: attempts": [["a"], [0], [0], [5], [True], [[]]],
    "$.columns[4][0]: attempts: expected": [["a"], [0], [0], [5], [2**63], [[]]],
    "$.columns[5][0]": [["a"], [0], [0], [5], [1], [None]],
    "$.columns[5][0]: checks": [["a"], [0], [0], [5], [1], [[["name", 1, ""]]]],
    "$.columns[5][0]: checks: expected [": [["a"], [0], [0], [5], [1], [[["name", True]]]],
    "$.columns: expected": [["a"], [0], [0], [5], [1]],
    "$.columns: expected 6": [["a"], [0], [0], [5], [1], []],
    "$.columns: expected 6 lists": [["a"], [0], [0], [5], [1], "x"],
}


@pytest.mark.parametrize(("message", "columns"), WRONG_RESULTS.items(), ids=WRONG_RESULTS.keys())
def test_a_wrong_result_is_refused_with_its_path(refused, message, columns):
    assert refused(decode_tests, body_with(columns=columns)).message.startswith(message)


def test_a_body_of_another_kind_or_unit_is_refused(refused):
    assert "not a body of test results" in refused(decode_tests, encode_log("x")).message
    assert "not a body of test results" in refused(decode_tests, pack([1])).message
    assert "not a log body" in refused(decode_log, encode_tests([])).message
    assert "not a log body" in refused(decode_log, pack({"kind": "log", "text": 1})).message
    for unit in (0, 2, True, None, -1):
        assert "$.unit_ns" in refused(decode_tests, body_with(unit_ns=unit)).message


GOOD = zlib.compress(msgpack.packb({"kind": "log", "text": "x" * 500}))
NO_BODIES = {
    "nothing": b"",
    "a version alone": b"\x01",
    "version 0": b"\x00" + GOOD,
    "version 2": b"\x02" + GOOD,
    "no zlib": b"\x01plain text",
    "gzip": b"\x01\x1f\x8b\x08\x00",
    "cut short": b"\x01" + GOOD[:-1],
    "trailing bytes": b"\x01" + GOOD + b"\x00",
    "a second stream": b"\x01" + GOOD + GOOD,
    "empty stream": body_of(b""),
    "msgpack cut short": body_of(b"\x92\x01"),
    "two msgpack values": body_of(b"\x01\x01"),
    "never used byte": body_of(b"\xc1"),
    "an extension": body_of(msgpack.packb(msgpack.ExtType(5, b"x"))),
    "a key that is a number": body_of(msgpack.packb({1: 2})),
    "a key that is a list": body_of(b"\x81\x90\x01"),
    "a key twice": body_of(b"\x82\xa1a\x01\xa1a\x02"),
    "invalid UTF-8": body_of(b"\xa1\xff"),
    "a list of 4 thousand million": body_of(b"\xdd" + struct.pack(">I", 2**32 - 1)),
    "a map of 4 thousand million": body_of(b"\xdf" + struct.pack(">I", 2**32 - 1)),
    "a string of 4 GB": body_of(b"\xdb" + struct.pack(">I", 2**32 - 1)),
    "bytes of 4 GB": body_of(b"\xc6" + struct.pack(">I", 2**32 - 1)),
    "an extension of 4 GB": body_of(b"\xc9" + struct.pack(">I", 2**32 - 1) + b"\x05"),
    "long lists in each other": body_of((b"\xdd" + struct.pack(">I", 900_000)) * 500),
    "lists 100,000 deep": body_of(b"\x91" * 100_000 + b"\xc0"),
    "maps 100,000 deep": body_of(b"\x81\xa1a" * 100_000 + b"\xc0"),
}


@pytest.mark.parametrize("blob", NO_BODIES.values(), ids=NO_BODIES.keys())
def test_what_is_no_body_is_refused(refused, blob):
    assert refused(unpack, blob).code == "body-corrupt"


@pytest.mark.parametrize("kind", [datetime.datetime.fromtimestamp(0, datetime.UTC), msgpack.Timestamp(1, 2)])
def test_a_timestamp_is_nothing_that_a_body_may_hold(refused, kind):
    raw = msgpack.packb(kind, datetime=True)
    assert refused(decode_tests, body_of(raw))
    assert refused(decode_log, body_of(b"\x82\xa4kind\xa3log\xa4text" + raw))
    column = b"\x91" + raw
    row = b"\x96" + column * 6
    assert refused(decode_tests, body_of(b"\x83\xa4kind\xa5tests\xa7unit_ns\x01\xa7columns" + row))


# Limits

BOMB = b"\x01" + zlib.compress(bytes(MAX_BODY_UNPACKED_BYTES + 1), 9)


def test_a_decompression_bomb_is_refused(refused):
    assert len(BOMB) < 1 << 20
    assert refused(unpack, BOMB).code == "body-too-large"


def test_a_decompression_bomb_is_not_even_unpacked(refused, monkeypatch):
    monkeypatch.setattr(bodies, "MAX_BODY_UNPACKED_BYTES", 1000)
    bomb = body_of(bytes(32 << 20))
    tracemalloc.start()
    try:
        refused(unpack, bomb)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_the_limits_hold_for_reading(refused):
    assert refused(unpack, b"\x01" + bytes(MAX_BODY_BYTES)).code == "body-too-large"
    assert refused(unpack, body_of(msgpack.packb([0] * (MAX_BODY_LIST + 1)))).code == "body-corrupt"
    long_id = "é" * (MAX_NODE_ID_BYTES // 2) + "x"
    assert "node id" in refused(decode_tests, body_with(columns=[[long_id], [0], [0], [5], [1], [[]]])).message
    long_check = [["n", True, "é" * (MAX_TEXT_BYTES // 2) + "x"]]
    assert "a check" in refused(decode_tests, body_with(columns=[["a"], [0], [0], [5], [1], [long_check]])).message


def test_the_limits_hold_for_writing(refused):
    def result(**changes) -> TestResult:
        return TestResult(**({"node_id": NodeId("t.py::a"), "outcome": TestOutcome.PASSED} | changes))

    fits = result(node_id=NodeId("é" * (MAX_NODE_ID_BYTES // 2)))
    assert decode_tests(encode_tests([fits])) == (fits,)
    for wrong in (
        result(node_id=fits.node_id + "x"),
        result(duration_ns=-1),
        result(duration_ns=2**63),
        result(attempts=0),
        result(checks=(Check(name="x" * (MAX_TEXT_BYTES + 1), passed=True),)),
    ):
        assert refused(encode_tests, [wrong]).message.startswith("$.columns[")
    assert refused(pack, [0] * (MAX_BODY_LIST + 1))
    assert refused(pack, {1: 2}).code == "body-corrupt"


def test_a_body_larger_than_its_limit_is_not_written(refused, monkeypatch):
    monkeypatch.setattr(bodies, "MAX_BODY_UNPACKED_BYTES", 100)
    assert refused(encode_log, "x" * 100).code == "body-too-large"
    monkeypatch.undo()
    monkeypatch.setattr(bodies, "MAX_BODY_BYTES", 20)
    assert refused(encode_log, "abcdefghijklmnopqrstuvwxyz").code == "body-too-large"


def test_more_items_than_a_body_may_hold_are_refused(refused, monkeypatch):
    monkeypatch.setattr(bodies, "MAX_BODY_ITEMS", 10)
    assert pack([[1, 2, 3], [4, 5, 6], {"a": 1}])
    assert refused(pack, [[1, 2, 3], [4, 5, 6], {"a": 1, "b": 2}]).code == "body-too-large"


# The collection's digest


@given(st.lists(TEXT), st.randoms())
def test_a_collection_is_told_by_its_ids_and_not_by_their_order(ids, random):
    shuffled = list(ids)
    random.shuffle(shuffled)
    assert collection_digest(shuffled) == collection_digest(ids)


@given(st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=4))
def test_two_collections_have_one_digest_only_if_they_hold_the_same_ids(one, other):
    assert (collection_digest(one) == collection_digest(other)) == (sorted(one) == sorted(other))


@given(st.lists(TEXT | st.text(st.characters(codec="ascii"))))
def test_a_collections_digest_is_over_the_bytes_of_its_sorted_ids(ids):
    raws = sorted(node_id.encode("utf-8", "surrogatepass") for node_id in ids)
    assert collection_digest(ids) == hashlib.sha256(b"".join(b"%d:" % len(raw) + raw for raw in raws)).hexdigest()


def test_a_collection_counts_repeats_and_keeps_borders():
    digests = [["a", "a"], ["a"], ["aa"], [], [""], ["1:a"], ["a", "1:a"], ["e\u0301"], ["\u00e9"]]
    assert len({collection_digest(ids) for ids in digests}) == len(digests)
    assert collection_digest([]) == hashlib.sha256(b"").hexdigest()
    assert collection_digest(["b", "é"]) == hashlib.sha256(b"1:b2:\xc3\xa9").hexdigest()


def test_inputs_come_back_as_they_were_and_nothing_else_is_taken_for_them():
    for inputs in (
        Inputs(paths=(), roots=None),
        Inputs(paths=("a/b.py", "\udcff\n"), roots=(".",)),
    ):
        assert decode_inputs(encode_inputs(inputs)) == inputs
    broken = [
        {"kind": "log", "text": ""},
        {"kind": "inputs", "paths": "abc", "roots": None},
        {"kind": "inputs", "paths": ["a", 1], "roots": None},
        {"kind": "inputs", "paths": [], "roots": [b"a"]},
        {"kind": "inputs", "paths": ["x" * (MAX_TEXT_BYTES + 1)], "roots": None},
        {"kind": "inputs", "paths": []},
        [],
    ]
    for value in broken:
        with pytest.raises(DecodeError):
            decode_inputs(pack(value))
    with pytest.raises(DecodeError):
        encode_inputs(Inputs(paths=("x" * (MAX_TEXT_BYTES + 1),), roots=None))
