"""What a receipt needs once its command has ended, loaded before that is known.

Our own modules are loaded before the command can change what is loaded, while git still looks at the tree.
libgit2, which takes longest, is loaded while the command runs: the machine waits for the command then.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Thread

from gitledger.store.late_libgit import LateLibgit
from gitledger.workflows.session import Session

__all__ = ["load_ahead", "load_before"]


def load_before() -> None:
    """Load the modules of ours that make a receipt of a run."""
    import gitledger.trust.sign
    import gitledger.workflows.aftermath
    import gitledger.workflows.compose  # noqa: F401


def load_ahead(session: Session) -> None:
    """Begin to load it; what can't be loaded fails again, and is said, when it is needed."""
    with suppress(RuntimeError):  # no thread to be had: it is loaded then as well
        objects = session.repo.objects
        if isinstance(objects, LateLibgit):
            Thread(target=_load, args=(objects,), name="load-ahead").start()


def _load(objects: LateLibgit) -> None:
    with suppress(Exception):
        objects.load()
