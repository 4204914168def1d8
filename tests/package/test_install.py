"""What is handed out can be installed, by pip, pipx and uv, on every Python that is here, and then does its work.

Run by `make test-package`; dependencies come from the package index. A Python that is not here is skipped loudly.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from gitledger import __version__
from gitledger.cli.app import COMMANDS

pytestmark = pytest.mark.package

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LIMIT_S = 300


def run(*command: str | Path, env: Mapping[str, str], cwd: Path, status: int = 0) -> str:
    """Run a program and return both of its streams; it must end as said."""
    done = subprocess.run(
        [str(word) for word in command],
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == status, f"{command} -> {done.returncode}\n{done.stdout}"
    return done.stdout


def interpreter(version: str) -> Path:
    """Return a Python of that version, looked for on PATH and among pyenv's."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = [Path(folder) / name for folder in os.environ["PATH"].split(os.pathsep)]
    for path in (*found, *sorted(pyenv.glob(f"versions/*/bin/{name}"))):
        if path.exists():
            said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False)
            if said.stdout.startswith(f"Python {version}."):
                return path
    pytest.skip(f"LOUDLY: there is no Python {version} here")


@dataclass(frozen=True)
class Built:
    wheel: Path
    sdist: Path
    tools: Path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Wheel and sdist of a clean copy of what is tracked, and an environment that has pipx and uv."""
    folder = tmp_path_factory.mktemp("package")
    source = folder / "source"
    env = dict(os.environ)
    tracked = run("git", "ls-files", "-z", env=env, cwd=ROOT).split("\0")
    for name in filter(None, tracked):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    venv.create(folder / "tools", with_pip=True)
    tools = folder / "tools/bin"
    run(tools / "pip", "install", "-q", "--disable-pip-version-check", "uv", "pipx", env=env, cwd=folder)
    run(tools / "uv", "build", "-q", "-p", sys.executable, "-o", folder / "dist", source, env=env, cwd=folder)
    (wheel,) = (folder / "dist").glob("*.whl")
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    return Built(wheel, sdist, tools)


@pytest.fixture
def person(tmp_path: Path, hermetic_env: dict[str, str]) -> dict[str, str]:
    """The environment of somebody with a key and nothing else of theirs; the package index is as it is set up here."""
    kept = ("PIP_", "UV_", "SSL_", "REQUESTS_", "HTTP", "http", "NO_PROXY", "no_proxy")
    env = {**hermetic_env, **{name: value for name, value in os.environ.items() if name.startswith(kept)}}
    home = Path(env["HOME"])
    for name in ("pip/pip.conf", "uv/uv.toml"):
        if (Path.home() / ".config" / name).exists():
            (home / ".config" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path.home() / ".config" / name, home / ".config" / name)
    (home / ".ssh").mkdir()
    key = home / ".ssh/id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    env["MANPAGER"] = "cat"
    return env


def new_project(folder: Path, env: Mapping[str, str]) -> Path:
    project = folder / "project"
    project.mkdir()
    (project / "test_it.py").write_text("def test_it():\n    assert 1 + 1 == 2\n")
    (project / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n")
    run("git", "init", "-q", "-b", "main", env=env, cwd=project)
    run("git", "config", "user.email", "you@example.org", env=env, cwd=project)
    return project


def journey(project: Path, env: Mapping[str, str]) -> None:
    """From an installed command to a verdict: what the README promises."""
    assert f"git-ledger {__version__}\n" == run("git", "ledger", "--version", env=env, cwd=project)
    listed = run("git", "ledger", "help", env=env, cwd=project)
    assert all(f"  {name} " in listed for name in COMMANDS)
    assert "Tutorial" in listed, "the pages of the manual are not in the package"
    assert run("git", "ledger", "help", "schemas/plan", env=env, cwd=project).startswith("{")
    run("git", "ledger", "init", "--ci", "github", env=env, cwd=project)
    assert (project / ".github/workflows/git-ledger.yml").exists()
    run("git", "add", "-A", env=env, cwd=project)
    run("git", "commit", "-qm", "Set up the ledger", env=env, cwd=project)
    assert "recorded tests: passed, 1 of 1 passed" in run(
        "git", "ledger", "record", "--shard", "tests", env=env, cwd=project
    )
    assert "verdict: passed" in run("git", "ledger", "verify", env=env, cwd=project)


@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheel_works_in_a_fresh_environment_of_every_python(built, person, tmp_path, version):
    place = tmp_path / "venv"
    run(interpreter(version), "-m", "venv", place, env=person, cwd=tmp_path)
    pip = (place / "bin/python", "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "-q", built.wheel, "pytest", env=person, cwd=tmp_path)
    assert "No broken requirements" in run(*pip, "check", env=person, cwd=tmp_path)
    env = {**person, "PATH": f"{place}/bin:{person['PATH']}"}
    journey(new_project(tmp_path, env), env)
    if shutil.which("man"):
        assert "GIT-LEDGER(1)" in run("git", "help", "ledger", env=env, cwd=tmp_path)
    run(*pip, "uninstall", "-q", "-y", "git-ledger", env=person, cwd=tmp_path)
    assert [path for path in place.rglob("*git*ledger*") if path.is_file()] == []


def test_the_sdist_is_whole(built, person, tmp_path):
    """What is installed from it is what the wheel holds."""
    place = tmp_path / "venv"
    venv.create(place, with_pip=True)
    pip = (place / "bin/python", "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "-q", built.sdist, "pytest", env=person, cwd=tmp_path)
    env = {**person, "PATH": f"{place}/bin:{person['PATH']}"}
    journey(new_project(tmp_path, env), env)
    with zipfile.ZipFile(built.wheel) as wheel:
        names = [name for name in wheel.namelist() if name.startswith("gitledger/")]
    (site,) = place.glob("lib/python*/site-packages")
    assert [name for name in names if not (site / name).exists()] == []


def test_pipx_exposes_the_command_and_its_manual_page(built, person, tmp_path):
    env = {**person, "PATH": f"{person['HOME']}/.local/bin:{person['PATH']}"}
    run(built.tools / "pipx", "install", "-q", "--python", sys.executable, built.wheel, env=env, cwd=tmp_path)
    assert run("git", "ledger", "--version", env=env, cwd=tmp_path) == f"git-ledger {__version__}\n"
    if shutil.which("man"):
        assert "GIT-LEDGER(1)" in run("git", "help", "ledger", env=env, cwd=tmp_path)


def test_uv_tool_needs_no_pytest_beside_it_and_its_page_is_installed_by_us(built, person, tmp_path):
    """The tests have an environment of their own, in which there is nothing of ours."""
    env = {**person, "PATH": f"{person['HOME']}/.local/bin:{person['PATH']}"}
    run(built.tools / "uv", "tool", "install", "-q", "-p", sys.executable, built.wheel, env=env, cwd=tmp_path)
    place = tmp_path / "of-the-tests"
    venv.create(place, with_pip=True)
    run(place / "bin/pip", "install", "-q", "--disable-pip-version-check", "pytest", env=env, cwd=tmp_path)
    env["PATH"] = f"{place}/bin:{env['PATH']}"
    journey(new_project(tmp_path, env), env)
    if shutil.which("man"):
        run("git", "help", "ledger", env=env, cwd=tmp_path, status=16)
        run("git", "ledger", "help", "--install-man", env=env, cwd=tmp_path)
        assert "GIT-LEDGER(1)" in run("git", "help", "ledger", env=env, cwd=tmp_path)


def test_uvx_runs_it_without_installing(built, person, tmp_path):
    said = run(
        *(built.tools / "uvx", "-q", "-p", sys.executable, "--from", built.wheel, "git-ledger", "--version"),
        env=person,
        cwd=tmp_path,
    )
    assert said == f"git-ledger {__version__}\n"


def test_what_is_handed_out_holds_all_that_is_needed_and_nothing_else(built):
    with zipfile.ZipFile(built.wheel) as wheel:
        names = set(wheel.namelist())
        (metadata,) = (wheel.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"gitledger", f"git_ledger-{__version__}.dist-info", f"git_ledger-{__version__}.data"}
    assert not [name for name in names if "test" in Path(name).parts or "tests" in Path(name).parts]
    docs = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.*") if path.suffix != ".pyc"]
    hooks = [str(path.relative_to(ROOT / "hooks")) for path in (ROOT / "hooks").rglob("*") if path.is_file()]
    needed = {f"gitledger/_docs/{name}" for name in docs} | {f"gitledger/_hooks/{name}" for name in hooks}
    needed |= {"gitledger/py.typed", "gitledger/report/codes.md"}
    needed |= {f"gitledger/report/html/page.{kind}" for kind in ("html", "css", "js")}
    needed.add(f"git_ledger-{__version__}.data/data/share/man/man1/git-ledger.1")
    assert needed - names == set()
    assert "License-Expression: MIT" in metadata
    with tarfile.open(built.sdist) as sdist:
        held = {name.partition("/")[2].partition("/")[0] for name in sdist.getnames()}
    assert {
        "gitledger",
        "tests",
        "docs",
        "hooks",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
    } <= held
    assert not held & {".venv", ".git", "dist", ".site", ".hypothesis"}


def test_the_version_stands_in_one_place():
    """And what is generated, or written for people, says the same."""
    found = subprocess.run(
        ["git", "grep", "-lF", f'"{__version__}"', "--", "gitledger", "hooks", "pyproject.toml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout.split() == ["gitledger/__init__.py"]
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(rf"^## \[{re.escape(__version__)}\]", changes, re.M)
