"""Ids: an id that exists is well formed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.records.ids import ShardKey, digest, key_fingerprint, object_id, shard_word

WORDS = st.from_regex(r"\A[A-Za-z0-9]([A-Za-z0-9._+-]{0,98}[A-Za-z0-9+])?\Z")
KEYS = st.builds(ShardKey, WORDS, st.none() | WORDS)

WRONG = {
    object_id: (
        "",
        "abc",
        "g" * 40,
        "A" * 40,
        "a" * 39,
        "a" * 41,
        "a" * 63,
        "a" * 40 + "\n",
        " " + "a" * 40,
        "٣" * 40,
    ),
    digest: ("", "a" * 40, "a" * 63, "A" * 64, "a" * 64 + "\n", "٣" * 64),
    key_fingerprint: (
        "",
        "MD5:" + "a" * 43,
        "SHA256:" + "a" * 42,
        "SHA256:" + "a" * 43 + "=",
        "sha256:" + "a" * 43,
        "SHA256:" + "a" * 42 + "-",
        "SHA256:" + "a" * 43 + "\n",
    ),
    shard_word: ("", ".l1", "-l1", "l1.", "l1-", "l 1", "l1@a100", "l1/x", "l1\n", "é", "a" * 101, "l1\x00"),
}


@pytest.mark.parametrize(("parse", "text"), [(parse, text) for parse, texts in WRONG.items() for text in texts])
def test_what_is_not_an_id_is_refused(parse, text):
    with pytest.raises(ValueError, match="expected"):
        parse(text)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (object_id, "0" * 40),
        (object_id, "f" * 64),
        (digest, "0" * 64),
        (key_fingerprint, "SHA256:" + "a+/Z" * 10 + "abc"),
        (shard_word, "l1"),
        (shard_word, "a"),
        (shard_word, "cuda-12.4+torch_2"),
        (shard_word, "c++"),
        (shard_word, "a" * 100),
    ],
)
def test_an_id_is_returned_as_it_stands(parse, text):
    assert parse(text) == text


@given(KEYS)
def test_a_shard_key_is_read_back_from_its_spelling(key):
    assert ShardKey.parse(str(key)) == key


@pytest.mark.parametrize("text", ["", "@", "l1@", "@a100", "l1@a@b", "l1 @a", "l1@a100\n"])
def test_a_misspelled_shard_key_is_refused(text):
    with pytest.raises(ValueError, match="expected"):
        ShardKey.parse(text)


def test_a_shard_key_can_not_be_built_from_what_is_no_word():
    with pytest.raises(ValueError, match="expected"):
        ShardKey("l1@a100")
    with pytest.raises(ValueError, match="expected"):
        ShardKey("l1", "")


def test_a_shard_without_variant_sorts_before_its_variants():
    keys = [ShardKey("l1", "b"), ShardKey("l2"), ShardKey("l1"), ShardKey("l1", "a")]
    assert [str(key) for key in sorted(keys)] == ["l1", "l1@a", "l1@b", "l2"]


@given(KEYS, KEYS)
def test_shard_keys_are_in_one_order(one, other):
    assert (one < other) + (one == other) + (one > other) == 1
