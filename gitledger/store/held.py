"""Lock files that outlive their holder: told apart from those that are held, and removed.

A process killed inside a ref transaction leaves `<ref>.lock`, and nobody could write that ref again. A lock file
doesn't say whose it is. So each of our transactions keeps an account beside the refs: a file locked as the kernel
locks files (`flock`, released when a process ends in whatever way), and a second name (a hard link) for each lock
file that it made. Who gets that file's lock knows that the process behind it is gone, and that a lock file which
still is the very file behind the second name is nobody's.

Neither clocks nor process numbers are asked: clocks jump, and numbers mean nothing across containers. A lock that
another program left stays; it is named in the error, as git does it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["HeldLocks", "holding", "sweep_dead"]

_FOLDER = "gitledger"
_SUFFIX = ".held"


class HeldLocks:
    """The account of one transaction that is under way; without a file where none could be made."""

    def __init__(self, common: Path, account: Path | None, file: int | None) -> None:
        self._common = common
        self._account = account
        self._file = file
        self._links: list[Path] = []

    def note(self, ref: str) -> None:
        """Write down that this transaction has made the lock file of `ref`."""
        if self._account is None or self._file is None:
            return
        link = self._account.with_suffix(f".{len(self._links)}")
        with contextlib.suppress(OSError):
            os.write(self._file, f"{link.name} {ref}\n".encode("utf-8", "surrogateescape"))
            os.link(self._common / f"{ref}.lock", link)
            self._links.append(link)

    def close(self) -> None:
        """Forget it all: the transaction has ended."""
        for path in [*self._links, *([self._account] if self._account else [])]:
            with contextlib.suppress(OSError):
                path.unlink()
        if self._file is not None:
            os.close(self._file)


@contextlib.contextmanager
def holding(common: Path) -> Iterator[HeldLocks]:
    """Keep account of the lock files of one transaction on the refs in `common`.

    Where that can't be written, as on a full disk, the transaction goes on without.
    """
    held = _open(common)
    try:
        yield held
    finally:
        held.close()


def _open(common: Path) -> HeldLocks:
    account = common / _FOLDER / f"{os.urandom(8).hex()}{_SUFFIX}"
    file = None
    try:
        account.parent.mkdir(exist_ok=True)
        file = os.open(account, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        HeldLocks(common, account if file is not None else None, file).close()
        return HeldLocks(common, None, None)
    return HeldLocks(common, account, file)


def sweep_dead(common: Path) -> tuple[Path, ...]:
    """Remove the lock files of transactions whose process is gone, and return them."""
    removed: list[Path] = []
    with contextlib.suppress(OSError):
        named = [path for path in (common / _FOLDER).iterdir() if path.name.endswith(_SUFFIX)]
        for account in sorted(named):
            removed += _sweep(common, account)
    return tuple(removed)


def _sweep(common: Path, account: Path) -> Iterator[Path]:
    """Remove what one account names, if its writer is gone.

    While a lock file is there nobody else can make it, so the one that is looked at is the one that is removed.
    """
    try:
        file = os.open(account, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    with contextlib.suppress(OSError, ValueError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for line in os.read(file, 1 << 20).decode("utf-8", "surrogateescape").splitlines():
            name, ref = line.split(" ", 1)
            link, lock = account.with_name(name), common / f"{ref}.lock"
            if _is_same(link, lock):
                lock.unlink()
                yield lock
            link.unlink(missing_ok=True)
        account.unlink(missing_ok=True)
    os.close(file)


def _is_same(link: Path, lock: Path) -> bool:
    try:
        return link.samefile(lock)
    except OSError:
        return False
