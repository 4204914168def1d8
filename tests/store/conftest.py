"""Back ends, identities and notes trees for the tests of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from gitledger.records.ids import BlobId, CommitId, TreeId
from gitledger.records.tree import MODE_FILE, MODE_FOLDER, TreeEntry
from gitledger.store.git import Git
from gitledger.store.gitplumbing import PlumbingObjects
from gitledger.store.late_libgit import LateLibgit
from gitledger.store.ledger import Ledger, Retry
from gitledger.store.libgit import LibgitObjects
from gitledger.store.objects import GitObjects, Identity


class Halves:
    """Writes through one object and reads through another, which so never has a reason to load libgit2."""

    def __init__(self, git_dir: Path, env: dict[str, str]) -> None:
        pointer = git_dir / "commondir"
        common = (git_dir / pointer.read_text().strip()).resolve() if pointer.exists() else git_dir
        self.reader, self.writer = (
            LateLibgit(Git(git_dir, env, git_dir=git_dir), git_dir, common) for _ in range(2)
        )

    def __getattr__(self, name: str) -> object:
        return getattr(self.writer if name.startswith(("write_", "update_")) else self.reader, name)


BACK_ENDS: Mapping[str, Callable[[Path, dict[str, str]], GitObjects]] = {
    # Nothing is written for power cuts here; child processes do wait for the disk.
    "libgit": lambda git_dir, _: LibgitObjects(git_dir, durable=False),
    "late libgit": lambda git_dir, env: Halves(git_dir, env),
    "plumbing": lambda git_dir, env: PlumbingObjects(Git(git_dir, env, git_dir=git_dir)),
}

ALICE = Identity(name="Alice", email="alice@example.org")


@pytest.fixture(params=["libgit", "plumbing"])
def back_end(request) -> str:
    """The name of the back end under test."""
    return request.param


@pytest.fixture
def open_objects(back_end, hermetic_env) -> Callable[[Path], GitObjects]:
    """Open the objects of a git folder with the back end under test."""
    env = hermetic_env | {"GIT_TEST_FSYNC": "0"}
    return lambda git_dir: BACK_ENDS[back_end](git_dir, env)


@pytest.fixture
def alice() -> Identity:
    return ALICE


@pytest.fixture
def objects(git_repo, open_objects) -> GitObjects:
    """Objects of an empty repository (`git_repo`)."""
    return open_objects(git_repo.path / ".git")


@pytest.fixture
def ledger(objects) -> Ledger:
    return Ledger(objects)


@pytest.fixture
def impatient() -> Retry:
    """Retries that never sleep."""
    return Retry(sleep=lambda _: None, draw=lambda: 0.5, budget_s=0.05, first_s=0.01)


@pytest.fixture
def add(ledger, alice) -> Callable[..., None]:
    """Append lines to a commit: `add(commit, b"one", b"two", bodies=[...])`."""

    def do(commit: str, *lines: bytes, bodies: Iterable[bytes] = (), into: Ledger = ledger) -> None:
        into.append({CommitId(commit): lines}, list(bodies), identity=alice, message="ledger: test")

    return do


def write_paths(objects: GitObjects, paths: Mapping[str, BlobId]) -> TreeId:
    """Store a tree of blobs by path, folders made as needed."""
    folders: dict[str, dict[str, BlobId]] = {}
    entries: list[TreeEntry] = []
    for path, blob in paths.items():
        head, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(head, {})[rest] = blob
        else:
            entries.append(TreeEntry(MODE_FILE, head, blob))
    entries += [TreeEntry(MODE_FOLDER, name, write_paths(objects, below)) for name, below in folders.items()]
    return objects.write_tree(entries)


def read_paths(objects: GitObjects, tree: TreeId, prefix: str = "") -> dict[str, str]:
    """Return a tree's blobs by path."""
    found: dict[str, str] = {}
    entries = objects.read_tree(tree)
    assert entries is not None
    for entry in entries:
        if entry.mode == MODE_FOLDER:
            found |= read_paths(objects, TreeId(entry.oid), f"{prefix}{entry.name}/")
        else:
            found[prefix + entry.name] = entry.oid
    return found


@pytest.fixture
def tree_of_paths() -> Callable[[GitObjects, Mapping[str, BlobId]], TreeId]:
    return write_paths


@pytest.fixture
def paths_of_tree() -> Callable[[GitObjects, TreeId], dict[str, str]]:
    return read_paths
