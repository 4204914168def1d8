"""Where the ledger of a remote was last seen: the place that its tracking refs tell of.

A remote is a name, and the name can come to stand for another server (`git remote set-url`, or `remove` and
`add`), while the tracking refs stay as they were: git deletes only branches with a remote. What they hold is
signed and counts as before; but that the *new* server has it, they don't tell.

So whoever fetches or publishes notes down the URLs that git was told to use, in a file beside the repository's
objects. Where there is none, as in a clone that plain `git fetch` alone has served, tracking refs are believed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.store.kept_file import kept_path, read_kept, write_kept
from gitledger.store.repository import Repository

__all__ = ["Sight", "last_sight", "note_sight", "pushes_apart"]

_FETCHED = b"fetched"
_KNOWN = b"known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What is noted of a remote: whether it was another place, and when all that it has was fetched from it.

    `fetched_ns` is a file system's time in nanoseconds, None where no sync of ours has looked there yet.
    """

    is_elsewhere: bool
    fetched_ns: int | None


def last_sight(repository: Repository, remote: str) -> Sight | None:
    """Return what is noted of a remote; None where nothing is, or nothing that can be read."""
    path = _path(repository, remote)
    place, _, how = (read_kept(path) or b"").strip().partition(b" ")
    if how not in (_FETCHED, _KNOWN):
        return None
    is_elsewhere = place != _place(repository, remote)
    if is_elsewhere or how == _KNOWN:
        return Sight(is_elsewhere=is_elsewhere, fetched_ns=None)
    try:
        return Sight(is_elsewhere=False, fetched_ns=path.stat().st_mtime_ns)
    except OSError:
        return None


def note_sight(repository: Repository, remote: str, *, fetched: bool) -> None:
    """Note that the tracking refs of a remote tell of where it is now; one that can't be noted is not noted.

    `fetched`: all that it has is here now. To publish alone takes nothing back of what was noted of that place. To
    fetch alone tells nothing of a place apart that it is pushed to now: that is noted once it was published to.
    """
    known = last_sight(repository, remote)
    has_moved = known is not None and known.is_elsewhere
    if not fetched and known is not None and not has_moved:
        return
    if fetched and has_moved and pushes_apart(repository, remote):
        return
    how = _FETCHED if fetched else _KNOWN
    write_kept(_path(repository, remote), [_place(repository, remote), b" ", how, b"\n"])


def pushes_apart(repository: Repository, remote: str) -> bool:
    """Tell whether a remote is pushed to by other URLs than the one that it is fetched from."""
    fetched, pushed = _urls(repository, remote)
    return pushed != fetched[:1]


def _path(repository: Repository, remote: str) -> Path:
    name = hashlib.sha256(remote.encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return kept_path(repository.common_dir, f"seen-{name}")


def _place(repository: Repository, remote: str) -> bytes:
    """Return a digest of the URLs that a remote is fetched from and pushed to; they may hold credentials."""
    fetched, to = _urls(repository, remote)
    text = "\0".join([*fetched, "", *to])
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest().encode()


def _urls(repository: Repository, remote: str) -> tuple[list[str], list[str]]:
    """Return the URLs that a remote is fetched from (the first is) and pushed to (each of them is)."""
    urls = repository.config_all(f"remote.{remote}.url")
    pushed = repository.config_all(f"remote.{remote}.pushurl")
    fetched = [_rewritten(repository, url, ("insteadof",)) for url in urls]
    to = [_rewritten(repository, url, ("insteadof",)) for url in pushed] or [
        _rewritten(repository, url, ("pushinsteadof", "insteadof")) for url in urls
    ]
    return fetched, to


def _rewritten(repository: Repository, url: str, keys: Iterable[str]) -> str:
    """Return a URL as git rewrites it by `url.<base>.insteadOf`: the longest prefix wins (git-config(1))."""
    for key in keys:
        found = max(_bases(repository, url, key), default=None, key=lambda item: len(item[0]))
        if found is not None:
            prefix, base = found
            return base + url[len(prefix) :]
    return url


def _bases(repository: Repository, url: str, key: str) -> Iterator[tuple[str, str]]:
    for name, prefixes in repository.settings.items():
        if name.startswith("url.") and name.endswith(f".{key}"):
            base = name[len("url.") : -len(key) - 1]
            yield from ((prefix, base) for prefix in prefixes if prefix and url.startswith(prefix))
