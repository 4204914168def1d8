"""Tests of a union as reports list them."""

from __future__ import annotations

from gitledger.records.ids import NodeId, ShardKey
from gitledger.verdict.union import Union

__all__ = ["MAX_SLOWEST", "slowest_tests"]

MAX_SLOWEST = 25


def slowest_tests(union: Union, *, limit: int = MAX_SLOWEST) -> list[tuple[float, ShardKey, NodeId]]:
    """Return the tests of what stands that took longest, in seconds, the slowest first."""
    found = [
        (item.duration_ns / 1e9, choice.shard.key, item.node_id)
        for choice in union.results
        for item in choice.results
    ]
    found.sort(key=lambda row: (-row[0], row[1], row[2]))
    return [(round(seconds, 3), key, node_id) for seconds, key, node_id in found[:limit]]
