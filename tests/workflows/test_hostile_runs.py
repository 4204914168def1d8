"""Tests that turn on their own recorder, through the command: none of them gets a green receipt by it.

What can't be kept from hostile code (it runs as the same user) is said in `docs/security.md`; what is here is what
the recorder notices by itself.
"""

from __future__ import annotations

import pytest

ONE = "version: 1\nrepository: demo\nshards:\n  it: {paths: [tests], command: pytest -q -p no:randomly tests}\n"
IGNORED = "__pycache__/\n.pytest_cache/\n"
FIND = """\
import atexit, json, os, pathlib, signal, subprocess, sys

def find(name):
    pid = os.getpid()
    while pid > 1:
        try:
            env = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\\0")
        except OSError:
            return None
        for item in env:
            if item.startswith(name.encode() + b"="):
                return item.split(b"=", 1)[1].decode()
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])

"""


@pytest.fixture
def hostile(make_project):
    """Return the outcome and reasons of recording one hostile test file."""

    def run(body: str, *, config: str = ONE):
        project = make_project(config, {"tests/test_it.py": FIND + body, ".gitignore": IGNORED})
        done = project.ledger("record", "--shard", "it", "--json", expect=None)
        document = done.document
        assert document["outcome"] != "passed", done.err
        assert project.verify()[0] == "failed"
        return document["outcome"], set(document["reasons"])

    return run


def test_lines_appended_to_the_journal_do_not_heal_a_failure(hostile):
    body = """
def test_fails():
    assert False

def test_heals():
    with open(find("GITLEDGER_JOURNAL"), "a") as journal:
        for when in ("setup", "call", "teardown"):
            journal.write(json.dumps(["r", 0, when, "passed", 1, ""]) + "\\n")
"""
    outcome, reasons = hostile(body)
    assert outcome == "failed"
    assert "test-failed" in reasons


def test_an_end_written_by_a_test_is_not_the_end(hostile):
    body = """
def test_ends():
    with open(find("GITLEDGER_JOURNAL"), "a") as journal:
        for when in ("call", "teardown"):
            journal.write(json.dumps(["r", 0, when, "passed", 1, ""]) + "\\n")
        journal.write(json.dumps(["finish", 0]) + "\\n")

def test_fails():
    assert False
"""
    assert "journal-mistrusted" in hostile(body)[1]


def test_a_nested_pytest_with_the_variables_of_its_parent_spoils_the_journal(hostile):
    body = """
def test_nests():
    env = dict(os.environ, GITLEDGER_JOURNAL=find("GITLEDGER_JOURNAL"), GITLEDGER_NONCE=find("GITLEDGER_NONCE"))
    env |= {"PYTEST_PLUGINS": find("PYTEST_PLUGINS"), "PYTHONPATH": find("PYTHONPATH"), "GITLEDGER_RECORDING": "1"}
    env["GITLEDGER_PLUGIN"] = find("GITLEDGER_PLUGIN")
    pathlib.Path("../inner").mkdir()
    pathlib.Path("../inner/test_inner.py").write_text("def test_inner():\\n    pass\\n")
    subprocess.run([sys.executable, "-m", "pytest", "-q", "../inner"], env=env)
"""
    assert "journal-mistrusted" in hostile(body)[1]


def test_a_keeper_that_is_killed_at_the_very_end_takes_green_along(hostile):
    body = """
def test_kills():
    parent = int(pathlib.Path(f"/proc/{os.getpid()}/stat").read_text().rsplit(")", 1)[1].split()[1])
    atexit.register(os.kill, parent, signal.SIGKILL)
"""
    assert hostile(body)[1] & {"signal", "signal-at-exit"}


def test_a_run_that_edits_policy_and_signers_in_the_work_tree_is_dirty_and_changes_neither(make_project):
    body = """
def test_edits():
    path = pathlib.Path(".gitledger/config.yaml")
    path.write_text(path.read_text() + "policy: {allow_dirty: true, allow_unwitnessed: true}\\n")
    pathlib.Path(".gitledger/allowed_signers").write_text("")
"""
    project = make_project(ONE, {"tests/test_it.py": FIND + body, ".gitignore": IGNORED})
    document = project.record("it")
    assert project.receipt(document["record"])["repo"]["dirty_paths"] == [
        ".gitledger/allowed_signers",
        ".gitledger/config.yaml",
    ]
    assert project.verify() == ("failed", {"dirty"})


def test_a_run_that_commits_a_greener_tree_is_recorded_on_neither(hostile):
    body = """
def test_commits():
    pathlib.Path("tests/test_it.py").write_text("def test_it():\\n    pass\\n")
    subprocess.run(["git", "commit", "-q", "-a", "-m", "greener"], check=True)
"""
    assert "head-moved" in hostile(body)[1]


def test_a_conftest_that_calls_failures_passed_is_an_input_and_not_hidden(make_project):
    """Nobody can keep code under test from lying about itself; but whoever changes `conftest.py` runs anew."""
    project = make_project(ONE, {"tests/test_it.py": "def test_it():\n    pass\n", ".gitignore": IGNORED})
    project.record("it")
    lies = (
        "import pytest\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
        "    outcome = yield\n    outcome.get_result().outcome = 'passed'\n"
    )
    for place in ("conftest.py", "tests/conftest.py"):
        project.repo.commit({place: lies})
        assert project.plan("--carry")["it"] == ("stale", "inputs-changed")
        project.repo.git("reset", "-q", "--hard", "HEAD~1")


def test_the_ledger_is_not_written_by_the_run(hostile):
    """A test that hangs a record of its own on the commit: nobody's key signed it."""
    body = """
def test_writes():
    line = '{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[]}'
    subprocess.run(["git", "notes", "--ref=gitledger/records", "add", "-f", "-m", line, "HEAD"], check=True)
    assert False
"""
    assert "test-failed" in hostile(body)[1]
