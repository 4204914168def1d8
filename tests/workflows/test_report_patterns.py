"""A runner that writes one report for each class (Gradle, Surefire): all of them are the run's, or none is."""

from __future__ import annotations

import pytest

CONFIG = """\
version: 1
repository: demo
shards:
  it: {paths: [src], command: sh src/run.sh, results: {junit: "build/results/**/*.xml"}}
"""
WRITES = 'mkdir -p build/results/deep && for n in {}; do echo "<testsuite name=\\"$n\\" tests=\\"1\\">'
WRITES += '<testcase classname=\\"$n\\" name=\\"t\\" time=\\"0.5\\"/></testsuite>" > build/results/$n.xml; done\n'
FAILS = (
    '<testsuite name="c" tests="1" failures="1"><testcase classname="c" name="t"><failure/></testcase></testsuite>'
)


@pytest.fixture
def make_one(make_project):
    def make(script: str):
        return make_project(CONFIG, {"src/run.sh": script, ".gitignore": "build/\n"})

    return make


def test_all_files_are_one_report(make_one):
    project = make_one(WRITES.format("a b deep/c"))
    document = project.record("it")
    assert document["outcome"] == "passed"
    tests = project.ledger("show", document["record"], "--tests", "--json").document["records"][0]["tests"]
    assert [item["node_id"] for item in tests] == ["a::t", "b::t", "deep/c::t"]
    assert project.record("it")["outcome"] == "passed"  # written anew, though the same bytes


def test_one_failure_among_them_is_red(make_one):
    project = make_one(WRITES.format("a b") + f"echo '{FAILS}' > build/results/z.xml\n")
    assert project.record("it", expect=None)["outcome"] == "failed"


def test_a_file_that_an_earlier_run_left_makes_the_report_stale(make_one):
    project = make_one('if [ -e build ]; then names="b"; else names="a b"; fi\n' + WRITES.format("$names"))
    assert project.record("it")["outcome"] == "passed"
    document = project.record("it", expect=None)
    assert document["outcome"] == "incomplete"
    assert document["reasons"] == ["report-stale"]


def test_no_file_is_no_report(make_one):
    document = make_one("true\n").record("it", expect=None)
    assert (document["outcome"], document["reasons"]) == ("incomplete", ["report-missing"])


def test_a_class_that_two_files_name_is_a_duplicate(make_one):
    project = make_one(WRITES.format("a") + "cp build/results/a.xml build/results/again.xml\n")
    document = project.record("it", expect=None)
    assert document["outcome"] != "passed"
    assert "duplicate-id" in document["reasons"]


def test_a_pattern_is_for_junit_alone(make_project):
    project = make_project(CONFIG.replace("junit", "ctrf"), {"src/run.sh": "true\n"})
    assert "a pattern of files is for junit alone" in project.ledger("plan", expect=2).err


def test_a_report_recorded_after_the_fact_may_be_many_files(make_one):
    project = make_one("true\n")
    for name in ("a", "b"):
        project.repo.write(
            f"build/results/{name}.xml", f'<testsuite><testcase classname="{name}" name="t"/></testsuite>'
        )
    document = project.record("it", "--junit", "build/results/*.xml")
    receipt = project.receipt(document["record"])
    assert (receipt["counts"]["collected"], receipt["session"]["witnessed"]) == (2, False)
