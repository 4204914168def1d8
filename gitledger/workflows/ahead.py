"""What a receipt needs once its command has ended, loaded while that runs: then the machine waits for the command.

To begin sooner would hold the command up; to begin later would hold up the receipt.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Thread

from gitledger.store.late_libgit import LateLibgit
from gitledger.workflows.session import Session

__all__ = ["load_ahead"]


def load_ahead(session: Session) -> None:
    """Begin to load it; what can't be loaded fails again, and is said, when it is needed."""
    with suppress(RuntimeError):  # no thread to be had: it is loaded then as well
        Thread(target=_load, args=(session,), name="load-ahead").start()


def _load(session: Session) -> None:
    with suppress(Exception):
        import gitledger.trust.sign
        import gitledger.workflows.aftermath
        import gitledger.workflows.compose  # noqa: F401

        objects = session.repo.objects
        if isinstance(objects, LateLibgit):
            objects.load()
