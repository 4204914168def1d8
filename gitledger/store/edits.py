"""Uncommitted edits, looked for while other work goes on: the very look that decides whether a run is dirty."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import field
from types import TracebackType

from gitledger.dataclass import dataclass
from gitledger.store.git import Git
from gitledger.store.worktree import Survey, survey

__all__ = ["Edits"]


@dataclass(slots=True)
class Edits:
    """Looks for edits of the work tree from `with` on; leaving it waits for git."""

    git: Git
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _asked: Future[Survey] = field(init=False)

    def __enter__(self) -> Edits:
        self._asked = self._pool.submit(survey, self.git)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def survey(self) -> Survey:
        """Return what was found; raises `StoreError`."""
        return self._asked.result()
