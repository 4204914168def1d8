"""An inbox ref: one commit that holds both trees of a ledger, or parts of them, where no two writers meet.

A push that lost its race lands there at the remote, and what can't be written to the notes refs lands there here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gitledger.dataclass import dataclass
from gitledger.errors import StoreError
from gitledger.records.ids import CommitId, TreeId
from gitledger.records.tree import MODE_FOLDER, TreeEntry
from gitledger.store.objects import GitObjects, Identity
from gitledger.store.refs import BODIES_REF, INBOX_PREFIX, RECORDS_REF

__all__ = ["PARTS", "Aside", "By", "TellAside", "inbox_commit", "is_inbox", "own_inbox", "stands_in_the_way"]

PARTS = {"records": RECORDS_REF, "bodies": BODIES_REF}
"""The folders of an inbox commit, and the notes refs that their content belongs into."""
_IN_THE_WAY = frozenset({"ref-locked", "ref-contended", "ref-conflict"})


@dataclass(frozen=True, slots=True)
class Aside:
    """What was written landed in the inbox ref `ref`, since a notes ref could not be moved: `error` says why."""

    ref: str
    error: StoreError


By = Callable[[], tuple[Identity, str]]
"""Gives the author of a notes commit and its message; asked only where one is made."""
TellAside = Callable[[Aside], None]


def stands_in_the_way(error: StoreError) -> bool:
    """Tell whether an error is one of a single ref, so that another ref could be written all the same."""
    return error.code in _IN_THE_WAY


def inbox_commit(objects: GitObjects, trees: Mapping[str, TreeId], by: By) -> CommitId:
    """Store a commit, without history, that holds trees of `PARTS`, and return its id."""
    identity, message = by()
    entries = [TreeEntry(MODE_FOLDER, part, tree) for part, tree in trees.items()]
    return objects.write_commit(tree=objects.write_tree(entries), parents=(), message=message, identity=identity)


def is_inbox(objects: GitObjects, tip: CommitId) -> bool:
    """Return whether a ref of an inbox is what we put there; anything else is left alone."""
    info = objects.read_commit(tip)
    entries = (objects.read_tree(info.tree) if info else None) or ()
    return bool(entries) and all(entry.name in PARTS and entry.mode == MODE_FOLDER for entry in entries)


def own_inbox(objects: GitObjects) -> dict[str, CommitId]:
    """Return this clone's own inbox refs, those that hold something else left out."""
    return {name: tip for name, tip in objects.list_refs(INBOX_PREFIX).items() if is_inbox(objects, tip)}
