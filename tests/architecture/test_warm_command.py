"""The process that tests fork their commands from answers as the installed command does."""

from __future__ import annotations

import subprocess

import pytest


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (["--version"], 0),
        (["plan", "--json"], 0),
        (["verify", "--policy-from", "HEAD"], 1),
        (["plan", "--no-such-option"], 2),
        (["show", "no-such-commit"], 2),
        (["record", "--shard", "alpha", "--json"], 0),
    ],
)
def test_a_warm_command_says_and_ends_as_the_installed_one(project, args, status):
    env = dict(project.repo.env)
    warm = project.ledger(*args, expect=None)
    cold = subprocess.run(
        ["git", "ledger", *args], cwd=project.path, env=env, input="", capture_output=True, text=True, check=False
    )
    assert (warm.status, cold.returncode) == (status, status)
    if "record" not in args:  # whose documents name the time
        assert (warm.out, warm.err) == (cold.stdout, cold.stderr)


def test_a_start_that_could_differ_is_a_start_of_its_own(project):
    done = project.ledger("--version", env={"PYTHONPATH": str(project.path / "nowhere"), "PYTHONVERBOSE": "1"})
    assert "import 'gitledger.cli.app'" in done.err
    assert "import 'gitledger.cli.app'" not in project.ledger("--version").err
