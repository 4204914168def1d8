"""The vectors: data with an expected outcome, for us and for any other reader of the format."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gitledger.errors import DecodeError
from gitledger.records.envelope import decode_line
from gitledger.records.merged import MergedReceipt
from gitledger.records.receipt import ShardReceipt
from gitledger.records.revocation import Revocation
from gitledger.records.statement import MERGED_RECEIPT, REVOCATION, SHARD_RECEIPT, Statement

FOLDER = Path(__file__).parent / "vectors"
FLOOR = {"envelopes": (3, 16), "receipts": (8, 38)}
"""At least so many accepted and refused vectors: a file that lost some can't pass."""
DECODERS = {
    SHARD_RECEIPT: ShardReceipt.decode,
    MERGED_RECEIPT: MergedReceipt.decode,
    REVOCATION: Revocation.decode,
}


def load(name: str) -> list[dict[str, str]]:
    return json.loads((FOLDER / f"{name}.json").read_bytes())


def read(name: str, line: str) -> None:
    envelope = decode_line(line.encode())
    assert envelope.encode() == line.encode()
    if name == "receipts":
        statement = Statement.decode(envelope.payload)
        DECODERS[statement.predicate_type](statement)


@pytest.mark.parametrize(
    ("name", "vector"), [pytest.param(name, vector, id=vector["name"]) for name in FLOOR for vector in load(name)]
)
def test_a_vector_has_its_outcome(name, vector):
    if vector["expect"] == "accepted":
        read(name, vector["line"])
        return
    with pytest.raises(DecodeError) as caught:
        read(name, vector["line"])
    assert caught.value.message.startswith(vector["expect"])


@pytest.mark.parametrize("name", FLOOR)
def test_no_vector_got_lost(name):
    vectors = load(name)
    accepted = sum(vector["expect"] == "accepted" for vector in vectors)
    assert accepted >= FLOOR[name][0]
    assert len(vectors) - accepted >= FLOOR[name][1]
    assert len({vector["name"] for vector in vectors}) == len(vectors)
    assert len({vector["line"] for vector in vectors}) == len(vectors)


def test_the_vectors_are_what_their_script_writes(tmp_path, hermetic_env):
    copy = tmp_path / "make.py"
    copy.write_bytes((FOLDER / "make.py").read_bytes())
    subprocess.run([sys.executable, str(copy)], env=hermetic_env, check=True)
    for name in FLOOR:
        assert (tmp_path / f"{name}.json").read_bytes() == (FOLDER / f"{name}.json").read_bytes()
