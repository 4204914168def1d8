"""Manifests of many commits by replaying what was asked: always what resolving anew gives."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.errors import ManifestError
from gitledger.manifest.definition import Definition
from gitledger.manifest.replay import Answers, Followed, Replays
from gitledger.manifest.resolve import resolve
from gitledger.records.ids import ShardKey
from gitledger.records.tree import MODE_FOLDER

DictFacts = runpy.run_path(str(Path(__file__).with_name("test_resolve.py")))["DictFacts"]
PATHS = [
    "src/a.py",
    "src/b/c.py",
    "tests/a/test_a.py",
    "tests/conftest.py",
    "conftest.py",
    "pytest.ini",
    "data/x",
    "setup.cfg",
]
SCOPES = [("src",), ("src/b", "tests/a"), (".",), ("src/*.py",), ("**/*.py", "data"), ("tests/",)]


def definition(paths: tuple[str, ...], excluded: tuple[str, ...] = (), name: str = "unit") -> Definition:
    return Definition.undeclared(
        ShardKey(name), command=("pytest", "tests/a"), paths=paths, excluded_paths=excluded
    )


def outcome(call, *arguments: object) -> object:
    try:
        return call(*arguments).digest_with(())
    except ManifestError as error:
        return error.code, error.message


trees = st.dictionaries(st.sampled_from(PATHS), st.sampled_from("12"), min_size=1)


@given(history=st.lists(trees, min_size=2, max_size=8), scopes=st.permutations(SCOPES))
def test_a_replayed_manifest_is_the_resolved_one(history, scopes):
    replays = Replays()
    for tree in history:
        facts, told = DictFacts(tree), Answers()
        for paths in scopes[:3]:
            wanted = definition(paths, ("src/b",) if paths == ("src",) else ())
            replayed = outcome(replays.resolve, wanted, facts, told)
            assert replayed == outcome(resolve, wanted, facts, None), (paths, tree)


def test_what_nothing_was_asked_of_is_not_resolved_again():
    replays, wanted = Replays(), definition(("src/b",))
    first = replays.resolve(wanted, DictFacts({"src/b/c.py": "1", "src/a.py": "1", "tests/a/t": "1"}), Answers())
    other = replays.resolve(wanted, DictFacts({"src/b/c.py": "1", "src/a.py": "2", "tests/a/t": "2"}), Answers())
    assert other is first, "another file beside the scope, other content below a path argument"


@pytest.mark.parametrize(
    "path", ["conftest.py", "src/conftest.py", "tests/a/conftest.py", "tox.ini", "src/b/new.py"]
)
def test_a_file_that_appears_where_its_absence_counts_is_seen(path):
    replays, wanted = Replays(), definition(("src/b",))
    tree = {"src/b/c.py": "1", "tests/a/t": "1"}
    first = replays.resolve(wanted, DictFacts(tree), Answers()).digest
    assert replays.resolve(wanted, DictFacts({**tree, path: "new"}), Answers()).digest != first


def differing(one: DictFacts, other: DictFacts) -> tuple[set[str], set[str]]:
    """Return where two trees differ, and where only one has a folder, as `store.facts.Differing` has it."""
    everywhere = {""}
    for tree in (one, other):
        everywhere |= {f"{folder}/{name}".lstrip("/") for folder, names in tree.folders.items() for name in names}
    changed = {path for path in everywhere if one.entry(path) != other.entry(path)}
    turned = {path for path in changed if _is_folder(one.entry(path)) != _is_folder(other.entry(path))}
    return {path for path in changed if not any(path.startswith(f"{above}/") for above in turned)}, turned


def _is_folder(entry: object) -> bool:
    return entry is not None and entry.mode == MODE_FOLDER


def _whole(tree: dict[str, str]) -> dict[str, str]:
    """Return a tree in which nothing lies below a file."""
    return {path: text for path, text in tree.items() if not any(path.startswith(f"{file}/") for file in tree)}


turning = st.dictionaries(st.sampled_from([*PATHS, "src/b", "tests", "data"]), st.sampled_from("12"), min_size=1)


@given(history=st.lists(turning.map(_whole), min_size=2, max_size=8))
def test_a_manifest_that_is_held_on_to_is_the_resolved_one(history):
    shards = [definition(paths, name=f"s{number}") for number, paths in enumerate(SCOPES)]
    replays = Replays()
    followed, before = Followed(replays), None
    for tree in history:
        facts, told = DictFacts(tree), Answers()
        if before is not None:
            followed.move(*differing(before, facts))
        for one in shards:
            expected = outcome(resolve, one, facts, None)
            held = followed.held(one.key)
            if held is not None:
                assert held.digest_with(()) == expected, (one.paths, tree)
            elif not isinstance(expected, tuple):
                followed.hold(one, replays.resolve(one, facts, told))
        before = facts


def test_what_nothing_was_asked_of_is_held_on_to():
    replays, wanted = Replays(), definition(("src/b",))
    followed = Followed(replays)
    first = DictFacts({"src/b/c.py": "1", "src/a.py": "1", "tests/a/t": "1"})
    followed.hold(wanted, replays.resolve(wanted, first, Answers()))
    beside = DictFacts({"src/b/c.py": "1", "src/a.py": "2", "tests/a/t": "2"})
    followed.move(*differing(first, beside))
    assert followed.held(wanted.key) is not None
    within = DictFacts({"src/b/c.py": "2", "src/a.py": "2", "tests/a/t": "2"})
    followed.move(*differing(beside, within))
    assert followed.held(wanted.key) is None


@pytest.mark.parametrize("after", [{"src/b/c.py": "1"}, {"src/b/c.py": "1", "tests": "a file"}])
def test_nothing_is_held_on_to_that_was_asked_of_a_folder_that_is_gone(after):
    replays, wanted = Replays(), definition(("src/b",))
    followed, before = Followed(replays), DictFacts({"src/b/c.py": "1", "tests/a/t": "1"})
    followed.hold(wanted, replays.resolve(wanted, before, Answers()))
    followed.move(*differing(before, DictFacts(after)))
    assert followed.held(wanted.key) is None
