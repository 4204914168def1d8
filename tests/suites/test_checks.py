"""The fixture `ledger_check`: what it records, and that a failed check stays one."""

from __future__ import annotations

import subprocess
import sys

import pytest

SUITE = """
    import pytest

    def test_good(ledger_check):
        ledger_check("adds", lambda a, b: a + b, lambda a, b: b + a, args=(1, 2), metadata={"robot": "go2"})
        ledger_check("value", 1.0, 1.00000001)

    def test_bad(ledger_check):
        ledger_check("product", 6, lambda a, b: a * b, (2, 4), compare=lambda e, a: e == a)

    def test_swallowed(ledger_check):
        try:
            ledger_check("line one\\nline \\x1b two", [1.0], [2.0])
        except AssertionError:
            pass

    def test_plain():
        pass
"""


def checks(run) -> dict[str, list[tuple[str, bool, str]]]:
    return {
        item.node_id.partition("::")[2]: [(check.name, check.passed, check.detail) for check in item.checks]
        for item in run.result.results
    }


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
def test_checks_stand_beside_the_outcomes_of_their_tests(run_suite, workers):
    run = run_suite(SUITE, *workers, plugins=("xdist",) if workers else ())
    assert checks(run) == {
        "test_good": [("adds", True, "robot=go2"), ("value", True, "")],
        "test_bad": [("product", False, "compare said False of 6 and 8")],
        "test_swallowed": [("line one; line \\x1b two", False, "at [0]: expected 1.0, found 2.0")],
        "test_plain": [],
    }
    assert run.outcomes == {
        "test_good": "passed",
        "test_bad": "failed",
        "test_swallowed": "passed",
        "test_plain": "passed",
    }
    assert run.result.reasons == ("test-failed", "check-failed")
    assert "ledger_check 'product' failed: compare said False of 6 and 8" in run.output


def test_a_swallowed_check_alone_keeps_the_run_from_green(run_suite):
    run = run_suite(SUITE, "-k", "swallowed or plain")
    assert run.end.status == 0
    assert (run.result.outcome, run.result.reasons) == ("failed", ("check-failed",))


def test_an_expected_failure_does_not_hide_a_check(run_suite):
    run = run_suite(
        """
        import pytest
        @pytest.mark.xfail
        def test_it(ledger_check):
            ledger_check("it", 1, 2)
        """
    )
    assert run.outcomes == {"test_it": "xfailed"}
    assert run.result.reasons == ("check-failed",)


def test_u06_checks_of_an_attempt_that_was_run_again_go_with_it(run_suite):
    run = run_suite(
        """
        attempts = []
        def test_it(ledger_check):
            attempts.append(1)
            ledger_check("it", 2, len(attempts))
        """,
        "--reruns=2",
        plugins=("pytest_rerunfailures",),
    )
    assert run.result.outcome == "passed", run.output
    assert [(item.attempts, len(item.checks)) for item in run.result.results] == [(2, 1)]


def test_checks_in_setup_and_teardown_count(run_suite):
    run = run_suite(
        """
        import pytest
        @pytest.fixture
        def around(ledger_check):
            ledger_check("before", 1, 1)
            yield
            ledger_check("after", 1, 1)
        def test_it(around): pass
        def test_none(): pass
        """
    )
    assert checks(run) == {"test_it": [("before", True, ""), ("after", True, "")], "test_none": []}


def test_more_checks_than_a_record_takes_fail_their_test(run_suite):
    run = run_suite(
        """
        def test_many(ledger_check):
            for index in range(1001):
                ledger_check(f"check {index}", index, index)
        def test_nameless(ledger_check):
            ledger_check("", 1, 1)
        """
    )
    assert run.outcomes == {"test_many": "failed", "test_nameless": "failed"}
    assert "more than 1000 comparison checks" in run.output
    assert [len(item.checks) for item in run.result.results] == [1000, 0]


def test_without_the_ledger_it_is_a_plain_assertion(tmp_path, suite_env):
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_good(ledger_check): ledger_check('it', 1, 1)\n"
        "def test_bad(ledger_check): ledger_check('it', 1, 2)\n"
        "def test_nothing_was_loaded(): assert not {'numpy', 'torch'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"],
        cwd=tmp_path,
        env=suite_env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout
    assert "ledger_check 'it' failed: expected 1, found 2" in done.stdout
    assert "1 failed, 2 passed" in done.stdout


@pytest.mark.parametrize(
    "line",
    [
        '["c","test_it.py::test_a","name",1,""]',
        '["c","test_it.py::test_a",null,true,""]',
        '["c","test_it.py::test_a","name",true]',
        '["c",99,"name",true,""]',
        '["c","test_it.py::test_a","name",true,"%s"]' % ("x" * 20_000),
        '["r","test_it.py::test_a","check","passed",1,""]',
    ],
)
def test_a_check_that_nobody_writes_is_mistrusted(nonce, line):
    from gitledger.suites.journal import read_journal

    journal = read_journal(f'["journal",1,"{nonce}",{{}}]\n{line}\n'.encode(), nonce)
    assert journal.distrust is not None
    assert journal.events == []
