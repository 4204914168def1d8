"""JUnit reports: real ones from pytest, and what nobody should be able to say with one."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.errors import DecodeError
from gitledger.suites.junit import read_junit, summarise_junit
from gitledger.suites.report_file import is_written_between, may_meet, read_report, stamp

EVERY_END = """
import pytest
def test_passed(): pass
def test_failed(): assert 0
def test_skipped(): pytest.skip("no")
@pytest.mark.xfail
def test_xfailed(): assert 0
@pytest.mark.xfail(strict=True)
def test_xpassed_strictly(): pass
@pytest.fixture
def broken(): raise RuntimeError
def test_setup_error(broken): pass
@pytest.fixture
def breaking():
    yield
    raise RuntimeError
def test_teardown_error(breaking): pass
def test_failed_twice(breaking): assert 0
def test_skip_then_error(breaking): pytest.skip("no")
def test_parts(subtests):
    for i in range(3):
        with subtests.test(i=i): assert i != 1
"""
OUTCOMES = {
    "passed": "passed",
    "failed": "failed",
    "skipped": "skipped",
    "xfailed": "xfailed",
    "xpassed_strictly": "failed",
    "setup_error": "error",
    "teardown_error": "error",
    "failed_twice": "failed",
    "skip_then_error": "error",
    "parts": "failed",
}


@pytest.fixture
def junit(tmp_path: Path, suite_env: dict[str, str]):
    """Run pytest with a report and return its bytes (None where it wrote none) and its status."""

    def run(code: str, *args: str, family: str = "xunit2") -> tuple[bytes | None, int]:
        (tmp_path / "pytest.ini").write_text(f"[pytest]\njunit_family = {family}\n")
        (tmp_path / "test_it.py").write_text(code)
        report = tmp_path / "report.xml"
        env = {**suite_env, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "--junit-xml=report.xml", *args],
            cwd=tmp_path,
            env=env,
            capture_output=True,
        )
        return (report.read_bytes() if report.exists() else None), done.returncode

    return run


@pytest.mark.parametrize("family", ["xunit1", "xunit2"])
def test_u04_pytests_own_report_tells_each_end(junit, end, family):
    data, status = junit(EVERY_END, family=family)
    result = summarise_junit(data, end(status=status))
    assert {item.node_id: item.outcome.value for item in result.results} == {
        f"test_it::test_{name}": outcome for name, outcome in OUTCOMES.items()
    }
    assert (result.outcome, result.reasons) == ("failed", ("test-failed", "test-error"))
    assert result.counts.collected == len(OUTCOMES)


def test_a_green_report_passes(junit, end):
    data, status = junit("def test_a(): pass\nclass TestB:\n    def test_b(self): pass\n")
    result = summarise_junit(data, end(status=status))
    assert (result.outcome, result.reasons, result.finished) == ("passed", (), True)
    assert [item.node_id for item in result.results] == ["test_it::test_a", "test_it.TestB::test_b"]


def test_of_nothing_is_not_a_pass(junit, end):
    data, status = junit("x = 1\n")
    assert summarise_junit(data, end(status=status)).reasons == ("no-tests",)
    assert summarise_junit(data, end(status=0)).outcome == "incomplete"


def test_a_file_that_cant_be_imported_is_an_error(junit, end):
    data, status = junit("import absent_module\n")
    result = summarise_junit(data, end(status=status))
    assert result.outcome == "error"


def test_reruns_look_like_two_passes_and_are_refused(junit, end):
    code = """
import os
def test_flaky():
    seen = os.path.exists("seen"); open("seen", "w").close()
    assert seen
"""
    data, status = junit(code, "-p", "pytest_rerunfailures", "--reruns=1")
    result = summarise_junit(data, end(status=status))
    if data.count(b"<testcase") > 1:  # pytest-rerunfailures 16.6.1 and later
        assert (result.outcome, result.reasons) == ("failed", ("duplicate-id",))


def test_u01_a_dead_process_writes_no_report_and_an_old_one_counts_for_nothing(junit, end, tmp_path):
    junit("def test_a(): pass\n")
    before = stamp(tmp_path / "report.xml")
    data, status = junit("import os\ndef test_a(): os._exit(0)\n")
    after = stamp(tmp_path / "report.xml")
    assert status == 0
    assert data is not None
    assert not is_written_between(before, after)
    result = summarise_junit(data, end(status=0), is_fresh=False)
    assert (result.outcome, result.reasons) == ("incomplete", ("report-stale",))
    assert result.results == ()
    missing = summarise_junit(None, end(status=0))
    assert (missing.outcome, missing.reasons) == ("incomplete", ("report-missing",))


def test_writing_the_same_bytes_again_makes_a_report_fresh(tmp_path):
    path = tmp_path / "report.xml"
    assert stamp(path) is None
    path.write_bytes(b"x")
    first = stamp(path)
    assert is_written_between(None, first)
    path.write_bytes(b"x")
    os.utime(path, ns=(first.modified_ns, first.modified_ns + 1))
    assert is_written_between(first, stamp(path))
    assert not is_written_between(first, None)
    assert stamp(tmp_path) is None


def test_other_permissions_and_another_name_make_no_report_fresh(tmp_path):
    """A runner may have crashed before the `chmod -R a+rX build` behind it."""
    path = tmp_path / "report.xml"
    path.write_bytes(b"x")
    first = stamp(path)
    path.chmod(0o640)
    path.rename(tmp_path / "old.xml").rename(path)
    assert stamp(path).changed_ns > first.changed_ns
    assert not is_written_between(first, stamp(path))


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        ("out/a.xml", "out/a.xml", True),
        ("out/a.xml", "out/ab.xml", False),
        ("out/*.xml", "out/a.xml", True),
        ("out/a-*.xml", "out/a.xml", False),
        ("out/a-*.xml", "out/b-*.xml", False),
        ("out/**/*.xml", "out/b/c-*.xml", True),
        ("*/report.xml", "out/[ab].xml", True),
    ],
)
def test_reports_that_may_be_one_file_are_told_by_what_stands_before_their_wildcards(one, other, may):
    assert (may_meet(one, other), may_meet(other, one)) == (may, may)


@pytest.mark.parametrize(
    ("status", "reasons"),
    [(1, ("exit-status",)), (None, ("signal-at-exit",))],
)
def test_the_childs_end_counts_more_than_its_report(end, status, reasons):
    data = b'<testsuite><testcase classname="a" name="b"/></testsuite>'
    result = summarise_junit(data, end(status=status, signal=11 if status is None else None))
    assert (result.outcome, result.reasons) == ("error", reasons)


SUITE = b'<testsuites><testsuite name="s">%s</testsuite></testsuites>'


@pytest.mark.parametrize(
    ("cases", "outcome", "reasons"),
    [
        (b'<testcase name="a"/><testcase name="a"/>', "failed", ("duplicate-id",)),
        (b'<testcase name="a"/><testcase name="a"><failure/></testcase>', "failed", ("test-failed",)),
        (b'<testcase name="a"><error/></testcase><testcase name="a"/>', "error", ("test-error",)),
        (
            b'<testcase classname="a" name="b::c"/><testcase classname="a::b" name="c"/>',
            "failed",
            ("duplicate-id",),
        ),
        (b'<testcase name="a"><skipped/><error/></testcase>', "error", ("test-error",)),
        (b'<testcase name="a"><system-out>x</system-out></testcase>', "passed", ()),
        (
            b'<testcase name="a" time="nan"/><testcase name="b" time="-1"/><testcase name="c" time="1e99"/>',
            "passed",
            (),
        ),
        (b"", "incomplete", ("no-tests",)),
    ],
)
def test_what_stands_under_one_name(end, cases, outcome, reasons):
    result = summarise_junit(SUITE % cases, end())
    assert (result.outcome, result.reasons) == (outcome, reasons)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not xml",
        b"<html/>",
        SUITE[:-4] % b'<testcase name="a"/>',
        b'<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><testsuite><testcase name="&b;"/></testsuite>',
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><testsuite><testcase name="a"/></testsuite>',
        b'<testsuite><testcase name="a"/></testsuite><testsuite/>',
        b"<testcase name='a'/>",
        SUITE % b"<testcase/>",
        SUITE % (b'<testcase name="%s"/>' % (b"x" * 70_000)),
        b"<testsuite>" * 5000,
        b'<testsuite failures="1"><testcase name="a"/></testsuite>',
        b'<testsuite errors="what"><testcase name="a"/></testsuite>',
        b'<?xml version="1.0" encoding="no-such"?><testsuite><testcase name="a"/></testsuite>',
        b'<testsuite><testcase name="a\x00"/></testsuite>',
    ],
    ids=range(15),
)
def test_what_is_no_report_is_an_error_and_never_a_pass(end, data):
    with pytest.raises(DecodeError) as caught:
        read_junit(data)
    assert caught.value.code == "report-malformed"
    result = summarise_junit(data, end())
    assert (result.outcome, result.reasons) == ("error", ("report-malformed",))


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ('status="run"', "passed"),
        ('status="run" result="completed"', "passed"),
        ('status="Passed"', "passed"),
        ('status="notrun"', "skipped"),
        ('status="NOT_RUN"', "skipped"),
        ('status="disabled"', "skipped"),
        ('status="notrun" result="suppressed"', "skipped"),
        ('status="run" result="skipped"', "skipped"),
        ('status="pending"', "skipped"),
        ('status="failed"', "failed"),
        ('status="run" result="FAIL"', "failed"),
        ('result="error"', "error"),
        ('status="broken"', "error"),
        ('result="sort of passed"', "error"),
    ],
)
def test_a_word_for_how_a_test_ended_counts_as_an_element_does(end, words, outcome):
    data = f'<testsuite tests="1"><testcase name="a" {words}/></testsuite>'.encode()
    result = summarise_junit(data, end())
    assert [item.outcome.value for item in result.results] == [outcome]
    assert result.outcome == (outcome if outcome in ("failed", "error") else "passed")


def test_an_unknown_word_is_named(end):
    result = summarise_junit(SUITE % b'<testcase name="a" status="broken"/>', end())
    assert result.notes == ("unknown words for how tests ended: 'broken'",)


ONE = '<testcase name="a"/>'
SKIP = '<testcase name="b"><skipped/></testcase>'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f'<testsuite tests="2">{ONE}</testsuite>', "counts 2 tests where it holds 1"),
        (f'<testsuites tests="2"><testsuite tests="1">{ONE}</testsuite></testsuites>', "counts 2 tests"),
        (f'<testsuites><testsuite tests="1"/><testsuite tests="1">{ONE}</testsuite></testsuites>', "holds 0"),
        (f'<testsuite tests="many">{ONE}</testsuite>', "tests is no number"),
        (f'<testsuite tests="1" skipped="1">{ONE}</testsuite>', "counts 1 skipped where it holds 0"),
        (f'<testsuite tests="2" disabled="1">{ONE}<testcase name="b"/></testsuite>', "counts 1 skipped"),
        (f'<testsuite skipped="2"><testcase name="b" status="notrun" result="suppressed"/>{ONE}</testsuite>', "1"),
        (f'<testsuite name="pytest" tests="1" skipped="2">{ONE}{SKIP}</testsuite>', "counts 2 skipped"),
        (f"<testsuite><failure/>{ONE}</testsuite>", "<failure> stands in <testsuite>"),
        (f"<testsuites><error/><testsuite>{ONE}</testsuite></testsuites>", "<error> stands in <testsuites>"),
        (f"<testsuite>{ONE}<x><error/></x></testsuite>", "<error> stands in <x>"),
        (f"<testsuite>{ONE}<skipped/></testsuite>", "<skipped> stands in <testsuite>"),
    ],
)
def test_a_green_report_that_does_not_hold_what_it_says_is_refused(end, text, why):
    with pytest.raises(DecodeError, match=why):
        read_junit(text.encode())
    assert summarise_junit(text.encode(), end()).reasons == ("report-malformed",)


@pytest.mark.parametrize(
    "text",
    [
        f'<testsuite tests="1"><testsuite tests="1">{ONE}</testsuite><testcase name="b"/></testsuite>',
        f'<testsuite tests="2"><testsuite tests="1">{ONE}</testsuite><testcase name="b"/></testsuite>',
        f'<testsuite tests="1" skipped="0">{ONE}{SKIP}</testsuite>',
        f'<testsuite name="x" tests="7" hostname="tbd">{ONE}</testsuite>',
        f'<testsuite name="x" tests="7" doctest_version="2.4.11">{ONE}</testsuite>',
    ],
    ids=["inner tests left out", "inner tests counted", "skips left out", "Catch2", "doctest"],
)
def test_a_count_may_be_too_small_and_some_writers_count_assertions(end, text):
    assert summarise_junit(text.encode(), end()).outcome == "passed"


def test_pytest_counts_subtests_among_its_tests(junit, end):
    code = """
def test_parts(subtests):
    for i in range(3):
        with subtests.test(i=i): pass
"""
    data, status = junit(code)
    assert b'tests="4"' in data
    assert summarise_junit(data, end(status=status)).outcome == "passed"


@given(st.binary(max_size=200) | st.text(alphabet='<>/="testcaseufilr ', max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(data):
    with contextlib.suppress(DecodeError):
        read_junit(data)


def test_a_report_that_is_no_file_is_refused(tmp_path):
    with pytest.raises(DecodeError):
        read_report(tmp_path)
