"""Which commits' records can bear on a judgement, found without opening them all.

A ledger holds years of records; a judgement needs those of the target, those with the target's inputs, and the
nearest of each shard, for the reason that a plan prints. What is asked here is only whether a record *may* matter:
whatever can't be read at a glance does. Nothing is believed; every record of a commit that matters is opened and
verified like any other.

What a note shows at a glance doesn't depend on the question, so it is kept as marks (`store.marks`), and a note
that was seen once is not read again only to find that it doesn't matter.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import field
from functools import lru_cache
from itertools import chain

from gitledger.dataclass import dataclass
from gitledger.records.ids import CommitId, Digest, ShardKey
from gitledger.records.limits import MAX_NOTE_BYTES
from gitledger.store.marks import MARK_BYTES, Mark, Marks

__all__ = ["NEAREST", "RULES", "Relevance", "marks_of", "mattering", "may_be_capability"]

NEAREST = 3
"""How many of the nearest commits with receipts of a shard are looked at for a reason."""
_HEAD = b'{"payload":"'
_KIND = re.compile(
    rb'"predicateType":"urn:gitledger:(receipt:shard|receipt:merged|capability|revocation|imported):v1"'
)
_SHARD = re.compile(rb'"shard":\{"attempt":[^}]*?"name":"([^"\\]*)".*?"variant":(?:"([^"\\]*)"|null)\}')
_DIGEST = re.compile(rb'"manifest":\{"digest":"([0-9a-f]{64})"')

_VERSION = 1
"""To be raised with every change of what `marks_of` returns: marks made by other rules must not be believed."""
RULES = hashlib.sha256(
    repr((_VERSION, _HEAD, _KIND.pattern, _SHARD.pattern, _DIGEST.pattern, MAX_NOTE_BYTES)).encode()
).hexdigest()
"""Names the rules by which marks are made."""
_NAME, _INPUTS = 1, 2


@lru_cache(4_096)
def _mark(kind: int, *what: bytes) -> Mark:
    spelt = b"".join(b"%d:%b" % (len(part), part) for part in what)
    return bytes([kind]) + hashlib.sha256(spelt).digest()[: MARK_BYTES - 1]


_UNCLEAR = _mark(3)
"""Something in it can't be read at a glance."""
_MERGED = _mark(4)
"""It holds a merged receipt."""


def marks_of(lines: Iterable[bytes]) -> frozenset[Mark]:
    """Return what the lines of a note show at a glance; a note without lines may be one that nobody could read."""
    found: set[Mark] = set()
    is_empty = True
    for line in lines:
        is_empty = False
        payload = _payload(line)
        kind = _KIND.search(payload) if payload is not None else None
        if payload is None or kind is None:
            found.add(_UNCLEAR)
        elif kind.group(1) == b"receipt:shard":
            found |= _marks_of_shard(payload)
        elif kind.group(1) == b"receipt:merged":
            found.add(_MERGED)
    return frozenset({_UNCLEAR}) if is_empty else frozenset(found)


def _marks_of_shard(payload: bytes) -> set[Mark]:
    # All that look like it are taken: a field that we don't know may spell a decoy, which then only adds.
    names, digests = _SHARD.findall(payload), _DIGEST.findall(payload)
    if not names or not digests:
        return {_UNCLEAR}
    inputs = _mark.__wrapped__  # of inputs every note has its own
    return {*(_mark(_NAME, *name) for name in names), *(inputs(_INPUTS, digest) for digest in digests)}


@dataclass(frozen=True, slots=True)
class Relevance:
    """What makes a note matter wherever it lies.

    `digests` are the manifest digests of the target's shards; `by_name` the shards whose digest depends on more
    than the commit (extra inputs), all of whose receipts matter. `merged_matter`: keys can expire, so that a
    merged receipt anywhere may vouch for a record.
    """

    digests: Collection[Digest]
    by_name: Collection[ShardKey]
    merged_matter: bool

    @property
    def wanted(self) -> frozenset[Mark]:
        """The marks of a note that matters."""
        named = (_mark(_NAME, key.name.encode(), (key.variant or "").encode()) for key in self.by_name)
        inputs = (_mark(_INPUTS, digest.encode()) for digest in self.digests)
        return frozenset({_UNCLEAR, *named, *inputs, *([_MERGED] if self.merged_matter else [])})


@dataclass(slots=True)
class _Nearest:
    """Asked commit by commit, the nearest first: whether it is among the first few with receipts of some shard."""

    names: Mapping[CommitId, frozenset[Mark]]
    left: dict[Mark, int] = field(init=False)
    """How many commits with each shard are still to be taken."""

    def __post_init__(self) -> None:
        counts = Counter(chain.from_iterable(self.names.values()))
        self.left = {mark: min(count, NEAREST) for mark, count in counts.items()}

    def takes(self, commit: CommitId) -> bool:
        """Tell whether the next commit is one."""
        left, met = self.left, self.names.get(commit)
        if met is None or left.keys().isdisjoint(met):
            return False  # of each of its shards enough was found
        for mark in met:
            count = left.get(mark)
            if count == 1:
                del left[mark]
            elif count is not None:
                left[mark] = count - 1
        return True


@dataclass(slots=True)
class Seen:
    """What a ledger shows at a glance: the marks of its notes, and of what commits have beside their notes."""

    marks: Marks
    added: Mapping[CommitId, frozenset[Mark]]
    _names: Mapping[CommitId, frozenset[Mark]] | None = None
    _is_asked: bool = False
    _by_mark: dict[Mark, list[CommitId]] = field(default_factory=dict)

    def having(self, wanted: Set[Mark]) -> set[CommitId]:
        """Return the commits that show one of these marks.

        For whoever asks again the marks are turned round.
        """
        if not self._is_asked:
            self._is_asked = True
            found = set(self.marks.having(wanted))
        else:
            self._by_mark = self._by_mark or self.marks.commits_by_mark()
            found = set(chain.from_iterable(self._by_mark.get(mark, ()) for mark in wanted))
        return found | {commit for commit, more in self.added.items() if not wanted.isdisjoint(more)}

    def names(self) -> Mapping[CommitId, frozenset[Mark]]:
        """Return the marks of the shards that each commit has receipts of."""
        if self._names is None:
            found = self.marks.of_kind(_NAME)
            for commit, more in self.added.items():
                names = frozenset(mark for mark in more if mark[0] == _NAME)
                if names:
                    found[commit] = found.get(commit, frozenset()) | names
            self._names = found
        return self._names


def mattering(
    relevance: Relevance,
    seen: Seen,
    rings: Iterable[Collection[CommitId]],
    target: CommitId,
    *,
    apart: Set[CommitId] = frozenset(),
) -> Iterator[tuple[CommitId, int | None]]:
    """Yield the commits but `target` whose notes may matter, with their distance from it, the nearest first.

    `rings` are the target's ancestors by distance. They are not followed any further than there is something to
    find: commits that are `apart` are known to be none. Those that they don't lead to come last.
    """
    wanted = relevance.wanted
    everywhere = seen.having(wanted)
    everywhere.discard(target)
    beside = everywhere & apart
    everywhere -= beside
    no_ancestors = apart | {target}
    nearest = _Nearest({commit: names for commit, names in seen.names().items() if commit not in no_ancestors})
    for distance, ring in enumerate(rings):
        for commit in sorted(ring):
            is_near = nearest.takes(commit)
            if commit in everywhere:
                everywhere.remove(commit)
                yield commit, distance
            elif is_near:
                yield commit, distance
        if not everywhere and not nearest.left:
            break
    for commit in sorted(everywhere | beside):
        yield commit, None


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
