"""The model's files as they are proven: copied once, hashed while they are copied, sealed before anything loads.

Whoever swaps a file between its hash and its load, or writes into it and back, changes nothing of what runs: every
loader is given a folder of these copies, and nothing else lies in it. On Linux a copy is anonymous memory with the
seals of memfd_create(2), which its own process can't write to any more either; it takes the size of the files in
memory once more. Elsewhere it is a file that may only be read, in a folder of the probe's own, where a process of
the same user could still write.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from gitledger.lanes.probe.faults import ProbeError

__all__ = ["snapshot"]

_BLOCK = 1 << 20
_DESCRIPTORS = "/proc/self/fd"
_kept: list[int] = []
"""Descriptors of the copies: they last as long as the process, which is one run's."""


def snapshot(root: Path, files: list[dict[str, Any]], folder: Path) -> Path:
    """Return `folder`, which now holds the sealed copies of `files` (`name`, `sha256`, `size`) by their names.

    Raises `ProbeError` `artifact-mismatch` where a file is not what it was when it was hashed.
    """
    folder.mkdir()
    for file in files:
        _copy(root / file["name"], file, folder / file["name"])
    return folder


def _copy(source: Path, file: dict[str, Any], place: Path) -> None:
    fd, is_sealed = _open(place)
    hasher, size = hashlib.sha256(), 0
    with source.open("rb", buffering=0) as original:
        while block := original.read(_BLOCK):
            hasher.update(block)
            size += len(block)
            _write_all(fd, block)
    if (hasher.hexdigest(), size) != (file["sha256"], file["size"]):
        raise ProbeError("artifact-mismatch", f"{file['name']} is another file than the one that was hashed")
    if is_sealed:
        _seal(fd)
        place.symlink_to(f"{_DESCRIPTORS}/{fd}")
    else:
        os.close(fd)


def _open(place: Path) -> tuple[int, bool]:
    """Return a descriptor to write to, and whether it is one of memory that can be sealed."""
    if hasattr(os, "memfd_create") and Path(_DESCRIPTORS).is_dir():
        fd = os.memfd_create(place.name[:200], os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        _kept.append(fd)
        return fd, True
    return os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400), False


def _write_all(fd: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(fd, view) :]


def _seal(fd: int) -> None:
    import fcntl

    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
