"""Every shortcut to a manifest against the long way, over random trees: a wrong one would be a false green."""

from __future__ import annotations

import runpy
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from gitledger.config.schema import ResultsConfig
from gitledger.errors import ManifestError
from gitledger.manifest.chain import CHAIN_FILES
from gitledger.manifest.changes import changed_paths
from gitledger.manifest.definition import Definition
from gitledger.manifest.entry import Entry, parent_folders
from gitledger.manifest.pattern import _part, compile_pattern, path_bytes
from gitledger.manifest.replay import Answers, Replays
from gitledger.manifest.resolve import resolve
from gitledger.manifest.scope import _walked, matches
from gitledger.records.ids import ShardKey
from gitledger.records.receipt import Split
from gitledger.records.tree import MODE_FILE, TreeEntry
from gitledger.store.facts import TreeCache

T = runpy.run_path(str(Path(__file__).with_name("trees.py")))
Objects, Plain, facts_of, histories, FOLDERS, NAMES = (
    T[name] for name in ("Objects", "Plain", "facts_of", "histories", "FOLDERS", "NAMES")
)
LINT, PYTEST = ResultsConfig("exit-status"), ResultsConfig("pytest")
PATTERNS = [
    *("src", "src/", "tests/a", ".", "src/b", "data", "SRC", "tests", "conftest.py", "src/a.py", "tests/a/deep"),
    *("src/*", "*.py", "**/b", "src/**/a.py", "tests/*/", "s*/b"),
]
COMMANDS = [
    ("pytest", "tests/a"),
    ("pytest",),
    ("pytest", "-q", "tests/a/test_a.py::test_one", "src/b"),
    ("pytest", "-c", "src/setup.cfg"),
    ("pytest", "@args.txt"),
    ("env", "-C", "tests", "pytest", "a"),
    ("make", "tests"),
    ("timeout", "60", "pytest", "-qc", "src/setup.cfg", "tests/a"),
    ("sh", "-c", "cd src && pytest -c setup.cfg", "@args.txt"),
]

definitions = st.builds(
    lambda paths, excluded, extra, command, results, split: (
        Definition.undeclared(
            ShardKey("s"),
            paths=paths,
            excluded_paths=excluded,
            extra_paths=extra,
            command=command,
            results=results,
        )
        if split is None
        else Definition(key=ShardKey("s"), paths=tuple(sorted(set(paths))), command=command, split=split)
    ),
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3),
    st.lists(st.sampled_from(PATTERNS), max_size=1),
    st.sampled_from([(), (), ("generated/x.so",)]),
    st.sampled_from(COMMANDS),
    st.sampled_from([PYTEST, PYTEST, LINT]),
    st.sampled_from([None, None, None, Split(index=1, total=2)]),
)


def outcome(call, *arguments):
    """Return what a resolution found, or how it failed."""
    try:
        found = call(*arguments)
        return found.lines, found.extra
    except ManifestError as error:
        return error.code, error.message


@settings(max_examples=300, deadline=None)
@given(history=histories(), shards=st.lists(definitions, min_size=1, max_size=4))
def test_a_manifest_by_any_shortcut_is_the_one_that_is_resolved_anew(history, shards):
    objects, replays = Objects(), Replays()
    cache = TreeCache(objects)
    for files in history:
        facts, told, plain = facts_of(objects, files, cache), Answers(), Plain(objects, files)
        for shard in shards:
            before = list(replays._resolved.get(shard, ()))
            quick = outcome(replays.resolve, shard, facts, told)
            assert quick == outcome(resolve, shard, plain, None), (shard, files)
            if before:
                event("replayed" if replays._resolved[shard] == before else "resolved anew")


@settings(max_examples=200, deadline=None)
@given(history=histories(), folder=st.sampled_from([*FOLDERS, "src/a.py", "none", "src//b", "/src", "src/"]))
def test_names_that_are_asked_for_together_are_answered_as_one_by_one(history, folder):
    objects = Objects()
    cache = TreeCache(objects)
    for files in history:
        facts = facts_of(objects, files, cache)
        for names in (CHAIN_FILES, tuple(NAMES)):
            singly = [facts.entry(f"{folder}/{name}" if folder else name) for name in names]
            assert facts.named(folder, names) == tuple(entry for entry in singly if entry is not None)


@settings(max_examples=200, deadline=None)
@given(
    history=histories(),
    text=st.sampled_from(
        [
            "src",
            "src/",
            "src/b",
            "src/b/a.py",
            "tests/a/deep/conftest.py",
            "data/",
            "none/x",
            "src/a.py/",
            "src/\\*",
        ]
    ),
)
def test_a_path_without_wildcards_finds_what_the_walk_finds(history, text):
    objects = Objects()
    pattern = compile_pattern(text)
    assert pattern.path is not None
    for files in history:
        plain = Plain(objects, files)
        assert found(matches, pattern, plain) == found(_walked, pattern, plain), files


def found(call, *arguments):
    try:
        return list(call(*arguments))
    except ManifestError as error:
        return error.code, error.message


@settings(max_examples=200, deadline=None)
@given(history=histories(), scope=st.sampled_from([".", "src", "tests", "data"]), limit=st.sampled_from([2, 20]))
def test_the_paths_that_changed_are_those_of_files_that_are_not_the_same(history, scope, limit):
    objects = Objects()
    cache = TreeCache(objects)
    definition = Definition.undeclared(ShardKey("s"), paths=[scope], command=["ruff"], results=LINT)
    for one, other in pairwise(history):
        old, new = facts_of(objects, one, cache), facts_of(objects, other, cache)
        try:
            manifests = resolve(definition, old, None), resolve(definition, new, None)
        except ManifestError:
            continue
        before, after = Plain(objects, one).files(), Plain(objects, other).files()
        expected = [
            path
            for path in {*before, *after}
            if before.get(path) != after.get(path) and (scope == "." or scope in (path, *parent_folders(path)))
        ]
        first = sorted(expected, key=lambda path: path_bytes(path).split(b"/"))[:limit]
        assert changed_paths(*manifests, old, new, limit=limit) == tuple(sorted(first, key=path_bytes))


names = st.text(st.characters(exclude_characters="/\0*?[\\", exclude_categories=()), min_size=1, max_size=5)


@given(st.lists(names, min_size=1, max_size=3))
def test_a_plain_path_compiles_as_any_other_pattern_does(parts):
    text = "/".join(parts)
    try:
        pattern = compile_pattern(text)
    except (ManifestError, UnicodeEncodeError):
        return
    spelled = pattern.text.removesuffix("/")
    if spelled != ".":
        assert pattern.parts == tuple(_part(text, path_bytes(name)) for name in spelled.split("/"))


@given(
    st.builds(
        TreeEntry,
        st.sampled_from([0o100644, 0o100755, 0o120000, 0o40000, 0o160000]),
        st.just(""),
        st.sampled_from(["a" * 40, "0" * 64]),
    ),
    st.binary(min_size=1, max_size=12).filter(lambda raw: b"\0" not in raw),
)
def test_an_entry_is_read_from_its_line(there, raw):
    path = raw.decode("utf-8", "surrogateescape")
    entry = Entry.of(path, there)
    assert entry.line() == b"%06o %b %b\t%b\0" % (there.mode, entry.kind.encode(), there.oid.encode(), raw)
    for one in (entry, Entry.absent(path), Entry(MODE_FILE, "extra", "e" * 64, path)):
        assert Entry.read(one.line()) == one


@pytest.mark.parametrize(
    ("path", "above"), [("a", ("",)), ("a/b/c", ("", "a", "a/b")), ("", ("",)), ("a/", ("", "a"))]
)
def test_the_folders_above_a_path_are_named_from_the_root(path, above):
    assert parent_folders(path) == above
