"""What a record costs: bytes in the repository and time to read."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from gitledger.records.bodies import encode_tests
from gitledger.records.envelope import Envelope, decode_line
from gitledger.records.receipt import ShardReceipt
from gitledger.records.statement import Statement


def loose_size(repo, content: bytes) -> int:
    """Return the bytes that git takes on disk for a blob on its own."""
    oid = repo.git("hash-object", "-w", "--stdin", input=content)
    return (repo.path / ".git/objects" / oid[:2] / oid[2:]).stat().st_size


@pytest.mark.parametrize(("gpu", "bound"), [(True, 3_072), (False, 3_000)])
def test_a_result_of_a_hundred_tests_takes_less_than_three_kilobytes(
    git_repo, receipt, results, signed_line, gpu, bound
):
    plain = replace(
        receipt,
        shard=replace(receipt.shard, split=None),
        manifest=replace(receipt.manifest, extra_paths=(), excluded_paths=(), extra=(), outside=None),
        repo=replace(receipt.repo, dirty=False, dirty_paths=(), created=()),
        environment=receipt.environment if gpu else replace(receipt.environment, gpu=None),
        bodies={"tests": receipt.bodies["tests"]},
    )
    line = Envelope(payload=plain.encode(), signature=decode_line(signed_line).signature).encode()
    sizes = loose_size(git_repo, line + b"\n"), loose_size(git_repo, encode_tests(results[:100]))
    assert sum(sizes) < bound, sizes


def test_reading_a_record_takes_less_than_a_millisecond(signed_line):
    """A quiet machine takes 0.15 ms; the bound leaves room for a busy one and still catches anything quadratic."""
    best = 1.0
    for _ in range(50):
        started = time.perf_counter()
        ShardReceipt.decode(Statement.decode(decode_line(signed_line).payload))
        best = min(best, time.perf_counter() - started)
    assert best < 0.001
