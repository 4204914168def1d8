"""Reports of other runners: JUnit in the dialects of CTest, Go, Gradle and nextest, pytest-reportlog, CTRF."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.errors import DecodeError
from gitledger.suites.ctrf import read_ctrf, summarise_ctrf
from gitledger.suites.junit import read_junit, summarise_junit
from gitledger.suites.reportlog import read_reportlog, summarise_reportlog

# --- JUnit

CTEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="5" failures="1" disabled="1" skipped="2" hostname="" time="0" timestamp="2026">
<testcase name="good" classname="good" time="0.01" status="run"><system-out></system-out></testcase>
<testcase name="bad" classname="bad" time="0.01" status="fail"><failure message=""/></testcase>
<testcase name="lost" classname="lost" time="0" status="notrun"><skipped message="Unable to find executable"/></testcase>
<testcase name="skip" classname="skip" time="0" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
<testcase name="off" classname="off" time="0" status="disabled"><system-out>Disabled</system-out></testcase>
</testsuite>"""
CTEST_ENDS = {"good": "passed", "bad": "failed", "lost": "error", "skip": "skipped", "off": "skipped"}
GO = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1" errors="0" time="0.005">
 <testsuite tests="3" failures="1" time="0.001" name="example.org/m/pkg" timestamp="2026-01-31T12:00:00Z">
  <properties><property name="go.version" value="go1.22 linux/amd64"></property></properties>
  <testcase classname="example.org/m/pkg" name="TestGood" time="0.000000"></testcase>
  <testcase classname="example.org/m/pkg" name="TestBad/sub_case" time="0.000000"><failure message="Failed" type="">no</failure></testcase>
  <testcase classname="example.org/m/pkg" name="TestSkip" time="0.000000"><skipped message="=== RUN"></skipped></testcase>
 </testsuite>
 <testsuite tests="1" failures="0" time="0" name="example.org/m/other" timestamp="2026-01-31T12:00:00Z">
  <testcase classname="example.org/m/other" name="TestGood" time="0.01"></testcase>
 </testsuite>
</testsuites>"""
GRADLE = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="org.example.AppTest" tests="3" skipped="1" failures="1" errors="0" timestamp="2026-01-31T12:00:00" hostname="h" time="0.03">
  <properties/>
  <testcase name="good()" classname="org.example.AppTest" time="0.01"/>
  <testcase name="bad()" classname="org.example.AppTest" time="0.01"><failure message="m" type="t">at org</failure></testcase>
  <testcase name="skipped()" classname="org.example.AppTest" time="0.0"><skipped/></testcase>
  <system-out><![CDATA[out]]></system-out><system-err><![CDATA[]]></system-err>
</testsuite>"""
NEXTEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="1" errors="0" uuid="0" timestamp="2026-01-31T12:00:00.000+00:00" time="0.1">
 <testsuite name="crate::bin" tests="3" disabled="0" errors="0" failures="1">
  <testcase name="tests::good" classname="crate::bin" timestamp="2026" time="0.01"/>
  <testcase name="tests::flaky" classname="crate::bin" timestamp="2026" time="0.01">
   <flakyFailure timestamp="2026" time="0.01" type="test failure"><system-out>x</system-out></flakyFailure></testcase>
  <testcase name="tests::bad" classname="crate::bin" timestamp="2026" time="0.01"><failure type="test failure"/>
   <rerunFailure timestamp="2026" time="0.01" type="test failure"/></testcase>
 </testsuite>
</testsuites>"""


GOOGLETEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3" failures="0" disabled="1" errors="0" time="0." timestamp="2026" name="AllTests">
  <testsuite name="Suite" tests="3" failures="0" disabled="1" skipped="1" errors="0" time="0." timestamp="2026">
    <testcase name="good" file="t.cc" line="2" status="run" result="completed" time="0." classname="Suite" />
    <testcase name="skip" file="t.cc" line="3" status="run" result="skipped" time="0." classname="Suite">
      <skipped message="t.cc:3&#x0A;no"><![CDATA[t.cc:3
no]]></skipped></testcase>
    <testcase name="DISABLED_off" file="t.cc" line="4" status="notrun" result="suppressed" time="0." classname="Suite" />
  </testsuite>
</testsuites>"""


def junit_ends(text: str) -> dict[str, str]:
    return {item.node_id.rpartition("::")[2]: item.outcome.value for item in read_junit(text.encode()).results}


def test_ctest_a_test_that_could_not_start_is_no_skip():
    assert junit_ends(CTEST) == CTEST_ENDS


@pytest.mark.skipif(shutil.which("ctest") is None, reason="CTest is not installed")
def test_ctest_as_it_really_writes(tmp_path: Path):
    tests = ["add_test(good true)", "add_test(bad false)", 'add_test(lost "/no/such/program")']
    tests += ['add_test(skip sh -c "exit 77")', "set_tests_properties(skip PROPERTIES SKIP_RETURN_CODE 77)"]
    tests += ["add_test(off true)", "set_tests_properties(off PROPERTIES DISABLED TRUE)"]
    (tmp_path / "CTestTestfile.cmake").write_text("\n".join(tests))
    subprocess.run(["ctest", "--output-junit", "out.xml"], cwd=tmp_path, capture_output=True, check=False)
    assert junit_ends((tmp_path / "out.xml").read_text()) == CTEST_ENDS


def test_googletest_says_disabled_by_words_alone():
    assert junit_ends(GOOGLETEST) == {"good": "passed", "skip": "skipped", "DISABLED_off": "skipped"}


def test_go_names_packages_and_subtests():
    results = read_junit(GO.encode()).results
    assert [(item.node_id, item.outcome.value) for item in results] == [
        ("example.org/m/pkg::TestGood", "passed"),
        ("example.org/m/pkg::TestBad/sub_case", "failed"),
        ("example.org/m/pkg::TestSkip", "skipped"),
        ("example.org/m/other::TestGood", "passed"),
    ]


def test_gradle_one_class_a_file():
    assert junit_ends(GRADLE) == {"good()": "passed", "bad()": "failed", "skipped()": "skipped"}


def test_nextest_earlier_attempts_are_counted_and_decide_nothing():
    results = {item.node_id: item for item in read_junit(NEXTEST.encode()).results}
    found = {name.rpartition("::")[2]: (item.outcome.value, item.attempts) for name, item in results.items()}
    assert found == {"good": ("passed", 1), "flaky": ("passed", 2), "bad": ("failed", 2)}


@pytest.mark.parametrize("text", [GO, GRADLE, NEXTEST, CTEST])
def test_a_report_with_a_failure_is_red_whatever_the_command_said(text, end):
    assert summarise_junit(text.encode(), end(0)).outcome.value == "failed"


# --- pytest-reportlog

LOGGER = """
import json
def pytest_configure(config):
    class Log:
        def put(self, data):
            with open('log.jsonl', 'a') as f:
                f.write(json.dumps(data, default=str) + '\\n')
        def pytest_sessionstart(self):
            self.put({'pytest_version': '8.0', '$report_type': 'SessionStart'})
        def pytest_sessionfinish(self, exitstatus):
            self.put({'exitstatus': int(exitstatus), '$report_type': 'SessionFinish'})
        def pytest_runtest_logreport(self, report):
            self.put(config.hook.pytest_report_to_serializable(config=config, report=report))
        pytest_collectreport = pytest_runtest_logreport
        def pytest_warning_recorded(self, warning_message):
            self.put({'$report_type': 'WarningMessage', 'message': str(warning_message)})
    config.pluginmanager.register(Log())
"""
SUITE = """
import os, pytest, warnings
def test_passed(): warnings.warn("w")
def test_failed(): assert 0
def test_skipped(): pytest.skip("no")
@pytest.mark.xfail
def test_xfailed(): assert 0
@pytest.fixture
def breaking():
    yield
    raise RuntimeError
def test_teardown(breaking): pass
def test_parts(subtests):
    with subtests.test(i=1): assert 0
"""
DIES = "import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\n"


@pytest.fixture
def logged(tmp_path: Path, suite_env):
    """Run a suite with a log made of pytest's own serialisation, as the plugin makes it; return its bytes."""

    def run(code: str) -> bytes:
        (tmp_path / "conftest.py").write_text(LOGGER)
        (tmp_path / "test_it.py").write_text(code)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        subprocess.run(
            command, cwd=tmp_path, env={**suite_env, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, check=False
        )
        return (tmp_path / "log.jsonl").read_bytes()

    return run


def ends(result) -> dict[str, str]:
    return {item.node_id.partition("::")[2]: item.outcome.value for item in result.results}


def test_reportlog_every_end(logged, end):
    result = summarise_reportlog(logged(SUITE), end(1))
    assert ends(result) == {
        "test_passed": "passed",
        "test_failed": "failed",
        "test_skipped": "skipped",
        "test_xfailed": "xfailed",
        "test_teardown": "error",
        "test_parts": "failed",
    }
    assert result.outcome.value == "failed"
    assert result.finished
    assert result.tools.pytest == "8.0"


def test_reportlog_a_session_that_broke_off_is_incomplete_though_it_said_0(logged, end):
    result = summarise_reportlog(logged(DIES), end(0))
    assert result.outcome.value == "incomplete"
    assert {"not-finished", "missing-results"} <= set(result.reasons)
    assert ends(result) == {"test_a": "passed"}


GREEN_LOG = [
    {"pytest_version": "8.0", "$report_type": "SessionStart"},
    *({"nodeid": "a.py::t", "when": when, "outcome": "passed", "duration": 0.1, "$report_type": "TestReport"}
      for when in ("setup", "call", "teardown")),
    {"$report_type": "SomethingNew", "x": 1},
    {"exitstatus": 0, "$report_type": "SessionFinish"},
]  # fmt: skip


def log(*items: object) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)


def test_reportlog_kinds_that_are_unknown_are_ignored(end):
    result = summarise_reportlog(log(*GREEN_LOG), end(0))
    assert (result.outcome.value, result.reasons) == ("passed", ())
    assert summarise_reportlog(log(*GREEN_LOG), end(1)).outcome.value == "error"
    assert summarise_reportlog(log(GREEN_LOG[0], GREEN_LOG[-1]), end(0)).outcome.value == "incomplete"


@pytest.mark.parametrize("place", [1, 2, 3])
@pytest.mark.parametrize("word", ["green", "rerun", "Passed"])
def test_reportlog_an_outcome_that_is_unknown_is_no_pass(end, place, word):
    items = [*GREEN_LOG]
    items[place] = {**items[place], "outcome": word}
    assert summarise_reportlog(log(*items), end(0)).outcome.value == "incomplete"


BAD_LOGS = {
    "two sessions": log(*GREEN_LOG, *GREEN_LOG),
    "no start": log(*GREEN_LOG[1:]),
    "after the end": log(*GREEN_LOG, GREEN_LOG[1]),
    "torn after the end": log(*GREEN_LOG) + b"{",
    "no json": log(*GREEN_LOG[:3]) + b"x\n",
    "a number for an id": log(GREEN_LOG[0], {**GREEN_LOG[1], "nodeid": 1}),
    "no outcome": log(GREEN_LOG[0], {"nodeid": "a", "when": "call", "$report_type": "TestReport"}),
    "a list": log([1]),
    "duplicate keys": log(GREEN_LOG[0]) + b'{"$report_type": "SessionFinish", "exitstatus": 1, "exitstatus": 0}\n',
    "a word for a status": log(GREEN_LOG[0], {"$report_type": "SessionFinish", "exitstatus": "0"}),
}


@pytest.mark.parametrize("data", BAD_LOGS.values(), ids=BAD_LOGS.keys())
def test_reportlog_a_log_that_is_none_is_an_error_and_no_crash(data, end):
    with pytest.raises(DecodeError, match="report log"):
        read_reportlog(data)
    assert summarise_reportlog(data, end(0)).outcome.value == "error"


# --- CTRF


def ctrf(*tests: dict, **changes: object) -> bytes:
    counts = {
        name: sum(test["status"] == name for test in tests)
        for name in ("passed", "failed", "skipped", "pending", "other")
    }
    summary = {"tests": len(tests), **counts, "start": 1, "stop": 2, **changes.pop("summary", {})}
    results = {"tool": {"name": "jest"}, "summary": summary, "tests": list(tests), **changes}
    return json.dumps({"reportFormat": "CTRF", "specVersion": "0.0.0", "results": results}).encode()


def case(name: str, status: str = "passed", **more: object) -> dict:
    return {"name": name, "status": status, "duration": 12, **more}


def test_ctrf_every_status(end):
    data = ctrf(*(case(status, status) for status in ("passed", "failed", "skipped", "pending", "other")))
    found = {item.node_id: item.outcome.value for item in read_ctrf(data)}
    assert found == {
        "passed": "passed",
        "failed": "failed",
        "skipped": "skipped",
        "pending": "skipped",
        "other": "error",
    }
    assert summarise_ctrf(data, end(0)).outcome.value == "failed"


def test_ctrf_file_suite_retries_and_duration(end):
    data = ctrf(case("works", filePath="src/a.spec.ts", suite=["outer", "inner"], retries=2, flaky=True))
    (found,) = read_ctrf(data)
    assert (found.node_id, found.attempts, found.duration_ns) == (
        "src/a.spec.ts::outer::inner::works",
        3,
        12_000_000,
    )
    assert summarise_ctrf(data, end(0)).outcome.value == "passed"
    assert summarise_ctrf(data, end(3)).reasons == ("exit-status",)


def test_ctrf_files_are_named_from_the_root_and_a_planned_test_is_skipped():
    """As jest-ctrf-json-reporter 0.0.11 writes them."""
    test = {"name": "adds", "status": "passed", "filePath": "/home/ci/build 7/js/calc.test.js", "suite": "calc"}
    todo = {"name": "later", "status": "other", "rawStatus": "todo"}
    odd = {"name": "odd", "status": "other", "rawStatus": "interrupted"}
    summary = {"tests": 3, "passed": 1, "failed": 0, "pending": 0, "skipped": 0, "other": 2}
    data = {"results": {"tool": {"name": "jest"}, "summary": summary, "tests": [test, todo, odd]}}
    found = read_ctrf(json.dumps(data).encode(), root=Path("/home/ci/build 7"))
    assert [(item.node_id, item.outcome.value) for item in found] == [
        ("js/calc.test.js::calc::adds", "passed"),
        ("later", "skipped"),
        ("odd", "error"),
    ]
    (elsewhere, *_) = read_ctrf(json.dumps(data).encode(), root=Path("/home/ci/build"))
    assert elsewhere.node_id == "/home/ci/build 7/js/calc.test.js::calc::adds"


def test_ctrf_one_id_for_two_tests_fails_and_no_tests_are_no_pass(end):
    assert "duplicate-id" in summarise_ctrf(ctrf(case("a"), case("a")), end(0)).reasons
    assert summarise_ctrf(ctrf(), end(0)).reasons == ("no-tests",)
    assert summarise_ctrf(None, end(0)).reasons == ("report-missing",)
    assert summarise_ctrf(ctrf(case("a")), end(0), is_fresh=False).reasons == ("report-stale",)


BAD_CTRF = {
    "fewer failures than it counts": ctrf(case("a"), summary={"failed": 1}),
    "tests cut": ctrf(case("a"), summary={"tests": 2}),
    "no counts": ctrf(case("a"), summary={"passed": None}),
    "another status": ctrf(case("a"), summary={}).replace(b'"status": "passed"', b'"status": "green"'),
    "another format": ctrf(case("a")).replace(b"CTRF", b"XTRF"),
    "a byte order mark": b"\xef\xbb\xbf" + ctrf(case("a")),
    "NaN": ctrf(case("a", duration=float("nan"))),
    "no name": ctrf({"status": "passed", "duration": 1}),
    "retries of words": ctrf(case("a", retries="x")),
    "a number for a suite": ctrf(case("a", suite=7)),
    "no results": b'{"reportFormat": "CTRF"}',
    "duplicate keys": ctrf(case("a")).replace(b'"passed"', b'"failed"', 1),
}


@pytest.mark.parametrize("data", BAD_CTRF.values(), ids=BAD_CTRF.keys())
def test_ctrf_a_report_that_is_none_is_an_error_and_no_crash(data, end):
    with pytest.raises(DecodeError, match="CTRF"):
        read_ctrf(data)
    assert summarise_ctrf(data, end(0)).outcome.value == "error"


@given(st.binary(max_size=300) | st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["results", "tests", "summary", "tool", "name", "status"]), inner),
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_any_bytes_are_a_report_or_a_decode_error(data):
    for read in (read_ctrf, read_reportlog):
        try:
            read(data)
        except DecodeError:
            continue
