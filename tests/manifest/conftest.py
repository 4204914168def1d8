"""Facts of real commits and work trees, and manifests made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gitledger.config.schema import ResultsConfig
from gitledger.manifest.definition import Definition
from gitledger.manifest.resolve import Manifest, resolve
from gitledger.records.ids import ShardKey, TreeId
from gitledger.store.extras import ExtraFiles
from gitledger.store.facts import CommitFacts
from gitledger.store.libgit import LibgitObjects

LINT = ResultsConfig("exit-status")


@pytest.fixture
def facts_at() -> Callable[..., CommitFacts]:
    """Return a maker of the facts of a commit: `facts_at(repo, "HEAD~1")`."""

    def make(repo: Any, commit: str = "HEAD") -> CommitFacts:
        tree = repo.git("rev-parse", f"{commit}^{{tree}}")
        return CommitFacts(LibgitObjects(repo.path / ".git"), TreeId(tree))

    return make


@pytest.fixture
def definition() -> Callable[..., Definition]:
    """Return a maker of definitions; without a command: `exit-status`, so that the scope is all there is."""

    def make(paths: Sequence[str] = (".",), *, command: Sequence[str] | None = None, **rest: Any) -> Definition:
        results = ResultsConfig("pytest") if command else LINT
        return Definition.undeclared(ShardKey("s"), paths=paths, command=command, **{"results": results} | rest)

    return make


@pytest.fixture
def manifest_at(facts_at: Any, definition: Any) -> Callable[..., Manifest]:
    """Return a maker of manifests at a commit: `manifest_at(repo, ["src"], command=["pytest"])`."""

    def make(repo: Any, paths: Sequence[str] = (".",), *, at: str = "HEAD", **rest: Any) -> Manifest:
        return resolve(definition(paths, **rest), facts_at(repo, at), ExtraFiles(repo.path))

    return make
