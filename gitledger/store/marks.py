"""What was once seen in the notes of a ledger: for each note a few marks, found without reading the note again.

A mark is opaque here: one byte that says of what kind it is, and 15 bytes of a hash. Whoever asks knows what it
stands for, and what follows from a note that lacks it. A note is a blob, and what a blob holds never changes;
which notes there are is told by the ids of the folders that hold them, which never lie either. So what was seen
once holds for as long as a folder has the same id, and only what stands in new folders has to be looked at.

Columns rather than objects: a ledger of a hundred thousand notes is opened in milliseconds.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import field
from itertools import accumulate, chain, repeat
from typing import cast

from gitledger.dataclass import dataclass
from gitledger.records.ids import BlobId, CommitId, TreeId
from gitledger.store.notes_tree import Blobs

__all__ = ["INNER_BYTES", "MARK_BYTES", "Mark", "MarkNotes", "Marks", "Part", "Rows", "look", "look_again"]

Mark = bytes
MARK_BYTES = 16
INNER_BYTES = 8
"""How much of a folder's id is kept, to tell folders that stand in several places."""
MarkNotes = Callable[[Set[BlobId]], Mapping[BlobId, frozenset[Mark]]]
"""Given notes, the marks of each."""
ReadPlace = Callable[[str, frozenset[TreeId]], tuple[Mapping[str, Blobs], frozenset[TreeId]] | None]
"""Given the folders of one place: the notes in them by object id, and all folders; None where some repeat."""


@dataclass(frozen=True, slots=True)
class Part:
    """The notes below one place of a ledger's trees: how many rows they are, and the folders they stand in.

    `key` names the folders that are joined there. `inner` holds the first bytes of the id of each folder.
    """

    prefix: str
    key: str
    rows: int
    marks: int
    inner: frozenset[bytes]


def _key(trees: Iterable[TreeId]) -> str:
    """Return what names the folders that are joined at one place."""
    return hashlib.sha256(b"".join(bytes.fromhex(tree) for tree in sorted(trees))).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The notes of a ledger, one row for each blob that is a note of a commit, and the marks of each row.

    `commits` and `blobs` are ids of `id_bytes` each, `counts` how many marks each row has in `marks`; `parts` are
    the places that the rows belong to, in their order.
    """

    id_bytes: int
    parts: tuple[Part, ...] = ()
    commits: bytes = b""
    blobs: bytes = b""
    counts: array[int] = field(default_factory=lambda: array("I"))
    marks: bytes = b""

    @property
    def is_whole(self) -> bool:
        """Tell whether the columns fit each other."""
        rows, marks = len(self.counts), sum(self.counts)
        return (
            len(self.commits) == len(self.blobs) == rows * self.id_bytes
            and len(self.marks) == marks * MARK_BYTES
            and sum(part.rows for part in self.parts) == rows
            and sum(part.marks for part in self.parts) == marks
        )

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.counts)

    @property
    def names(self) -> frozenset[tuple[str, str]]:
        """What tells these notes from others: where their folders are, and which."""
        return frozenset((part.prefix, part.key) for part in self.parts)

    def having(self, wanted: Set[Mark]) -> frozenset[CommitId]:
        """Return the commits that have a note with one of these marks."""
        marks = self.marks
        starts = range(0, len(marks), MARK_BYTES)
        hits = [at // MARK_BYTES for at in starts if marks[at : at + MARK_BYTES] in wanted]
        ends = list(accumulate(self.counts)) if hits else []
        return frozenset(self._commit(bisect_right(ends, hit)) for hit in hits)

    def commits_by_mark(self) -> dict[Mark, list[CommitId]]:
        """Return by each mark the commits that have a note with it."""
        found: dict[Mark, list[CommitId]] = {}
        at = 0
        for row, count in enumerate(self.counts):
            commit = self._commit(row)
            for number in range(at, at + count):
                mark = self.marks[number * MARK_BYTES : (number + 1) * MARK_BYTES]
                found.setdefault(mark, []).append(commit)
            at += count
        return found

    def of_kind(self, kind: int) -> dict[CommitId, frozenset[Mark]]:
        """Return the marks of one kind, by the commits that have a note with any of it."""
        found: dict[str, frozenset[Mark]] = {}
        alone: dict[Mark, frozenset[Mark]] = {}
        marks, commits, width = self.marks, self.commits.hex(), 2 * self.id_bytes
        rows = chain.from_iterable(map(repeat, range(len(self.counts)), self.counts))
        for number, (row, its_kind) in enumerate(zip(rows, marks[::MARK_BYTES], strict=True)):
            if its_kind == kind:
                mark = marks[number * MARK_BYTES : (number + 1) * MARK_BYTES]
                commit = commits[row * width : (row + 1) * width]
                one = alone.get(mark) or alone.setdefault(mark, frozenset((mark,)))
                found[commit] = found[commit] | one if commit in found else one
        return cast("dict[CommitId, frozenset[Mark]]", found)

    def by_blob(self) -> dict[BlobId, frozenset[Mark]]:
        """Return the marks of every note."""
        blobs, width = self.blobs.hex(), 2 * self.id_bytes
        found, at = {}, 0
        for row, count in enumerate(self.counts):
            blob = BlobId(blobs[row * width : (row + 1) * width])
            found[blob] = frozenset(
                self.marks[number * MARK_BYTES : (number + 1) * MARK_BYTES] for number in range(at, at + count)
            )
            at += count
        return found

    def _commit(self, row: int) -> CommitId:
        return CommitId(self.commits[row * self.id_bytes : (row + 1) * self.id_bytes].hex())

    def by_part(self) -> Iterator[tuple[Part, Rows]]:
        """Yield each part with its rows."""
        row = mark = 0
        for part in self.parts:
            ids = slice(row * self.id_bytes, (row + part.rows) * self.id_bytes)
            yield (
                part,
                Rows(
                    self.commits[ids],
                    self.blobs[ids],
                    self.counts[row : row + part.rows],
                    self.marks[mark * MARK_BYTES : (mark + part.marks) * MARK_BYTES],
                ),
            )
            row, mark = row + part.rows, mark + part.marks


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one part."""

    commits: bytes
    blobs: bytes
    counts: array[int]
    marks: bytes

    @classmethod
    def of(cls, notes: Mapping[str, Blobs], marks_by_blob: Mapping[BlobId, frozenset[Mark]]) -> Rows:
        """Return the rows of some notes, given by object id, whose marks are known."""
        commits, blobs, counts, marks = bytearray(), bytearray(), array("I"), bytearray()
        for oid, found in notes.items():
            for blob in sorted(found):
                seen = sorted(marks_by_blob[blob])
                commits += bytes.fromhex(oid)
                blobs += bytes.fromhex(blob)
                counts.append(len(seen))
                marks += b"".join(seen)
        return cls(bytes(commits), bytes(blobs), counts, bytes(marks))


def _assembled(id_bytes: int, pieces: Iterable[tuple[Part, Rows]]) -> Marks:
    """Return the marks that consist of these parts."""
    found = list(pieces)
    counts = array("I")
    for _, rows in found:
        counts.extend(rows.counts)
    return Marks(
        id_bytes=id_bytes,
        parts=tuple(part for part, _ in found),
        commits=b"".join(rows.commits for _, rows in found),
        blobs=b"".join(rows.blobs for _, rows in found),
        counts=counts,
        marks=b"".join(rows.marks for _, rows in found),
    )


def look(id_bytes: int, notes: Mapping[str, Blobs], mark_notes: MarkNotes) -> Marks:
    """Return the marks of these notes, each looked at, in one part that is never found again."""
    rows = Rows.of(notes, mark_notes(frozenset[BlobId]().union(*notes.values())))
    part = Part("", "", len(rows.counts), len(rows.marks) // MARK_BYTES, frozenset())
    return _assembled(id_bytes, [(part, rows)])


def look_again(
    known: Marks, places: Mapping[str, frozenset[TreeId]], read: ReadPlace, mark_notes: MarkNotes
) -> Marks | None:
    """Return the marks of what stands at these places: what is known as it is, what is new looked at.

    None where a folder stands in more than one place: such trees are nobody's ledger, and the rules for what
    counts in them don't go by places.
    """
    there = {(part.prefix, part.key): (part, rows) for part, rows in known.by_part()}
    wanted = {prefix: (prefix, _key(trees)) for prefix, trees in sorted(places.items())}
    new: dict[str, tuple[Mapping[str, Blobs], frozenset[bytes]]] = {}
    met: set[bytes] = set()
    for prefix, name in wanted.items():
        if name in there:
            inner = there[name][0].inner
        else:
            found = read(prefix, places[prefix])
            inner = frozenset(bytes.fromhex(tree)[:INNER_BYTES] for tree in found[1]) if found else frozenset()
            if found is None or len(inner) < len(found[1]):
                return None
            new[prefix] = (found[0], inner)
        # At once: a few kilobytes of folders in many places would spell more notes than there is memory for.
        if not met.isdisjoint(inner):
            return None
        met |= inner
    seen = known.by_blob() if new else {}
    blobs = {blob for notes, _ in new.values() for found_here in notes.values() for blob in found_here}
    seen.update(mark_notes(blobs - seen.keys()))
    for prefix, (notes, inner) in new.items():
        rows = Rows.of(notes, seen)
        part = Part(*wanted[prefix], len(rows.counts), len(rows.marks) // MARK_BYTES, inner)
        there[wanted[prefix]] = (part, rows)
    return _assembled(known.id_bytes, [there[name] for name in wanted.values()])
