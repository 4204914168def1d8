"""The ledger as it stood at one moment: the union of all its refs, to be read as often as one likes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress

from gitledger.errors import StoreError
from gitledger.records.ids import BlobId, CommitId
from gitledger.records.limits import MAX_BODY_BYTES, MAX_NOTE_BYTES
from gitledger.store.claims import bodies_of, subjects_in
from gitledger.store.encoding import ID_BYTES, blob_id, object_corrupt, object_missing
from gitledger.store.marks import Mark, Marks, look, look_again
from gitledger.store.notes_tree import Blobs, NotesTrees
from gitledger.store.objects import GitObjects
from gitledger.store.refs import Tips, roots_of
from gitledger.store.union import NoteFault, note_faults, split_lines

__all__ = ["LedgerView"]


class LedgerView:
    """Every line and body of the notes trees at `tips`, whoever wrote them last and in whatever fan-out.

    Raises `StoreError` `object-missing` or `object-corrupt` where the repository is damaged.
    """

    def __init__(self, objects: GitObjects, trees: NotesTrees, tips: Tips) -> None:
        self._objects = objects
        self._trees = trees
        self._tips = tips
        self._roots = roots_of(objects, tips)

    @property
    def tips(self) -> Tips:
        """The commits whose trees these are."""
        return self._tips

    def commits(self) -> frozenset[CommitId]:
        """Return the ids of all objects that have a note; nothing says that this clone has the objects."""
        return frozenset(map(CommitId, self._trees.noted(self._roots.records, self._subjects)))

    def annotated(self) -> Mapping[CommitId, Blobs]:
        """Return what `commits` and `notes` return, for whoever wants the notes of all commits."""
        found = self._trees.notes(self._roots.records, self._subjects)
        return {CommitId(oid): blobs for oid, blobs in found.items()}

    def marks(
        self,
        known: Marks,
        of_lines: Callable[[tuple[bytes, ...]], frozenset[Mark]],
        in_order: Callable[[Set[BlobId]], Iterable[BlobId]] = sorted,
    ) -> Marks:
        """Return the marks of all notes: those that are `known` as they are, those of other notes by their lines.

        A note without lines, and one that is too large to be read, has the marks of no lines. `in_order` puts the
        notes that have to be read into an order in which that is quick.
        """

        def mark_notes(blobs: Set[BlobId]) -> dict[BlobId, frozenset[Mark]]:
            return {blob: of_lines(self.lines_of(frozenset({blob}))) for blob in in_order(blobs)}

        found = look_again(known, self._trees.places(self._roots.records), self._trees.notes_at, mark_notes)
        if found is not None:
            return found
        notes = self._trees.notes(self._roots.records, self._subjects)
        return look(ID_BYTES[self._objects.object_format], notes, mark_notes)

    def lines(self, commit: CommitId) -> tuple[bytes, ...]:
        """Return the lines of a commit, sorted, unique and without newlines, garbage included.

        Lines over the limit are among them. A note of more than `MAX_NOTE_BYTES` isn't read: `faults` says so, and
        whoever judges has to ask for both.
        """
        return self.lines_of(self.notes(commit))

    def lines_of(self, notes: Blobs) -> tuple[bytes, ...]:
        """Return the lines of a commit whose notes are at hand, as `lines` does."""
        return split_lines(self._content(blob) for blob in notes if not self._is_too_large(blob))

    def faults(self, commit: CommitId) -> tuple[NoteFault, ...]:
        """Return the limits that the notes of a commit exceed, each of which may hide evidence."""
        found: set[NoteFault] = set()
        for blob in self.notes(commit):
            if self._is_too_large(blob):
                size = self._objects.blob_size(blob)
                text = f"note of {commit}: its size in bytes is {size}, more than the limit of {MAX_NOTE_BYTES}"
                found.add(NoteFault("note-too-large", commit, text))
            else:
                found.update(note_faults(commit, self._content(blob)))
        return tuple(sorted(found))

    def read_ahead(self, bodies: Iterable[BlobId]) -> None:
        """Prepare for reading these bodies soon; nothing that is said or raised then changes by it.

        Those that the ledger lacks are left alone: in a partial clone each would be asked of its remote.
        """
        wanted = list(bodies)
        held: set[BlobId] = set()
        with suppress(StoreError):
            for root in self._roots.bodies:
                self._trees.look_ahead(root, wanted)
                held.update(oid for oid in wanted if oid in self._trees.find(root, oid))
        self._objects.read_ahead(oid for oid in dict.fromkeys(wanted) if oid in held)

    def body(self, oid: BlobId) -> bytes | None:
        """Return the body with that id; None where the ledger has none, or one larger than `MAX_BODY_BYTES`."""
        if not self.has_body(oid):
            return None
        content = self._objects.read_blob(oid)
        if content is not None and blob_id(content, self._objects.object_format) != oid:
            raise object_corrupt("blob", oid)
        return content

    def has_body(self, oid: BlobId) -> bool:
        """Tell whether `body` would return one."""
        if not any(oid in self._trees.find(root, oid) for root in self._roots.bodies):
            return False
        size = self._objects.blob_size(oid)
        return size is not None and size <= MAX_BODY_BYTES

    def bodies(self) -> frozenset[BlobId]:
        """Return the ids of all bodies that the ledger's trees hold under their own ids."""
        notes = self._trees.notes(self._roots.bodies, bodies_of)
        return frozenset(BlobId(oid) for oid, blobs in notes.items() if oid in blobs)

    def false_bodies(self) -> frozenset[BlobId]:
        """Return the paths in bodies trees at which there is another blob than the one that they spell."""
        notes = self._trees.notes(self._roots.bodies, bodies_of)
        return frozenset(BlobId(oid) for oid, blobs in notes.items() if blobs - {oid})

    def notes(self, commit: CommitId) -> Blobs:
        """Return the blobs that are a commit's note, whose lines are united."""
        found: set[BlobId] = set()
        for root in self._roots.records:
            found |= self._trees.find(root, commit)
        return frozenset(found)

    def _subjects(self, blob: BlobId) -> Iterable[str]:
        return subjects_in(self._objects, blob)

    def _is_too_large(self, blob: BlobId) -> bool:
        size = self._objects.blob_size(blob)
        if size is None:
            raise object_missing("note", blob)
        return size > MAX_NOTE_BYTES

    def _content(self, blob: BlobId) -> bytes:
        content = self._objects.read_blob(blob)
        if content is None:
            raise object_missing("note", blob)
        return content
