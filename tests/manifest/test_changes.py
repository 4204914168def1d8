"""Which files explain that a digest differs."""

from __future__ import annotations

from typing import Any

import pytest

from gitledger.manifest.changes import changed_paths
from gitledger.manifest.resolve import resolve


@pytest.fixture
def repo(git_repo: Any) -> Any:
    git_repo.commit({"src/a.py": "a", "src/x/b.py": "b", "src/gen/g": "g", "docs/d": "d", "src/same/s": "s"})
    return git_repo


def explain(repo: Any, facts_at: Any, definition: Any, *, limit: int = 50, **rest: Any) -> tuple[str, ...]:
    old_facts, new_facts = facts_at(repo, "HEAD~1"), facts_at(repo, "HEAD")
    made = definition(rest.pop("paths", ["src"]), **rest)
    old, new = resolve(made, old_facts, None), resolve(made, new_facts, None)
    found = changed_paths(old, new, old_facts, new_facts, limit=limit)
    assert bool(found) == (old.digest != new.digest)
    return found


def test_edits_additions_removals_and_kinds_are_named(repo: Any, facts_at: Any, definition: Any) -> None:
    (repo.path / "src/x/b.py").unlink()
    (repo.path / "src/gen/g").unlink()
    repo.commit({"src/a.py": "a2", "src/new/deep/n": "n", "docs/d": "d2", "src/gen/g/now/folder": "x"})
    assert explain(repo, facts_at, definition) == (
        "src/a.py",
        "src/gen/g",
        "src/gen/g/now/folder",
        "src/new/deep/n",
        "src/x/b.py",
    )


def test_git_names_the_same_files(repo: Any, facts_at: Any, definition: Any) -> None:
    repo.commit({"src/a.py": "a2", "src/x/c.py": "c", "docs/d": "d2"})
    repo.git("mv", "src/same/s", "src/same/t")
    repo.git("commit", "-q", "--amend", "-m", "x")
    theirs = repo.git("diff-tree", "-r", "--no-renames", "--name-only", "HEAD~1", "HEAD").splitlines()
    assert explain(repo, facts_at, definition, paths=["."]) == tuple(theirs)


def test_what_is_excluded_explains_nothing(repo: Any, facts_at: Any, definition: Any) -> None:
    repo.commit({"src/gen/g": "g2"})
    assert explain(repo, facts_at, definition, excluded_paths=["src/gen"]) == ()


def test_the_chain_explains_too(repo: Any, facts_at: Any, definition: Any) -> None:
    repo.commit({"conftest.py": "c"})
    assert explain(repo, facts_at, definition, command=["pytest"]) == ("conftest.py",)


def test_no_more_than_asked_for(repo: Any, facts_at: Any, definition: Any) -> None:
    repo.commit({f"src/many/{i:03}": "x" for i in range(100)})
    assert len(explain(repo, facts_at, definition, limit=7)) == 7


def test_only_trees_that_differ_are_read(repo: Any, facts_at: Any, definition: Any) -> None:
    repo.commit({"src/x/b.py": "b2"})
    listed: list[str] = []

    class Counting:
        def __init__(self, facts: Any) -> None:
            self.facts = facts

        def stored(self, path: str) -> Any:
            listed.append(path)
            return self.facts.stored(path)

    old_facts, new_facts = facts_at(repo, "HEAD~1"), facts_at(repo, "HEAD")
    made = definition(["src"])
    old, new = resolve(made, old_facts, None), resolve(made, new_facts, None)
    assert changed_paths(old, new, Counting(old_facts), Counting(new_facts), limit=9) == ("src/x/b.py",)
    assert listed == ["src", "src", "src/x", "src/x"]
