"""The repositories that are measured in: real files, real commits, made once and kept."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench_tools import Tools

__all__ = ["CHANGED", "FILES", "SHARDS", "TESTS", "World", "big", "config_of", "shard_paths", "suite", "wide"]

FILES = 50_000
SHARDS = 100
TESTS = 100
"""Tests of one shard."""
CHANGED = 5
"""Shards whose inputs the newest commit changes."""
_MODULES = 475
_LAYOUT = 2
"""Raised when what is made here changes, so that an older copy is made anew."""
_INI = '[tool.pytest.ini_options]\nmarkers = ["gpu_proof: for the peer"]\npythonpath = ["."]\n'
_IGNORE = "__pycache__/\n.pytest_cache/\ngpu-proof.json\n"


@dataclass(frozen=True, slots=True)
class World:
    """A repository, and git in it."""

    path: Path
    env: Mapping[str, str]

    def git(self, *args: str, stdin: bytes | None = None) -> str:
        command = ["git", *args]
        done = subprocess.run(command, cwd=self.path, env=dict(self.env), input=stdin, capture_output=True)
        if done.returncode:
            raise SystemExit(f"git {' '.join(args)} -> {done.returncode}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode().strip()

    def write(self, path: str, text: str) -> None:
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def switch(self, branch: str) -> None:
        """Check a branch out and let git look at every file once, so that nobody's measured run has to."""
        self.git("checkout", "-q", branch)
        self.git("status", "--porcelain")


def suite(tools: Tools, *, tests: int, files: int) -> World:
    """Return a repository of nothing but trivial tests, one shard."""
    name = f"suite-{tests}"

    def fill(world: World) -> None:
        each = tests // files
        for number in range(files):
            world.write(f"tests/test_{number:03}.py", _tests(number, each))
        shards = "  unit: {paths: [tests], command: pytest -q tests}\n"
        _configure(world, tools, shards)
        world.commit("start")

    return _made(tools, name, fill)


def big(tools: Tools) -> World:
    """Return the repository of many files: branches `own` and `shared`, and `-next` of each.

    On `own` a shard's inputs are its package and its tests, on `shared` also a folder that all of them share.
    `-next` edits some packages.
    """

    def fill(world: World) -> None:
        for shard in range(SHARDS):
            for module in range(_MODULES):
                world.write(f"src/p{shard:03}/m{module:03}.py", _module(shard, module))
            world.write(f"tests/t{shard:03}/test_t{shard:03}.py", _tests(shard, TESTS))
        few = SHARDS * (_MODULES + 1) + 4
        for number in range(FILES - few):
            world.write(f"src/common/c{number:04}.py", _module(SHARDS, number))
        _configure(world, tools, config_of("own"))
        world.commit("start")
        for branch in ("own", "shared"):
            world.git("checkout", "-q", "-B", branch, "main")
            _configure(world, tools, config_of(branch))
            world.commit(branch)
            world.git("checkout", "-q", "-b", f"{branch}-next")
            for shard in range(CHANGED):
                world.write(f"src/p{shard:03}/m000.py", "EDITED = True\n")
            world.commit("edit")
        world.git("branch", "recording", "own")
        world.git("repack", "-adq")

    return _made(tools, "big", fill)


def wide(tools: Tools, *, shards: int, sources: Mapping[str, str]) -> World:
    """Return a repository of `sources` and many shards, each with one test file; its coverage has a threshold."""

    def fill(world: World) -> None:
        for path, text in sources.items():
            world.write(path, text)
        for shard in range(shards):
            world.write(f"tests/t{shard:03}/test_it.py", "def test_it():\n    pass\n")
        config = "".join(
            f"  s{shard:03}: {{paths: [src, tests/t{shard:03}], command: pytest -q tests/t{shard:03}}}\n"
            for shard in range(shards)
        )
        _configure(world, tools, config, more="coverage: {fail_under: 50}\n")
        world.commit("start")

    return _made(tools, "wide", fill)


def shard_paths(branch: str, shard: int) -> list[str]:
    """Return the declared paths of a shard of the big repository."""
    own = [f"src/p{shard:03}", f"tests/t{shard:03}"]
    return [*own, "src/common"] if branch == "shared" else own


def config_of(branch: str) -> str:
    """Return the shards' part of the big repository's configuration."""
    return "".join(
        f"  s{shard:03}: {{paths: [{', '.join(shard_paths(branch, shard))}], "
        f"command: pytest -q tests/t{shard:03}}}\n"
        for shard in range(SHARDS)
    )


def _configure(world: World, tools: Tools, shards: str, *, more: str = "") -> None:
    policy = f"policy: {{allow_carried: true}}\n{more}"
    world.write(".gitledger/config.yaml", f"version: 1\nrepository: bench\nshards:\n{shards}{policy}")
    world.write(".gitledger/allowed_signers", f'bench@example.org namespaces="gitledger" {tools.public_line}\n')
    world.write("pyproject.toml", _INI)
    world.write(".gitignore", _IGNORE)


def _tests(number: int, count: int) -> str:
    head = "import pytest\n\npytestmark = pytest.mark.gpu_proof\n"
    return head + "".join(
        f"\n\ndef test_{number:03}_{case:03}():\n    assert {case} >= 0\n" for case in range(count)
    )


def _module(package: int, module: int) -> str:
    lines = (f"VALUE_{line:02} = {package * 1_000_003 + module * 101 + line}" for line in range(30))
    return "\n".join(lines) + "\n"


def _made(tools: Tools, name: str, fill: Callable[[World], None]) -> World:
    path = tools.folder / "worlds" / name
    stamp = path.with_suffix(".layout")
    world = World(path, tools.env("plain"))
    wanted = f"{_LAYOUT} {tools.public_line}"
    if stamp.exists() and stamp.read_text() == wanted:
        return world
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    world.git("init", "-q", "-b", "main")
    fill(world)
    stamp.write_text(wanted)
    return world
