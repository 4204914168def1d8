"""`show` at a commit that holds a merge alone: tests and coverage are those of the receipts that it names."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def merged(project):
    """Two shards recorded on one commit, and carried into the merge of the next."""
    project.record("alpha")
    project.record("beta")
    project.repo.commit({"README": "no input of theirs"})
    project.ledger("merge")
    return project


def test_tests_are_shown_through_a_merge_with_the_commit_that_they_ran_on(merged):
    text = merged.ledger("show", "--tests").out
    origin = merged.repo.git("rev-parse", "HEAD~1")
    assert text.count(", on " + origin[:12]) == 2
    assert "tests/alpha/test_alpha.py::test_alpha" in text
    assert "tests/beta/test_beta.py::test_beta" in text
    (document,) = merged.ledger("show", "--tests", "--json").document["records"]
    assert [(item["name"], item["commit"], len(item["tests"])) for item in document["inputs"]] == [
        ("alpha", origin, 1),
        ("beta", origin, 1),
    ]
    assert "inputs" not in merged.ledger("show", "--json").document["records"][0], "unasked, nothing is looked up"


def test_where_no_test_failed_that_is_said(merged):
    """It listed nothing, and left open whether there was anything to list."""
    assert merged.ledger("show", "--tests", "--failed").out.endswith("\n  no test failed\n")
    assert merged.ledger("show", "HEAD~1", "--failed").out.endswith("\n  no test failed\n")
    assert "no test failed" not in merged.ledger("show", "--tests").out


def test_a_merge_that_failed_shows_by_its_id_what_failed(project):
    project.repo.commit({"tests/alpha/test_alpha.py": "def test_alpha():\n    assert False\n"})
    project.record("alpha", expect=1)
    project.record("beta")
    record = project.ledger("merge", "--json", expect=1).document["record"]
    text = project.ledger("show", record, "--tests", "--failed").out
    assert "test_alpha.py::test_alpha" in text
    assert "test_beta" not in text
    assert "no test failed" not in text
    whole = project.ledger("show", "--tests", "--failed").out
    assert whole.count("test_alpha.py::test_alpha") == 1, (
        "listed with its own receipt, and not through the merge again"
    )


def test_a_receipt_that_a_merge_names_and_this_clone_lacks_is_named_with_what_brings_it(merged):
    line = next(
        line
        for line in merged.ledger("show", "--raw").out.splitlines()
        if json.loads(line)["payloadType"] == "application/vnd.in-toto+json"
    )
    merged.repo.git("update-ref", "-d", "refs/notes/gitledger/records")
    merged.repo.git("notes", "--ref=gitledger/records", "add", "-m", line)
    text = merged.ledger("show", "--tests").out
    for name in ("alpha", "beta"):
        assert f"{name} is not here; git ledger sync --fetch-only brings it, on " in text
    (document,) = merged.ledger("show", "--tests", "--json").document["records"]
    assert [item["kind"] for item in document["inputs"]] == ["unknown", "unknown"]
