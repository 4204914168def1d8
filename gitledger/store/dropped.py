"""What a notes ref held a short while ago and holds no more: seen without a walk through all of its history.

A ledger only grows (DESIGN section 2, law 1), but `git notes remove`, `git notes prune` and plain merges pass
deletions on as ordinary steps forward, which every clone fetches without a word.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from gitledger.errors import StoreError
from gitledger.records.ids import BlobId, CommitId
from gitledger.records.limits import MAX_NOTE_BYTES
from gitledger.store.encoding import ID_BYTES
from gitledger.store.repository import Repository
from gitledger.store.union import split_lines
from gitledger.store.view import LedgerView

__all__ = ["STATES", "recently_dropped"]

STATES = 256
"""How many states of the refs are looked back at; `fsck` looks at all of them."""
_ANY = frozenset({0, 1, 128})
_DIFF = ("diff-tree", "--stdin", "-r", "-m", "--raw", "--no-abbrev", "--no-renames", "--no-commit-id")
_ROW = re.compile(rb"^:\d+ \d+ ([0-9a-f]+) [0-9a-f]+ [DM]\t([0-9a-fA-F/]+)$", re.MULTILINE)


def recently_dropped(
    repository: Repository, tips: Iterable[CommitId], view: LedgerView
) -> Mapping[CommitId, tuple[bytes, ...]]:
    """Return the lines that one of the last `STATES` states of notes refs held and that `view` lacks, by commit.

    Two git processes, whatever the size of the ledger. What can't be read says nothing: `fsck` names it.
    """
    present = [tip for tip in sorted(tips) if repository.objects.object_kind(tip) == "commit"]
    if not present:
        return {}
    git = repository.git
    listed = git.run("rev-list", "-n", str(STATES), *present, statuses=_ANY)
    changed = git.run(*_DIFF, "--diff-filter=DM", stdin=listed.stdout, statuses=_ANY)
    digits = 2 * ID_BYTES[repository.object_format]
    once: dict[CommitId, set[BlobId]] = defaultdict(set)
    for blob, path in _ROW.findall(changed.stdout):
        oid = path.replace(b"/", b"").decode("ascii").lower()
        if len(oid) == digits:
            once[CommitId(oid)].add(BlobId(blob.decode("ascii")))
    found = {commit: _lost(repository, view, commit, blobs) for commit, blobs in once.items()}
    return {commit: lines for commit, lines in found.items() if lines}


def _lost(repository: Repository, view: LedgerView, commit: CommitId, blobs: set[BlobId]) -> tuple[bytes, ...]:
    objects = repository.objects
    try:
        old = [blob for blob in blobs - view.notes(commit) if (objects.blob_size(blob) or 0) <= MAX_NOTE_BYTES]
        once = split_lines(content for content in map(objects.read_blob, old) if content is not None)
        now = set(view.lines(commit)) if once else set()
    except StoreError:
        return ()
    return tuple(line for line in once if line not in now)
