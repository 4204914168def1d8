"""What a child's environment holds, and how little the plugin asks of it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gitledger.suites import inject
from gitledger.suites.inject import INJECTED_MODULE, PLUGIN_MODULE, child_environment

PLUGIN = Path(inject.__file__).with_name("plugin.py")


def made(tmp_path: Path, base: dict[str, str], **options: bool) -> dict[str, str]:
    return child_environment(base, journal=tmp_path / "j", nonce="n" * 16, folder=tmp_path, **options)


def test_keys_and_the_agent_are_withheld(tmp_path):
    base = {
        "HOME": "/home/a",
        "GITLEDGER_SIGNING_KEY": "secret",
        "SSH_AUTH_SOCK": "/run/agent",
        "SSH_AGENT_PID": "1",
        "SSH_ASKPASS": "/bin/ask",
        "GIT_ASKPASS": "/bin/ask",
    }
    env = made(tmp_path, base)
    assert env["HOME"] == "/home/a"
    assert not set(env) & {"GITLEDGER_SIGNING_KEY", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS", "GIT_ASKPASS"}
    passed = made(tmp_path, base, pass_agent=True)
    assert passed["SSH_AUTH_SOCK"] == "/run/agent"
    assert "GITLEDGER_SIGNING_KEY" not in passed
    assert base["GITLEDGER_SIGNING_KEY"] == "secret"


def test_what_was_there_stays(tmp_path):
    env = made(tmp_path, {"PYTHONPATH": "/a:/b", "PYTEST_PLUGINS": "one,two"})
    assert env["PYTHONPATH"] == os.pathsep.join([str(tmp_path), "/a", "/b"])
    assert env["PYTEST_PLUGINS"] == f"one,two,{PLUGIN_MODULE}"
    alone = made(tmp_path, {"PYTHONPATH": "", "PYTEST_PLUGINS": ""})
    assert (alone["PYTHONPATH"], alone["PYTEST_PLUGINS"]) == (str(tmp_path), PLUGIN_MODULE)


def test_the_copy_is_the_plugin(tmp_path):
    made(tmp_path, {})
    assert (tmp_path / f"{INJECTED_MODULE}.py").read_bytes() == PLUGIN.read_bytes()


@pytest.mark.parametrize("name", ["plugin", "compare", "observe", "sitecustomize"])
def test_what_is_injected_needs_nothing_but_the_standard_library_and_pytest(name):
    tree = ast.parse(PLUGIN.with_name(f"{name}.py").read_text(), feature_version=(3, 8))
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            modules.add(node.module.partition(".")[0])
    allowed = {"pytest", "_gitledger_observe"} if name in ("plugin", "sitecustomize") else set()
    assert modules - allowed <= set(sys.stdlib_module_names)


def test_making_the_environment_imports_neither_pytest_nor_the_plugin():
    code = "import sys, gitledger.suites.inject; print({'pytest', 'gitledger.suites.plugin'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_plain_run_registers_nothing(run_suite, tmp_path, suite_env):
    (tmp_path / "test_it.py").write_text(
        "def test_it(pytestconfig):\n"
        "    names = [name for name, _ in pytestconfig.pluginmanager.list_name_plugin()]\n"
        "    assert 'gitledger' in names\n"
        "    assert not [name for name in names if name.startswith('gitledger-')]\n"
    )
    done = subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=tmp_path, env=suite_env, capture_output=True)
    assert done.returncode == 0, done.stdout
    assert not list(tmp_path.glob("*journal*"))


def test_variables_reach_the_tests_as_they_were(run_suite):
    run = run_suite(
        """
        import os
        def test_it():
            assert os.environ["PYTHONPATH"] == "/nowhere"
            assert os.environ["PYTEST_PLUGINS"] == "pytester"
        def test_recording_is_known(): assert os.environ["GITLEDGER_RECORDING"] == "1"
        """,
        env={"PYTHONPATH": "/nowhere", "PYTEST_PLUGINS": "pytester"},
    )
    assert run.result.outcome == "passed", run.output
