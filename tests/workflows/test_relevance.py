"""What is left unread at a glance may not matter: the glance errs on the side of reading."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from itertools import chain, count

import pytest

from gitledger.records.ids import BlobId, CommitId, Digest, ShardKey
from gitledger.store.marks import look
from gitledger.workflows.relevance import NEAREST, Relevance, Seen, marks_of, mattering

WANTED, OTHER = "a" * 64, "b" * 64
TARGET, FAR = "f" * 40, "e" * 40


def line(
    kind: str = "receipt:shard", digest: str = OTHER, name: str = "unit", variant: str | None = None, **more
) -> bytes:
    predicate = {
        "manifest": {"digest": digest, "paths": []},
        "shard": {"attempt": 1, "name": name, "split": None, "variant": variant},
    }
    payload = {"_type": "x", "predicate": predicate | more, "predicateType": f"urn:gitledger:{kind}:v1"}
    text = json.dumps(payload, separators=(",", ":"), sort_keys=True).encode()
    document = {"payload": base64.b64encode(text).decode(), "payloadType": "t", "signatures": []}
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def relevance(**changes) -> Relevance:
    given = {"digests": [Digest(WANTED)], "by_name": [], "merged_matter": False} | changes
    return Relevance(**given)


def matters(lines: list[bytes], **changes) -> bool:
    """Tell whether lines on a commit that is no ancestor matter."""
    return found({FAR: lines}, **changes) == [(FAR, None)]


def found(notes: dict[str, list[bytes]], ancestors: Iterable[list[str]] = (), **changes) -> list:
    """Return the commits that matter, of some with notes; `ancestors` of the target by distance."""
    blobs = {commit: frozenset({BlobId(commit)}) for commit in notes}
    seen = look(20, blobs, lambda asked: {blob: marks_of(notes[blob]) for blob in asked})
    rings = chain([[TARGET]], ancestors)
    return list(mattering(relevance(**changes), Seen(seen, {}), rings, CommitId(TARGET)))


def test_the_targets_inputs_matter_wherever_they_lie():
    assert matters([line(digest=WANTED)])
    assert matters([line(), line(digest=WANTED)])
    assert not matters([line()])


def test_the_nearest_of_each_shard_matter_for_the_reason():
    near = [f"{number:040x}" for number in range(NEAREST + 2)]
    notes = {commit: [line()] for commit in near}
    assert found(notes, [[commit] for commit in near]) == list(zip(near[:NEAREST], count(1), strict=False))
    assert found(notes, [near]) == [(commit, 1) for commit in near[:NEAREST]]
    notes[near[-1]] = [line(), line(variant="a100")]
    assert found(notes, [near])[-1] == (near[-1], 1)
    notes[near[-1]] = [line(name="other")]
    assert found(notes, [near])[-1] == (near[-1], 1)


def test_history_is_followed_no_further_than_there_is_something_to_find():
    near = [f"{number:040x}" for number in range(NEAREST)]
    rings = [[commit] for commit in near]

    def endless():
        yield from rings
        raise AssertionError("the history of a name that was found often enough was followed on")

    assert len(found({commit: [line()] for commit in near}, endless())) == NEAREST


def test_what_was_dropped_from_a_commit_counts_like_what_hangs_there():
    near, nearer = "1" * 40, "2" * 40
    seen = look(20, {near: frozenset({BlobId(near)})}, lambda blobs: {blob: marks_of([line()]) for blob in blobs})

    def with_dropped(dropped: bytes) -> list:
        added = {CommitId(nearer): marks_of([dropped])}
        return list(mattering(relevance(), Seen(seen, added), [[TARGET], [nearer], [near]], CommitId(TARGET)))

    assert with_dropped(line(name="other")) == [(nearer, 1), (near, 2)]
    assert with_dropped(line(kind="receipt:merged")) == [(near, 2)]
    assert with_dropped(b"garbage") == [(nearer, 1), (near, 2)]


def test_what_is_no_ancestor_comes_last():
    near = "1" * 40
    assert found({FAR: [line(digest=WANTED)], near: [line()]}, [[near]]) == [(near, 1), (FAR, None)]


def test_shards_with_extra_inputs_matter_by_name():
    named = [ShardKey("unit", "a100")]
    assert matters([line(variant="a100")], by_name=named)
    assert not matters([line()], by_name=named)
    assert not matters([line(name="uni", variant="ta100")], by_name=named)


@pytest.mark.parametrize(
    "strange",
    [
        b"garbage",
        b'{"payload":"!!!"}',
        line(kind="receipt:shard:v2"),
        line(kind="unheard-of"),
        line().replace(b'{"payload', b'{ "payload'),
        b'{"payload":"' + base64.b64encode(b'{"predicateType":"urn:gitledger:receipt:shard:v1"}') + b'"}',
    ],
)
def test_whatever_can_not_be_read_at_a_glance_matters(strange: bytes):
    assert matters([strange])
    assert matters([line(), strange])


def test_a_note_without_lines_may_be_one_that_was_too_large():
    assert matters([])


def test_a_decoy_only_adds():
    assert matters([line(digest=WANTED, aaa={"manifest": {"digest": OTHER}})])
    assert matters([line(digest=OTHER, aaa={"manifest": {"digest": WANTED}})])


def test_merged_receipts_matter_where_keys_expire():
    merged = line(kind="receipt:merged")
    assert not matters([merged])
    assert matters([merged], merged_matter=True)
