"""`pytest --ledger` with the installed recorder, variants and xdist included; and what a crashed worker leaves."""

from __future__ import annotations

import subprocess

import pytest

CONFIG = """\
version: 1
repository: demo
shards:
  one: {{paths: [tests], command: pytest -q {words} tests}}
  many: {{paths: [tests], command: pytest -q tests, variants: [a100, mi300]}}
"""
BODY = "import pytest\n\n@pytest.mark.parametrize('n', range(6))\ndef test_it(n):\n    pass\n"
IGNORED = "__pycache__/\n.pytest_cache/\n"


@pytest.fixture
def make_one(make_project):
    def make(body: str = BODY, words: str = ""):
        return make_project(CONFIG.format(words=words), {"tests/test_it.py": body, ".gitignore": IGNORED})

    return make


def hand_over(project, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["pytest", "--ledger", *words, "tests"]
    env = dict(project.repo.env)
    return subprocess.run(command, cwd=project.path, env=env, capture_output=True, text=True, check=False)


def only_receipt(project):
    (record,) = project.ledger("show", "--json").document["records"]
    return record["statement"]["predicate"]


def test_it_is_the_declared_run(make_one):
    project = make_one()
    done = hand_over(project, "--ledger-shard=one", "-q")
    assert done.returncode == 0, done.stderr
    assert "git ledger: recorded one: passed, 6 of 6 passed" in done.stderr
    assert "6 passed" in done.stdout
    assert project.plan()["one"] == ("fresh", "recorded")
    receipt = only_receipt(project)
    assert receipt["session"]["argv"] == ["pytest", "-q", "tests"]
    assert receipt["manifest"]["outside"] == []


def test_variants_are_told_apart(make_one):
    project = make_one()
    done = hand_over(project, "--ledger-shard", "many", "--ledger-variant", "mi300", "-q")
    assert done.returncode == 0, done.stderr
    assert "recorded many@mi300: passed" in done.stderr
    assert only_receipt(project)["shard"]["variant"] == "mi300"
    assert hand_over(project, "--ledger-shard=many@a100", "-q").returncode == 0
    refused = hand_over(project, "--ledger-shard", "many", "-q")
    assert refused.returncode == 2
    assert "[variant-needed]" in refused.stderr


def test_with_workers_the_controller_alone_records_and_their_number_marks_the_durations(make_one):
    project = make_one(words="-n2")
    done = hand_over(project, "--ledger-shard", "one", "-q", "-n2")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("git ledger: recorded") == 1
    receipt = only_receipt(project)
    assert receipt["session"]["workers"] == 2
    assert (receipt["outcome"], receipt["counts"]["passed"]) == ("passed", 6)


def test_another_selection_is_not_the_declared_run(make_one):
    project = make_one()
    done = hand_over(project, "--ledger-shard", "one", "-q", "-k", "1")
    assert done.returncode == 1
    assert "not green: other-command" in done.stderr


def test_u03_a_crashed_worker_is_named_and_so_are_the_tests_that_never_ran(make_one):
    body = (
        "import os, pytest\n\ndef test_dies():\n    os._exit(3)\n\n"
        "@pytest.mark.parametrize('n', range(4))\ndef test_later(n):\n    pass\n"
    )
    project = make_one(body, words="-n1 --max-worker-restart=0")
    done = project.ledger("record", "--shard", "one", "--json", expect=None)
    assert done.status != 0
    assert done.document["outcome"] in ("error", "failed", "incomplete")
    assert {"worker-crashed", "missing-results"} <= set(done.document["reasons"])
    assert "workers died: 'gw0'" in done.err
    assert "4 tests never ended: tests/test_it.py::test_later[0]" in done.err
    assert project.verify()[0] == "failed"
