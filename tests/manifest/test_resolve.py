"""The digest follows the inputs, all of them and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitledger.config.schema import ResultsConfig
from gitledger.errors import ManifestError
from gitledger.manifest.definition import Definition
from gitledger.manifest.pattern import compile_pattern, path_bytes
from gitledger.manifest.resolve import digest_of, resolve
from gitledger.manifest.touched import touched
from gitledger.records.ids import ShardKey
from gitledger.records.receipt import Split
from gitledger.records.tree import MODE_FILE, MODE_FOLDER, TreeEntry

LINT = ResultsConfig("exit-status")


class DictFacts:
    """`TreeFacts` over paths and contents, with ids made as git makes them: of names and content alone."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.folders: dict[str, dict[str, TreeEntry]] = {"": {}}
        for path, text in files.items():
            self._add(path, TreeEntry(MODE_FILE, path.rpartition("/")[2], _id(text)))
        for folder in sorted(self.folders, key=lambda path: -path.count("/") - bool(path)):
            if folder:
                listed = repr(sorted((e.name, e.mode, e.oid) for e in self.folders[folder].values()))
                self._put(folder, TreeEntry(MODE_FOLDER, folder.rpartition("/")[2], _id(listed)))

    def _add(self, path: str, entry: TreeEntry) -> None:
        self._put(path, entry)
        while "/" in path:
            path = path.rpartition("/")[0]
            self.folders.setdefault(path, {})

    def _put(self, path: str, entry: TreeEntry) -> None:
        self.folders.setdefault(path.rpartition("/")[0], {})[entry.name] = entry

    def entry(self, path: str) -> TreeEntry | None:
        if not path:
            return TreeEntry(MODE_FOLDER, "", _id(repr(sorted(map(repr, self.folders[""].values())))))
        folder, _, name = path.rpartition("/")
        return self.folders.get(folder, {}).get(name)

    def children(self, path: str) -> tuple[TreeEntry, ...]:
        return tuple(self.folders.get(path, {}).values())

    def named(self, folder: str, names: tuple[str, ...]) -> tuple[TreeEntry, ...]:
        there = self.folders.get(folder, {})
        return tuple(there[name] for name in names if name in there)

    def blob(self, oid: str) -> bytes | None:
        return None


def _id(text: str) -> str:
    return hashlib.sha1(text.encode("utf-8", "surrogateescape")).hexdigest()


def takes(text: str, path: str) -> bool:
    """The rule of scopes, said the slow way: the pattern matches the file or a folder above it."""
    pattern = compile_pattern(text)
    if pattern.is_root:
        return True
    states, names = pattern.start(), path.split("/")
    for i, name in enumerate(names):
        states, accepted = pattern.step(states, path_bytes(name))
        if accepted and (i + 1 < len(names) or not pattern.folder_only):
            return True
    return False


name = st.sampled_from(["a", "b", "c.py", "d.md"])
folder = st.lists(st.sampled_from(["x", "y", "z"]), max_size=3)
file_path = st.builds(lambda above, last: "/".join([*above, last]), folder, name)
files = st.dictionaries(file_path, st.sampled_from("12"), min_size=2, max_size=12)
patterns = st.sampled_from(
    [".", "x", "y", "x/y", "*.py", "*.md", "x/*", "*/a", "x/**/b", "**/y", "y/", "**/z/", "./*", "[xy]/[ab]", "a"]
)


def lint(paths: list[str], excluded: list[str]) -> Definition:
    return Definition.undeclared(
        ShardKey("s"), command=["ruff"], paths=paths, excluded_paths=excluded, results=LINT
    )


def digest_or_none(definition: Definition, tree: Mapping[str, str]) -> str | None:
    try:
        return resolve(definition, DictFacts(tree), None).digest
    except ManifestError:
        return None


@settings(max_examples=400, deadline=None)
@given(
    tree=files,
    paths=st.lists(patterns, min_size=1, max_size=3),
    excluded=st.lists(patterns, max_size=2),
    data=st.data(),
)
def test_a_change_shows_exactly_if_it_is_inside_the_scope(
    tree: dict[str, str], paths: list[str], excluded: list[str], data: st.DataObject
) -> None:
    """Edits, additions and removals of one file, against the rule said the slow way."""
    definition = lint(paths, excluded)
    before = digest_or_none(definition, tree)
    path = data.draw(st.sampled_from(sorted(tree)) | file_path)
    changed = dict(tree)
    if path in tree and data.draw(st.booleans()):
        del changed[path]
    else:
        changed[path] = "changed"
    after = digest_or_none(definition, changed)
    inside = any(takes(text, path) for text in paths) and not any(takes(text, path) for text in excluded)
    if before is not None and after is not None:
        assert (before != after) == inside


@settings(max_examples=100, deadline=None)
@given(tree=files, paths=st.lists(patterns, min_size=1, max_size=4), data=st.data())
def test_order_and_repetition_of_patterns_mean_nothing(
    tree: dict[str, str], paths: list[str], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations([*paths, *paths]))
    reordered = dict(data.draw(st.permutations(list(tree.items()))))
    assert digest_or_none(lint(paths, []), tree) == digest_or_none(lint(shuffled, []), reordered)


@settings(max_examples=200, deadline=None)
@given(
    tree=files,
    paths=st.lists(patterns, min_size=1, max_size=3),
    excluded=st.lists(patterns, max_size=2),
    edited=st.lists(file_path, max_size=4),
)
def test_touched_says_of_each_file_old_or_new_what_the_rule_says(
    tree: dict[str, str], paths: list[str], excluded: list[str], edited: list[str]
) -> None:
    try:
        manifest = resolve(lint(paths, excluded), DictFacts(tree), None)
    except ManifestError:
        return
    asked = [*tree, *edited]
    assert touched(manifest, asked) == tuple(
        path
        for path in asked
        if any(takes(text, path) for text in paths) and not any(takes(text, path) for text in excluded)
    )


def test_a_file_of_the_test_configuration_chain_touches_even_where_there_was_none() -> None:
    pytest_shard = Definition.undeclared(ShardKey("unit"), command=["pytest", "tests/gpu"], paths=["src/gpu"])
    manifest = resolve(pytest_shard, DictFacts({"src/gpu/a.py": "1", "tests/gpu/test_a.py": "2"}), None)
    asked = ["conftest.py", "src/conftest.py", "tests/gpu/conftest.py", "tests/other/conftest.py", "setup.py"]
    assert touched(manifest, asked) == ("conftest.py", "src/conftest.py", "tests/gpu/conftest.py")


def test_a_folder_touches_where_a_pattern_takes_folders_alone() -> None:
    manifest = resolve(lint(["da*/", "src/*.py"], []), DictFacts({"data/a": "1", "src/a.py": "2"}), None)
    assert touched(manifest, ["src/new.py/", "lib/data/", "lib/data"]) == ("src/new.py/", "lib/data/")


def test_the_digest_is_a_promise(definition: Any) -> None:
    """SHA-256 over canonical form, NUL, and sorted lines: anyone with the parts can make it."""
    made = definition(["src"], command=["pytest"])
    facts = DictFacts({"src/a": "1", "conftest.py": "c"})
    src, conftest = facts.entry("src"), facts.entry("conftest.py")
    assert src is not None
    assert conftest is not None
    names = ["pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"]
    lines = [f"000000 absent -\t{prefix}{name}\0" for prefix in ("", "src/") for name in names]
    lines += ["000000 absent -\tsrc/conftest.py\0", f"100644 blob {conftest.oid}\tconftest.py\0"]
    lines += [f"040000 tree {src.oid}\tsrc\0"]
    content = made.canonical + b"\0" + b"".join(sorted(line.encode() for line in lines))
    assert resolve(made, facts, None).digest == hashlib.sha256(content).hexdigest()


@pytest.fixture
def repo(git_repo: Any) -> Any:
    git_repo.commit({"src/a.py": "a", "src/b.py": "b", "docs/x": "x"})
    (git_repo.path / "src/link").symlink_to("a.py")
    git_repo.commit()
    return git_repo


def test_modes_links_renames_and_submodules_are_inputs(repo: Any, manifest_at: Any) -> None:
    seen = [manifest_at(repo, ["src"]).digest]

    def changed() -> bool:
        repo.git("commit", "-qm", "c", "--allow-empty")
        seen.append(manifest_at(repo, ["src"]).digest)
        return seen[-1] != seen[-2]

    repo.git("update-index", "--chmod=+x", "src/a.py")
    assert changed()
    (repo.path / "src/link").unlink()
    (repo.path / "src/link").symlink_to("b.py")
    repo.git("add", "src/link")
    assert changed()
    repo.git("mv", "src/b.py", "src/c.py")
    assert changed()
    for commit in ("1" * 40, "2" * 40):
        repo.git("update-index", "--add", "--cacheinfo", f"160000,{commit},src/sub")
        assert changed()
    repo.git("mv", "docs/x", "docs/y")
    assert not changed()


def test_an_executable_bit_on_a_single_declared_file_is_an_input(repo: Any, manifest_at: Any) -> None:
    before = manifest_at(repo, ["src/a.py"]).digest
    repo.git("update-index", "--chmod=+x", "src/a.py")
    repo.git("commit", "-qm", "c")
    assert manifest_at(repo, ["src/a.py"]).digest != before


def test_the_same_tree_under_another_commit_is_the_same_manifest(repo: Any, manifest_at: Any) -> None:
    before = manifest_at(repo).digest
    repo.git("commit", "-q", "--amend", "-m", "another message")
    assert manifest_at(repo).digest == before


def test_parts_of_a_split_stand_on_the_durations(repo: Any, facts_at: Any) -> None:
    part = Definition(key=ShardKey("s-1-of-2"), paths=("src",), command=("pytest",), split=Split(index=1, total=2))
    whole = Definition(key=ShardKey("s"), paths=("src",), command=("pytest",))
    before = resolve(part, facts_at(repo), None).digest, resolve(whole, facts_at(repo), None).digest
    repo.commit({".gitledger/durations.json": "{}"})
    assert resolve(part, facts_at(repo), None).digest != before[0]
    assert resolve(whole, facts_at(repo), None).digest == before[1]


def test_digests_of_different_definitions_differ_on_equal_inputs(repo: Any, manifest_at: Any) -> None:
    assert (
        manifest_at(repo, command=["pytest"]).digest != manifest_at(repo, command=["pytest", "-k", "one"]).digest
    )


def test_an_entry_line_cannot_be_forged_by_a_file_name(definition: Any) -> None:
    made = definition(["d"])
    one = resolve(made, DictFacts({"d/a": "1"}), None)
    forged = resolve(definition(["d"]), DictFacts({"d/a\n040000 tree x\td": "1"}), None)
    assert one.digest != forged.digest
    assert digest_of(made, one.lines, ()) == one.digest
