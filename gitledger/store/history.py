"""Walks over commits by their stored parents: nearest ancestors, and where a shallow clone cuts history off."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Set
from typing import cast

from gitledger.records.ids import CommitId

__all__ = ["ReadParents", "distances", "is_cut", "listed_after", "rings"]

ReadParents = Callable[[CommitId], tuple[CommitId, ...] | None]
"""Returns a commit's parents, or None where the repository lacks the commit."""


def distances(
    read_parents: ReadParents, boundary: Set[CommitId], target: CommitId, wanted: Collection[CommitId]
) -> dict[CommitId, int]:
    """Return the least number of parent edges from `target` to each of `wanted` that it reaches, itself included.

    Breadth first, and it stops once all are found. `boundary` holds the commits whose parents a shallow clone cut
    off: nothing is reached through them, nor through a commit that is missing (DESIGN section 2: an unknown
    ancestry is not an ancestry).
    """
    left = set(wanted)
    found: dict[CommitId, int] = {}
    for distance, commits in enumerate(rings(read_parents, boundary, target)):
        hits = left.intersection(commits)
        found.update(dict.fromkeys(hits, distance))
        left -= hits
        if not left:
            break
    return found


def is_cut(read_parents: ReadParents, boundary: Set[CommitId], target: CommitId) -> bool:
    """Tell whether some history of `target` lies behind the boundary of a shallow clone."""
    return any(
        commit in boundary and read_parents(commit)
        for commits in rings(read_parents, boundary, target)
        for commit in commits
    )


def listed_after(
    count: int, read_parents: ReadParents, history: Callable[[], Mapping[CommitId, str]]
) -> ReadParents:
    """Return a `read_parents` that, once it was asked `count` times, asks for all of a long history at once.

    `history` gives the parents of commits with spaces between; others are read one by one as before.
    """
    asked = 0
    known: Mapping[CommitId, str] = {}

    def parents(commit: CommitId) -> tuple[CommitId, ...] | None:
        nonlocal asked, known
        asked += 1
        if asked == count:
            known = history()
        found = known.get(commit)
        return read_parents(commit) if found is None else cast("tuple[CommitId, ...]", tuple(found.split()))

    return parents


def rings(read_parents: ReadParents, boundary: Set[CommitId], target: CommitId) -> Iterator[list[CommitId]]:
    """Yield the commits that are here, by distance from `target`.

    Nothing is reached through `boundary`, nor through a commit that is missing.
    """
    seen = {target}
    candidates = [target]
    while candidates:
        here: list[CommitId] = []
        following: list[CommitId] = []
        for commit in candidates:
            parents = read_parents(commit)
            if parents is None:
                continue
            here.append(commit)
            for parent in () if commit in boundary else parents:
                if parent not in seen:
                    seen.add(parent)
                    following.append(parent)
        yield here
        candidates = following
