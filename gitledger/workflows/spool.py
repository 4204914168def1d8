"""Receipts on their way: unsigned files in a folder, from nodes without network or keys to whoever signs them.

A file is a line that names the format, the receipt's unsigned envelope, and its bodies one after the other; their
sizes and digests stand in the receipt. It gets its name when it is whole. Whoever collects signs for what these
files say, so the folder must be open to nobody else.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from gitledger.config.schema import Config
from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError, StoreError, UsageError
from gitledger.manifest.definition import Definition
from gitledger.records.bodies import BodyRef
from gitledger.records.envelope import Envelope, decode_line
from gitledger.records.ids import CommitId, TreeId
from gitledger.records.limits import MAX_BODY_BYTES, MAX_LINE_BYTES
from gitledger.records.receipt import ShardReceipt
from gitledger.records.statement import Statement
from gitledger.wording import shell_word

__all__ = [
    "ENTRY",
    "Collected",
    "entries",
    "read_entry",
    "require_ours",
    "require_private",
    "take_entry",
    "write_entry",
]

ENTRY = ".entry"
TAKEN = ".taken"
_FORMAT = b"gitledger-spool 1\n"
_MAX_ENTRY_BYTES = len(_FORMAT) + MAX_LINE_BYTES + 1 + 4 * MAX_BODY_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """One entry: the receipt that nobody signed yet, and its bodies in the order in which it names them."""

    receipt: ShardReceipt
    bodies: tuple[bytes, ...]


def write_entry(folder: Path, receipt: ShardReceipt, envelope: Envelope, bodies: Sequence[bytes]) -> None:
    """Put a receipt into the folder, whole or not at all; raises `StoreError` `spool-unwritable`."""
    final = folder / f"{receipt.key}.{os.urandom(4).hex()}{ENTRY}"
    half = final.with_suffix(".half")
    try:
        fd = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(_FORMAT + envelope.encode() + b"\n")
            file.writelines(bodies)
            file.flush()
            os.fsync(file.fileno())
        half.rename(final)
    except OSError as error:
        raise StoreError(
            "spool-unwritable", f"the receipt can't be put into {folder}: {error.strerror}", "make room there"
        ) from error


def entries(folder: Path) -> list[Path]:
    """Return the entries that nobody has taken yet, the oldest first."""
    found = [path for path in folder.glob(f"*{ENTRY}") if not path.is_symlink() and path.is_file()]
    return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))


def require_private(folder: Path) -> None:
    """Refuse a folder that others can write to; raises `UsageError` `spool-exposed`, `spool-missing`."""
    try:
        status = folder.stat()
    except OSError as error:
        raise UsageError(
            "spool-missing",
            f"there is no folder {folder}: {error.strerror}",
            f"mkdir -m 700 {shell_word(folder)}",
        ) from error
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            "spool-exposed",
            f"others can write to {folder}, and you would sign what they put there",
            f"chmod 700 {shell_word(folder)}",
        )


def read_entry(path: Path) -> Collected:
    """Return what an entry holds; `DecodeError` for anything but an unsigned receipt with its very bodies."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_ENTRY_BYTES + 1)
    except OSError as error:
        raise DecodeError("spool-malformed", f"{path.name} can't be read: {error.strerror}", "") from error
    if not data.startswith(_FORMAT) or len(data) > _MAX_ENTRY_BYTES:
        raise _malformed(path, "it is not in the format of this version")
    end = data.find(b"\n", len(_FORMAT))
    if end < 0:
        raise _malformed(path, "it breaks off")
    try:
        envelope = decode_line(data[len(_FORMAT) : end])
        receipt = ShardReceipt.decode(Statement.decode(envelope.payload))
    except DecodeError as error:
        raise _malformed(path, error.message) from error
    if envelope.signature is not None or receipt.signer is not None:
        raise _malformed(path, "it is signed already")
    return Collected(receipt=receipt, bodies=tuple(_bodies(path, receipt, data[end + 1 :])))


def _bodies(path: Path, receipt: ShardReceipt, rest: bytes) -> Iterator[bytes]:
    form = "sha256" if len(receipt.repo.commit) == 64 else "sha1"
    for name, ref in receipt.bodies.items():
        body, rest = rest[: ref.size], rest[ref.size :]
        if BodyRef.of(body, object_format=form) != ref:
            raise _malformed(path, f"its {name} are not what the receipt names")
        yield body
    if rest:
        raise _malformed(path, "something follows its bodies")


def _malformed(path: Path, why: str) -> DecodeError:
    return DecodeError("spool-malformed", f"{path.name}: {why}", "look where it comes from, then remove it")


def require_ours(found: Collected, config: Config, commit: CommitId, tree: TreeId) -> None:
    """Refuse a receipt of another repository, commit or definition; raises `DecodeError` `spool-foreign`."""
    receipt = found.receipt
    declared = receipt.key in config.shard_keys()
    faults = {
        "of another repository": receipt.repository != config.repository,
        f"of another commit, {receipt.repo.commit[:12]}": receipt.repo.commit != commit,
        "of another tree than its commit's": receipt.repo.tree != tree,
        "of a shard that is not declared": not declared,
        "of another definition": declared
        and Definition.of(config, receipt.key).digest != receipt.shard.definition_digest,
    }
    for fault, holds in faults.items():
        if holds:
            raise DecodeError("spool-foreign", f"the receipt of {receipt.key} is {fault}", "")


def take_entry(path: Path) -> None:
    """Mark an entry as taken, so that it is not signed twice; raises `StoreError` `spool-unwritable`."""
    try:
        path.rename(path.with_suffix(TAKEN))
    except OSError as error:
        raise StoreError(
            "spool-unwritable", f"{path} can't be renamed: {error.strerror}", "make the folder writable"
        ) from error
