"""Extra inputs: ignored and generated files that no commit holds, by the SHA-256 of their content."""

from __future__ import annotations

from collections.abc import Sequence

from gitledger.dataclass import dataclass
from gitledger.errors import ManifestError
from gitledger.manifest.entry import Entry
from gitledger.manifest.facts import ExtraFacts
from gitledger.manifest.pattern import compile_pattern, path_bytes
from gitledger.manifest.scope import matches
from gitledger.records.decode import shown
from gitledger.records.receipt import ExtraClaim
from gitledger.records.tree import MODE_EXECUTABLE, MODE_FILE, TreeEntry
from gitledger.wording import counted

__all__ = ["ExtraCheck", "check_extra", "extra_lines", "resolve_extra"]


MAX_EXTRA_FILES = 4_000
"""Extra inputs of one shard, as many as a receipt may name."""


@dataclass(frozen=True, slots=True)
class ExtraCheck:
    """How a receipt's extra inputs stand in this clone: paths that differ, and paths that it lacks.

    A file that a pattern matches and the receipt doesn't name is a difference.
    """

    different: tuple[str, ...]
    absent: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Tell whether every input is here and the same."""
        return not self.different and not self.absent


def resolve_extra(patterns: Sequence[str], facts: ExtraFacts) -> tuple[ExtraClaim, ...]:
    """Return the files that the patterns match, sorted by path.

    Raises `ManifestError` naming the path: `pattern-unmatched`, `extra-not-regular` (folders, symlinks, devices),
    `extra-too-many`, `extra-unreadable`, `symlinked-component`, and those of `compile_pattern`.
    """
    found: dict[str, TreeEntry] = {}
    for text in patterns:
        matched = _files(text, facts)
        if not matched:
            raise ManifestError(
                "pattern-unmatched", f"extra_paths: {shown(text)} matches no file", "build it, or mend the pattern"
            )
        found |= matched
    if len(found) > MAX_EXTRA_FILES:
        raise ManifestError(
            "extra-too-many",
            f"extra_paths match {counted(len(found), 'file')}, more than the limit of {MAX_EXTRA_FILES}",
            "narrow extra_paths",
        )
    return tuple(
        ExtraClaim(path=path, mode=found[path].mode, sha256=facts.sha256(path))
        for path in sorted(found, key=path_bytes)
    )


def _files(text: str, facts: ExtraFacts) -> dict[str, TreeEntry]:
    pattern = compile_pattern(text)
    if any(name.lower() == ".git" for name in text.split("/")):
        raise ManifestError(
            "path-outside", f"extra_paths: {shown(text)} is git's own", "declare files of the project"
        )
    found: dict[str, TreeEntry] = {}
    for path, entry in matches(pattern, facts):
        if entry.mode not in (MODE_FILE, MODE_EXECUTABLE):
            raise ManifestError(
                "extra-not-regular",
                f"extra_paths: {shown(path or '.')} is not a regular file",
                f"name files, as {shown(f'{path}/**/*.so')} for a folder"
                if entry.kind == "tree"
                else "name a file",
            )
        found[path] = entry
    return found


def extra_lines(patterns: Sequence[str], extra: Sequence[ExtraClaim]) -> tuple[Entry, ...]:
    """Return the manifest's lines of extra inputs that a receipt claims.

    Raises `ManifestError` (`extra-mismatch`) where they are not what the patterns ask for: a claim too many, twice
    or of no file's mode, or a pattern that none answers.
    """
    answered: set[str] = set()
    for claim in extra:
        matched = [text for text in patterns if _covers(text, claim.path)]
        if not matched or claim.mode not in (MODE_FILE, MODE_EXECUTABLE):
            raise ManifestError(
                "extra-mismatch", f"{shown(claim.path)} is no extra input of this shard", "record it anew"
            )
        answered.update(matched)
    if len({claim.path for claim in extra}) != len(extra) or answered != set(patterns):
        raise ManifestError(
            "extra-mismatch", "the extra inputs are not what extra_paths asks for", "record it anew"
        )
    return tuple(Entry(claim.mode, "extra", claim.sha256, claim.path) for claim in extra)


def _covers(text: str, path: str) -> bool:
    """Tell whether a pattern matches the file at `path` itself, or a folder above it."""
    pattern = compile_pattern(text)
    states = pattern.start()
    names = path.split("/")
    for i, name in enumerate(names):
        states, accepted = pattern.step(states, path_bytes(name))
        if accepted:
            return i + 1 == len(names) and not pattern.folder_only
    return False


def check_extra(patterns: Sequence[str], claims: Sequence[ExtraClaim], facts: ExtraFacts) -> ExtraCheck:
    """Return how a receipt's extra inputs compare with the files here; only files that differ are an answer."""
    different = []
    absent = []
    claimed = {claim.path for claim in claims}
    for claim in claims:
        entry = facts.entry(claim.path)
        if entry is None:
            absent.append(claim.path)
        elif entry.mode != claim.mode or facts.sha256(claim.path) != claim.sha256:
            different.append(claim.path)
    for text in patterns:
        different.extend(path for path, _ in matches(compile_pattern(text), facts) if path not in claimed)
    return ExtraCheck(tuple(sorted(set(different))), tuple(sorted(absent)))
