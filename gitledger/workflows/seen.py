"""What a judgement has seen in the notes of this clone's ledger, kept for the next one."""

from __future__ import annotations

from gitledger.store.encoding import ID_BYTES
from gitledger.store.kept_file import kept_path
from gitledger.store.marks import Marks
from gitledger.store.marks_file import read_marks, write_marks
from gitledger.store.view import LedgerView
from gitledger.workflows.relevance import RULES, marks_of
from gitledger.workflows.session import Session

__all__ = ["LEAST_KEPT", "see"]

LEAST_KEPT = 1_000
"""From how many notes on marks are kept: fewer are read as quickly."""
_UNPLACED = frozenset({("", "")})
"""Of notes that are not told from others by their places, in trees that repeat themselves."""


def see(session: Session, view: LedgerView) -> Marks:
    """Return the marks of all notes; those that an earlier run has seen are not read again."""
    id_bytes = ID_BYTES[session.repo.object_format]
    path = kept_path(session.repo.common_dir, "marks")
    known = read_marks(path, RULES, id_bytes)
    marks = view.marks(known, marks_of, session.repo.in_pack_order)
    if known.rows and marks.rows < LEAST_KEPT:  # nobody kept them: what says so is not to be believed
        marks = view.marks(Marks(id_bytes=id_bytes), marks_of, session.repo.in_pack_order)
    if marks.rows >= LEAST_KEPT and marks.names not in (known.names, _UNPLACED):
        write_marks(path, RULES, marks)
    return marks
