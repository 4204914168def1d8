"""Random trees as git would store them, and what stands in them said the slow way."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from hypothesis import strategies as st

from gitledger.records.ids import TreeId
from gitledger.records.tree import MODE_EXECUTABLE, MODE_FILE, MODE_FOLDER, MODE_GITLINK, MODE_SYMLINK, TreeEntry
from gitledger.store.encoding import encode_tree, tree_id
from gitledger.store.facts import CommitFacts, TreeCache

Files = Mapping[str, tuple[int, str]]
"""Mode and content by path: of a symlink its target, of a submodule its commit."""

FOLDERS = ["", "src", "SRC", "src/b", "tests", "tests/a", "tests/a/deep", "data"]
NAMES = ["a.py", "b", "A.py", "test_a.py", "conftest.py", "Conftest.py", "pytest.ini", "setup.cfg", "args.txt"]
TARGETS = ["conftest.py", "../conftest.py", "a.py", "src/b", "../data/a.py", "nowhere", "-k one\ntests/a"]

places = st.builds(
    lambda folder, name: f"{folder}/{name}".lstrip("/"), st.sampled_from(FOLDERS), st.sampled_from(NAMES)
)
things = st.one_of(
    st.tuples(st.just(MODE_FILE), st.sampled_from(["1", "2", "tests/a\n-q"])),
    st.tuples(st.just(MODE_EXECUTABLE), st.just("1")),
    st.tuples(st.just(MODE_SYMLINK), st.sampled_from(TARGETS)),
    st.tuples(st.just(MODE_GITLINK), st.sampled_from(["1", "2"])),
)
several = st.lists(st.tuples(places | st.sampled_from(FOLDERS[1:]), things), min_size=1, max_size=6)
HELD = ["src/a.py", "src/b/a.py", "SRC/b", "tests/a/test_a.py", "tests/conftest.py", "data/b", "src/setup.cfg"]
BASE: Files = dict.fromkeys(HELD, (MODE_FILE, "0")) | {"args.txt": (MODE_FILE, "tests/a\n-q")}
"""Most of what the definitions of the tests ask for; so most of them can be resolved."""


@st.composite
def histories(draw: st.DrawFn) -> list[Files]:
    """Draw trees that follow each other: files edited, come and gone, folders renamed, files for folders."""
    tree = grown(draw(st.sampled_from([{}, BASE, BASE])), draw(several))
    found = [tree]
    for _ in range(draw(st.integers(2, 6))):
        kind = draw(st.sampled_from(["put", "put", "drop", "rename", "back"]))
        if kind == "put":
            tree = grown(tree, [(draw(places | st.sampled_from(FOLDERS[1:])), draw(things))])
        elif kind == "drop" and len(tree) > 1:
            gone = draw(st.sampled_from(sorted(tree)))
            tree = {path: thing for path, thing in tree.items() if path != gone}
        elif kind == "rename":
            old, new = draw(st.permutations(FOLDERS[1:]))[:2]
            moved = [(path, thing) for path, thing in tree.items() if not path.startswith(f"{old}/")]
            inside = [
                (new + path[len(old) :], thing) for path, thing in tree.items() if path.startswith(f"{old}/")
            ]
            tree = grown({}, [*moved, *inside])
        elif kind == "back":
            tree = draw(st.sampled_from(found))
        found.append(tree)
    return found


def grown(tree: Files, more: Iterable[tuple[str, tuple[int, str]]]) -> Files:
    """Return a tree with more in it; what is put last stands, a file for a folder and a folder for a file."""
    found = dict(tree)
    for path, thing in more:
        above = {path[:at] for at, char in enumerate(path) if char == "/"}
        found = {old: kept for old, kept in found.items() if old not in above and not old.startswith(f"{path}/")}
        found[path] = thing
    return found


class Objects:
    """The objects of such trees, as far as facts ask for them."""

    def __init__(self) -> None:
        self.trees: dict[str, bytes] = {}
        self.blobs: dict[str, bytes] = {}

    def tree_bytes(self, tree: str) -> bytes | None:
        return self.trees.get(tree)

    def read_blob(self, blob: str) -> bytes | None:
        return self.blobs.get(blob)

    def read_ahead(self, oids: Iterable[str]) -> None:
        """Nothing has to be prepared."""

    def store(self, files: Files, folder: str = "") -> TreeId:
        """Store the tree of a folder, and return its id."""
        entries: dict[str, TreeEntry] = {}
        for path, (mode, text) in files.items():
            if path.startswith(folder):
                name, below, _ = path[len(folder) :].partition("/")
                if not below:
                    oid = hashlib.sha1(
                        f"{mode}{text}".encode() if mode == MODE_GITLINK else text.encode()
                    ).hexdigest()
                    self.blobs[oid] = text.encode()
                    entries[name] = TreeEntry(mode, name, oid)
                elif name not in entries:
                    entries[name] = TreeEntry(MODE_FOLDER, name, self.store(files, f"{folder}{name}/"))
        raw = encode_tree(entries.values())
        found = tree_id(raw, "sha1")
        self.trees[found] = raw
        return found


class Plain:
    """Facts that answer each question by itself, from a dictionary of all that the tree holds."""

    def __init__(self, objects: Objects, files: Files) -> None:
        self._objects = objects
        self._root = TreeEntry(MODE_FOLDER, "", objects.store(files))
        self._below: dict[str, dict[str, TreeEntry]] = {}
        self._take("", self._root.oid)

    def _take(self, folder: str, tree: str) -> None:
        raw, at, below = self._objects.trees[tree], 0, self._below.setdefault(folder, {})
        while at < len(raw):
            space, end = raw.index(b" ", at), raw.index(b"\0", at)
            mode, name, oid = int(raw[at:space], 8), raw[space + 1 : end].decode(), raw[end + 1 : end + 21].hex()
            below[name], at = TreeEntry(mode, name, oid), end + 21
            if mode == MODE_FOLDER:
                self._take(f"{folder}/{name}".lstrip("/"), oid)

    def entry(self, path: str) -> TreeEntry | None:
        folder, _, name = path.rpartition("/")
        return self._below.get(folder, {}).get(name) if path else self._root

    def named(self, folder: str, names: tuple[str, ...]) -> tuple[TreeEntry, ...]:
        found = (self.entry(f"{folder}/{name}".lstrip("/")) for name in names)
        return tuple(entry for entry in found if entry is not None)

    def children(self, path: str) -> tuple[TreeEntry, ...]:
        return tuple(self._below.get(path, {}).values())

    def files(self) -> dict[str, TreeEntry]:
        """Return what is no folder, by its path."""
        every = (
            (f"{folder}/{name}".lstrip("/"), one)
            for folder, below in self._below.items()
            for name, one in below.items()
        )
        return {path: entry for path, entry in every if entry.mode != MODE_FOLDER}

    def blob(self, oid: str) -> bytes | None:
        return self._objects.blobs.get(oid)


def facts_of(objects: Objects, files: Files, cache: TreeCache) -> CommitFacts:
    """Return the facts of a tree as the store makes them."""
    return CommitFacts(objects, objects.store(files), cache)  # type: ignore[arg-type]
