"""What the journal and the observer add to a suite that nobody here wrote: packaging's own tests."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench_tools import Tools
from figure import Figure, at_most, in_s, of_costs
from measure import Cost, in_turns, run

from gitledger.suites.inject import child_environment, with_observer
from gitledger.suites.part import with_companion

__all__ = ["observed"]

PACKAGE = "packaging==25.0"
NEEDS = "pretend"
TESTS = ("tests/test_specifiers.py", "tests/test_markers.py", "tests/test_tags.py", "tests/test_metadata.py")


def observed(tools: Tools, rounds: int) -> Iterator[Figure]:
    """(m) Thousands of real tests: plain, with the journal, with the journal and the observer."""
    folder = _unpacked(tools)
    found = in_turns(
        {
            "plain": lambda: _pytest(tools, folder, tools.env("plain")),
            "journal": lambda: _recorded(tools, folder, is_observed=False),
            "observed": lambda: _recorded(tools, folder, is_observed=True),
        },
        2 * rounds,
    )
    for name, what, over, beside, bound in (
        ("observed", "the journal and the observer of inputs", "journal", "the same without the observer", 1.03),
        ("journal", "the journal alone", "plain", "plain pytest", 1.05),
        ("observed", "the journal and the observer of inputs", "plain", "plain pytest", None),
    ):
        yield of_costs(
            "m",
            f"3,500 tests of {PACKAGE.replace('==', ' ')} with {what}, over {beside}",
            found[name],
            found[over],
            None if bound is None else at_most(bound),
            ours=in_s(found[name]),
            other=f"{in_s(found[over])} ({over})",
        )


def _recorded(tools: Tools, repository: Path, *, is_observed: bool) -> Cost:
    """Return the cost of the run as `record` starts it, without what comes before and after."""
    folder = Path(tempfile.mkdtemp(prefix="gitledger-bench-"))
    try:
        for name in ("plugin", "observer"):
            (folder / name).mkdir()
        env: dict[str, str] = child_environment(
            tools.env("plain"), journal=folder / "journal", nonce=secrets.token_hex(16), folder=folder / "plugin"
        )
        env = with_companion(env, folder=folder / "plugin")
        if is_observed:
            env, told = with_observer(env, folder=folder / "observer", root=repository)
        cost = _pytest(tools, repository, env)
        assert (folder / "journal").stat().st_size > 10_000, "the plugin wrote no journal"
        assert not is_observed or told.stat().st_size > 100, "the observer told nothing"
        return cost
    finally:
        shutil.rmtree(folder)


def _pytest(tools: Tools, folder: Path, env: dict[str, str]) -> Cost:
    before = env.get("PYTHONPATH")
    paths = [*([before] if before else []), str(folder / "src"), str(folder.with_name("packaging-needs"))]
    env = {**env, "PYTHONPATH": os.pathsep.join(paths)}
    command = [tools.bin("plain") / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    return run(command, cwd=folder, env=env)


def _unpacked(tools: Tools) -> Path:
    """Return the source distribution's folder as a repository, fetched once."""
    folder = tools.folder / "worlds" / "packaging"
    if (folder / ".git").exists():
        return folder
    pip = [sys.executable, "-m", "pip"]
    archives = tools.folder / "sdist"
    quiet = ["-q", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "download", *quiet, "--no-binary", ":all:", "-d", archives, PACKAGE], check=True)
    subprocess.run([*pip, "install", *quiet, "--target", folder.with_name("packaging-needs"), NEEDS], check=True)
    (archive,) = archives.glob("packaging-*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder.parent, filter="data")
    shutil.move(folder.parent / archive.name.removesuffix(".tar.gz"), folder)
    (folder / "pytest.ini").write_text("[pytest]\n")  # or the settings of the folders above would hold
    subprocess.run(["git", "init", "-q"], cwd=folder, env=tools.env("plain"), check=True)
    return folder
