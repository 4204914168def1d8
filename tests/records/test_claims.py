"""What every kind of record has in common: read back as written, each fault refused with its path."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitledger.errors import DecodeError
from gitledger.records.envelope import record_id
from gitledger.records.limits import MAX_PAYLOAD_BYTES, MAX_TEXT_BYTES
from gitledger.records.receipt import ShardReceipt
from gitledger.records.statement import (
    PREDICATE_TYPES,
    SHARD_RECEIPT,
    Statement,
    Subject,
    encode_statement,
    readable,
)

NULLABLE = {
    "shard": {
        "shard.variant",
        "shard.split",
        "manifest.outside",
        "manifest.extra",
        "repo.branch",
        "repo.remote",
        "repo.created",
        "repo.dirty_paths",
        "session.signal",
        "session.workers",
        "environment.python",
        "environment.pytest",
        "environment.coverage",
        "environment.platform.libc",
        "environment.gpu",
        "environment.gpu.driver",
        "environment.gpu.runtime",
        "signer",
        "bodies.coverage",
        "bodies.inputs",
        "bodies.log",
    },
    "merged": {
        "shards.signer",
        "shards.key_fingerprint",
        "shards.carried",
        "shards.carried.original_signer",
        "shards.carried.distance",
        "shards.variant",
        "repo.branch",
        "repo.remote",
        "repo.created",
        "repo.dirty_paths",
        "environment.python",
        "environment.pytest",
        "environment.coverage",
        "environment.platform.libc",
        "environment.gpu",
        "environment.gpu.driver",
        "environment.gpu.runtime",
        "coverage",
        "signer",
    },
    "revocation": {"signer"},
}
"""Fields of the predicates that may be null; all of them but `signer` may be absent too."""
ELSEWHERE = {
    "bodies.tests": ("$.predicate.outcome",),
    "session.exit_status": ("$.predicate.outcome",),
    "coverage.threshold": ("$.predicate.coverage.passed",),
}
"""Fields that may be null in themselves, but not beside the rest of this claim."""
IGNORED = {("subject", 0, "name")}
"""Written for in-toto's sake, never read."""


def field_of(path) -> str:
    """Return a path without `predicate` and list places."""
    return ".".join(str(step) for step in path[1:] if not isinstance(step, int))


def test_a_record_is_read_back_as_written(claim):
    raw = claim.value.encode()
    statement = Statement.decode(raw)
    assert claim.decode(statement) == claim.value
    assert claim.decode(statement).encode() == raw
    assert statement.id == record_id(raw)
    assert statement.signer == claim.value.signer


def test_a_payload_is_sorted_ascii_without_white_space(claim):
    raw = claim.value.encode()
    assert raw == json.dumps(json.loads(raw), separators=(",", ":"), sort_keys=True).encode("ascii")


def test_every_field_that_is_removed_or_null_is_missed_or_may_be_absent(claim, surgery, refused):
    document, seen = claim.document(), set()
    for path in surgery.places(document):
        if path in IGNORED or isinstance(path[-1], int):
            continue
        field = field_of(path)
        for changed, optional in (
            (surgery.drop(document, path), NULLABLE[claim.name] - {"signer"}),
            (surgery.put(document, path, None), NULLABLE[claim.name]),
        ):
            if path[0] == "predicate" and field in optional:
                claim.read(changed)
                seen.add(field)
            elif field != "shards.variant":
                message = refused(claim.read, changed).message
                assert message.startswith((surgery.spell(path), *ELSEWHERE.get(field, ()))), message
    assert seen | {"signer"} >= NULLABLE[claim.name] - {"signer"}


@pytest.mark.parametrize("value", [True, 7.5, "?", [], {}, -1, [None], "x" * (MAX_TEXT_BYTES + 1)], ids=repr)
def test_every_field_of_a_wrong_type_is_refused_with_its_path(claim, surgery, refused, value):
    document, tried = claim.document(), 0
    for path in surgery.places(document):
        held = document
        for step in path:
            held = held[step]
        alike = type(held) is type(value) or (held is None) or (isinstance(held, int) and isinstance(value, int))
        if path in IGNORED or (alike and not isinstance(held, bool) and len(str(value)) < MAX_TEXT_BYTES):
            continue
        if type(held) is bool and type(value) is bool:
            continue
        message = refused(claim.read, surgery.put(document, path, value)).message
        assert message.startswith(surgery.spell(path)), message
        tried += 1
    assert tried > 5


def test_unknown_fields_are_ignored_and_kept(claim, surgery):
    document = claim.document()
    places = [(), *surgery.places(document)]
    for path in places:
        held = document
        for step in path:
            held = held[step]
        if isinstance(held, dict):
            changed = surgery.put(document, (*path, "x-later"), {"any": [1, None]})
            assert claim.read(changed) == claim.value
            assert b"x-later" in Statement.decode(json.dumps(changed).encode()).raw


def test_a_record_of_another_kind_is_refused(claim, claims, refused):
    for other in claims:
        if other is not claim:
            statement = Statement.decode(other.value.encode())
            assert refused(claim.decode, statement).message.startswith("$.predicateType: not a")


def test_an_unknown_version_is_refused(claim, surgery, refused):
    document = claim.document()
    major = surgery.put(document, ("predicateType",), document["predicateType"].replace("v1", "v2"))
    assert "unknown type or major version" in refused(claim.read, major).message
    for version in (0, 2):
        minor = surgery.put(document, ("predicate", "record_version"), version)
        assert refused(claim.read, minor).message.startswith("$.predicate.record_version: ")


def test_a_subject_is_one_commit_by_both_digests(claim, surgery, refused):
    document = claim.document()
    digests = ("subject", 0, "digest")
    cases = {
        "$.subject: expected exactly one": surgery.put(document, ("subject",), []),
        "$.subject: 2 items": surgery.put(document, ("subject",), document["subject"] * 2),
        "$.subject[0].digest.gitCommit: ": surgery.put(document, (*digests, "gitCommit"), "abc"),
        "$.subject[0].digest.gitTree: missing": surgery.drop(document, (*digests, "gitTree")),
        "$.subject[0].digest: commit and tree": surgery.put(document, (*digests, "gitTree"), "a" * 64),
    }
    for message, changed in cases.items():
        assert refused(claim.read, changed).message.startswith(message)


def test_a_payload_that_is_no_statement_is_refused(claim, surgery, refused):
    other = surgery.put(claim.document(), ("_type",), "https://in-toto.io/Statement/v0.1")
    assert refused(claim.read, other).message.startswith("$._type: ")
    for raw in (b"", b"[]", b'"x"', b"null", b"7"):
        assert refused(claim.read, raw).code == "malformed"


MUTANTS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["passed", "failed", "2026-02-30T00:00:00Z", "a" * 40, "a" * 64, "\ud800", "l1@a"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.none(), max_size=2),
)


@settings(max_examples=400)
@given(data=st.data())
def test_t05_a_payload_changed_anywhere_is_read_or_refused_and_nothing_else(claims, surgery, result_of, data):
    claim = data.draw(st.sampled_from(claims))
    document = claim.document()
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(surgery.places(document))))
        drop = data.draw(st.booleans())
        document = surgery.drop(document, path) if drop else surgery.put(document, path, data.draw(MUTANTS))
    value = result_of(claim.read, json.dumps(document).encode())
    if isinstance(value, DecodeError):
        assert value.message.startswith("$")
        assert "\n" not in value.message
        assert len(value.message) < 400
    else:
        assert claim.read(value.encode()) == value


@given(st.binary(max_size=200))
def test_bytes_are_a_statement_or_refused_and_nothing_else(result_of, data):
    assert "\n" not in getattr(result_of(Statement.decode, data), "message", "")


def test_t05_a_payload_with_any_byte_changed_is_refused_or_has_another_id(claim):
    raw = claim.value.encode()
    for place in range(len(raw)):
        changed = raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
        try:
            statement = Statement.decode(changed)
            claim.decode(statement)
        except DecodeError:
            continue
        assert statement.id != record_id(raw)


def test_no_more_is_written_than_readers_take(refused):
    subject = Subject(commit="a" * 40, tree="b" * 40)
    big = {"signer": None, "text": "x" * MAX_PAYLOAD_BYTES}
    fault = refused(encode_statement, subject=subject, predicate_type=SHARD_RECEIPT, predicate=big)
    assert fault.code == "record-too-large"


def test_what_no_reader_accepts_is_not_written(refused):
    subject = Subject(commit="a" * 40, tree="b" * 40)
    raw = encode_statement(subject=subject, predicate_type=SHARD_RECEIPT, predicate={"signer": None})
    fault = refused(readable, raw, ShardReceipt.decode)
    assert fault.code == "record-unreadable"
    assert "$.predicate.record_version: missing" in fault.message


def test_every_kind_of_record_is_checked_before_it_is_written(claim, refused):
    unwritable = replace(claim.value, repository="x" * (MAX_TEXT_BYTES + 1))
    fault = refused(unwritable.encode)
    assert fault.code == "record-unreadable"
    assert "$.predicate.repository: " in fault.message


def test_the_predicate_types_are_these():
    assert sorted(PREDICATE_TYPES) == [
        "urn:gitledger:capability:v1",
        "urn:gitledger:imported:v1",
        "urn:gitledger:receipt:merged:v1",
        "urn:gitledger:receipt:shard:v1",
        "urn:gitledger:revocation:v1",
    ]
