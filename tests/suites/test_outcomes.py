"""What each way for a test to end becomes, told by real pytest runs (cases U02, U04, U06)."""

from __future__ import annotations

import pytest

EVERY_END = """
    import pytest, unittest

    def test_passed(): pass
    def test_failed(): assert 0
    def test_skipped_in_call(): pytest.skip("no")
    @pytest.mark.skip
    def test_skipped_in_setup(): pass
    @pytest.mark.xfail
    def test_xfailed(): assert 0
    @pytest.mark.xfail(run=False)
    def test_not_run(): assert 0
    @pytest.mark.xfail
    def test_xpassed(): pass
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
    @pytest.fixture
    def skipping():
        yield
        pytest.skip("late")
    def test_skipped_in_teardown(skipping): pass
    @pytest.mark.parametrize("x", [])
    def test_of_nothing(x): pass
"""

EXPECTED = {
    "test_passed": ("passed", None),
    "test_failed": ("failed", "call"),
    "test_skipped_in_call": ("skipped", None),
    "test_skipped_in_setup": ("skipped", None),
    "test_xfailed": ("xfailed", None),
    "test_not_run": ("xfailed", None),
    "test_xpassed": ("xpassed", None),
    "test_xpassed_strictly": ("failed", "call"),
    "test_setup_error": ("error", "setup"),
    "test_teardown_error": ("error", "teardown"),
    "test_failed_twice": ("failed", "call"),
    "test_skipped_in_teardown": ("skipped", None),
    "test_of_nothing[NOTSET]": ("skipped", None),
}


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
def test_u04_each_end_is_its_own_outcome(run_suite, workers):
    run = run_suite(EVERY_END, *workers, plugins=("xdist",) if workers else ())
    got = {item.node_id.partition("::")[2]: (item.outcome.value, item.phase) for item in run.result.results}
    assert got == EXPECTED
    assert run.result.outcome == "failed"
    assert run.result.reasons == ("test-failed", "test-error")
    assert run.result.missing == ()
    assert run.result.counts.collected == run.result.counts.ended == len(EXPECTED)
    assert run.result.workers == (2 if workers else None)


def test_a_green_run_passes_and_says_what_it_ran_on(run_suite):
    run = run_suite("def test_a(): pass\ndef test_b(): pass\n", "-v")
    assert (run.result.outcome, run.result.reasons) == ("passed", ())
    assert [item.node_id for item in run.result.results] == ["test_it.py::test_a", "test_it.py::test_b"]
    assert all(item.duration_ns > 0 for item in run.result.results)
    assert run.result.finished
    assert run.result.tools.pytest == pytest.__version__
    assert run.result.tools.python is not None
    assert run.result.tools.coverage is not None
    assert run.result.rootdir is not None
    assert run.result.inifile == f"{run.result.rootdir}/pytest.ini"
    assert run.result.args == ("-v",)
    assert run.data.isascii()


@pytest.mark.parametrize("kind", ["xfailed", "xpassed", "skipped"])
def test_u04_expected_failures_and_skips_leave_a_run_green(run_suite, kind):
    mark = {"xfailed": "xfail", "xpassed": "xfail", "skipped": "skip"}[kind]
    body = "assert 0" if kind == "xfailed" else "pass"
    run = run_suite(f"import pytest\ndef test_a(): pass\n@pytest.mark.{mark}\ndef test_b(): {body}\n")
    assert run.outcomes == {"test_a": "passed", "test_b": kind}
    assert run.result.outcome == "passed"


def test_u04_an_error_alone_is_an_error(run_suite):
    run = run_suite("""
        import pytest
        @pytest.fixture
        def breaking():
            yield
            raise RuntimeError
        def test_a(breaking): pass
    """)
    assert (run.result.outcome, run.result.reasons) == ("error", ("test-error",))


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
def test_u04_a_module_level_skip_is_recorded_under_the_modules_id(run_suite, workers):
    files = {
        "test_a.py": "def test_a(): pass\n",
        "test_b.py": "import pytest\npytest.skip('no', allow_module_level=True)\n",
    }
    run = run_suite(files, *workers, plugins=("xdist",) if workers else ())
    assert run.outcomes == {"test_a": "passed", "test_b.py": "skipped"}
    assert run.result.outcome == "passed"
    assert (run.result.counts.collected, run.result.counts.skipped) == (2, 1)
    assert "test_b.py" in run.result.full_ids


def test_u04_nothing_but_a_module_level_skip_is_not_a_pass(run_suite):
    run = run_suite("import pytest\npytest.skip('no', allow_module_level=True)\n")
    assert (run.result.outcome, run.result.reasons) == ("incomplete", ("no-tests",))
    assert run.result.counts.passed == 0


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
def test_a_module_that_cant_be_imported_is_an_error(run_suite, workers):
    files = {"test_a.py": "def test_a(): pass\n", "test_b.py": "import absent_module\n"}
    run = run_suite(files, *workers, plugins=("xdist",) if workers else ())
    assert run.result.outcome == "error"
    assert "collection-error" in run.result.reasons
    assert run.outcomes["test_b.py"] == "error"


def test_a_collection_error_that_pytest_goes_on_after_stays_an_error(run_suite):
    files = {"test_a.py": "def test_a(): pass\n", "test_b.py": "import absent_module\n"}
    run = run_suite(files, "--continue-on-collection-errors")
    assert run.outcomes == {"test_a": "passed", "test_b.py": "error"}
    assert run.result.outcome == "error"


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
def test_u02_a_failed_subtest_fails_its_test_whatever_its_last_report_says(run_suite, workers):
    run = run_suite(
        """
        import unittest
        class Some(unittest.TestCase):
            def test_parts(self):
                for i in range(3):
                    with self.subTest(i=i):
                        assert i != 1
            def test_whole_parts(self):
                with self.subTest(i=1):
                    pass
        """,
        *workers,
        plugins=("xdist",) if workers else (),
    )
    assert run.outcomes == {"Some::test_parts": "failed", "Some::test_whole_parts": "passed"}
    assert run.result.outcome == "failed"
    assert run.result.reasons == ("test-failed",)
    # The case itself: the test's own last report of its call is a pass.
    calls = [e.outcome for e in run.journal.events if e.node_id.endswith("test_parts") and e.when == "call"]
    assert calls[-1] in ("passed", "failed")
    assert "failed" in calls


def test_u02_subtests_of_pytests_own_fixture(run_suite):
    run = run_suite("""
        import pytest
        def test_parts(subtests):
            for i in range(3):
                with subtests.test(i=i):
                    assert i != 1
        def test_skipped_part(subtests):
            with subtests.test("one"):
                pytest.skip("no")
    """)
    assert run.outcomes == {"test_parts": "failed", "test_skipped_part": "passed"}


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
def test_u06_fail_then_pass_is_a_pass_with_its_attempts(run_suite, tmp_path, workers):
    plugins = ("pytest_rerunfailures", *(("xdist",) if workers else ()))
    run = run_suite(
        """
        import os, pytest
        def test_flaky():
            seen = os.path.exists("seen")
            open("seen", "w").close()
            assert seen
        @pytest.fixture
        def shaky():
            seen = os.path.exists("shaken")
            open("shaken", "w").close()
            assert seen
        def test_shaky(shaky): pass
        def test_steady(): pass
        """,
        "--reruns=2",
        *workers,
        plugins=plugins,
    )
    assert {item.node_id.partition("::")[2]: item.attempts for item in run.result.results} == {
        "test_flaky": 2,
        "test_shaky": 2,
        "test_steady": 1,
    }
    assert set(run.outcomes.values()) == {"passed"}
    assert (run.result.outcome, run.result.reasons) == ("passed", ())


def test_u06_reruns_that_never_pass_fail(run_suite):
    run = run_suite("def test_a(): assert 0\n", "--reruns=2", plugins=("pytest_rerunfailures",))
    assert run.outcomes == {"test_a": "failed"}
    assert run.result.results[0].attempts == 3
    assert run.result.outcome == "failed"


def test_u06_a_failed_subtest_of_a_superseded_attempt_is_an_attempt(run_suite):
    run = run_suite(
        """
        import os
        def test_flaky(subtests):
            seen = os.path.exists("seen")
            open("seen", "w").close()
            with subtests.test("one"):
                assert seen
        """,
        "--reruns=2",
        plugins=("pytest_rerunfailures",),
    )
    assert run.outcomes == {"test_flaky": "passed"}
    assert run.result.results[0].attempts == 2
