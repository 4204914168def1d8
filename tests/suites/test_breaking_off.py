"""Runs that break off, lie about their end, or lose workers (cases U01, U03, R02, R17)."""

from __future__ import annotations

import signal
import sys

import pytest

MIDDLE = """
    import ctypes, os, signal, time, pytest
    def test_first(): pass
    def test_second(): {body}
    def test_third(): pass
"""


@pytest.mark.parametrize(
    ("body", "status", "killed_by"),
    [
        ("os._exit(0)", 0, None),
        ("os._exit(3)", 3, None),
        ("os.kill(os.getpid(), signal.SIGSEGV); time.sleep(9)", None, signal.SIGSEGV),
        ("ctypes.string_at(0)", None, signal.SIGSEGV),
        ("os.kill(os.getpid(), signal.SIGKILL); time.sleep(9)", None, signal.SIGKILL),
        ("os.abort()", None, signal.SIGABRT),
    ],
    ids=["exit-0", "exit-3", "sigsegv", "null-pointer", "oom-kill", "abort"],
)
def test_u01_r02_a_dead_process_is_no_pass_and_keeps_what_had_finished(run_suite, body, status, killed_by):
    run = run_suite(MIDDLE.format(body=body))
    assert (run.end.status, run.end.signal) == (status, killed_by)
    assert run.outcomes == {"test_first": "passed"}
    assert [name.partition("::")[2] for name in run.result.missing] == ["test_second", "test_third"]
    assert run.result.last_started == "test_it.py::test_second"
    assert not run.result.finished
    assert {"not-finished", "missing-results"} <= set(run.result.reasons)
    assert ("signal" in run.result.reasons) is (killed_by is not None)
    assert run.result.outcome == ("error" if killed_by else "incomplete")


def test_u01_a_failure_before_the_crash_is_not_lost(run_suite):
    run = run_suite("import os\ndef test_a(): assert 0\ndef test_b(): os._exit(0)\n")
    assert run.outcomes == {"test_a": "failed"}
    assert run.result.outcome == "failed"


def test_u01_pytest_exit_with_status_0_is_no_pass(run_suite):
    run = run_suite(MIDDLE.format(body="pytest.exit('enough', returncode=0)"))
    assert run.end.status == 0
    assert run.result.finished
    assert (run.result.outcome, run.result.reasons) == ("incomplete", ("missing-results",))
    assert len(run.result.missing) == 2


def test_u01_status_0_at_exit_after_a_failure(run_suite):
    run = run_suite("import atexit, os\natexit.register(os._exit, 0)\ndef test_a(): assert 0\n")
    assert run.end.status == 0
    assert run.result.outcome == "failed"


def test_u01_a_teardown_that_ends_the_process_leaves_its_test_without_an_end(run_suite):
    run = run_suite("""
        import os, pytest
        @pytest.fixture
        def deadly():
            yield
            os._exit(0)
        def test_a(deadly): pass
    """)
    assert run.result.outcome == "incomplete"
    assert run.result.missing == ("test_it.py::test_a",)


def test_r17_a_signal_after_every_test_passed_is_not_green_and_said_to_be_at_exit(run_suite):
    run = run_suite("""
        import atexit, os, signal
        atexit.register(lambda: os.kill(os.getpid(), signal.SIGSEGV))
        def test_a(): pass
    """)
    assert run.outcomes == {"test_a": "passed"}
    assert (run.result.outcome, run.result.reasons) == ("error", ("signal-at-exit",))


def test_a_status_that_nothing_explains_is_an_error(run_suite):
    run = run_suite("import atexit, os\natexit.register(os._exit, 7)\ndef test_a(): pass\n")
    assert run.end.status == 7
    assert (run.result.outcome, run.result.reasons) == ("error", ("exit-status",))


def test_a_plugin_that_fails_a_green_session_is_an_error_even_behind_a_shell(run_suite):
    conftest = "def pytest_sessionfinish(session): session.exitstatus = 9\n"
    run = run_suite(
        {"conftest.py": conftest, "test_it.py": "def test_a(): pass\n"},
        command=("sh", "-c", f'{sys.executable} -m pytest "$@" || true', "sh"),
    )
    assert run.end.status == 0
    assert (run.result.outcome, run.result.reasons) == ("error", ("exit-status",))


def test_no_tests_is_no_pass(run_suite):
    run = run_suite("x = 1\n")
    assert run.end.status == 5
    assert (run.result.outcome, run.result.reasons) == ("incomplete", ("no-tests",))


def test_no_tests_is_no_pass_even_where_a_plugin_makes_the_status_0(run_suite):
    conftest = "def pytest_sessionfinish(session): session.exitstatus = 0\n"
    run = run_suite({"conftest.py": conftest, "test_it.py": "x = 1\n"})
    assert run.end.status == 0
    assert (run.result.outcome, run.result.reasons) == ("incomplete", ("no-tests",))


@pytest.mark.parametrize("option", ["--collect-only", "--setup-only", "--setup-plan"])
def test_tests_that_were_only_listed_or_set_up_have_no_end(run_suite, option):
    run = run_suite("def test_a(): pass\n", option)
    assert run.end.status == 0
    assert run.result.outcome == "incomplete"
    assert run.result.missing == ("test_it.py::test_a",)


def test_a_broken_conftest_leaves_no_journal_and_no_pass(run_suite):
    run = run_suite({"conftest.py": "raise RuntimeError\n", "test_it.py": "def test_a(): pass\n"})
    assert run.journal is None
    assert (run.result.outcome, run.result.reasons) == ("error", ("no-journal", "exit-status"))


def test_a_command_that_runs_no_pytest_has_no_journal(run_suite):
    run = run_suite("", command=("true",))
    assert (run.result.outcome, run.result.reasons) == ("incomplete", ("no-journal",))


def test_an_internal_error_of_pytest_is_an_error(run_suite):
    conftest = "def pytest_runtest_logfinish(nodeid): raise RuntimeError\n"
    run = run_suite({"conftest.py": conftest, "test_it.py": "def test_a(): pass\n"})
    assert run.result.outcome == "error"
    assert "internal-error" in run.result.reasons


@pytest.mark.parametrize("death", ["os._exit(1)", "os.kill(os.getpid(), 9)"])
def test_u03_a_worker_that_dies_fails_its_test_and_the_run(run_suite, death):
    run = run_suite(
        f"""
        import os, pytest
        @pytest.mark.parametrize("n", range(8))
        def test_n(n):
            if n == 2: {death}
        """,
        "-n2",
        plugins=("xdist",),
    )
    assert run.outcomes["test_n[2]"] == "failed"
    assert sum(outcome == "passed" for outcome in run.outcomes.values()) == 7
    assert run.result.outcome == "failed"
    assert "worker-crashed" in run.result.reasons
    assert run.result.missing == ()


def test_u03_without_restarts_the_tests_that_never_ran_are_named(run_suite):
    run = run_suite(
        """
        import os, pytest
        @pytest.mark.parametrize("n", range(30))
        def test_n(n):
            if n < 2: os._exit(1)
        """,
        "-n2",
        "--max-worker-restart=0",
        plugins=("xdist",),
    )
    assert run.result.outcome == "failed"
    assert {"worker-crashed", "missing-results"} <= set(run.result.reasons)
    assert len(run.result.missing) + len(run.result.results) == 30
    assert "test_it.py::test_n[29]" in run.result.missing


def test_u03_a_worker_that_dies_between_tests_is_no_pass_even_if_all_tests_pass(run_suite):
    run = run_suite(
        """
        import os, pytest
        @pytest.mark.parametrize("n", range(8))
        def test_n(n):
            if n == 2 and not os.path.exists("died"):
                open("died", "w").close()
                os._exit(1)
        """,
        "-n2",
        "--reruns=2",
        plugins=("xdist", "pytest_rerunfailures"),
    )
    assert run.result.outcome != "passed"
    assert "worker-crashed" in run.result.reasons


def test_every_worker_runs_every_test_is_no_pass(run_suite):
    run = run_suite("def test_a(): pass\n", "-n2", "--dist=each", plugins=("xdist",))
    assert run.end.status == 0
    assert run.result.outcome == "failed"
    assert "duplicate-id" in run.result.reasons


def test_workers_that_collect_different_tests_are_no_pass(run_suite):
    run = run_suite(
        """
        import os, pytest
        worker = os.environ.get("PYTEST_XDIST_WORKER", "")
        @pytest.mark.parametrize("w", [worker])
        def test_a(w): pass
        """,
        "-n2",
        plugins=("xdist",),
    )
    assert run.result.outcome == "error"
    assert "workers-disagree" in run.result.reasons


def test_one_id_for_two_items_fails(run_suite):
    run = run_suite("def test_a(): pass\n", "--keep-duplicates", "test_it.py", "test_it.py")
    assert run.end.status == 0
    assert run.result.outcome == "failed"
    assert "duplicate-id" in run.result.reasons


def test_an_id_that_ends_twice_differently_fails(run_suite):
    # As with `-c cfg/pytest.ini`, where the files of different folders get one id.
    files = {
        "a/test_r.py": "def test_r(): pass\n",
        "b/test_r.py": "def test_r(): import pytest; pytest.skip()\n",
        "conftest.py": """
            def pytest_itemcollected(item):
                if hasattr(item, "_id"):
                    item._id = type(item._id).parse("::test_r")  # pytest 9.2 and later
                else:
                    item._nodeid = "::test_r"
        """,
    }
    run = run_suite(files, "--import-mode=importlib")
    assert run.end.status == 0
    assert run.result.outcome == "failed"
    assert {"duplicate-id", "conflicting-ends"} <= set(run.result.reasons)
