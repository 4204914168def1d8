"""A package that nobody here wrote, in three parts in three clones: one number, the number of its unsharded run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

PACKAGE = "packaging==25.0"
COMMAND = [
    "python",
    "-m",
    "coverage",
    "run",
    "--source=src",
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    "tests",
]
PARTS = [f"unit-{number}-of-3" for number in (1, 2, 3)]
CONFIG = {
    "version": 1,
    "repository": "packaging",
    "shards": {"unit": {"split": 3, "command": COMMAND}},
    "coverage": {"fail_under": 90, "precision": 2},
    "policy": {"require_observed_scope": True},
}
IGNORED = b"__pycache__/\n.coverage\ncoverage.json\n"


@pytest.fixture
def clone(make_repo, tmp_path):
    """Return a function that clones a project's bare remote, with the package in front of the installed one."""

    def make(project, name: str, site):
        url = tmp_path / "remote.git"
        if not url.exists():
            bare = make_repo("remote.git", "--bare")
            project.repo.git("remote", "add", "origin", str(bare.path))
            project.repo.git("push", "-q", "origin", "main")
        path = tmp_path / name
        project.repo.git("clone", "-q", str(url), str(path))
        env = {**project.repo.env, "PYTHONPATH": os.pathsep.join([str(path / "src"), str(site)])}
        return replace(project, repo=replace(project.repo, path=path, env=env))

    return make


def report(project) -> dict:
    """Return what coverage itself says of the data file in the work tree, by file."""
    command = [sys.executable, "-m", "coverage", "json", "-q", "-o", "coverage.json"]
    subprocess.run(
        command, cwd=project.path, env=dict(project.repo.env), check=True, capture_output=True, timeout=600
    )
    return json.loads((project.path / "coverage.json").read_text())


def lines(found: dict) -> dict[str, tuple]:
    """Return executed and missing lines, and branches where they were measured, by file."""
    keys = ("executed_lines", "missing_lines", "excluded_lines", "executed_branches", "missing_branches")
    return {path: tuple(about.get(key) for key in keys) for path, about in found["files"].items()}


@pytest.mark.parametrize("branch", [True, False], ids=["branches", "lines"])
def test_three_clones_make_the_number_of_the_unsharded_run(
    make_project, unpack, site, clone, plain_outcomes, branch, capsys
):
    files = {**unpack(PACKAGE), ".gitignore": IGNORED}
    if not branch:
        files["pyproject.toml"] = files["pyproject.toml"].replace(b"branch = true", b"branch = false")
    project = make_project(json.dumps(CONFIG), files)
    extra = site("pretend")

    whole = clone(project, "whole", extra)
    outcomes, status = plain_outcomes([sys.executable, *COMMAND[1:]], whole.path, whole.repo.env)
    assert status == 0
    expected = report(whole)
    totals = expected["totals"]
    covered = totals["covered_lines"] + totals.get("covered_branches", 0)
    total = totals["num_statements"] + totals.get("num_branches", 0)

    for part in PARTS:
        runner = clone(project, part, extra)
        assert runner.record(part)["outcome"] == "passed"
        runner.ledger("sync", "origin")
    judge = clone(project, "judge", extra)
    judge.ledger("sync", "--fetch-only", "origin")
    merged = judge.ledger("merge", "--json").document
    judge.ledger("sync", "origin")
    document = judge.ledger("verify", "--json").document
    assert document["verdict"] == "passed"
    assert document["coverage"] == merged["coverage"]
    shown = document["coverage"]
    assert (shown["covered"], shown["total"], shown["passed"]) == (covered, total, True)

    ran: dict[str, str] = {}
    for shard in merged["shards"]:
        tests = judge.ledger("show", shard["record"], "--tests", "--json").document["records"][0]["tests"]
        ran |= {item["node_id"]: item["outcome"] for item in tests}
        assert len(tests) > 0
    assert sum(judge.receipt(shard["record"])["counts"]["collected"] for shard in merged["shards"]) == len(ran)
    assert set(ran) == set(outcomes)
    assert set(ran.values()) == {"passed"}
    judge.ledger("export", "coverage", "-o", ".coverage")
    assert lines(report(judge)) == lines(expected)
    (line,) = [text for text in judge.ledger("verify").out.splitlines() if text.startswith("coverage:")]
    with capsys.disabled():
        counts = {
            shard["name"]: judge.receipt(shard["record"])["counts"]["collected"] for shard in merged["shards"]
        }
        print(f"\n{PACKAGE}: {len(ran)} tests in {counts}; {line}; unsharded {covered}/{total}, no line differs")
