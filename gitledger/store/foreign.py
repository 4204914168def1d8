"""The ledger of a fork or a bundle, read without letting anything of it into this repository.

It is fetched into a repository of its own in a temporary folder, which borrows the objects that are here already.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gitledger.dataclass import replace
from gitledger.errors import StoreError, UsageError
from gitledger.store.git import Git
from gitledger.store.gitplumbing import PlumbingObjects
from gitledger.store.ledger import Ledger
from gitledger.store.refs import BODIES_REF, INBOX_PREFIX, RECORDS_REF
from gitledger.store.repository import Repository
from gitledger.store.view import LedgerView

__all__ = ["borrowing", "foreign_ledger"]

_NOTES = RECORDS_REF.removesuffix("records")
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
_ENDED = frozenset(range(-64, 256))


@contextlib.contextmanager
def foreign_ledger(repository: Repository, source: str, *, timeout_s: float) -> Iterator[LedgerView]:
    """Give the ledger that a URL, a path, a bundle file or a remote's name leads to.

    Raises `UsageError` `bad-source`, and `StoreError` `fetch-failed` or `git-timeout`.
    """
    if not source or source.startswith("-"):
        raise UsageError("bad-source", f"{source!a} is no URL and no bundle", "git ledger sync --from URL")
    url = repository.config(f"remote.{source}.url") or source
    with tempfile.TemporaryDirectory(prefix="gitledger-from-") as folder:
        git = borrowing(repository, Path(folder))
        refspecs = (f"+{_NOTES}*:{_NOTES}*", f"+{INBOX_PREFIX}*:{INBOX_PREFIX}*")
        done = git.run(*_FETCH, "--", url, *refspecs, statuses=_ENDED, timeout_s=timeout_s)
        if done.status:
            raise done.failure("fetch-failed", f"check that it can be reached: git ls-remote {source}")
        yield Ledger(PlumbingObjects(git)).view()


def borrowing(repository: Repository, folder: Path) -> Git:
    """Return git in a new bare repository that has the objects of this one, and what leads to its own ledger."""
    git = replace(repository.git, folder=folder, git_dir=folder, work_tree=None)
    git.run("init", "-q", "--bare", f"--object-format={repository.object_format}")
    alternates = folder / "objects" / "info" / "alternates"
    try:
        alternates.parent.mkdir(parents=True, exist_ok=True)
        alternates.write_text(f"{repository.common_dir / 'objects'}\n")
    except OSError as error:
        raise StoreError("store-unwritable", f"{folder} can't be written: {error}", "make room") from error
    for ref in (RECORDS_REF, BODIES_REF):
        tip = repository.objects.read_ref(ref)
        if tip is not None:
            git.run("update-ref", f"refs/have/{ref.rpartition('/')[2]}", tip)
    return git
