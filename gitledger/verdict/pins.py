"""The shards of the judged commit held against those of the policy's ref (DESIGN section 4)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from gitledger.records.ids import Digest, ShardKey
from gitledger.verdict.finding import Finding, blocking, note

__all__ = ["accepting", "judge_pins", "redefined"]

Definitions = Mapping[ShardKey, Digest]


def redefined(judged: Definitions, trusted: Definitions) -> frozenset[ShardKey]:
    """Return the shards that both define, each in its own way: these can't be carried until accepted."""
    return frozenset(key for key, digest in judged.items() if trusted.get(key, digest) != digest)


def accepting(source: str) -> str:
    """Return the command by which a maintainer accepts a change of what `source`, the policy's ref, declares."""
    return f"git ledger verify --policy-from {shlex.quote(source)} --accept-shards (for a maintainer to say)"


def judge_pins(
    judged: Definitions, trusted: Definitions, *, pinned: bool, accepted: bool, source: str
) -> Iterator[Finding]:
    """Yield shards that vanished or changed against the trusted ref; they block unless accepted or not pinned.

    `source` is that ref as a person would type it.
    """
    make = blocking if pinned and not accepted else note
    found = "accepted by --accept-shards" if accepted else ""
    for key in sorted(set(trusted) - set(judged)):
        yield make(
            "shard-removed",
            "4",
            key,
            expected="every shard of the policy's ref",
            found=found or "the judged commit does not declare it",
            remedy=accepting(source),
        )
    for key in sorted(redefined(judged, trusted)):
        yield make(
            "shard-redefined",
            "4",
            key,
            expected="the definition of the policy's ref",
            found=found or "another definition in the judged commit",
            remedy=accepting(source),
        )
