"""Git's own bytes: what a tree and a commit look like as stored objects.

Reading the stored bytes, and not a library's view of them, keeps replace refs and grafts out (DESIGN section 2)
and keeps entries that we know nothing of exactly as they are. Tree entries are ordered as `base_name_compare` in
git's tree.c orders them (a folder sorts as `name/`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain

from gitledger.errors import StoreError
from gitledger.records.ids import BlobId, CommitId, TreeId
from gitledger.records.tree import MODE_FOLDER, MODES, CommitInfo, TreeEntry
from gitledger.store.objects import Identity

__all__ = [
    "ID_BYTES",
    "blob_id",
    "decode_commit",
    "decode_tree",
    "encode_commit",
    "encode_tree",
    "object_corrupt",
    "object_id",
    "object_missing",
    "parents_of",
    "refuse_unsound",
    "split_tree",
    "tree_id",
    "unique_names",
]

ID_BYTES = {"sha1": 20, "sha256": 32}
_SPELT_MODES = frozenset(b"%o" % mode for mode in MODES)
_NO_NAMES = frozenset({"", ".", ".."})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(9999, 12, 31, tzinfo=UTC)


def object_corrupt(kind: str, oid: str) -> StoreError:
    """Return the error of an object that is there but can't be read."""
    return StoreError("object-corrupt", f"{kind} {oid} can't be read", "git fsck")


def object_missing(kind: str, oid: str) -> StoreError:
    """Return the error of an object that something in the repository names and the repository lacks."""
    return StoreError(
        "object-missing", f"{kind} {oid} is missing", "git fsck (then git fetch --refetch, where a remote has it)"
    )


def blob_id(content: bytes, object_format: str) -> BlobId:
    """Return the id that a blob of `content` has in a repository of `object_format`."""
    return BlobId(object_id("blob", content, object_format))


def object_id(kind: str, content: bytes, object_format: str) -> str:
    """Return the id of an object of that kind (`blob`, `tree`, …) with that content."""
    digest = hashlib.new(object_format, b"%b %d\0" % (kind.encode("ascii"), len(content)), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


def tree_id(raw: bytes, object_format: str) -> TreeId:
    """Return the id that a tree stored as `raw` has in a repository of `object_format`."""
    return TreeId(object_id("tree", raw, object_format))


def split_tree(oid: str, raw: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """Return mode, name and binary id of each entry of tree `oid`; raises `StoreError` `object-corrupt`."""
    found: list[tuple[bytes, bytes, bytes]] = _entry(len(oid) // 2).findall(raw)
    if len(b"".join(chain.from_iterable(found))) + 2 * len(found) != len(raw):  # a space and a NUL in each
        raise object_corrupt("tree", oid)
    return found


def decode_tree(oid: str, raw: bytes) -> tuple[TreeEntry, ...]:
    """Return the entries of tree `oid` as they stand; raises `StoreError` `object-corrupt`."""
    return tuple(
        TreeEntry(int(mode, 8), name.decode("utf-8", "surrogateescape"), object_name.hex())
        for mode, name, object_name in split_tree(oid, raw)
    )


def unique_names(oid: str, raw: bytes) -> dict[bytes, tuple[bytes, bytes]]:
    """Return mode and binary id of each entry of tree `oid` by its name.

    Raises `StoreError` `object-corrupt` where it can't be read, and for what `refuse_unsound` refuses.
    """
    found = split_tree(oid, raw)
    names = {name: (mode, object_name) for mode, name, object_name in found}
    is_odd = not _SPELT_MODES.issuperset({mode for mode, _ in names.values()})
    if is_odd or len(names) < len(found) or b"." in names or b".." in names or b"/" in b"\0".join(names):
        refuse_unsound(oid, decode_tree(oid, raw))
    return names


def refuse_unsound(oid: str, entries: Collection[TreeEntry]) -> None:
    """Raise `StoreError` `object-corrupt` for a tree in which a name stands twice, or is more than one component.

    So too for an entry of a mode that git has never written.

    git never writes such trees (fsck.c, fsck_tree) but checks them out: a file `src/a` in the root lands inside
    the folder `src`, and of two entries of one name the last one lands. What looks a path up would see the other.
    A mode it rounds (cache.h, canon_mode): `120777` lands as a symlink and `40755` as a folder, and what compares
    modes would take either for a file.
    """
    odd = next((entry for entry in entries if entry.mode not in MODES), None)
    if odd is not None:
        what = f"tree {oid} holds {odd.name[:80]!a} with mode {odd.mode:o}, which git never writes"
        raise StoreError("object-corrupt", f"{what}: a checkout would not be what it says", "git fsck")
    names = [entry.name for entry in entries]
    if len(set(names)) == len(names) and not any("/" in name or name in _NO_NAMES for name in names):
        return
    bad = next(name for i, name in enumerate(names) if "/" in name or name in _NO_NAMES or name in names[:i])
    what = f"tree {oid} holds {bad[:80]!a} in a way that git never writes"
    raise StoreError("object-corrupt", f"{what}: a checkout would not be what it says", "git fsck")


def _sort_key(entry: TreeEntry) -> bytes:
    name = entry.name.encode("utf-8", "surrogateescape")
    return name + b"/" if entry.mode == MODE_FOLDER else name


def encode_tree(entries: Iterable[TreeEntry]) -> bytes:
    """Return the stored bytes of a tree of entries given in any order."""
    return b"".join(
        b"%o %s\0%s" % (entry.mode, entry.name.encode("utf-8", "surrogateescape"), bytes.fromhex(entry.oid))
        for entry in sorted(entries, key=_sort_key)
    )


def encode_commit(
    *, tree: TreeId, parents: Sequence[CommitId], message: str, identity: Identity, at_s: int
) -> bytes:
    """Return the stored bytes of a commit made at `at_s` (seconds since 1970), written in UTC.

    Whichever back end stores it, it is the same commit; names and messages are put into a form that git accepts.
    """
    who = f"{_one_line(identity.name)} <{_one_line(identity.email)}> {max(0, at_s)} +0000"
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {who}", f"committer {who}"]
    text = "\n".join(lines) + "\n\n" + message.replace("\0", "")
    return text.encode("utf-8", "replace")


def _one_line(text: str) -> str:
    """Return `text` in a form that a commit header can hold."""
    clean = text.encode("utf-8", "replace").decode()
    return re.sub(r"[\x00-\x1f<>]", "", clean).strip() or "unknown"


def parents_of(oid: CommitId, raw: bytes) -> tuple[CommitId, ...]:
    """Return the parents that a stored commit names, whatever replace refs and grafts say.

    Raises `StoreError` `object-corrupt`.
    """
    parents: list[CommitId] = []
    at = raw.find(b"\n") + 1
    try:
        while raw.startswith(b"parent ", at):
            end = raw.index(b"\n", at)
            parents.append(CommitId(raw[at + 7 : end].decode("ascii")))
            at = end + 1
    except ValueError as error:
        raise object_corrupt("commit", oid) from error
    return tuple(parents)


def decode_commit(oid: CommitId, raw: bytes) -> CommitInfo:
    """Return what judging needs of a stored commit; raises `StoreError` `object-corrupt`."""
    head, _, message = raw.partition(b"\n\n")
    lines = head.split(b"\n")
    fields = {key: value for key, _, value in (line.partition(b" ") for line in reversed(lines)) if key}
    try:
        return CommitInfo(
            id=oid,
            tree=TreeId(fields[b"tree"].decode("ascii")),
            parents=parents_of(oid, raw),
            committed_at=_when(fields[b"committer"]),
            authored_at=_when(fields[b"author"]),
            summary=_summary(message, fields.get(b"encoding", b"utf-8")),
        )
    except (KeyError, ValueError, IndexError) as error:
        raise object_corrupt("commit", oid) from error


@cache
def _entry(size: int) -> re.Pattern[bytes]:
    """Return what an entry of a tree looks like, where ids have so many bytes."""
    return re.compile(rb"([0-7]{1,7}) ([^\0]+)\0(.{%d})" % size, re.DOTALL)


def _when(signature: bytes) -> datetime:
    """Return the instant in `Name <mail> seconds zone`; one beyond the calendar is its last day."""
    seconds = int(signature[signature.rindex(b">") + 1 :].split()[0])
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return _LATEST if seconds > 0 else datetime.min.replace(tzinfo=UTC)


def _summary(message: bytes, encoding: bytes) -> str:
    first = message.lstrip().split(b"\n", 1)[0].rstrip()
    try:
        return first.decode(encoding.decode("ascii"), "replace")
    except (LookupError, UnicodeDecodeError):
        return first.decode("utf-8", "replace")
