"""What the union of ledgers is: of notes as lines, of trees of records, of trees of bodies.

Grow only, without a base: commutative, associative, idempotent, independent of fan-out (DESIGN section 2, law 1).
A line is any bytes without a newline that aren't blank. One that is no record is kept like any other: it blocks
nobody and hides nothing. A body's path is its blob's id; any other entry of a body tree is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gitledger.dataclass import dataclass
from gitledger.errors import StoreError
from gitledger.records.ids import BlobId, CommitId, TreeId
from gitledger.records.limits import MAX_BODY_BYTES, MAX_LINE_BYTES, MAX_NOTE_BYTES, MAX_NOTE_LINES
from gitledger.store.encoding import blob_id, object_missing
from gitledger.store.notes_tree import Blobs, NotesTrees
from gitledger.store.objects import GitObjects

__all__ = ["NoteFault", "Union", "note_faults", "require_body", "require_line", "split_lines", "unite_lines"]


@dataclass(frozen=True, slots=True, order=True)
class NoteFault:
    """A limit that a stored note exceeds; a finding for whoever judges, since it may hide evidence.

    `code` is `note-too-large` (its lines were not read), `note-too-many-lines` or `line-too-long` (they were).
    """

    code: str
    commit: CommitId
    text: str


def split_lines(notes: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return the lines of all notes, sorted and unique, without their newlines; blank ones are no lines."""
    lines: set[bytes] = set()
    for note in notes:  # by whole notes: of a commit's many states nearly all lines are the same
        lines.update(note.split(b"\n"))
    return tuple(sorted(line for line in lines if line.strip()))


def unite_lines(*notes: bytes) -> bytes:
    """Return the note that holds the lines of all notes: sorted, unique, each ended by a newline."""
    return b"".join(line + b"\n" for line in split_lines(notes))


def require_line(line: bytes) -> None:
    """Raise `StoreError` unless `line` can be written as one line of a note."""
    if b"\n" in line or not line.strip():
        raise StoreError("not-a-line", "a record must be one line that is not blank")
    if len(line) > MAX_LINE_BYTES:
        raise StoreError("line-too-long", f"a record of {len(line)} bytes exceeds the limit of {MAX_LINE_BYTES}")


def require_body(body: bytes) -> None:
    """Raise `StoreError` unless `body` is within its limit."""
    if len(body) > MAX_BODY_BYTES:
        raise StoreError("body-too-large", f"a body of {len(body)} bytes exceeds the limit of {MAX_BODY_BYTES}")


def note_faults(commit: CommitId, note: bytes) -> tuple[NoteFault, ...]:
    """Return the limits that a note of `commit` exceeds."""
    lines = note.split(b"\n")
    count = sum(1 for line in lines if line.strip())
    longest = max(map(len, lines))
    checks = (
        ("note-too-large", "its size in bytes", len(note), MAX_NOTE_BYTES),
        ("note-too-many-lines", "the number of its lines", count, MAX_NOTE_LINES),
        ("line-too-long", "the size of a line in bytes", longest, MAX_LINE_BYTES),
    )
    return tuple(
        NoteFault(code, commit, f"note of {commit}: {what} is {found}, more than the limit of {limit}")
        for code, what, found, limit in checks
        if found > limit
    )


@dataclass(frozen=True, slots=True)
class Union:
    """Unions of trees in one repository. Equal folders are taken as they are, unread."""

    objects: GitObjects
    trees: NotesTrees

    def records(self, roots: Iterable[TreeId], added: Mapping[CommitId, bytes] | None = None) -> TreeId:
        """Return the records tree that holds every line of the trees and of the `added` notes.

        Raises `StoreError` with the code of a `NoteFault` where an addition makes a note exceed its limits. A note
        of others that does is united all the same: it must not block a sync, and reading it reports the fault.
        """
        pending: dict[BlobId, bytes] = {}
        loose: dict[str, Blobs] = {}
        for commit, note in (added or {}).items():
            blob = blob_id(note, self.objects.object_format)
            pending[blob] = note
            loose[commit] = frozenset({blob})

        def settle(oid: str, blobs: Blobs) -> BlobId:
            if oid not in loose and len(blobs) == 1:
                return next(iter(blobs))
            note = unite_lines(*(pending[blob] if blob in pending else self._content(blob) for blob in blobs))
            if oid in loose:
                _require_limits(CommitId(oid), note)
            return self.objects.write_blob(note)

        return self.trees.join(roots, loose, settle)

    def bodies(self, roots: Iterable[TreeId], added: Iterable[BlobId] = ()) -> TreeId:
        """Return the bodies tree that holds every body of the trees and the `added` ones."""
        return self.trees.join(roots, {blob: frozenset({blob}) for blob in added}, _own_blob)

    def _content(self, blob: BlobId) -> bytes:
        content = self.objects.read_blob(blob)
        if content is None:
            raise object_missing("note", blob)
        return content


def _require_limits(commit: CommitId, note: bytes) -> None:
    for fault in note_faults(commit, note):
        raise StoreError(fault.code, fault.text, f"git ledger show {commit}")


def _own_blob(oid: str, blobs: Blobs) -> BlobId | None:
    """Keep the blob whose id its path spells (DESIGN section 2: an entry whose path is not its id is dropped)."""
    return BlobId(oid) if oid in blobs else None
