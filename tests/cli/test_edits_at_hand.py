"""Edits that are not committed, and runs that failed: what is said of them, and what comes next."""

from __future__ import annotations

CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: "true", results: exit-status}
"""


def test_run_says_of_uncommitted_edits_what_plan_says_where_nothing_is_stale(make_project):
    """It runs what is committed, and somebody who has just edited would take its yes for one of the edit."""
    project = make_project(CONFIG, {"src/a": "1"})
    assert "uncommitted" not in project.ledger("run").err
    project.repo.write("src/a", "2")
    line = "uncommitted edits would make lint stale: src/a"
    assert line in project.ledger("plan", "--exit-code").out
    assert line in project.ledger("run").err
    assert line in project.ledger("run", "--json").err


def test_plan_and_status_and_run_say_what_lets_leavings_of_tests_be(make_project):
    project = make_project(CONFIG, {"src/a": "1"})
    project.record("lint")
    project.repo.write("src/__pycache__/a.pyc", "")
    advice = "tests leave these behind: add `__pycache__/` to .gitignore and commit that"
    for args in (["plan"], ["status"], ["run"]):
        done = project.ledger(*args)
        assert advice in done.out + done.err, args
    project.repo.write("src/a", "2")
    project.repo.commit({".gitignore": "__pycache__/\n"})
    assert "tests leave" not in project.ledger("plan").out
