"""Declared paths to entries, on real commits."""

from __future__ import annotations

import os
from typing import Any

import pytest

from gitledger.errors import ManifestError
from gitledger.manifest.facts import TreeFacts
from gitledger.manifest.scope import resolve_scope
from gitledger.records.tree import TreeEntry

FILES = {
    "src/a.py": "a",
    "src/gen/g.py": "g",
    "src/gen/deep/h.py": "h",
    "src/lib/b.py": "b",
    "src/lib/notes.md": "n",
    "docs/x.md": "x",
    "top.py": "t",
}


@pytest.fixture
def repo(git_repo: Any) -> Any:
    git_repo.commit(FILES)
    return git_repo


def paths_of(facts: TreeFacts, paths: list[str], excluded: list[str] | None = None) -> list[str]:
    return sorted(entry.path for entry in resolve_scope(paths, excluded or [], facts).entries)


@pytest.mark.parametrize(
    ("paths", "excluded", "expected"),
    [
        (["."], [], ["."]),
        (["src"], [], ["src"]),
        (["src/"], [], ["src"]),
        (["src/a.py"], [], ["src/a.py"]),
        (["*.py"], [], ["src/a.py", "src/gen/deep/h.py", "src/gen/g.py", "src/lib/b.py", "top.py"]),
        (["./*.py"], [], ["top.py"]),
        (["src/*"], [], ["src/a.py", "src/gen", "src/lib"]),
        (["src/*/"], [], ["src/gen", "src/lib"]),
        (["src/**/[gh].py"], [], ["src/gen/deep/h.py", "src/gen/g.py"]),
        (["src", "src/a.py"], [], ["src", "src/a.py"]),
        (["src"], ["src/gen"], ["src/a.py", "src/lib"]),
        (["src"], ["src/gen/deep/h.py"], ["src/a.py", "src/gen/g.py", "src/lib"]),
        (["src/gen", "docs"], ["src/gen/deep"], ["docs", "src/gen/g.py"]),
        (["src/lib", "docs/x.md"], ["notes.*"], ["docs/x.md", "src/lib/b.py"]),
        (["."], ["src", "docs"], ["top.py"]),
        (["src/*.py", "src/lib/*"], ["src/lib"], ["src/a.py"]),
    ],
)
def test_patterns_stand_for(
    repo: Any, facts_at: Any, paths: list[str], excluded: list[str], expected: Any
) -> None:
    assert paths_of(facts_at(repo), paths, excluded) == expected


def test_a_pattern_for_folders_leaves_files_of_that_name(git_repo: Any, facts_at: Any) -> None:
    git_repo.commit({"k/gen": "a file", "src/gen/x": "in a folder", "src/y": "y"})
    assert paths_of(facts_at(git_repo), ["k", "src"], ["**/gen/"]) == ["k/gen", "src/y"]
    assert paths_of(facts_at(git_repo), ["**/gen/"]) == ["src/gen"]


def test_ids_and_modes_are_gits_own(repo: Any, facts_at: Any) -> None:
    (repo.path / "run.sh").write_text("x")
    (repo.path / "run.sh").chmod(0o755)
    (repo.path / "link").symlink_to("src/a.py")
    repo.commit()
    entries = resolve_scope(["src", "run.sh", "link"], [], facts_at(repo)).entries
    lines = sorted(entry.line() for entry in entries)
    listed = repo.git("ls-tree", "HEAD", "src", "run.sh", "link").splitlines()
    assert lines == sorted(line.encode() + b"\0" for line in listed)


@pytest.mark.parametrize(
    ("paths", "excluded", "code", "named"),
    [
        ([], [], "scope-empty", "no paths"),
        (["src"], ["src"], "scope-empty", "src"),
        (["src"], ["."], "scope-empty", "src"),
        (["scr"], [], "pattern-unmatched", "scr"),
        (["src", "*.rs"], [], "pattern-unmatched", "*.rs"),
        (["src/a.py/"], [], "pattern-unmatched", "src/a.py/"),
        (["src/a.py/x"], [], "pattern-unmatched", "src/a.py/x"),
        (["src"], ["docs"], "pattern-unmatched", "docs"),
        (["../x"], [], "path-outside", "../x"),
        (["link/a.py"], [], "symlinked-component", "link"),
        (["link/*.py"], [], "symlinked-component", "link"),
        (["sub/x"], [], "inside-submodule", "sub"),
    ],
)
def test_scopes_that_are_none_are_errors_that_name_the_path(
    repo: Any, facts_at: Any, paths: list[str], excluded: list[str], code: str, named: str
) -> None:
    (repo.path / "link").symlink_to("src")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    repo.git("add", "link")
    repo.git("commit", "-qm", "odd")
    with pytest.raises(ManifestError) as caught:
        resolve_scope(paths, excluded, facts_at(repo))
    assert caught.value.code == code
    assert named in caught.value.message
    assert caught.value.hint


def test_an_empty_tree_is_no_scope(git_repo: Any, facts_at: Any) -> None:
    git_repo.commit()
    with pytest.raises(ManifestError, match="nothing is left"):
        resolve_scope(["."], [], facts_at(git_repo))


def test_globs_do_not_follow_symlinks(repo: Any, facts_at: Any) -> None:
    (repo.path / "loop").symlink_to(".")
    repo.commit()
    assert "loop" not in str(paths_of(facts_at(repo), ["**/a.py"]))


def test_names_of_any_bytes_are_kept(git_repo: Any, facts_at: Any) -> None:
    names = [b"new\nline.py", b"tab\t.py", b"\xff\xfe.py", "dé.py".encode(), b"[x].py", b"back\\slash.py", b" .py"]
    (git_repo.path / "d").mkdir()
    for name in names:
        with open(os.fsencode(git_repo.path) + b"/d/" + name, "wb"):
            pass
    git_repo.commit()
    entries = resolve_scope(["d/*.py"], [], facts_at(git_repo)).entries
    assert sorted(os.fsencode(entry.path) for entry in entries) == sorted(b"d/" + name for name in names)
    assert paths_of(facts_at(git_repo), ["d/\\[x\\].py"]) == ["d/[x].py"]
    with pytest.raises(ManifestError) as caught:
        resolve_scope(["d/no\nsuch"], [], facts_at(git_repo))
    assert "\n" not in str(caught.value)


class Counting:
    """Facts that count how often folders are listed."""

    def __init__(self, facts: TreeFacts) -> None:
        self.facts, self.listed = facts, list[str]()

    def entry(self, path: str) -> TreeEntry | None:
        return self.facts.entry(path)

    def children(self, path: str) -> tuple[TreeEntry, ...]:
        self.listed.append(path)
        return self.facts.children(path)

    def named(self, folder: str, names: tuple[str, ...]) -> tuple[TreeEntry, ...]:
        return self.facts.named(folder, names)

    def blob(self, oid: str) -> bytes | None:
        return self.facts.blob(oid)


@pytest.mark.parametrize(
    ("paths", "excluded", "listed"),
    [
        (["src", "docs/x.md"], [], []),
        (["src/*/b.py"], [], ["src"]),
        (["src"], ["src/gen/g.py"], ["src", "src/gen"]),
        (["src/l*"], [], ["src"]),
    ],
)
def test_only_folders_that_a_pattern_reaches_are_listed(
    repo: Any, facts_at: Any, paths: list[str], excluded: list[str], listed: list[str]
) -> None:
    facts = Counting(facts_at(repo))
    resolve_scope(paths, excluded, facts)
    assert sorted(facts.listed) == listed
