"""What is left unread at a glance may not matter: the glance errs on the side of reading."""

from __future__ import annotations

import base64
import json

import pytest

from gitledger.records.ids import Digest, ShardKey
from gitledger.workflows.relevance import NEAREST, Relevance

WANTED, OTHER = "a" * 64, "b" * 64


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


def test_the_targets_inputs_matter_wherever_they_lie():
    assert relevance().of([line(), line(digest=WANTED)], is_near=False)
    assert not relevance().of([line()], is_near=False)


def test_the_nearest_of_each_shard_matter_for_the_reason():
    asked = relevance()
    assert [asked.of([line()], is_near=True) for _ in range(NEAREST + 2)] == [True] * NEAREST + [False] * 2
    assert asked.of([line(variant="a100")], is_near=True)
    assert asked.of([line(name="other")], is_near=True)


def test_shards_with_extra_inputs_matter_by_name():
    asked = relevance(by_name=[ShardKey("unit", "a100")])
    assert asked.of([line(variant="a100")], is_near=False)
    assert not asked.of([line()], is_near=False)


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
    assert relevance().of([strange], is_near=False)


def test_a_decoy_only_adds():
    assert relevance().of([line(digest=WANTED, aaa={"manifest": {"digest": OTHER}})], is_near=False)
    assert relevance().of([line(digest=OTHER, aaa={"manifest": {"digest": WANTED}})], is_near=False)


def test_merged_receipts_matter_where_keys_expire():
    merged = line(kind="receipt:merged")
    assert not relevance().of([merged], is_near=False)
    assert relevance(merged_matter=True).of([merged], is_near=False)
