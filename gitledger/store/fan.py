"""A folder of a notes tree that holds folders of two hex digits and nothing else, as it is stored.

Nearly every folder that a look-up or an append passes through is one. Its rows have one length, so that one of 256
is found by halving and replaced in place, without taking the other 255 apart.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Mapping
from operator import lt

from gitledger.dataclass import dataclass
from gitledger.records.ids import TreeId

__all__ = ["Fan"]

_HEAD = b"40000 "
_FIRST = len(_HEAD)
_SECOND, _NAME_END = _FIRST + 1, _FIRST + 2
_DIGITS = b"0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Fan:
    """Rows of `width` bytes in `raw`; `names` holds the two digits of each, as a number that sorts like them."""

    raw: bytes
    width: int
    names: tuple[int, ...]

    @classmethod
    def of(cls, raw: bytes, id_bytes: int) -> Fan | None:
        """Return the folder, or None where it holds anything else, or not in git's order."""
        width = _NAME_END + 1 + id_bytes
        count, rest = divmod(len(raw), width)
        if rest or not count or raw[_NAME_END::width] != bytes(count):
            return None
        # A column at a time: a row at a time takes ten times as long.
        if any(raw[at::width] != _HEAD[at : at + 1] * count for at in range(len(_HEAD))):
            return None
        digits = bytearray(2 * count)
        digits[0::2], digits[1::2] = raw[_FIRST::width], raw[_SECOND::width]
        if digits.translate(None, _DIGITS):
            return None
        names = struct.unpack(f">{count}H", digits)
        return cls(raw, width, names) if all(map(lt, names, names[1:])) else None

    def get(self, digits: str) -> TreeId | None:
        """Return the folder below the two digits, None where there is none."""
        name = _number(digits)
        at = bisect_left(self.names, name)
        if at == len(self.names) or self.names[at] != name:
            return None
        return TreeId(self.raw[at * self.width + _NAME_END + 1 : (at + 1) * self.width].hex())

    def with_folders(self, folders: Mapping[str, TreeId]) -> bytes:
        """Return the stored form of this folder with some folders put in, or put in place of others."""
        raw, width, names = bytearray(self.raw), self.width, self.names
        for digits in sorted(folders, reverse=True):
            name = _number(digits)
            at = bisect_left(names, name)
            is_there = at < len(names) and names[at] == name
            row = _HEAD + digits.encode("ascii") + b"\0" + bytes.fromhex(folders[digits])
            raw[at * width : (at + is_there) * width] = row
        return bytes(raw)


def _number(digits: str) -> int:
    return int.from_bytes(digits.encode("ascii"), "big")
