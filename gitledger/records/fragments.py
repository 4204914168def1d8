"""Coverage fragments: what one run of one shard executed, as exact sets, file by file (DESIGN section 8).

A fragment is bound to sources, not to a place: each file stands under its path from the repository's root and the
git blob that was measured. Lines are bit sets, bit n for line n, so that a union is an `or`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from itertools import repeat
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError
from gitledger.records.bodies import pack, unpack
from gitledger.records.decode import byte_length, fail
from gitledger.records.ids import BlobId, object_id
from gitledger.records.limits import MAX_TEXT_BYTES

__all__ = [
    "MAX_LINE",
    "Arc",
    "FileCoverage",
    "Fragment",
    "bits_of",
    "decode_fragment",
    "encode_fragment",
    "lines_of",
]

MAX_LINE = 1 << 20
"""The largest line number."""
MAX_FILES = 200_000
"""Files of one fragment."""
MAX_OUTSIDE = 50
"""How many measured files outside the repository a fragment names; the others are counted."""
_MAX_BITS_BYTES = (MAX_LINE >> 3) + 1
_COLUMNS = 7
_NO_ARCS: frozenset[tuple[int, int]] = frozenset()

Arc = tuple[int, int]
"""A branch from a line to another; a negative number stands for leaving the function at that line."""


def bits_of(lines: Iterable[int]) -> int:
    """Return the bit set of line numbers."""
    found = bytearray()
    for line in lines:
        place = line >> 3
        if place >= len(found):
            found.extend(bytes(place + 1 - len(found)))
        found[place] |= 1 << (line & 7)
    return int.from_bytes(found, "little")


def lines_of(bits: int) -> list[int]:
    """Return the line numbers of a bit set, ascending."""
    text = bin(bits)[:1:-1]
    return [line for line, bit in enumerate(text) if bit == "1"]


@lru_cache(maxsize=1 << 16)
def _is_path(path: str) -> bool:
    """Tell whether a path leads from the root and nowhere else; a hundred fragments name the same ones."""
    return bool(path) and {"", ".", ".."}.isdisjoint(path.split("/"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCoverage:
    """One file: `statements` and those `executed`, as bit sets of lines.

    With branches: `branches` is the number of ways out of all lines that have several; `taken` are those that were
    executed, `untaken` those that could have been and were not. (What a pragma excludes is in neither and counts
    as covered, as coverage.py has it.)
    """

    path: str
    blob: BlobId
    statements: int
    executed: int
    branches: int = 0
    taken: frozenset[Arc] = frozenset()
    untaken: frozenset[Arc] = frozenset()

    def __post_init__(self) -> None:
        if not _is_path(self.path):
            raise ValueError("not a path from the repository's root")
        if self.statements & 1 or self.statements.bit_length() > MAX_LINE + 1:
            raise ValueError(f"lines outside 1 to {MAX_LINE}")
        if self.executed & ~self.statements:
            raise ValueError("executed lines that are no statements")
        if self.taken & self.untaken:
            raise ValueError("a branch both taken and not")
        if len(self.untaken) > self.branches:
            raise ValueError("more branches not taken than there are")

    @property
    def covered(self) -> int:
        """Executed statements and branches."""
        return self.executed.bit_count() + self.branches - len(self.untaken)

    @property
    def total(self) -> int:
        """Statements and branches."""
        return self.statements.bit_count() + self.branches


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """What one run measured: coverage's version and core, whether branches, and the files, sorted by path.

    `outside` names measured files that are none of the commit's, `outside_count` says how many there are.
    """

    version: str
    core: str | None
    branch: bool
    files: tuple[FileCoverage, ...]
    outside: tuple[str, ...] = ()
    outside_count: int = 0

    def __post_init__(self) -> None:
        paths = [file.path for file in self.files]
        if paths != sorted(set(paths)):
            raise ValueError("files that are not sorted and unique")
        if not self.branch and any(file.branches or file.taken for file in self.files):
            raise ValueError("branches, measured without branches")


def encode_fragment(fragment: Fragment) -> bytes:
    """Return the body of a fragment; the same content gives the same bytes. Raises `DecodeError`."""
    rows = [
        (
            file.path,
            bytes.fromhex(file.blob),
            _bytes(file.statements),
            _bytes(file.executed),
            file.branches,
            _flat(file.taken),
            _flat(file.untaken),
        )
        for file in fragment.files
    ]
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[]] * _COLUMNS
    value = {
        "branch": fragment.branch,
        "columns": columns,
        "core": fragment.core,
        "kind": "coverage",
        "outside": list(fragment.outside[:MAX_OUTSIDE]),
        "outside_count": fragment.outside_count,
        "version": fragment.version,
    }
    blob = pack(value)
    decode_fragment(blob)
    return blob


def _bytes(bits: int) -> bytes:
    return bits.to_bytes((bits.bit_length() + 7) >> 3, "little")


def _flat(arcs: Iterable[Arc]) -> list[int]:
    return [number for arc in sorted(arcs) for number in arc]


def decode_fragment(blob: bytes) -> Fragment:
    """Return the fragment that a body holds; raises `DecodeError`, never another error."""
    match unpack(blob):
        case {
            "kind": "coverage",
            "version": str(version),
            "core": (str() | None) as core,
            "branch": bool(branch),
            "columns": list(columns),
            "outside": list(outside),
            "outside_count": int(outside_count),
        }:
            pass
        case _:
            raise DecodeError("body-corrupt", "$: not a body of coverage")
    if (
        len(columns) != _COLUMNS
        or not all(isinstance(column, list) and len(column) == len(columns[0]) for column in columns)
        or len(columns[0]) > MAX_FILES
    ):
        fail("$.columns", f"expected {_COLUMNS} lists of one length, at most {MAX_FILES}")
    for text in (version, core or "", *outside):
        if not isinstance(text, str) or byte_length(text) > MAX_TEXT_BYTES:
            fail("$", f"a text of more than {MAX_TEXT_BYTES} bytes")
    if len(outside) > MAX_OUTSIDE or isinstance(outside_count, bool) or outside_count < len(outside):
        fail("$.outside_count", "fewer than are named")
    files = _lines_only(columns)
    if files is None:
        files = tuple(_file(place, row) for place, row in enumerate(zip(*columns, strict=True)))
    try:
        return Fragment(
            version=version,
            core=core,
            branch=branch,
            files=files,
            outside=tuple(outside),
            outside_count=outside_count,
        )
    except ValueError as error:
        raise DecodeError("body-corrupt", f"$.columns: {error}") from error


def _lines_only(columns: list[list[Any]]) -> tuple[FileCoverage, ...] | None:
    """Return the files of columns without branches in which `_file` would find no fault; None for all others.

    Looked at and filled a column at a time, as test results are: one by one, the files of a hundred fragments take
    a quarter of a second.
    """
    paths, blobs, statements, executed, branches, taken, untaken = columns
    kinds = [set(map(type, column)) for column in columns]
    if kinds != [{str}, {bytes}, {bytes}, {bytes}, {int}, {list}, {list}] or any(
        map(any, (branches, taken, untaken))
    ):
        return None
    if not all(map(_is_path, paths)) or 4 * max(map(len, paths)) > MAX_TEXT_BYTES:
        return None
    if any(value.endswith(b"\0") or len(value) > _MAX_BITS_BYTES for value in (*statements, *executed)):
        return None
    lines, done = ([int.from_bytes(value, "little") for value in column] for column in (statements, executed))
    if any(bits & 1 or ran & ~bits for bits, ran in zip(lines, done, strict=True)):
        return None
    if max(lines).bit_length() > MAX_LINE + 1:
        return None
    try:
        ids = list(map(_blob_id, blobs))
    except ValueError:
        return None
    files = tuple(map(object.__new__, repeat(FileCoverage, len(paths))))
    fields = {
        "path": paths,
        "blob": ids,
        "statements": lines,
        "executed": done,
        "branches": branches,
        "taken": repeat(_NO_ARCS),
        "untaken": repeat(_NO_ARCS),
    }
    for name, values in fields.items():
        deque(map(vars(FileCoverage)[name].__set__, files, values), maxlen=0)
    return files


def _file(place: int, row: tuple[Any, ...]) -> FileCoverage:
    path, blob, statements, executed, branches, taken, untaken = row
    at = f"$.columns[*][{place}]"
    if not isinstance(path, str) or byte_length(path) > MAX_TEXT_BYTES:
        fail(at, "expected a path")
    if type(branches) is not int or not 0 <= branches <= MAX_LINE * 8 or not isinstance(blob, bytes):
        fail(at, "expected a number of branches and a blob")
    try:
        return FileCoverage(
            path=path,
            blob=_blob_id(blob),
            statements=_bits(at, statements),
            executed=_bits(at, executed),
            branches=branches,
            taken=_arcs(at, taken),
            untaken=_arcs(at, untaken),
        )
    except ValueError as error:
        raise DecodeError("body-corrupt", f"{at}: {error}") from error


@lru_cache(maxsize=1 << 16)
def _blob_id(raw: bytes) -> BlobId:
    return BlobId(object_id(raw.hex()))


def _bits(at: str, value: Any) -> int:
    if not isinstance(value, bytes) or len(value) > _MAX_BITS_BYTES or value.endswith(b"\0"):
        fail(at, "expected a bit set of lines without a trailing zero")
    return int.from_bytes(value, "little")


def _arcs(at: str, value: Any) -> frozenset[Arc]:
    if not isinstance(value, list) or len(value) % 2:
        fail(at, "expected pairs of lines")
    if not value:
        return _NO_ARCS
    if not all(type(number) is int and -MAX_LINE <= number <= MAX_LINE for number in value):
        fail(at, f"expected lines within {MAX_LINE}")
    pairs = list(zip(value[::2], value[1::2], strict=True))
    if pairs != sorted(set(pairs)):
        fail(at, "branches that are not sorted and unique")
    return frozenset(pairs)
