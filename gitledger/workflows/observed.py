"""What a run read, held against the scope that its shard declares (DESIGN section 5, "Observed inputs")."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from gitledger.manifest.facts import TreeFacts
from gitledger.manifest.resolve import Manifest
from gitledger.records.bodies import Inputs
from gitledger.store.facts import CommitFacts
from gitledger.suites.observed import Observed, SetAside, inputs_among, read_observed
from gitledger.suites.result import SuiteResult
from gitledger.workflows.request import Before
from gitledger.workflows.session import Session

if TYPE_CHECKING:
    from gitledger.workflows.traced import Traced

__all__ = ["inputs_of_run", "outside_of", "tracked_by"]


def inputs_of_run(
    session: Session, before: Before, result: SuiteResult, log: Path | None, traced: Traced | None = None
) -> tuple[Inputs | None, list[str]]:
    """Return what the run read, and notes for people; None where it could not be observed.

    `log`: what its Python processes told, None where nobody asked them. Of a traced run both have to be whole.
    """
    if session.repo.worktree is None:
        return None, []
    notes: list[str] = []
    seen = []
    if log is not None:
        seen.append(_told(log) if result.observed else None)
    if traced is not None:
        told, notes = traced.end(interrupted="interrupted" in result.reasons)
        seen.append(told)
    if not seen or None in seen:
        return None, notes
    observed = Observed(
        frozenset().union(*(one.certain for one in seen if one)),
        frozenset().union(*(one.perhaps for one in seen if one)),
    )
    root = session.repo.worktree.resolve()
    facts = CommitFacts(session.repo.objects, session.repo.commit(before.head).tree)
    paths = inputs_among(observed, is_tracked=tracked_by(facts), is_set_aside=SetAside(root))
    return Inputs(paths=paths, roots=_roots(result.roots, root)), notes


def _told(log: Path) -> Observed | None:
    try:
        return read_observed(log.read_bytes())
    except OSError:
        return None


def tracked_by(facts: TreeFacts) -> Callable[[str], bool]:
    """Return what tells whether the commit has a file, itself or as part of a submodule."""

    def is_tracked(path: str) -> bool:
        if facts.entry(path) is not None:
            return True
        parts = path.split("/")
        entries = (facts.entry("/".join(parts[:i])) for i in range(1, len(parts)))
        return any(entry is not None and entry.kind == "commit" for entry in entries)

    return is_tracked


def outside_of(manifest: Manifest, facts: TreeFacts, paths: Iterable[str]) -> tuple[str, ...]:
    """Return what of `paths` the manifest doesn't bind, in their order.

    An ignored file below a declared folder is in no tree: only `extra_paths` bind it.
    """
    is_tracked = tracked_by(facts)
    extra = {claim.path for claim in manifest.extra or ()}
    listed = list(paths)
    unbound = {path for path in listed if path not in extra and not is_tracked(path)}
    outside = unbound.union(manifest.uncovered(listed))
    return tuple(path for path in listed if path in outside)


def _roots(roots: tuple[str, ...] | None, root: Path) -> tuple[str, ...] | None:
    """Return the folders and files that tests were collected from, from the root; None where one is elsewhere."""
    if roots is None:
        return None
    found = []
    for text in roots:
        path = Path(text)
        if not path.is_relative_to(root) or not path.exists():
            return None
        found.append(str(path.relative_to(root)))
    return tuple(sorted(set(found)))
