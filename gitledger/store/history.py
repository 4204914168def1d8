"""Walks over commits by their stored parents: nearest ancestors, and where a shallow clone cuts history off."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Set

from gitledger.records.ids import CommitId

__all__ = ["ReadParents", "distances", "is_cut"]

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
    for distance, commits in enumerate(_rings(read_parents, boundary, target)):
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
        for commits in _rings(read_parents, boundary, target)
        for commit in commits
    )


def _rings(read_parents: ReadParents, boundary: Set[CommitId], target: CommitId) -> Iterator[list[CommitId]]:
    """Yield the commits that are here, by distance from `target`."""
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
