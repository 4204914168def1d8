"""From the calls of a trace to what the run read of the repository, by the rules of `observe.py`.

The observer looks at each file as it is opened. A trace is read afterwards, so the tree is listed before the run:
a file counts when it stood there and the run had not yet replaced it. Calls are taken in their order.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.machine.strace import Event, TraceFault
from gitledger.suites.observed import MAX_OBSERVED_FILES, MAX_PATH_BYTES, Observed

__all__ = ["MAX_STANDING_FILES", "Standing", "standing_files", "told_by_trace"]

MAX_STANDING_FILES = 2_000_000
"""Files and symlinks of a work tree that are listed before a traced run."""
MAX_LINKS = 40
MAX_REMEMBERED = 50_000


@dataclass(frozen=True, slots=True)
class Standing:
    """The files and symlinks of a work tree by their paths from its root (symlinks: with their target).

    `began_ns` is a change time from which on a file is the run's. `.git` is left out wherever it lies.
    """

    root: str
    files: frozenset[str]
    links: dict[str, str]
    began_ns: int


def standing_files(root: Path, *, began_ns: int) -> Standing:
    """Return what stands in the work tree; raises `TraceFault` where that is more than can be remembered."""
    files, links = [], {}
    pending = [""]
    while pending:
        below = pending.pop()
        try:
            with os.scandir(root / below) as found:
                entries = list(found)
        except OSError:
            continue  # a folder that we can't list; nothing in it is the commit's, or the run is dirty
        for entry in entries:
            path = below + entry.name
            if entry.name == ".git":
                continue
            if entry.is_symlink():
                links[path] = os.readlink(entry.path)  # noqa: PTH115 - one for each symlink of the tree
            elif entry.is_dir(follow_symlinks=False):
                pending.append(f"{path}/")
            elif entry.is_file(follow_symlinks=False):
                files.append(path)
        if len(files) + len(links) > MAX_STANDING_FILES:
            raise TraceFault(f"more than {MAX_STANDING_FILES} files in the work tree")
    return Standing(str(root.resolve()), frozenset(files), links, began_ns)


def told_by_trace(events: Iterable[Event], standing: Standing) -> Observed:
    """Return what the run read, as its observer would have told it; raises `TraceFault`."""
    reading = _Reading(standing)
    for event in events:
        reading.take(event)
        if len(reading.certain) > MAX_OBSERVED_FILES:
            raise TraceFault(f"more than {MAX_OBSERVED_FILES} files were read")
    return Observed(frozenset(reading.certain), frozenset(filter(reading.is_older, reading.again)))


@dataclass(slots=True)
class _Reading:
    """What was read so far, and what the run has replaced (`made`) or moved, each with the time of it in calls."""

    standing: Standing
    certain: set[str] = field(default_factory=set)
    again: set[str] = field(default_factory=set)
    made: dict[str, int] = field(default_factory=dict)
    moved: dict[str, tuple[str, int]] = field(default_factory=dict)
    outer: dict[str, str | None] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    executed: set[str] = field(default_factory=set)
    calls: int = 0

    def take(self, event: Event) -> None:
        self.calls += 1
        if event.kind == "open":
            self._open(event)
        elif event.kind == "exec":
            for name in event.names:
                self._read(self._followed(name))
                self._execute(name)
        elif event.kind == "unlink":
            self._make(event.names)
        else:
            self._relocate(event)

    def is_older(self, path: str) -> bool:
        """Tell of a file that the run replaced whether its content is older than the run all the same."""
        try:
            return os.lstat(f"{self.standing.root}/{path}").st_mtime_ns < self.standing.began_ns
        except OSError:
            return False

    def _open(self, event: Event) -> None:
        if not (event.reads or event.empties):
            return
        followed = [self._followed(name) for name in event.names]
        if event.real is not None:
            followed = [_undeleted(event.real, self.standing)]
        if event.empties:
            self._note(*followed)
        else:
            for path in followed:
                self._read(path)

    def _execute(self, name: str) -> None:
        """Take in a program that was started by a symlink of the run's own: the kernel tells no path of it."""
        if name not in self.executed and not name.startswith("/proc/"):
            self.executed.add(name)
            try:
                self._read(os.path.realpath(name))
            except ValueError:
                return

    def _relocate(self, event: Event) -> None:
        pairs = [(event.names, event.others)]
        if event.swaps:
            pairs.append((event.others, event.names))
        for names, _ in pairs:
            for name in names:
                path = self._parent_followed(name)
                self._read(path)
                if path in self._links_here(path):
                    self._read(self._followed(name))
        if event.kind == "rename":
            self._rename(pairs)
        else:
            self._make(event.others)

    def _rename(self, pairs: list[tuple[tuple[str, ...], tuple[str, ...]]]) -> None:
        if any(len(names) != 1 for pair in pairs for names in pair):
            return
        before = [(self._parent_followed(old[0]), self._parent_followed(new[0])) for old, new in pairs]
        taken = [(new, self._origin(old)) for old, new in before]
        for old, _ in before:
            self._note(old)
        for new, old in taken:
            self._note(new)
            self.moved[new] = (old, self.calls)

    def _links_here(self, path: str) -> tuple[str, ...]:
        name = self._inner(path)
        return (path,) if name is not None and name in self.standing.links else ()

    def _make(self, names: tuple[str, ...]) -> None:
        self._note(*(self._parent_followed(name) for name in names))

    def _note(self, *paths: str) -> None:
        """Remember that nothing older than the run stands at a path of the repository any more.

        Of several candidates nobody knows which one it is, and none may hide what is read later.
        """
        if len(paths) == 1 and self._inner(paths[0]) is not None:
            self.made.setdefault(paths[0], self.calls)
            if self._inner(paths[0]) in self.standing.links:
                self.folders.clear()

    # -- what counts ----------------------------------------------------------------------------------------------

    def _read(self, path: str) -> None:
        """Take in that the file or symlink at a real absolute path was read."""
        path = self._origin(self._source(path))
        name = self._inner(path)
        if name is None:
            return
        if path in self.made:
            self.again.add(name)
        elif name in self.standing.files or name in self.standing.links:
            if len(os.fsencode(name)) > MAX_PATH_BYTES:
                raise TraceFault("the path of a file is too long to be told")
            self.certain.add(name)

    def _origin(self, path: str) -> str:
        """Return where the file at a path stood before the run moved a folder that it is in."""
        if not self.moved or path in self.made:
            return path
        at = path.rfind("/")
        while at > 0:
            moved = self.moved.get(path[:at])
            if moved is not None:
                origin = moved[0] + path[at:]
                # What was made there after the folder had gone is another file.
                return origin if self.made.get(origin, 0) <= moved[1] else self._forgotten(origin)
            at = path.rfind("/", 0, at)
        return path

    def _forgotten(self, path: str) -> str:
        """Return a path of which the run replaced the file only after it had moved it away."""
        del self.made[path]
        return path

    def _source(self, path: str) -> str:
        """Return the source of a compiled module, itself for any other path."""
        if not path.endswith(".pyc"):
            return path
        folder, _, name = path.rpartition("/")
        inner = folder.find(self.standing.root + "/", 1)
        if folder.endswith("/__pycache__"):
            folder = folder[: -len("/__pycache__")]
        elif inner > 0 or folder.endswith(self.standing.root):
            folder = folder[inner:] if inner > 0 else self.standing.root  # compiled below PYTHONPYCACHEPREFIX
        else:
            return path
        stem = name[: -len(".pyc")]
        while "." in stem:
            stem = stem.rpartition(".")[0]
            source = f"{folder}/{stem}.py"
            if self._inner(source) in self.standing.files:
                return source
        return path

    def _inner(self, path: str) -> str | None:
        """Return an absolute path from the repository's root, None for one outside."""
        root = self.standing.root
        return path[len(root) + 1 :] if path.startswith(f"{root}/") else None

    # -- symlinks -------------------------------------------------------------------------------------------------

    def _parent_followed(self, name: str) -> str:
        """Return the path with all symlinks followed but one that the name itself may be."""
        folder, _, last = name.rstrip("/").rpartition("/")
        if last in ("", ".", ".."):
            return self._followed(name)
        return f"{self._followed(folder).rstrip('/')}/{last}"

    def _followed(self, name: str) -> str:
        """Return the path with symlinks followed as they stood before the run; the repository's are told."""
        folder, _, last = name.rpartition("/")
        known = self.folders.get(folder)
        if known is None:
            if len(self.folders) > MAX_REMEMBERED:
                self.folders.clear()
            known = self.folders[folder] = self._walked("", folder)
        return self._walked(known, last) or "/"

    def _walked(self, done: str, rest: str) -> str:
        parts, links = rest.split("/")[::-1], MAX_LINKS
        while parts:
            part = parts.pop()
            if part == "..":
                done = done.rpartition("/")[0]
            elif part not in ("", "."):
                step = f"{done}/{part}"
                target = self._target(step)
                if target is None or links == 0:
                    done = step
                    continue
                links -= 1
                self._read(step)
                if target[:1] == "/":
                    done = ""
                parts += target.split("/")[::-1]
        return done

    def _target(self, path: str) -> str | None:
        """Return what a symlink says, None for anything else."""
        name = self._inner(path)
        if name is not None:
            return None if path in self.made else self.standing.links.get(name)
        if self.standing.root.startswith(f"{path}/") or path == self.standing.root:
            return None  # it is a real path
        if path.startswith("/proc/"):
            return None  # it would be ours, not the process's
        if path not in self.outer:
            if len(self.outer) > MAX_REMEMBERED:
                self.outer.clear()
            self.outer[path] = _link(path)
        return self.outer[path]


def _link(path: str) -> str | None:
    try:
        return str(Path(path).readlink())
    except (OSError, ValueError):
        return None


def _undeleted(path: str, standing: Standing) -> str:
    """Return the kernel's path of an open file without its word that the name is gone by now."""
    bare = path.removesuffix(" (deleted)")
    return bare if path[len(standing.root) + 1 :] not in standing.files else path
