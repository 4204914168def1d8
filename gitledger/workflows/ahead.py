"""What storing needs, loaded while a command runs: the machine waits for the command then, and nobody for us."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread

from gitledger.store.late_libgit import LateLibgit
from gitledger.workflows.session import Session

__all__ = ["load_ahead"]


def load_ahead(session: Session) -> None:
    """Begin to load it; what can't be loaded fails again, and is said, when it is needed."""
    with suppress(RuntimeError):  # no thread to be had: it is loaded then as well
        objects = session.repo.objects
        if isinstance(objects, LateLibgit):
            Thread(target=_load, args=(objects,), name="load-ahead").start()


def _load(objects: LateLibgit) -> None:
    with suppress(Exception):
        objects.load()
