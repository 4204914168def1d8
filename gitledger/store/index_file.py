"""git's index read at a glance: which of its entries could hide an edit from git, and which are submodules.

Reading tens of thousands of entries for the few that matter takes a few milliseconds here; asking the file system
for each of them takes a hundred. Only what is plainly an index of version 2 or 3 for SHA-1 is read (git's
`gitformat-index`): split and sparse indexes, version 4 and what doesn't add up to the last byte are left to git.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from gitledger.dataclass import dataclass

__all__ = ["Indexed", "Suspects", "read_index"]

_HEADER = struct.Struct(">4sII")
_TIMES_MODE_FLAGS = struct.Struct(">III12xI32xH")
_EXTENSION = struct.Struct(">4sI")
_VERSIONS = (2, 3)
_OID = slice(40, 60)
_FIXED_BYTES = 62
_TRAILER_BYTES = 20
_ASSUME_VALID, _EXTENDED, _STAGE, _NAME = 0x8000, 0x4000, 0x3000, 0x0FFF
_SKIP_WORKTREE = 0x4000
_GITLINK = 0o160000
_RUN = 500


class Indexed(NamedTuple):
    """One index entry: `tag` as `ls-files -v` prints it (lower case: assume-unchanged; S: skip-worktree).

    `changed_ns` is the change time that it notes, None where git was asked, which doesn't tell.
    """

    tag: str
    mode: str
    oid: str
    stage: str
    path: str
    changed_ns: int | None = None

    @classmethod
    def of(cls, line: str) -> Indexed:
        """Return the entry of one line of `ls-files -v --stage`."""
        meta, _, path = line.partition("\t")
        tag, mode, oid, stage = meta.split(" ")
        return cls(tag, mode, oid, stage, path)


@dataclass(frozen=True, slots=True)
class Suspects:
    """Merged entries that may hide an edit, and submodules' paths.

    Suspect is what is flagged, what changed in the index's last second, and what has an mtime of another second
    than its change: that was set, so it can be set again.
    """

    entries: tuple[Indexed, ...]
    submodules: tuple[str, ...]


def read_index(data: bytes, *, written_s: int) -> Suspects | None:
    """Return what of an index matters that was written in second `written_s`; None where git has to be asked.

    git compares the second at which a file last changed (`core.trustctime`) with the one that it noted. So an edit
    made after the index was written can only pass for none where the noted second isn't over by then. One made
    before, in the noted second, git finds by its mtime of that same second ("racy git"), unless it was set back.
    """
    try:
        return _read(data, written_s)
    except (struct.error, IndexError, ValueError):
        return None


def _read(data: bytes, written_s: int) -> Suspects | None:
    magic, version, count = _HEADER.unpack_from(data)
    if magic != b"DIRC" or version not in _VERSIONS:
        return None
    found: list[Indexed] = []
    submodules: list[str] = []
    place, left = _HEADER.size, count
    plain = _plain_run(written_s) if count >= _RUN else None
    while left:
        run = None if plain is None or left < _RUN else plain.match(data, place)
        if run is not None:
            place = (run.end() - _HEADER.size & ~7) + _HEADER.size  # aligned: an old entry begins with NUL
            left -= _RUN
            continue
        for _ in range(min(left, _RUN)):
            end = _one(data, place, written_s, found, submodules)
            if end is None:
                return None
            place, left = end, left - 1
    return Suspects(tuple(found), tuple(submodules)) if _is_plain(data, place) else None


def _one(data: bytes, place: int, written_s: int, found: list[Indexed], submodules: list[str]) -> int | None:
    """Add the entry at `place` to what it is among; return where the next one begins, None where it is unsound."""
    changed_s, changed_fraction_ns, modified_s, mode, flags = _TIMES_MODE_FLAGS.unpack_from(data, place)
    start = place + _FIXED_BYTES + (2 if flags & _EXTENDED else 0)
    length = flags & _NAME
    end = start + length if length < _NAME else data.index(0, start + length)
    if data[end]:
        return None
    if mode == _GITLINK:
        submodules.append(_text(data[start:end]))
    if flags & (_ASSUME_VALID | _EXTENDED) or changed_s >= written_s or changed_s != modified_s:
        changed_ns = changed_s * 1_000_000_000 + changed_fraction_ns
        entry = _entry(data, place, mode, flags, data[start:end], changed_ns)
        if entry.stage == "0":
            found.append(entry)
    return place + ((end - place + 8) & ~7)  # padded with one to eight NULs


def _plain_run(written_s: int) -> re.Pattern[bytes]:
    """Return what matches `_RUN` entries in a row of which none is a suspect or a submodule.

    Files and links, changed before second `written_s` and in the second of their mtime, merged and without flags.
    Read by the entry, tens of thousands of them would take longer than all else that a plan does with them.
    """
    until = max(0, min(written_s, 0xFFFF_FFFF)).to_bytes(4, "big")
    earlier = (
        re.escape(until[:i]) + b"[\\x00-\\x%02x]" % (byte - 1) + b"." * (3 - i)
        for i, byte in enumerate(until)
        if byte
    )
    # ctime, its fraction, an mtime of the same second, to the mode, its two bytes that tell kinds apart, to the
    # flags, their upper four bits, name, padding: the next entry begins with another NUL only if it changed before
    # 1970-07-14; its run is read by the entry.
    entry = rb"(?=([^\0].{3}))(?:%s).{4}\1.{12}\0\0[\x81\xa0].{33}[\x00-\x0f].[^\0]++\0{1,8}+" % b"|".join(earlier)
    return re.compile(rb"(?>%s){%d}" % (entry, _RUN), re.DOTALL)


def _entry(data: bytes, place: int, mode: int, flags: int, path: bytes, changed_ns: int) -> Indexed:
    extended = int.from_bytes(data[place + _FIXED_BYTES : place + _FIXED_BYTES + 2]) if flags & _EXTENDED else 0
    tag = "S" if extended & _SKIP_WORKTREE else "H"
    return Indexed(
        tag=tag.lower() if flags & _ASSUME_VALID else tag,
        mode=f"{mode:06o}",
        oid=data[place + _OID.start : place + _OID.stop].hex(),
        stage=str((flags & _STAGE) >> 12),
        path=_text(path),
        changed_ns=changed_ns,
    )


def _is_plain(data: bytes, place: int) -> bool:
    """Tell whether only extensions that may be ignored stand behind the entries, and end where they should."""
    end = len(data) - _TRAILER_BYTES
    while place < end:
        name, length = _EXTENSION.unpack_from(data, place)
        if not name[:1].isupper():
            return False
        place += _EXTENSION.size + length
    return place == end


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")
