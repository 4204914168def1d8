"""The test configuration chain: what pytest reads besides the declared paths (DESIGN section 5).

In every folder from the root down to the declared paths and the path arguments of the command: the files that
pytest takes its configuration from, and `conftest.py`, each absent or bound by its blob. So a `conftest.py` that
appears above a shard, is weakened or vanishes, changes the manifest.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field

from gitledger.config.command import pytest_arguments, wrapped_arguments
from gitledger.dataclass import dataclass
from gitledger.errors import ManifestError
from gitledger.manifest.entry import Entry, join_path, parent_folders
from gitledger.manifest.facts import TreeFacts
from gitledger.manifest.scope import refuse_detour
from gitledger.records.decode import shown
from gitledger.records.tree import MODE_SYMLINK, TreeEntry

__all__ = ["CHAIN_FILES", "KnownChains", "configuration_chain"]

CHAIN_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
    "conftest.py",
)
_NAMES = {name: name.encode("ascii") for name in CHAIN_FILES}
_ADDOPTS = "PYTEST_ADDOPTS="
_CONFIG_OPTIONS = ("-c", "--config-file")
_CLUSTER = re.compile(r"-([a-bd-jlqs-zA-VX-Z]*)c(.*)\Z", re.DOTALL)
"""`-c` behind flags in one word (`-qc FILE`); pytest's other short options take the rest of it as a value."""
_FLAGS = frozenset("dfhlqsvxV")
"""Flags of pytest and of xdist. Behind a plugin's, only a file that is there tells that `c` is an option too."""
_SHELL_WORD = re.compile(r"[^\s;&|()<>'\"`]+")
MAX_LINKS = 16
"""Symlinks followed from one chain file; git's own trees rarely hold two in a row."""
MAX_ARGUMENT_FILES = 16
"""`@FILE` arguments that name each other."""


KnownChains = dict[tuple[str, tuple[TreeEntry, ...]], frozenset[bytes]]
"""The lines that a folder binds, by its path and the chain files in it, whichever shard or commit has them."""


def configuration_chain(
    command: Sequence[str] | None,
    folders: Iterable[str],
    facts: TreeFacts,
    *,
    bound: Collection[str],
    known: KnownChains | None = None,
) -> set[bytes]:
    """Return the chain's lines for the declared `folders` and the path arguments of `command`.

    `bound` are files that the manifest holds otherwise (`extra_paths`). `known` is kept between calls by whoever
    asks for many shards. Raises `ManifestError`: `path-outside`
    and `chain-unbound` for configuration that no commit holds, `symlinked-component`.
    """
    arguments = _Arguments(facts)
    if command is not None:
        arguments.read(command)
    asked = {""}
    for folder in (*folders, *arguments.folders):
        asked.update((*parent_folders(folder), folder))
    lines = set[bytes]()
    for folder in asked:
        lines |= _of_folder(folder, facts, {} if known is None else known)
    for alternatives in arguments.files:
        _bind_named(alternatives, facts, lines, bound)
    return lines


def _of_folder(folder: str, facts: TreeFacts, known: KnownChains) -> frozenset[bytes]:
    """Return what a folder binds. Where a symlink leads out of it, other trees matter as well: not kept then."""
    present = facts.named(folder, CHAIN_FILES)
    key = (folder, present)
    if key not in known:
        bound = _bound(folder, present, facts)
        if any(entry.mode == MODE_SYMLINK for entry in present):
            return bound
        known[key] = bound
    return known[key]


def _bound(folder: str, present: Sequence[TreeEntry], facts: TreeFacts) -> frozenset[bytes]:
    """Return the lines of the chain files in a folder, of which these are present."""
    here = {entry.name for entry in present}
    above = Entry.absent(join_path(folder, "")).line().removesuffix(b"\0")
    lines = {b"%b%b\0" % (above, stored) for name, stored in _NAMES.items() if name not in here}
    for entry in present:
        _bind(join_path(folder, entry.name), facts, lines)
    return frozenset(lines)


def _bind(path: str, facts: TreeFacts, lines: set[bytes]) -> TreeEntry | None:
    """Bind a file, absent or present; where it is a symlink, what it points to as well. Return what is there."""
    for _ in range(MAX_LINKS):
        found = facts.entry(path)
        lines.add((Entry.of(path, found) if found else Entry.absent(path)).line())
        if found is None or found.mode != MODE_SYMLINK:
            return found
        path = _link_target(path, found, facts)
    raise ManifestError(
        "chain-unbound", f"{shown(path)}: a chain of more than {MAX_LINKS} symlinks", "make it a regular file"
    )


def _link_target(path: str, link: TreeEntry, facts: TreeFacts) -> str:
    """Return the path in the tree that a symlinked chain file points to; it must be one that is tracked.

    On the way there may be tracked folders alone: `..` behind another symlink would lead to where that points.
    """
    target = (facts.blob(link.oid) or b"").decode("utf-8", "surrogateescape")
    found = None if target.startswith("/") else _walked(posixpath.dirname(path), target, facts)
    if found is None or facts.entry(found) is None:
        raise ManifestError(
            "chain-unbound",
            f"{shown(path)} is a symlink to {shown(target)}, which the tree does not hold",
            "make it a regular file, or point it to a tracked one, past no other symlink",
        )
    return found


def _walked(folder: str, way: str, facts: TreeFacts) -> str | None:
    """Return where a relative path leads from a folder; None where it leaves the tree or its folders."""
    at = folder
    for part in way.split("/"):
        if part in ("", "."):
            continue
        entry = facts.entry(at)
        if entry is None or entry.kind != "tree" or (part == ".." and not at):
            return None
        at = posixpath.dirname(at) if part == ".." else join_path(at, part)
    return at


def _bind_named(alternatives: Sequence[str], facts: TreeFacts, lines: set[bytes], bound: Collection[str]) -> None:
    """Bind a file that the command names; one per folder that the command may run in, at least one of them."""
    present = [path for path in alternatives if facts.entry(path) is not None]
    for path in present:
        _bind(path, facts, lines)
    if not present and not any(path in bound for path in alternatives):
        raise ManifestError(
            "chain-unbound",
            f"{shown(alternatives[0])}: the command names it, and neither the tree nor extra_paths hold it",
            "commit it, or list it under extra_paths",
        )


@dataclass(slots=True)
class _Arguments:
    """What a command names: `folders` of its path arguments, and `files` of configuration and arguments."""

    facts: TreeFacts
    folders: set[str] = field(default_factory=set)
    files: list[tuple[str, ...]] = field(default_factory=list)

    def read(self, command: Sequence[str]) -> None:
        after = pytest_arguments(command)
        prefix = command if after is None else command[: len(command) - len(after)]
        # `env -C sub pytest`, `uv run --directory sub pytest`: paths may be meant from there.
        bases = ["", *(path for word in prefix for path in self._existing(_value(word), [""], folder=True))]
        self.folders.update(bases)
        addopts = [word.removeprefix(_ADDOPTS) for word in prefix if word.startswith(_ADDOPTS)]
        try:
            options = [option for text in addopts for option in shlex.split(text)]
        except ValueError as error:
            raise ManifestError(
                "chain-unbound", f"PYTEST_ADDOPTS in the command: {error}", "mend its quotes"
            ) from error
        if after is not None:
            self._take([*options, *after], bases, pytest=True)
            return
        self._take(list(command[1:]), bases, pytest=False)
        after = wrapped_arguments(command) or ()
        before = command[: len(command) - len(after)]
        folders = [path for word in before for path in self._existing(_value(word), [""], folder=True)]
        self._take([*options, *after], ["", *folders], pytest=True)
        self._take_guessed(before, bases)

    def _take(self, words: list[str], bases: Sequence[str], *, pytest: bool) -> None:
        read_files = 0
        while words:
            word = words.pop(0)
            if pytest and word.startswith("@") and len(word) > 1:
                read_files += 1
                words = [*self._argument_file(word[1:], bases, read_files), *words]
            elif pytest and (names := _config_names(word, words)):
                self.files.append(tuple(self._inside(name, base) for name in names for base in bases))
            else:
                if pytest and _CLUSTER.match(word):
                    self._take_present([word, *words[:1]], bases)
                for path in self._existing(_value(word).split("::")[0], bases):
                    self.folders.add(path)

    def _take_guessed(self, words: Sequence[str], bases: Sequence[str]) -> None:
        """Bind the files that words name as pytest's options do, though it may not be pytest that gets them.

        A script for a shell (`sh -c "cd sub && pytest -c FILE"`) is taken apart for its words.
        """
        self._take_present(words, bases)
        inner = [piece.rpartition(_ADDOPTS)[2] for word in words for piece in _SHELL_WORD.findall(word)]
        if inner != list(words):
            inside = (posixpath.normpath(word) for word in inner if word and "\0" not in word)
            folders = [path for path in inside if (entry := self.facts.entry(path)) and entry.kind == "tree"]
            self._take_present(inner, [*bases, *folders])

    def _take_present(self, words: Sequence[str], bases: Sequence[str], *, depth: int = 1) -> None:
        """Bind those files that words name as `-c FILE` or `@FILE` do and that the tree holds."""
        for i, word in enumerate(words):
            is_list = word.startswith("@")
            names = [word[1:]] if is_list else _config_names(word, list(words[i + 1 : i + 2]), known=False)
            paths = [self._joined(name, base) for name in names if name for base in bases]
            present = [path for path in paths if self._is_file(path)]
            if present:
                self.files.append(tuple(present))
            if present and is_list:
                lines = self._argument_file(word[1:], bases, depth)
                self._take_present(lines, bases, depth=depth + 1)

    def _is_file(self, path: str) -> bool:
        if _leaves(path) or "\0" in path:
            return False
        self._refuse_links(path, last=False)
        entry = self.facts.entry(path)
        return entry is not None and entry.kind == "blob"

    def _argument_file(self, name: str, bases: Sequence[str], count: int) -> list[str]:
        """Bind `@FILE` and return its lines, each an argument (pytest 8.2)."""
        paths = tuple(self._inside(name, base) for base in bases)
        self.files.append(paths)
        found = [entry for path in dict.fromkeys(paths) if (entry := _bind(path, self.facts, set())) is not None]
        if not found or count > MAX_ARGUMENT_FILES:
            raise ManifestError(
                "chain-unbound", f"arguments from {shown('@' + name)} can't be read", "commit that file"
            )
        texts = ((self.facts.blob(entry.oid) or b"").decode("utf-8", "surrogateescape") for entry in found)
        return [line for text in texts for line in text.splitlines()]

    def _existing(self, text: str, bases: Sequence[str], *, folder: bool = False) -> Iterator[str]:
        """Yield the folders that `text`, taken as a path from each base, is or lies in."""
        for base in bases:
            path = self._joined(text, base) if text else ""
            if not path or _leaves(path) or "\0" in path:
                continue
            if path == ".":
                yield ""
                continue
            self._refuse_links(path)
            entry = self.facts.entry(path)
            if entry is not None and (entry.kind == "tree" or not folder):
                yield path if entry.kind == "tree" else posixpath.dirname(path)

    def _inside(self, name: str, base: str) -> str:
        """Return the path of a file that must lie in the repository; raises `ManifestError` (`path-outside`)."""
        path = self._joined(name, base)
        if _leaves(path):
            raise ManifestError(
                "path-outside",
                f"{shown(name)}: the command names a file outside the repository",
                "commit that file",
            )
        return path

    def _joined(self, text: str, base: str) -> str:
        """Return where `text`, as a path from `base`, leads. Raises for `..` behind a symlink: some follow it."""
        way = posixpath.join(base, text)
        if ".." in text and not way.startswith("/"):
            parts = way.split("/")
            for i in range(1, len(parts)):
                above = posixpath.normpath("/".join(parts[:i]))
                entry = None if _leaves(above) or "\0" in above else self.facts.entry(above)
                if entry is not None and entry.mode == MODE_SYMLINK and ".." in parts[i:]:
                    refuse_detour(above, entry)
        return posixpath.normpath(way)

    def _refuse_links(self, path: str, *, last: bool = True) -> None:
        """Raise where a path argument leads through a symlink: pytest reads the chain of where it points to."""
        for above in (*parent_folders(path)[1:], *([path] if last else [])):
            entry = self.facts.entry(above)
            if entry is None:
                return
            if above != path or entry.mode == MODE_SYMLINK:
                refuse_detour(above, entry)


def _value(word: str) -> str:
    """Return the VALUE of `--option=VALUE`, nothing for other options, else the word."""
    if not word.startswith("-"):
        return word
    return word.partition("=")[2]


def _config_names(word: str, rest: list[str], *, known: bool = True) -> list[str]:
    """Return what the file that a configuration option at `word` names may be called.

    A value of its own is taken off `rest`. Of clusters, those of `known` flags alone.
    """
    if word in _CONFIG_OPTIONS:
        return [rest.pop(0)] if rest else []
    if word.startswith("--config-file="):
        return [word.partition("=")[2]]
    cluster = _CLUSTER.match(word)
    if cluster is None or (known and not _FLAGS.issuperset(cluster[1])):
        return []
    if not cluster[2]:
        return [rest.pop(0)] if rest else []
    name = cluster[2].removeprefix("=")
    return (
        list(dict.fromkeys((name, cluster[2]))) if cluster[1] else [name]
    )  # Python's parsers differ in `-qc=FILE`


def _leaves(normal_path: str) -> bool:
    return normal_path.startswith(("/", "../")) or normal_path == ".."
