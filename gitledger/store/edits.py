"""Uncommitted edits, looked for while other work goes on: the very look that decides whether a run is dirty."""

from __future__ import annotations

from functools import partial

from gitledger.store.early_look import EarlyLook
from gitledger.store.git import Git
from gitledger.store.meanwhile import Meanwhile
from gitledger.store.worktree import Survey, survey

__all__ = ["Edits"]


class Edits(Meanwhile[Survey]):
    """Looks for edits of the work tree that `git` is run in; `with` is left once git has ended, or by an error.

    `begun` is a look that began before the repository was opened.
    """

    def __init__(self, git: Git, begun: EarlyLook | None = None) -> None:
        super().__init__(partial(survey, git, begun), may_be_left=True)

    def survey(self) -> Survey:
        """Return what was found; raises `StoreError`."""
        return self.result()
