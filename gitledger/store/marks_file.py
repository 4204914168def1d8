"""Where marks are kept between two runs: one file beside the repository's objects, which may vanish at any moment.

It is a convenience and nothing else: a file that is damaged, of another version, another user's or open to others
is as good as none, and one that can't be written is not written. It holds nothing that isn't in the notes, never
leaves this clone, and holds no more than the notes that the ledger has now.

Several processes may write it at once: each writes a whole file and renames it, and the last one stays.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path

from gitledger.store.marks import INNER_BYTES, MARK_BYTES, Marks, Part

__all__ = ["read_marks", "write_marks"]

_MAGIC = b"gitledger marks 1\n"
_HASH_BYTES = hashlib.sha256().digest_size
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_NEW = ".new"


def read_marks(path: Path, rules: str, id_bytes: int) -> Marks:
    """Return the marks that were kept at `path` by these `rules`; none where anything is wrong with them."""
    none = Marks(id_bytes=id_bytes)
    try:
        raw = _read(path)
        marks = None if raw is None else _decode(raw, rules, id_bytes)
    except (OSError, ValueError, TypeError, KeyError, MemoryError, RecursionError):
        return none
    return none if marks is None or not marks.is_whole else marks


def write_marks(path: Path, rules: str, marks: Marks) -> bool:
    """Keep the marks at `path`; False where that isn't possible now."""
    try:
        path.parent.mkdir(exist_ok=True)
        return _write(path, _encode(marks, rules))
    except (OSError, OverflowError, MemoryError):
        return False


def _read(path: Path) -> bytes | None:
    """Return a file's content, where nobody but this user could have written it."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(file, "rb") as stream:
        found = os.fstat(file)
        mine = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _OTHERS
        return stream.read() if mine else None


def _write(path: Path, content: Sequence[bytes]) -> bool:
    """Write a file whole or not at all. Who holds the lock of the unfinished one is its only writer.

    A process killed here leaves one unfinished file, which the next one takes over.
    """
    new = path.with_name(path.name + _NEW)
    file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(file, "r+b", buffering=0) as stream:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(file), os.lstat(new)):
            return False  # it was finished, and renamed, before its lock was ours
        try:
            stream.truncate()
            os.fchmod(file, 0o600)
            for piece in content:
                view = memoryview(piece)
                while view:
                    view = view[stream.write(view) :]
            new.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                new.unlink()
            raise
    return True


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
