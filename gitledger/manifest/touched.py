"""Which edits of a work tree would change a manifest, once they were committed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gitledger.manifest.pattern import Pattern, compile_pattern, path_bytes
from gitledger.manifest.resolve import Manifest

__all__ = ["touched"]


def touched(manifest: Manifest, paths: Iterable[str]) -> tuple[str, ...]:
    """Return those of `paths` that are inputs, would be new ones, or stand where the manifest binds an absence.

    Paths are from the root, in the order given; one that ends in `/` is a folder.
    """
    asked = tuple(paths)
    outside = set(manifest.uncovered(path.rstrip("/") for path in asked))
    if not outside:
        return asked
    absent = {entry.path for entry in manifest.entries if entry.kind == "absent"}
    definition = manifest.definition

    def is_new_input(path: str) -> bool:
        return _is_taken(definition.paths, path) and not _is_taken(definition.excluded_paths, path)

    return tuple(path for path in asked if path.rstrip("/") not in outside or path in absent or is_new_input(path))


def _is_taken(patterns: Sequence[str], path: str) -> bool:
    return any(_takes(compile_pattern(text), path) for text in patterns)


def _takes(pattern: Pattern, path: str) -> bool:
    """Tell whether a pattern matches a file at `path`, or a folder above it."""
    if pattern.is_root:
        return True
    names, states = path_bytes(path.rstrip("/")).split(b"/"), pattern.start()
    for place, name in enumerate(names, start=1):
        states, accepted = pattern.step(states, name)
        if accepted and (place < len(names) or path.endswith("/") or not pattern.folder_only):
            return True
    return False
