"""Manifests of many commits by replaying what was asked: always what resolving anew gives."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.errors import ManifestError
from gitledger.manifest.definition import Definition
from gitledger.manifest.replay import Replays
from gitledger.manifest.resolve import resolve
from gitledger.records.ids import ShardKey

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


def definition(paths: tuple[str, ...], excluded: tuple[str, ...] = ()) -> Definition:
    return Definition.undeclared(
        ShardKey("unit"), command=("pytest", "tests/a"), paths=paths, excluded_paths=excluded
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
        facts, told = DictFacts(tree), {}
        for paths in scopes[:3]:
            wanted = definition(paths, ("src/b",) if paths == ("src",) else ())
            replayed = outcome(replays.resolve, wanted, facts, told)
            assert replayed == outcome(resolve, wanted, facts, None), (paths, tree)


def test_what_nothing_was_asked_of_is_not_resolved_again():
    replays, wanted = Replays(), definition(("src/b",))
    first = replays.resolve(wanted, DictFacts({"src/b/c.py": "1", "src/a.py": "1", "tests/a/t": "1"}), {})
    other = replays.resolve(wanted, DictFacts({"src/b/c.py": "1", "src/a.py": "2", "tests/a/t": "2"}), {})
    assert other is first, "another file beside the scope, other content below a path argument"


@pytest.mark.parametrize(
    "path", ["conftest.py", "src/conftest.py", "tests/a/conftest.py", "tox.ini", "src/b/new.py"]
)
def test_a_file_that_appears_where_its_absence_counts_is_seen(path):
    replays, wanted = Replays(), definition(("src/b",))
    tree = {"src/b/c.py": "1", "tests/a/t": "1"}
    first = replays.resolve(wanted, DictFacts(tree), {}).digest
    assert replays.resolve(wanted, DictFacts({**tree, path: "new"}), {}).digest != first
