"""Why a ref could not be read or moved: the same errors from either back end."""

from __future__ import annotations

from pathlib import Path

from gitledger.errors import StoreError
from gitledger.wording import shell_word

__all__ = ["ref_blocked", "ref_locked", "ref_symbolic", "ref_unreadable", "store_unwritable"]


def ref_unreadable(name: str, why: str) -> StoreError:
    """Return the error of a ref that is there and can't be read."""
    return StoreError("ref-unreadable", f"{name} can't be read: {why}", "git fsck")


def store_unwritable(folder: Path, why: str) -> StoreError:
    """Return the error of a repository that takes no more: read-only, full, of another user."""
    hint = f"make room and give write access to {folder}"
    return StoreError("store-unwritable", f"{folder} can't be written: {why}", hint)


def ref_locked(lock: Path) -> StoreError:
    """Return the error of a ref whose lock file another process holds, or left behind."""
    return StoreError(
        "ref-locked",
        f"{lock} is held by another process",
        f"rm {shell_word(lock)} (once no git process is running)",
    )


def ref_blocked(name: str, blocker: str) -> StoreError:
    """Return the error of a ref whose name can't be one while there is a ref `blocker`."""
    return StoreError(
        "ref-conflict",
        f"{name} can't be made while there is a ref {blocker}",
        f"git update-ref refs/saved/{blocker.removeprefix('refs/')} {blocker} && git update-ref -d {blocker}",
    )


def ref_symbolic(name: str, target: str) -> StoreError:
    """Return the error of a symbolic ref where the ledger's own must be."""
    return StoreError("ref-conflict", f"{name} is a symbolic ref to {target}", f"git symbolic-ref --delete {name}")
