"""Which commits' records can bear on a judgement, found without opening them all.

A ledger holds years of records; a judgement needs those of the target, those with the target's inputs, and the
nearest of each shard, for the reason that a plan prints. What is asked here is only whether a record *may* matter:
whatever can't be read at a glance does. Nothing is believed; every record of a commit that matters is opened and
verified like any other.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from gitledger.records.ids import Digest, ShardKey

__all__ = ["Relevance", "may_be_capability"]

NEAREST = 3
"""How many of the nearest commits with receipts of a shard are looked at for a reason."""
_Name = tuple[bytes, bytes]
_HEAD = b'{"payload":"'
_KIND = re.compile(
    rb'"predicateType":"urn:gitledger:(receipt:shard|receipt:merged|capability|revocation|imported):v1"'
)
_SHARD = re.compile(rb'"shard":\{"attempt":[^}]*?"name":"([^"\\]*)".*?"variant":(?:"([^"\\]*)"|null)\}')
_DIGEST = re.compile(rb'"manifest":\{"digest":"([0-9a-f]{64})"')


@dataclass(slots=True)
class Relevance:
    """Asked commit by commit, the nearest first.

    `digests` are the manifest digests of the target's shards; `by_name` the shards whose digest depends on more
    than the commit (extra inputs), all of whose receipts matter. `merged_matter`: keys can expire, so that a
    merged receipt anywhere may vouch for a record.
    """

    digests: Collection[Digest]
    by_name: Collection[ShardKey]
    merged_matter: bool
    _wanted: frozenset[bytes] = field(init=False)
    _named: frozenset[_Name] = field(init=False)
    _seen: Counter[_Name] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._wanted = frozenset(digest.encode() for digest in self.digests)
        self._named = frozenset((key.name.encode(), (key.variant or "").encode()) for key in self.by_name)

    def of(self, lines: Iterable[bytes], *, is_near: bool) -> bool:
        """Tell whether a commit's lines may matter. `is_near`: it is an ancestor, and so may explain a reason."""
        matters = False
        met: set[_Name] = set()
        for line in lines:
            payload = _payload(line)
            kind = _KIND.search(payload) if payload is not None else None
            if payload is None or kind is None:
                matters = True
            elif kind.group(1) == b"receipt:shard":
                matters = self._shard(payload, met) or matters
            elif kind.group(1) == b"receipt:merged":
                matters = matters or self.merged_matter
        if is_near:
            matters = matters or any(self._seen[key] < NEAREST for key in met)
            self._seen.update(met)
        return matters

    def _shard(self, payload: bytes, met: set[_Name]) -> bool:
        # All that look like it are taken: a field that we don't know may spell a decoy, which then only adds.
        names, digests = _SHARD.findall(payload), _DIGEST.findall(payload)
        if not names or not digests:
            return True
        met.update(names)
        return not self._wanted.isdisjoint(digests) or not self._named.isdisjoint(names)


def may_be_capability(line: bytes) -> bool:
    """Tell whether a line may be a capability report, without opening it."""
    payload = _payload(line)
    kind = None if payload is None else _KIND.search(payload)
    return kind is None or kind.group(1) == b"capability"


def _payload(line: bytes) -> bytes | None:
    """Return what a canonical envelope carries; None for any other line."""
    end = line.find(b'"', len(_HEAD))
    if not line.startswith(_HEAD) or end < 0:
        return None
    try:
        return base64.b64decode(line[len(_HEAD) : end])
    except binascii.Error:
        return None
