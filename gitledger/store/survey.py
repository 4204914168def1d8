"""What only `fsck` asks of a repository: what its ledger once held, refs that hold none, and lock files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.records.ids import BlobId, CommitId
from gitledger.store.encoding import ID_BYTES
from gitledger.store.inbox import is_inbox
from gitledger.store.refs import BODIES_REF, INBOX_PREFIX, RECORDS_REF, TRACKING_PREFIX
from gitledger.store.repository import Repository

__all__ = ["States", "garbage_refs", "lock_files", "once_noted", "states_of"]

_ANY = frozenset({0, 1, 128})
_FOLDERS = ("refs/notes/gitledger", "refs/gitledger")


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """The commits that a ref pointed to, and those that its reflog names and that it was never seen to have.

    Git and libgit2 write the log before the ref moves, so a process killed in between leaves a line in the log
    about a state that there never was (`unfinished`). The line after it starts from where the ref really was.
    """

    had: tuple[CommitId, ...]
    unfinished: tuple[CommitId, ...]


def states_of(repository: Repository, ref: str) -> States:
    """Return the states of a ref, as far as its reflog tells; those whose commit is still here."""
    now = repository.objects.read_ref(ref)
    moves = _logged_moves(repository, ref)
    had = dict.fromkeys([*([] if now is None else [now]), *(old for old, _ in moves)])
    unfinished = dict.fromkeys(new for _, new in moves if new not in had)
    is_here = repository.objects.object_kind
    return States(
        had=tuple(tip for tip in had if is_here(tip) == "commit"),
        unfinished=tuple(tip for tip in unfinished if is_here(tip) == "commit"),
    )


def _logged_moves(repository: Repository, ref: str) -> list[tuple[CommitId, CommitId]]:
    """Return from where to where a ref moved, oldest first.

    git prints only where to. So the log is read as it lies there; where there is no such file (reftable, which
    writes ref and log in one go) all that git prints are states that the ref had.
    """
    try:
        log = (repository.common_dir / "logs" / ref).read_bytes()
    except OSError:
        done = repository.git.run("log", "-g", "--format=%H", ref, "--", statuses=_ANY)
        return [(CommitId(tip), CommitId(tip)) for tip in reversed(done.text.split())]
    words = [line.split(b" ", 2) for line in log.splitlines()]
    return [(CommitId(_text(row[0])), CommitId(_text(row[1]))) for row in words if len(row) == 3]


def _text(word: bytes) -> str:
    return word.decode("ascii", "replace")


def once_noted(repository: Repository, tips: Iterable[CommitId]) -> Mapping[str, frozenset[BlobId]]:
    """Return the blobs that any state of a notes ref, from `tips` back to its beginning, held for an object.

    One git process reads it all. A blob that stood at several objects is told for one of them.
    """
    wanted = list(tips)
    if not wanted:
        return {}
    done = repository.git.run(
        *("rev-list", "--objects", "--missing=allow-any", "--stdin"), stdin="\n".join(wanted).encode() + b"\n"
    )
    digits = 2 * ID_BYTES[repository.object_format]
    found: dict[str, set[BlobId]] = defaultdict(set)
    for line in done.text.split("\n"):
        blob, _, path = line.partition(" ")
        oid = path.replace("/", "").lower()
        if len(oid) == digits and set(oid) <= set("0123456789abcdef"):
            found[oid].add(BlobId(blob))
    return {oid: frozenset(blobs) for oid, blobs in found.items()}


def garbage_refs(repository: Repository) -> tuple[str, ...]:
    """Return the refs of the ledger that hold no part of one: no commit, or an inbox of something else."""
    objects = repository.objects
    refs = dict(objects.list_refs(TRACKING_PREFIX)) | dict(objects.list_refs(INBOX_PREFIX))
    for name in (RECORDS_REF, BODIES_REF):
        tip = objects.read_ref(name)
        if tip is not None:
            refs[name] = tip
    return tuple(
        name
        for name, tip in sorted(refs.items())
        if objects.object_kind(tip) not in ("commit", None) or ("/inbox/" in name and not is_inbox(objects, tip))
    )


def lock_files(repository: Repository) -> tuple[Path, ...]:
    """Return the lock files on the ledger's refs, and on the file that all packed refs share."""
    common = repository.common_dir
    found = [lock for folder in _FOLDERS for lock in (common / folder).rglob("*.lock")]
    packed = common / "packed-refs.lock"
    return tuple(sorted([*found, *([packed] if packed.exists() else [])]))
