"""The branch that a remote's HEAD names although it is not there: `git ls-remote` shows nothing of it.

Since git 2.31 a server tells of it (protocol v2, `unborn` of gitprotocol-v2(5)) and `ls-remote` asks for it, but
prints only what has a commit. The packets that it traces show the answer.
"""

from __future__ import annotations

import re
from contextlib import suppress

from gitledger.errors import StoreError
from gitledger.store.repository import Repository

__all__ = ["unborn_head"]

_ENDED = frozenset(range(-64, 256))
_TRACED = {"GIT_TRACE_PACKET": "1"}
_UNBORN = re.compile(rb"ls-remote< unborn HEAD symref-target:refs/heads/(\S+)")


def unborn_head(repository: Repository, remote: str, *, timeout_s: float) -> str:
    """Return the name of the branch that a remote's HEAD names and that it lacks; "" where it does not tell."""
    with suppress(StoreError):
        asked = ("ls-remote", "--symref", "--", remote, "HEAD")
        done = repository.git.run(*asked, statuses=_ENDED, timeout_s=timeout_s, env=_TRACED)
        found = _UNBORN.search(done.stderr)
        return "" if found is None else found[1].decode("utf-8", "replace")
    return ""
