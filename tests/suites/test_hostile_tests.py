"""Tests that tear at the process they run in: the journal stands, and nothing else gets into it."""

from __future__ import annotations

import sys

import pytest

PLAIN = "def test_before(): pass\n{}\ndef test_after(): pass\n"
BODIES = {
    "environment-cleared": "import os\ndef test_it(): os.environ.clear()",
    "journal-closed": (
        "import os\ndef test_it():\n"
        "    for fd in os.listdir('/proc/self/fd'):\n"
        "        if os.path.basename(os.path.realpath('/proc/self/fd/' + fd)) == 'journal':\n"
        "            os.close(int(fd))\n"
    ),
    "descriptors-reused": (
        "import os, tempfile\ndef test_it():\n"
        "    os.closerange(3, 200)\n"
        "    global kept\n"
        "    kept = [open('data', 'w') for _ in range(40)]\n"
    ),
    "chdir": "import os, tempfile\ndef test_it(): os.chdir(tempfile.mkdtemp())",
    "os-replaced": (
        "import os, builtins, json\n"
        "def no(*a, **k): raise RuntimeError\n"
        "def test_it(monkeypatch):\n"
        "    for name in ('write', 'open', 'fstat'): monkeypatch.setattr(os, name, no)\n"
        "    monkeypatch.setattr(json, 'dumps', no)\n"
    ),
    "clock-stopped": (
        "import time\n"
        "def test_it(monkeypatch):\n"
        "    for name in ('time', 'perf_counter', 'perf_counter_ns', 'monotonic'):\n"
        "        monkeypatch.setattr(time, name, lambda: float('nan'))\n"
    ),
    "fork-that-goes-on": (
        "import os\n"
        "def test_it():\n"
        "    pid = os.fork()\n"
        "    if not pid: raise AssertionError('the child goes on as if it were pytest')\n"
        "    os.waitpid(pid, 0)\n"
    ),
    "threads": (
        "import threading\n"
        "def test_it():\n"
        "    threads = [threading.Thread(target=print) for _ in range(5)]\n"
        "    [t.start() for t in threads]; [t.join() for t in threads]\n"
    ),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_journal_stands_whatever_a_test_does(run_suite, tmp_path, body):
    run = run_suite(PLAIN.format(body), "-p", "no:cacheprovider", "-s")
    assert run.outcomes == {"test_before": "passed", "test_it": "passed", "test_after": "passed"}
    assert (run.result.outcome, run.result.reasons) == ("passed", ())
    data = tmp_path / "tree" / "data"
    assert not data.exists() or data.read_bytes() == b""


def test_descriptors_that_pytest_itself_dies_of_are_an_error_with_every_result(run_suite):
    run = run_suite(PLAIN.format("import os\ndef test_it(): os.closerange(3, 200)"), "-s")
    assert run.outcomes == {"test_before": "passed", "test_it": "passed", "test_after": "passed"}
    assert run.end.status == 1
    assert (run.result.outcome, run.result.reasons) == ("error", ("exit-status",))


def test_a_journal_that_was_deleted_is_no_pass(run_suite):
    run = run_suite("""
        import glob, os
        def test_it(): [os.remove(path) for path in glob.glob("../run-*/journal")]
        def test_after(): pass
    """)
    assert run.result.outcome == "incomplete"


@pytest.mark.parametrize("options", [("-p", "no:cacheprovider"), ("-p", "no:terminal"), ("-p", "no:logging")])
@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
def test_without_pytests_own_plugins(run_suite, options, workers):
    if workers and "no:terminal" in options:
        pytest.skip("xdist needs the terminal plugin")
    run = run_suite("def test_a(): pass\n", *options, *workers, plugins=("xdist",) if workers else ())
    assert (run.result.outcome, run.result.reasons) == ("passed", ())


NESTED = """
    import os, subprocess, sys, pytest
    INNER = "def test_inner(): assert 0"

    def test_the_environment_shows_no_trace():
        assert not [n for n in os.environ if n in ("GITLEDGER_JOURNAL", "GITLEDGER_NONCE", "GITLEDGER_PLUGIN")]
        assert "gitledger" not in os.environ.get("PYTEST_PLUGINS", "") + os.environ.get("PYTHONPATH", "")

    def test_in_a_process_of_its_own(tmp_path):
        (tmp_path / "test_inner.py").write_text(INNER)
        done = subprocess.run([sys.executable, "-m", "pytest", str(tmp_path), "--rootdir", str(tmp_path)])
        assert done.returncode == 1

    def test_in_this_process(tmp_path):
        (tmp_path / "test_inner.py").write_text(INNER)
        assert pytest.main([str(tmp_path), "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]) == 1

    def test_with_pytester(pytester):
        pytester.makepyfile(INNER)
        pytester.runpytest_inprocess().assert_outcomes(failed=1)
        pytester.runpytest_subprocess().assert_outcomes(failed=1)
"""


@pytest.mark.parametrize("autoload", [False, True], ids=["injected", "installed-too"])
@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
def test_runs_inside_tests_stay_out_of_the_journal(run_suite, workers, autoload):
    plugins = ("pytester", *(("xdist",) if workers and not autoload else ()))
    run = run_suite(NESTED, *workers, plugins=plugins, autoload=autoload)
    assert b"test_inner" not in run.data
    assert run.data.count(b'"journal"') == 1
    assert set(run.outcomes.values()) == {"passed"}, run.output
    assert (run.result.outcome, run.result.reasons) == ("passed", ())


def test_a_run_inside_a_conftest_stays_out_as_well(run_suite, tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "test_inner.py").write_text("def test_inner(): assert 0\n")
    conftest = f"""
        import pytest
        assert pytest.main([{str(inner)!r}, "--rootdir", {str(inner)!r}, "-p", "no:cacheprovider"]) == 1
    """
    run = run_suite({"conftest.py": conftest, "test_it.py": "def test_a(): pass\n"})
    assert run.result.full_ids == ("test_it.py::test_a",)
    assert (run.result.outcome, run.result.reasons) == ("passed", ())


def test_a_second_session_of_the_same_process_is_seen(run_suite, tmp_path):
    runner = "import pytest\npytest.main(['test_a.py'])\npytest.main(['test_b.py'])\n"
    files = {"test_a.py": "def test_a(): pass\n", "test_b.py": "def test_b(): assert 0\n", "runner.py": runner}
    run = run_suite(files, command=(sys.executable, "runner.py"))
    assert run.end.status == 0
    assert (run.result.outcome, run.result.reasons) == ("error", ("journal-mistrusted",))


def test_a_second_process_that_writes_the_journal_is_seen(run_suite):
    line = f'{sys.executable} -m pytest test_b.py; {sys.executable} -m pytest "$@"'
    files = {"test_a.py": "def test_a(): pass\n", "test_b.py": "def test_b(): assert 0\n"}
    run = run_suite(files, "test_a.py", command=("sh", "-c", line, "sh"))
    assert run.end.status == 0
    assert run.result.outcome == "failed"  # what the first one saw stays
    assert "journal-mistrusted" in run.result.reasons


def test_installed_and_injected_register_once(run_suite):
    run = run_suite("def test_a(): pass\n", autoload=True)
    assert run.data.count(b'"finish"') == 1
    assert run.result.outcome == "passed"


def test_warnings_as_errors_find_nothing_of_ours(run_suite):
    run = run_suite("def test_a(): pass\n", "-W", "error", autoload=True)
    assert run.result.outcome == "passed", run.output
    assert "Warning" not in run.output
