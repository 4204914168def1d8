"""Fixtures that every room's tests may use: a hermetic git, a fixed identity, real repositories."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest


def hermetic_environment(home: Path) -> dict[str, str]:
    """Return an environment in which git, ssh and pytest see nothing of the machine's user."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "Alice",
        "GIT_AUTHOR_EMAIL": "alice@example.org",
        "GIT_COMMITTER_NAME": "Alice",
        "GIT_COMMITTER_EMAIL": "alice@example.org",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@dataclass(frozen=True)
class GitRepo:
    """A real repository in a folder, driven by the real git."""

    path: Path
    env: Mapping[str, str]

    def git(self, *args: str, check: bool = True, input: bytes | None = None) -> str:
        """Run git here and return its stdout, stripped of the last newline."""
        done = subprocess.run(
            ["git", *args], cwd=self.path, env=dict(self.env), input=input, capture_output=True, check=False
        )
        if check and done.returncode:
            raise AssertionError(f"git {' '.join(args)} -> {done.returncode}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def write(self, path: str, text: str | bytes, *, mode: int | None = None) -> Path:
        """Write a file of the work tree, folders included."""
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode() if isinstance(text, str) else text)
        if mode is not None:
            target.chmod(mode)
        return target

    def commit(self, files: Mapping[str, str | bytes] | None = None, message: str = "change") -> str:
        """Write `files`, commit everything, and return the new commit's id."""
        for path, text in (files or {}).items():
            self.write(path, text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def hermetic_env(tmp_path: Path) -> dict[str, str]:
    """A child environment that leaks nothing of this machine; HOME is an empty folder."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return hermetic_environment(home)


@pytest.fixture
def make_repo(tmp_path: Path, hermetic_env: dict[str, str]):
    """Return a maker of real, empty repositories: `make_repo("name", "--bare")`."""

    def make(name: str = "repo", *options: str) -> GitRepo:
        path = tmp_path / name
        path.mkdir(parents=True)
        repo = GitRepo(path, hermetic_env)
        repo.git("init", "-q", "-b", "main", *options)
        return repo

    return make


@pytest.fixture
def git_repo(make_repo) -> GitRepo:
    """A real, empty repository."""
    return make_repo()
