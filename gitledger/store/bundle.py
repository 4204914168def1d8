"""The whole ledger in one file: a git bundle of its refs, of all that this clone knows, fetched or its own."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gitledger.errors import UsageError
from gitledger.store.foreign import borrowing
from gitledger.store.gitplumbing import PlumbingObjects
from gitledger.store.ledger import Ledger
from gitledger.store.objects import Identity
from gitledger.store.refs import BODIES_REF, RECORDS_REF, all_tips
from gitledger.store.repository import Repository

__all__ = ["bundle_of"]

_NOBODY = Identity("git ledger", "git-ledger@localhost")
"""Who unites what is exported: a commit of the bundle's own, that no reader takes up."""


def bundle_of(repository: Repository) -> bytes:
    """Return a bundle with the notes refs of records and bodies; no ref of the repository moves for it.

    What lies in tracking and inbox refs is united with the rest in a folder of its own, so that whoever reads
    the bundle sees what is seen here. Raises `UsageError` `ledger-empty` and `export-failed`, `StoreError`.
    """
    tips = all_tips(repository.objects)
    with tempfile.TemporaryDirectory(prefix="gitledger-bundle-") as name:
        folder = Path(name) / "repository"
        folder.mkdir()
        git = borrowing(repository, folder)
        objects = PlumbingObjects(git)
        left = Ledger(objects).unite_into_local(tips, by=lambda: (_NOBODY, "ledger: export"))
        refs = [ref for ref in (BODIES_REF, RECORDS_REF) if objects.read_ref(ref) is not None]
        if RECORDS_REF not in refs:
            raise UsageError("ledger-empty", "this clone has no records to export", "git ledger sync --fetch-only")
        if left.records or left.bodies or left.inbox:
            raise UsageError("export-failed", "a ref of the ledger holds no notes that end", "git ledger fsck")
        file = Path(name) / "ledger.bundle"
        git.run("bundle", "create", "--quiet", str(file), *refs)
        return file.read_bytes()
