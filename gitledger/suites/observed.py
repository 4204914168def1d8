"""What the processes of a run told of the files that they read, decoded as hostile, and which of it counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from pathlib import Path

from gitledger.dataclass import dataclass

__all__ = ["MAX_OBSERVED_BYTES", "Observed", "SetAside", "inputs_among", "read_observed"]

MAX_OBSERVED_BYTES = 64 << 20
"""All that the processes of one run told."""
MAX_OBSERVED_FILES = 500_000
MAX_PATH_BYTES = 4 << 10

_CACHES = (".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache", "__pycache__", ".git")
_ENVIRONMENTS = ("site-packages", "dist-packages", ".eggs")
_ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")


@dataclass(frozen=True, slots=True)
class Observed:
    """Paths from the repository's root. Those of `perhaps` count only where the commit has them."""

    certain: frozenset[str]
    perhaps: frozenset[str]


def read_observed(data: bytes) -> Observed | None:
    """Return what was told; None where it is more than can be told, or not what the observer writes.

    A last path without its NUL is left out: its process was killed while it wrote.
    """
    if len(data) > MAX_OBSERVED_BYTES:
        return None
    told = set(data.split(b"\0")[:-1])
    if len(told) > MAX_OBSERVED_FILES or not all(map(_is_sound, told)):
        return None
    paths = {path.decode("utf-8", "surrogateescape") for path in told}
    perhaps = frozenset(path[1:] for path in paths if path[0] == "/")
    return Observed(frozenset(path for path in paths if path[0] != "/"), perhaps)


def _is_sound(path: bytes) -> bool:
    parts = path.removeprefix(b"/").split(b"/")
    return len(path) <= MAX_PATH_BYTES and not any(part in (b"", b".", b"..") for part in parts)


def inputs_among(
    observed: Observed, *, is_tracked: Callable[[str], bool], is_set_aside: Callable[[str], bool]
) -> tuple[str, ...]:
    """Return the inputs of the run among what it read, sorted.

    What the commit has counts always. Of what it doesn't have: neither the environment that the run stood on
    (which `carry.environment` is about), nor the runner's caches, nor what the run itself wrote.
    """
    tracked = {path for path in observed.certain | observed.perhaps if is_tracked(path)}
    others = {path for path in observed.certain - tracked if not is_set_aside(path)}
    return tuple(sorted(tracked | others))


@dataclass(slots=True)
class SetAside:
    """Tells what is no input of a run although it lies in the repository: environments, metadata, caches."""

    root: Path
    _folders: dict[str, bool] = field(default_factory=dict)

    def __call__(self, path: str) -> bool:
        """Tell it of an untracked file: by the names and marks of the folders that it is in, the root aside."""
        folder, _, name = path.rpartition("/")
        return name == ".coverage" or name.startswith(".coverage.") or self._is_aside(folder)

    def _is_aside(self, folder: str) -> bool:
        if not folder:
            return False
        known = self._folders.get(folder)
        if known is None:
            above, _, name = folder.rpartition("/")
            known = self._folders[folder] = (
                name in _CACHES
                or name in _ENVIRONMENTS
                or name.endswith((".egg-info", ".dist-info"))
                or _exists(self.root / folder, _ENVIRONMENT_MARKS)
                or self._is_aside(above)
            )
        return known


def _exists(folder: Path, names: Iterable[str]) -> bool:
    return any((folder / name).exists() for name in names)
