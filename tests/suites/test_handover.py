"""`pytest --ledger` becomes `git-ledger record`, so that there is one recorder."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

RECORD = """#!{python}
# Stands where `git-ledger` is installed, and does what `record` does with a child's environment.
import json, os, subprocess, sys
from pathlib import Path
from gitledger.suites.inject import child_environment
folder = Path({folder!r})
folder.mkdir(exist_ok=True)
calls = folder / "calls"
with calls.open("a") as file:
    file.write(json.dumps([sys.argv[1:], "PYTEST_CURRENT_TEST" in os.environ]) + "\\n")
command = sys.argv[sys.argv.index("--") + 1 :]
env = child_environment(os.environ, journal=folder / "journal", nonce="n" * 16, folder=folder)
sys.exit(subprocess.run(command, env=env).returncode)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with an environment of its own: this one's packages, and a `git-ledger` beside the interpreter."""
    home = tmp_path / "env"
    (home / "bin").mkdir(parents=True)
    (home / "lib").symlink_to(Path(sysconfig.get_path("purelib")).parents[1])
    (home / "pyvenv.cfg").write_text((Path(sys.prefix) / "pyvenv.cfg").read_text())
    for name in ("python", "python3"):
        (home / "bin" / name).symlink_to(Path(sys.executable).resolve())
    tool = home / "bin" / "git-ledger"
    tool.write_text(RECORD.format(python=home / "bin" / "python", folder=str(tmp_path / "run")))
    script = home / "bin" / "pytest"
    script.write_text(f"#!{home / 'bin' / 'python'}\nimport sys, pytest\nsys.exit(pytest.console_main())\n")
    for path in (tool, script):
        path.chmod(0o755)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "pytest.ini").write_text("[pytest]\n")
    (tree / "test_it.py").write_text("def test_a(): pass\ndef test_b(): assert 0\n")
    return tmp_path


@pytest.fixture
def call(place: Path, suite_env: dict[str, str]):
    def run(*command: str, path: str | None = None, **env: str):
        # As if installed alone: the other plugins of this environment take a second to load.
        suite_env.update({"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "gitledger.suites.plugin"})
        suite_env["PATH"] = path or f"{place / 'env' / 'bin'}:{suite_env['PATH']}"
        return subprocess.run(
            command, cwd=place / "tree", env={**suite_env, **env}, capture_output=True, text=True, timeout=60
        )

    return run


def calls(place: Path) -> list[list[str]]:
    path = place / "run" / "calls"
    return [json.loads(line)[0] for line in path.read_text().splitlines()] if path.exists() else []


def test_the_run_is_handed_over_once_and_its_status_is_pytests(place, call):
    done = call("pytest", "--ledger", "--ledger-shard", "unit", "-v", "test_it.py")
    assert done.returncode == 1, done.stderr
    assert calls(place) == [["record", "--shard", "unit", "--", "pytest", "-v", "test_it.py"]]
    assert done.stdout.count("test session starts") == 1
    assert (place / "run" / "journal").read_bytes().count(b'"finish"') == 1


def test_the_variant_and_both_spellings_of_options(place, call):
    call("pytest", "--ledger-shard=l1", "--ledger-variant=a100", "--ledger", "-k", "test_a", "--", "test_it.py")
    call("pytest", "--ledger-variant", "a100", "--ledger", "--ledger-shard", "l1", "-k", "test_a")
    assert calls(place) == [
        ["record", "--shard", "l1", "--variant", "a100", "--", "pytest", "-k", "test_a", "--", "test_it.py"],
        ["record", "--shard", "l1", "--variant", "a100", "--", "pytest", "-k", "test_a"],
    ]


def test_python_m_pytest_stays_what_it_was(place, call):
    call("python", "-m", "pytest", "--ledger", "--ledger-shard", "unit")
    assert calls(place) == [["record", "--shard", "unit", "--", "python", "-m", "pytest"]]


def test_a_pytest_that_is_not_the_one_on_the_path_is_named_in_full(place, call, suite_env):
    program = str(place / "env" / "bin" / "pytest")
    done = call(program, "--ledger", "--ledger-shard", "unit", path="/usr/bin:/bin")
    assert done.returncode == 1, done.stderr
    assert calls(place) == [["record", "--shard", "unit", "--", program]]


def test_options_from_the_ini_file_hand_over_once(place, call):
    (place / "tree" / "pytest.ini").write_text("[pytest]\naddopts = --ledger --ledger-shard=unit\n")
    assert call("pytest").returncode == 1
    assert calls(place) == [["record", "--shard", "unit", "--", "pytest"]]


def test_under_xdist_one_hand_over(place, call):
    (place / "tree" / "pytest.ini").write_text("[pytest]\naddopts = --ledger --ledger-shard=unit\n")
    done = call("pytest", "-pxdist", "-n2")
    assert len(calls(place)) == 1
    assert done.returncode == 1
    assert done.stdout.count("test session starts") == 1


def test_runs_inside_tests_are_not_handed_over(place, call):
    (place / "tree" / "pytest.ini").write_text("[pytest]\naddopts = --ledger --ledger-shard=unit\n")
    (place / "tree" / "test_it.py").write_text(
        "import subprocess, sys, pytest\n"
        "def test_a(tmp_path):\n"
        "    (tmp_path / 'pytest.ini').write_text('[pytest]\\naddopts = --ledger --ledger-shard=inner\\n')\n"
        "    (tmp_path / 'test_inner.py').write_text('def test_inner(): pass')\n"
        "    assert subprocess.run([sys.executable, '-m', 'pytest'], cwd=tmp_path).returncode == 0\n"
        "    assert pytest.main([str(tmp_path), '-p', 'no:cacheprovider']) == 0\n"
    )
    assert call("pytest").returncode == 0
    assert len(calls(place)) == 1
    assert b"inner" not in (place / "run" / "journal").read_bytes()


def test_without_a_shard_it_is_a_usage_error(place, call):
    done = call("pytest", "--ledger")
    assert done.returncode == 4
    assert "--ledger-shard" in done.stderr
    assert "Traceback" not in done.stderr
    assert calls(place) == []


def test_without_git_ledger_it_is_a_usage_error(place, call):
    (place / "env" / "bin" / "git-ledger").unlink()
    done = call(str(place / "env" / "bin" / "pytest"), "--ledger", "--ledger-shard=unit", path="/usr/bin:/bin")
    assert done.returncode == 4
    assert "git-ledger" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_stay_here(place, call, option):
    done = call("pytest", "--ledger", "--ledger-shard=unit", option)
    assert done.returncode == 0
    assert calls(place) == []


def test_output_goes_where_pytests_would(place, call):
    done = call("pytest", "--ledger", "--ledger-shard=unit")
    assert "1 failed, 1 passed" in done.stdout
