"""The marks of notes as they are kept between two runs (`store.kept_file`).

The file holds nothing that isn't in the notes, and no more than the notes that the ledger has now.
"""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from pathlib import Path

from gitledger.store.kept_file import read_kept, write_kept
from gitledger.store.marks import INNER_BYTES, MARK_BYTES, Marks, Part

__all__ = ["read_marks", "write_marks"]

_MAGIC = b"gitledger marks 1\n"
_HASH_BYTES = hashlib.sha256().digest_size


def read_marks(path: Path, rules: str, id_bytes: int) -> Marks:
    """Return the marks that were kept at `path` by these `rules`; none where anything is wrong with them."""
    none = Marks(id_bytes=id_bytes)
    try:
        raw = read_kept(path)
        marks = None if raw is None else _decode(raw, rules, id_bytes)
    except (ValueError, TypeError, KeyError, MemoryError, RecursionError):
        return none
    return none if marks is None or not marks.is_whole else marks


def write_marks(path: Path, rules: str, marks: Marks) -> bool:
    """Keep the marks at `path`; False where that isn't possible now."""
    try:
        return write_kept(path, _encode(marks, rules))
    except (OverflowError, MemoryError):
        return False


def _encode(marks: Marks, rules: str) -> tuple[bytes, ...]:
    counts = marks.counts.tobytes()
    inner = b"".join(name for part in marks.parts for name in sorted(part.inner))
    head = {
        "rules": rules,
        "id_bytes": marks.id_bytes,
        "order": sys.byteorder,
        "width": marks.counts.itemsize,
        "parts": [[part.prefix, part.key, part.rows, part.marks, len(part.inner)] for part in marks.parts],
    }
    pieces = (json.dumps(head).encode("ascii") + b"\n", marks.commits, marks.blobs, counts, marks.marks, inner)
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return (_MAGIC, digest.digest(), *pieces)


def _decode(raw: bytes, rules: str, id_bytes: int) -> Marks | None:
    start = len(_MAGIC) + _HASH_BYTES
    content = memoryview(raw)[start:]
    if not raw.startswith(_MAGIC) or hashlib.sha256(content).digest() != raw[len(_MAGIC) : start]:
        return None
    end = raw.index(b"\n", start) + 1
    head = json.loads(raw[start:end])
    counts = array("I")
    asked = (rules, id_bytes, sys.byteorder, counts.itemsize)
    if (head["rules"], head["id_bytes"], head["order"], head["width"]) != asked:
        return None
    rows = sum(part[2] for part in head["parts"])
    found = sum(part[3] for part in head["parts"])
    sizes = [rows * id_bytes, rows * id_bytes, rows * counts.itemsize, found * MARK_BYTES]
    columns = []
    for size in sizes:
        columns.append(raw[end : end + size])
        end += size
    counts.frombytes(columns[2])
    parts = []
    for prefix, key, own_rows, own_marks, folders in head["parts"]:
        names = raw[end : end + folders * INNER_BYTES]
        end += folders * INNER_BYTES
        inner = frozenset(names[at : at + INNER_BYTES] for at in range(0, len(names), INNER_BYTES))
        parts.append(Part(prefix, key, own_rows, own_marks, inner))
    if end != len(raw):
        return None
    return Marks(
        id_bytes=id_bytes,
        parts=tuple(parts),
        commits=columns[0],
        blobs=columns[1],
        counts=counts,
        marks=columns[3],
    )
