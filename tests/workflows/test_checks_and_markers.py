"""Comparison checks, markers and a missing GPU, from the command to the verdict."""

from __future__ import annotations

import pytest

CONFIG = "version: 1\nrepository: demo\n{more}shards:\n  it: {{paths: [tests], command: pytest -q tests}}\n"
IGNORED = "__pycache__/\n.pytest_cache/\n"


@pytest.fixture
def make_one(make_project):
    def make(body: str, more: str = ""):
        return make_project(CONFIG.format(more=more), {"tests/test_it.py": body, ".gitignore": IGNORED})

    return make


def test_a_check_that_its_test_swallows_is_refused_by_verify(make_one):
    project = make_one(
        "def test_it(ledger_check):\n"
        "    try:\n        ledger_check('rnea', 1.0, 2.0, metadata={'robot': 'go2'})\n"
        "    except AssertionError:\n        pass\n"
    )
    document = project.record("it", expect=1)
    assert (document["outcome"], document["reasons"]) == ("failed", ["check-failed"])
    assert project.receipt(document["record"])["session"]["exit_status"] == 0
    verdict, codes = project.verify()
    assert verdict == "failed"
    assert "check-failed" in codes


def test_checks_that_hold_are_kept_and_count(make_one):
    project = make_one("def test_it(ledger_check):\n    ledger_check('sum', 3, lambda a, b: a + b, args=(1, 2))\n")
    assert project.record("it")["outcome"] == "passed"
    assert project.verify() == ("passed", set())


def test_a_marker_selects_the_suite_and_is_part_of_the_definition(make_one):
    body = (
        "import pytest\n\n@pytest.mark.ledger\ndef test_it():\n    pass\n\ndef test_other():\n    raise OSError\n"
    )
    project = make_one(body, "record: {marker: ledger}\n")
    document = project.record("it")
    receipt = project.receipt(document["record"])
    assert (receipt["counts"]["collected"], receipt["counts"]["deselected"]) == (1, 0)
    assert receipt["collection"]["full_count"] == 1
    assert project.verify() == ("passed", set())
    project.repo.commit({".gitledger/config.yaml": CONFIG.format(more="")})
    assert project.plan() == {"it": ("stale", "definition-changed")}


def test_a_skipped_gpu_test_shows_and_does_not_pass_unasked(make_one):
    body = "import pytest\n\n@pytest.mark.gpu_required\ndef test_gpu():\n    pass\n\ndef test_cpu():\n    pass\n"
    project = make_one(body)
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
    document = project.record("it", env=hidden)
    assert project.receipt(document["record"])["counts"]["skipped"] == 1
    assert project.verify() == ("failed", {"skipped-tests"})
