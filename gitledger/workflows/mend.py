"""What mends the dirt that lies at hand: edits, leavings of tests, and private keys, which nobody may commit."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gitledger.errors import UsageError
from gitledger.manifest.leavings import ignoring_line, mend_dirt
from gitledger.store.repository import Repository
from gitledger.workflows.session import Session

if TYPE_CHECKING:  # whoever only looks runs nothing
    from gitledger.workflows.request import Before, RecordRequest

__all__ = ["before_a_dirty_run", "private_keys_among", "to_mend_dirt", "tracked_among"]

_PEEKED_BYTES = 64 << 10
_BEGINS = (b"-----BEGIN ", b"Bag Attributes", b"PuTTY-User-Key-File-")
"""How files with private keys begin: OpenSSH's and PEM, also behind a certificate; `openssl pkcs12`'s; PuTTY's."""


def to_mend_dirt(repo: Repository, changed: Collection[str], untracked: Collection[str]) -> str:
    """Return what to do about dirt: what is tracked and edited, and what is not tracked."""
    edited = set(changed)
    paths = list(dict.fromkeys([*changed, *untracked]))
    return mend_dirt(paths, changed=edited, keys=private_keys_among(repo, paths))


def private_keys_among(repo: Repository, paths: Collection[str]) -> list[str]:
    """Return those of some dirty paths that are private keys, whatever they are called; caches are passed over."""
    root = repo.worktree or Path()
    return [path for path in paths if not ignoring_line(path) and _is_key(root / path)]


def _is_key(path: Path) -> bool:
    try:
        if not path.is_file() or path.is_symlink():
            return False
        with path.open("rb") as file:
            start = file.read(256).lstrip()
            if not start.startswith(_BEGINS):
                return False
            return start.startswith(_BEGINS[2]) or b"PRIVATE KEY-----" in start + file.read(_PEEKED_BYTES)
    except OSError:
        return False


def tracked_among(repo: Repository, paths: Sequence[str]) -> list[str]:
    """Return those of some dirty paths that git tracks, deleted ones too."""
    if not paths or repo.worktree is None:
        return []
    literal = [f":(top,literal){path}" for path in paths]
    listed = repo.git.run("ls-files", "-z", "--full-name", "--", *literal).stdout
    known = set(listed.decode("utf-8", "surrogateescape").split("\0"))
    return [path for path in paths if path in known or not os.path.lexists(repo.worktree / path)]


def before_a_dirty_run(
    session: Session, request: RecordRequest, before: Before, *, warn: Callable[[str], None]
) -> None:
    """Say before anything runs that the receipt will be dirty; asked where policy takes none that is.

    Elsewhere than on a person's machine the job would look green, and its receipt be worthless: there a declared
    shard is not begun. Raises `UsageError` `dirty-start` for it.
    """
    from gitledger.workflows.dirt import named

    untracked = (*before.state.untracked, *before.shadows)
    dirt = sorted({*before.state.changed, *untracked})
    if not dirt or request.command is None:
        return
    mend = to_mend_dirt(session.repo, before.state.changed, untracked)
    differs = f"the work tree differs from the commit in {named(session.repo, dirt)}"
    if request.mode != "local" and request.declared and not request.best_effort:
        text = f"{differs}: a receipt of mode {request.mode} would be dirty and count for nothing"
        raise UsageError("dirty-start", text, mend)
    warn(f"warning: {differs}; this run will be dirty and count for nothing: {mend}")
