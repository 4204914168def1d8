"""Uncommitted edits as git sees them, looked for while other work goes on: advice for people, never judgement.

What decides whether a run was dirty is `worktree`, which compares every file; this asks git alone, and turns to
`worktree` only where index flags hide files from git.
"""

from __future__ import annotations

import re
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType

from gitledger.store.git import Git

__all__ = ["Edits"]

_STATUS = (
    *("-c", "core.fsmonitor=false"),
    *("status", "--porcelain", "-z", "--no-renames", "--untracked-files=no", "--ignore-submodules=dirty"),
)
_UNTRACKED = ("ls-files", "--others", "--exclude-per-directory=.gitignore", "-z")
_FLAGS = ("ls-files", "-v", "-z")
_FLAGGED = re.compile(rb"(?:\A|\0)[a-zS] ")
"""An entry that `ls-files -v` prints as assume-unchanged (lower case) or skip-worktree (S)."""
_NO_LOCKS = {"GIT_OPTIONAL_LOCKS": "0"}


@dataclass(slots=True)
class Edits:
    """Looks for edits of the work tree from `with` on; leaving it waits for git."""

    git: Git
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(3))
    _asked: dict[tuple[str, ...], Future[bytes]] = field(default_factory=dict)

    def __enter__(self) -> Edits:
        for command in (_STATUS, _UNTRACKED, _FLAGS):
            self._asked[command] = self._pool.submit(self._ask, command)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def paths(self) -> tuple[str, ...]:
        """Return the edited and the untracked paths from the root, sorted; raises `StoreError`."""
        status, untracked, flags = (self._asked[command].result() for command in (_STATUS, _UNTRACKED, _FLAGS))
        if _FLAGGED.search(flags):
            from gitledger.store.worktree import work_tree_state

            state = work_tree_state(self.git)
            return tuple(sorted({*state.changed, *state.untracked}))
        edited = [line[3:] for line in _split(status)]
        return tuple(sorted({*edited, *_split(untracked)}))

    def _ask(self, command: tuple[str, ...]) -> bytes:
        return self.git.run(*command, env=_NO_LOCKS).stdout


def _split(output: bytes) -> list[str]:
    return output.decode("utf-8", "surrogateescape").split("\0")[:-1]
