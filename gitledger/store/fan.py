"""A folder of a notes tree that holds folders of two hex digits and nothing else, as it is stored.

Nearly every folder that a look-up or an append passes through is one. Its rows have one length, so that one of 256
is found by halving and replaced in place, without taking the other 255 apart.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping

from gitledger.dataclass import dataclass
from gitledger.records.ids import TreeId

__all__ = ["Fan"]

_HEAD = b"40000 "
_NAME_END = len(_HEAD) + 2
_ROWS = {size: re.compile(rb"(?:40000 [0-9a-f]{2}\0.{%d})+" % size, re.DOTALL) for size in (20, 32)}


@dataclass(frozen=True, slots=True)
class Fan:
    """Rows of `width` bytes in `raw`, with these `names`, ascending."""

    raw: bytes
    width: int
    names: list[bytes]

    @classmethod
    def of(cls, raw: bytes, id_bytes: int) -> Fan | None:
        """Return the folder, or None where it holds anything else, or not in git's order."""
        if not _ROWS[id_bytes].fullmatch(raw):
            return None
        width = _NAME_END + 1 + id_bytes
        names = [raw[at : at + 2] for at in range(len(_HEAD), len(raw), width)]
        return cls(raw, width, names) if names == sorted(set(names)) else None

    def get(self, digits: str) -> TreeId | None:
        """Return the folder below the two digits, None where there is none."""
        name = digits.encode("ascii")
        at = bisect_left(self.names, name)
        if at == len(self.names) or self.names[at] != name:
            return None
        return TreeId(self.raw[at * self.width + _NAME_END + 1 : (at + 1) * self.width].hex())

    def with_folders(self, folders: Mapping[str, TreeId]) -> bytes:
        """Return the stored form of this folder with some folders put in, or put in place of others."""
        raw, width, names = bytearray(self.raw), self.width, self.names
        for digits in sorted(folders, reverse=True):
            name = digits.encode("ascii")
            at = bisect_left(names, name)
            is_there = at < len(names) and names[at] == name
            row = _HEAD + name + b"\0" + bytes.fromhex(folders[digits])
            raw[at * width : (at + is_there) * width] = row
        return bytes(raw)
