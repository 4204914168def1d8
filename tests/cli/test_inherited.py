"""What a launcher hands down must not bend what a command sees."""

from __future__ import annotations

import signal
import subprocess

import pytest

CONFIG = """\
version: 1
repository: demo
shards:
  other: {paths: [src], command: "true", results: exit-status}
"""


@pytest.fixture
def project(make_project):
    return make_project(CONFIG, {"src/a.py": "x = 1\n"})


def test_a_launcher_that_ignores_the_death_of_children_makes_no_push_a_success(project, tmp_path):
    """With SIGCHLD ignored the kernel keeps no exit status, and Python's subprocess takes a lost one for 0."""
    project.record("other")
    project.repo.git("remote", "add", "origin", str(tmp_path / "nothing-here.git"))
    done = subprocess.run(
        ["git-ledger", "sync", "origin"],
        cwd=project.path, env=dict(project.repo.env), capture_output=True, text=True, timeout=60, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
