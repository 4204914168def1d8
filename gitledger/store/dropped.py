"""What a notes ref held a short while ago and holds no more: seen without a walk through all of its history.

A ledger only grows (DESIGN section 2, law 1), but `git notes remove`, `git notes prune` and plain merges pass
deletions on as ordinary steps forward, which every clone fetches without a word.

Where nothing had been dropped, the tips that were looked at are kept: the next look begins there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping

from gitledger.dataclass import dataclass
from gitledger.errors import StoreError
from gitledger.records.ids import BlobId, CommitId
from gitledger.records.limits import MAX_NOTE_BYTES
from gitledger.store.encoding import ID_BYTES
from gitledger.store.kept_file import kept_path, read_kept, write_kept
from gitledger.store.repository import Repository
from gitledger.store.union import split_lines
from gitledger.store.view import LedgerView

__all__ = ["LEAST_KEPT", "STATES", "recently_dropped"]

STATES = 256
"""How many states of the refs are looked back at; `fsck` looks at all of them."""
LEAST_KEPT = 16
"""From how many states on it is kept that nothing was dropped: fewer are looked at as quickly."""
_ANY = frozenset({0, 1, 128})
_DIFF = ("diff-tree", "--stdin", "-r", "-m", "--raw", "--no-abbrev", "--no-renames", "--no-commit-id")
_ROW = rb"(?m)^:\d+ \d+ ([0-9a-f]+) [0-9a-f]+ [DM]\t([0-9a-fA-F/]+)$"
_MAGIC = b"gitledger looked back 1\n"

Lines = Mapping[CommitId, tuple[bytes, ...]]


def recently_dropped(repository: Repository, view: LedgerView) -> Lines:
    """Return the lines that one of the last `STATES` states of notes refs held and that `view` lacks, by commit.

    Two git processes, whatever the size of the ledger; none where these tips were looked at before. What can't be
    read says nothing: `fsck` names it.
    """
    now = _Tips.of(repository, view)
    if not now.records:
        return {}
    path = kept_path(repository.common_dir, "looked-back")
    # More may be fetched of a history that is cut: behind tips that were looked at.
    clean = None if repository.is_shallow else _decode(read_kept(path) or b"")
    if clean == now:
        return {}
    states = (clean and _since(repository, now, clean)) or _newest(repository, now)
    found = _look(repository, view, states)
    is_worth_it = clean is not None or len(states.commits) >= LEAST_KEPT
    if is_worth_it and found.is_whole and not found.lines and not repository.is_shallow:
        write_kept(path, _encode(now))
    return found.lines


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tips:
    """The tips that a view is made of, without those of bodies and what is no commit."""

    records: frozenset[CommitId]
    inbox: frozenset[CommitId]

    @classmethod
    def of(cls, repository: Repository, view: LedgerView) -> _Tips:
        kind = repository.objects.object_kind
        here = frozenset(tip for tip in view.tips.records if kind(tip) == "commit")
        return cls(records=here, inbox=view.tips.inbox)


@dataclass(frozen=True, slots=True)
class _States:
    """Commits of notes refs, and whether git could list them to the end."""

    commits: tuple[str, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class _Look:
    """What was found to be lost, and whether all that may have been could be read."""

    lines: Lines
    is_whole: bool


def _newest(repository: Repository, now: _Tips) -> _States:
    listed = repository.git.run("rev-list", "-n", str(STATES), *sorted(now.records), statuses=_ANY)
    return _States(tuple(listed.text.split()), listed.status == 0)


def _since(repository: Repository, now: _Tips, clean: _Tips) -> _States | None:
    """Return the states since nothing had been dropped; None where those that were clean don't lead to `now`.

    A line that a clean state held is still here, or was lost by one of the states in between: as long as each tip
    that was looked at is one of now, or an ancestor of one. What lay in an inbox can be lost with its ref.
    """
    if not clean.inbox <= now.inbox:
        return None
    seen = [f"^{tip}" for tip in sorted(clean.records)]
    asked = ("rev-list", "--boundary", "-n", str(STATES), *sorted(now.records), *seen)
    listed = repository.git.run(*asked, statuses=_ANY)
    lines = listed.text.split()
    if listed.status or not {f"-{tip}" for tip in clean.records - now.records} <= set(lines):
        return None
    return _States(tuple(line for line in lines if not line.startswith("-")), is_whole=True)


def _look(repository: Repository, view: LedgerView, states: _States) -> _Look:
    """Return what these states took out of notes and `view` doesn't hold."""
    stdin = "".join(f"{commit}\n" for commit in states.commits).encode("ascii")
    changed = repository.git.run(*_DIFF, "--diff-filter=DM", stdin=stdin, statuses=_ANY)
    digits = 2 * ID_BYTES[repository.object_format]
    once: dict[CommitId, set[BlobId]] = defaultdict(set)
    for blob, path in re.findall(_ROW, changed.stdout):
        oid = path.replace(b"/", b"").decode("ascii").lower()
        if len(oid) == digits:
            once[CommitId(oid)].add(BlobId(blob.decode("ascii")))
    lines: dict[CommitId, tuple[bytes, ...]] = {}
    is_whole = states.is_whole and changed.status == 0
    for commit, blobs in once.items():
        lost, all_read = _lost(repository, view, commit, blobs)
        is_whole = is_whole and all_read
        if lost:
            lines[commit] = lost
    return _Look(lines, is_whole)


def _lost(
    repository: Repository, view: LedgerView, commit: CommitId, blobs: set[BlobId]
) -> tuple[tuple[bytes, ...], bool]:
    """Return the lines of former notes of a commit that it has no more, and whether all of those could be read."""
    objects = repository.objects
    try:
        old = [blob for blob in blobs - view.notes(commit) if (objects.blob_size(blob) or 0) <= MAX_NOTE_BYTES]
        read = [objects.read_blob(blob) for blob in old]
        once = split_lines(content for content in read if content is not None)
        now = set(view.lines(commit)) if once else set()
    except StoreError:
        return (), False
    return tuple(line for line in once if line not in now), None not in read


def _encode(tips: _Tips) -> tuple[bytes, ...]:
    said = json.dumps([STATES, sorted(tips.records), sorted(tips.inbox)]).encode("ascii")
    return _MAGIC, hashlib.sha256(said).hexdigest().encode("ascii"), b"\n", said


def _decode(raw: bytes) -> _Tips | None:
    """Return the tips that were kept; None where anything is wrong with them."""
    digest, _, said = raw.removeprefix(_MAGIC).partition(b"\n")
    if not raw.startswith(_MAGIC) or hashlib.sha256(said).hexdigest().encode("ascii") != digest:
        return None
    states, records, inbox = json.loads(said)
    tips = _Tips(records=frozenset(map(CommitId, records)), inbox=frozenset(map(CommitId, inbox)))
    return tips if states == STATES else None
