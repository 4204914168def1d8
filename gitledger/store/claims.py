"""What a note says that it is a note of, so that a place can be told that was made up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gitledger.errors import DecodeError, StoreError
from gitledger.records.decode import Reader, load_json
from gitledger.records.envelope import decode_line
from gitledger.records.ids import BlobId
from gitledger.records.limits import MAX_NOTE_BYTES, MAX_PAYLOAD_BYTES
from gitledger.store.encoding import object_missing
from gitledger.store.objects import GitObjects
from gitledger.store.union import split_lines

__all__ = ["bodies_of", "subjects_in"]


def bodies_of(blob: BlobId) -> Iterable[str]:
    """Return where a body stands: at its own id."""
    return (blob,)


def subjects_in(objects: GitObjects, blob: BlobId) -> Iterator[str]:
    """Yield the commits that the lines of a note are about, of whatever kind and version they are.

    A line that names none counts for nothing wherever it stands. Raises `StoreError` `notes-tree-repeats` for a
    note that is too large to be read: it may be the note of anything, and hide a failure.
    """
    size = objects.blob_size(blob)
    if size is None:
        raise object_missing("note", blob)
    if size > MAX_NOTE_BYTES:
        raise StoreError(
            "notes-tree-repeats",
            f"note {blob} of {size} bytes stands in a folder that repeats itself, and may be of any commit",
            "git ledger fsck (it names the ref that holds it)",
        )
    for line in split_lines([objects.read_blob(blob) or b""]):
        try:
            statement = Reader(load_json(decode_line(line).payload, limit=MAX_PAYLOAD_BYTES))
            for subject in statement.children("subject", limit=1):
                yield subject.child("digest").text("gitCommit")
        except DecodeError:
            continue
