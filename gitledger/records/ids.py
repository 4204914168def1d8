"""Ids as types: what names a thing is not just any string.

Every constructor here validates, so an id that exists is well formed; `ValueError` says what was wrong.
"""

from __future__ import annotations

import re
from functools import lru_cache, total_ordering
from typing import NewType

from gitledger.dataclass import dataclass

__all__ = [
    "BlobId",
    "CommitId",
    "Digest",
    "KeyFingerprint",
    "NodeId",
    "ObjectId",
    "RecordId",
    "ShardKey",
    "TreeId",
    "digest",
    "key_fingerprint",
    "object_id",
    "shard_word",
]

CommitId = NewType("CommitId", str)
"""Git commit: 40 (sha1) or 64 (sha256) lower-case hex digits."""
TreeId = NewType("TreeId", str)
BlobId = NewType("BlobId", str)
ObjectId = CommitId | TreeId | BlobId
RecordId = NewType("RecordId", str)
"""SHA-256 of a record's payload bytes, 64 hex digits (DESIGN section 3)."""
Digest = NewType("Digest", str)
"""SHA-256 of something else than a payload, 64 hex digits."""
KeyFingerprint = NewType("KeyFingerprint", str)
"""`SHA256:` and 43 characters of unpadded base64, as `ssh-keygen -l` prints it."""
NodeId = NewType("NodeId", str)
"""A test's id exactly as its runner spells it; may hold any character. Escape before showing."""

_OBJECT = re.compile(r"\A(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_DIGEST = re.compile(r"\A[0-9a-f]{64}\Z")
_FINGERPRINT = re.compile(r"\ASHA256:[A-Za-z0-9+/]{43}\Z")
_WORD = re.compile(r"\A[A-Za-z0-9](?:[A-Za-z0-9._+-]{0,98}[A-Za-z0-9+])?\Z")


def object_id(text: str) -> str:
    """Return `text` if it is a full git object id, else raise `ValueError`."""
    if not _OBJECT.match(text):
        raise ValueError("expected a full git object id (40 or 64 lower-case hex digits)")
    return text


def digest(text: str) -> Digest:
    """Return `text` as a SHA-256 digest, else raise `ValueError`."""
    if not _DIGEST.match(text):
        raise ValueError("expected 64 lower-case hex digits")
    return Digest(text)


def key_fingerprint(text: str) -> KeyFingerprint:
    """Return `text` as an OpenSSH SHA-256 key fingerprint, else raise `ValueError`."""
    if not _FINGERPRINT.match(text):
        raise ValueError("expected SHA256: and 43 base64 characters")
    return KeyFingerprint(text)


def shard_word(text: str) -> str:
    """Return `text` if it may name a shard or a variant, else raise `ValueError`.

    Letters, digits, `.`, `_`, `+` and `-`, at most 100; begins with a letter or digit. `@` joins the two and
    therefore occurs in neither.
    """
    if not _WORD.match(text):
        raise ValueError("expected letters, digits, '.', '_', '+' or '-', at most 100, first a letter or digit")
    return text


@total_ordering
@dataclass(frozen=True, slots=True)
class ShardKey:
    """A shard, or one variant of it: an identity of its own (DESIGN section 1).

    Ordered by name, then variant; a shard without variant comes before its variants.
    """

    name: str
    variant: str | None = None

    def __post_init__(self) -> None:
        shard_word(self.name)
        if self.variant is not None:
            shard_word(self.variant)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is ShardKey:
            return self.name == other.name and self.variant == other.variant
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.name, self.variant))

    def __lt__(self, other: ShardKey) -> bool:
        return (self.name, self.variant or "") < (other.name, other.variant or "")

    def __str__(self) -> str:
        return self.name if self.variant is None else f"{self.name}@{self.variant}"

    @classmethod
    def of(cls, name: str, variant: str | None = None) -> ShardKey:
        """Return the key, one and the same for the same words: what is looked up by it is found by identity."""
        return _shard_key(name, variant)

    @classmethod
    def parse(cls, text: str) -> ShardKey:
        """Return the key that `l1` or `l1@a100` spells; raises `ValueError`."""
        name, at, variant = text.partition("@")
        return cls(name, variant if at else None)


@lru_cache(maxsize=4096)
def _shard_key(name: str, variant: str | None) -> ShardKey:
    return ShardKey(name, variant)
