"""Recording through the installed command: what a child does to itself, and what its receipt then says."""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitledger.manifest.definition import Definition
from gitledger.records.ids import ShardKey
from gitledger.store.edits import Edits
from gitledger.workflows.asked import Asked, request_of
from gitledger.workflows.record import look
from gitledger.workflows.record_alone import record_alone
from gitledger.workflows.session import open_session
from gitledger.workflows.target import head_of
from gitledger.workflows.trusted import read_config

ONE = "version: 1\nrepository: demo\nshards:\n  it: {paths: [tests], command: pytest -q -p no:randomly tests}\n"
PASSING = "def test_first():\n    pass\n\n"


LINT = "version: 1\nrepository: demo\nshards:\n  lint: {command: 'true', results: exit-status}\n"


@pytest.fixture
def make_one(make_project):
    """Return a maker of a project with one shard and one test file."""

    def make(body: str, config: str = ONE):
        return make_project(config, {"tests/test_it.py": body, ".gitignore": "__pycache__/\n.pytest_cache/\n"})

    return make


# --- U01: processes that end in their own way -------------------------------------------------------------------

ENDINGS = {
    "os-exit-0": ("import os\n" + PASSING + "def test_it():\n    os._exit(0)\n", 1, "not-finished"),
    "segfault": (
        "import os, signal\n" + PASSING + "def test_it():\n    os.kill(os.getpid(), signal.SIGSEGV)\n",
        128 + signal.SIGSEGV,
        "signal",
    ),
    "oom-kill": (
        "import os, signal\n" + PASSING + "def test_it():\n    os.kill(os.getpid(), signal.SIGKILL)\n",
        128 + signal.SIGKILL,
        "signal",
    ),
    "pytest-exit-0": (
        "import pytest\n" + PASSING + "def test_it():\n    pytest.exit('enough', returncode=0)\n",
        1,
        "missing-results",
    ),
    "atexit": (
        "import atexit, os\n" + PASSING + "def test_it():\n    atexit.register(os._exit, 0)\n    assert False\n",
        1,
        "test-failed",
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_u01_a_child_that_breaks_off_leaves_a_receipt_that_says_what_had_finished(make_one, ending):
    body, status, reason = ENDINGS[ending]
    project = make_one(body)
    document = project.record("it", expect=status)
    assert document["stored"] is True
    assert document["outcome"] != "passed"
    assert reason in document["reasons"]
    found = project.ledger("show", document["record"], "--tests", "--json").document["records"][0]["tests"]
    assert {item["node_id"]: item["outcome"] for item in found}["tests/test_it.py::test_first"] == "passed"
    assert project.verify()[0] == "failed"


def test_u01_a_time_out_is_enforced_and_recorded(make_one):
    project = make_one(PASSING + "def test_it():\n    import time\n    time.sleep(60)\n")
    document = project.record("it", "--timeout", "4s", expect=124)
    assert document["outcome"] != "passed"
    assert "timeout" in document["reasons"]


def test_u02_a_subtest_that_failed_inside_a_passed_test_fails(make_one):
    body = (
        "import unittest\n\nclass TestIt(unittest.TestCase):\n    def test_it(self):\n"
        "        with self.subTest(part=1):\n            self.fail('inner')\n"
    )
    document = make_one(body).record("it", expect=1)
    assert document["outcome"] == "failed"


def test_u04_every_phase_counts(make_one):
    body = (
        "import pytest\n\n@pytest.fixture\ndef broken():\n    raise OSError\n\n@pytest.fixture\ndef late():\n    yield\n    raise OSError\n\n"
        "def test_setup(broken):\n    pass\n\ndef test_teardown(late):\n    pass\n\n"
        "@pytest.mark.xfail(strict=True)\ndef test_strict():\n    pass\n\n@pytest.mark.xfail\ndef test_xfail():\n    assert 0\n\n"
        "@pytest.mark.xfail\ndef test_xpass():\n    pass\n\n@pytest.mark.skip\ndef test_skip():\n    pass\n\n"
        "def test_skip_inside():\n    pytest.skip('inside')\n"
    )
    project = make_one(body)
    document = project.record("it", expect=1)
    counts = project.receipt(document["record"])["counts"]
    assert counts == {
        "collected": 7,
        "passed": 0,
        "failed": 1,
        "error": 2,
        "skipped": 2,
        "xfailed": 1,
        "xpassed": 1,
        "deselected": 0,
    }


def test_u05_any_other_command_line_is_incomplete(make_one):
    project = make_one(PASSING + "def test_second():\n    pass\n")
    for words in (["-k", "first"], ["--lf"], ["tests/test_it.py::test_first"], ["-x"]):
        document = project.record("it", "--", "pytest", "-q", "tests", *words, expect=1)
        assert document["outcome"] == "incomplete", words
        assert "other-command" in document["reasons"]
    assert (
        project.record("it", "--", "pytest", "-vv", "--tb=short", "-p", "no:randomly", "tests")["outcome"]
        == "passed"
    )
    document = project.record("it", env={"PYTEST_ADDOPTS": "-q -k first"}, expect=1)
    assert document["outcome"] == "incomplete"
    assert "other-command" in document["reasons"]
    looks = "-q -vv -ra -r fE --color=yes --tb short -p no:cacheprovider -pno:cacheprovider --durations=3"
    assert project.record("it", env={"PYTEST_ADDOPTS": looks})["outcome"] == "passed"


def test_a_mode_of_ci_by_a_key_that_is_no_runners_is_warned_of_before_the_run_and_counts_for_nothing(make_project):
    project = make_project(LINT)
    done = project.ledger("record", "--shard", "lint", "--mode", "ci", "--json")
    assert done.err.startswith("warning: mode ci counts only by a runner's key that policy.ci_key_fingerprints")
    assert project.verify() == ("failed", {"policy"})
    key = project.receipt(done.document["record"])["signer"]["key_fingerprint"]
    project.repo.commit({".gitledger/config.yaml": f"{LINT}policy: {{ci_key_fingerprints: ['{key}']}}\n"})
    done = project.ledger("record", "--shard", "lint", "--mode", "ci")
    assert "warning" not in done.err
    assert project.verify() == ("passed", set())


# --- other kinds of results -------------------------------------------------------------------------------------


def test_any_command_can_be_a_shard(make_project):
    config = "version: 1\nrepository: demo\nshards:\n  lint: {command: python -c 'raise SystemExit(3)', results: exit-status}\n"
    project = make_project(config)
    document = project.record("lint", expect=3)
    assert document["outcome"] == "failed"
    assert project.verify() == ("failed", {"not-green"})


@pytest.mark.parametrize("report", ["report.xml", "'*.xml'"])
def test_a_junit_report_must_be_written_by_the_run(make_project, report):
    """New permissions on what an earlier run left are no writing."""
    line = 'test -z "$SKIP" && pytest -q --junit-xml=report.xml tests; chmod a+r report.xml'
    config = (
        "version: 1\nrepository: demo\nshards:\n  it:\n    paths: [tests]\n"
        f"    command: [sh, -c, '{line}']\n    results: {{junit: {report}}}\n"
    )
    files = {"tests/test_it.py": PASSING, ".gitignore": "__pycache__/\n.pytest_cache/\nreport.xml\n"}
    project = make_project(config, files)
    assert project.record("it")["outcome"] == "passed"
    document = project.record("it", env={"SKIP": "1"}, expect=1)
    assert "report-stale" in document["reasons"]


def test_a_report_recorded_after_the_fact_is_unwitnessed_and_does_not_count(make_one):
    project = make_one(PASSING)
    report = project.path.parent / "report.xml"
    report.write_text(
        '<testsuite name="x" tests="1"><testcase classname="tests.test_it" name="test_first" time="0.1"/></testsuite>'
    )
    document = project.record("it", "--junit", str(report))
    assert document["stored"] is True
    assert project.receipt(document["record"])["session"]["witnessed"] is False
    assert project.plan() == {"it": ("stale", "unwitnessed")}
    failing = '<testsuite name="x" tests="1"><testcase classname="t" name="b"><failure/></testcase></testsuite>'
    report.write_text(failing)
    assert project.record("it", "--junit", str(report), expect=1)["outcome"] == "failed"


@pytest.mark.parametrize("file", ["nope.xml", "out/*.xml"])
def test_a_report_that_is_not_there_is_an_error_and_no_red_run_that_uses_up_an_attempt(make_one, file):
    project = make_one(PASSING)
    done = project.ledger("record", "--shard", "it", "--junit", file, expect=2)
    assert done.err.startswith(f"error: --junit '{file}': there is no such file")
    assert "[report-missing]" in done.err
    assert project.plan() == {"it": ("stale", "never-recorded")}
    assert project.ledger("show", "--json").document["records"] == []


def test_an_attempt_is_counted_by_the_receipts_of_that_shard_on_that_commit(make_project):
    project = make_project(
        "version: 1\nrepository: demo\nshards:\n"
        "  a: {paths: [src], command: 'true', results: exit-status, variants: [x, y]}\n"
        "  ab: {paths: [src], command: 'true', results: exit-status}\n",
        {"src/a.py": "a = 1\n"},
    )
    ref = "--ref=gitledger/records"

    def attempts(*words: str) -> int:
        return project.receipt(project.ledger("record", *words, "--json").document["record"])["shard"]["attempt"]

    x = ("--shard", "a", "--variant", "x")
    assert [attempts(*x), attempts(*x), attempts("--shard", "a", "--variant", "y"), attempts("--shard", "ab")] == [
        1,
        2,
        1,
        1,
    ]
    lines = project.repo.git("notes", ref, "show", "HEAD")
    project.repo.commit({"README.md": "x\n"})
    project.repo.git("notes", ref, "add", "-m", f"{lines}\ngarbage", "HEAD")
    assert attempts(*x) == 1, "what speaks of another commit counts there"
    assert attempts(*x) == 2


def test_pytest_ledger_hands_over_to_the_one_recorder(make_one):
    import subprocess

    project = make_one(PASSING)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--ledger",
        "--ledger-shard",
        "it",
        "-q",
        "-p",
        "no:randomly",
        "tests",
    ]
    done = subprocess.run(
        command, cwd=project.path, env=dict(project.repo.env), capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done
    assert "git ledger: recorded it" in done.stderr


# --- what the repository does meanwhile -------------------------------------------------------------------------


def test_dirt_is_recorded_whether_it_was_there_or_came(make_one):
    project = make_one(PASSING)
    project.repo.write("new.txt", "x")
    assert project.receipt(project.record("it")["record"])["repo"]["dirty"] is True
    (project.path / "new.txt").unlink()
    body = (
        "import pathlib\n\ndef test_it():\n    pathlib.Path(__file__).write_text('def test_it():\\n    pass\\n')\n"
    )
    project.repo.commit({"tests/test_it.py": body})
    assert project.receipt(project.record("it")["record"])["repo"]["dirty"] is True


def test_an_edit_that_the_run_takes_back_is_dirt_all_the_same(make_one):
    project = make_one("def test_it():\n    open('notes.txt', 'w').close()\n")
    project.repo.commit({"notes.txt": ""})
    project.repo.write("notes.txt", "edited")
    document = project.record("it")
    assert project.repo.git("status", "--porcelain", "--untracked-files=no") == ""
    claim = project.receipt(document["record"])["repo"]
    assert (claim["dirty"], claim["dirty_paths"]) == (True, ["notes.txt"])


@pytest.mark.parametrize("moves", [True, False])
def test_a_look_that_was_begun_on_another_commit_is_made_anew(make_one, moves):
    project = make_one(PASSING)
    env = dict(project.repo.env)
    session = open_session(project.path, environ=env, home=Path(env["HOME"]), now=lambda: datetime.now(UTC))
    edits = Edits(session.repo.git)
    assert not edits.survey().seen.dirty
    if moves:
        project.repo.commit({"tests/test_other.py": PASSING})
    project.repo.write("tests/test_it.py", "edited")
    head = head_of(session)
    definition = Definition.of(read_config(session.repo, head), ShardKey("it"))
    before = look(session, definition, edits=edits)
    assert (before.head, before.state.changed) == (head, ("tests/test_it.py",) if moves else ())


@pytest.mark.parametrize("noted", [True, False])
def test_a_file_that_comes_after_an_early_look_and_before_the_start_is_dirt(make_one, noted):
    """A look is begun while the recorder loads: pytest took up a `conftest.py` that had come meanwhile."""
    made = "" if noted else "    import pathlib, shutil\n    shutil.rmtree('.git/gitledger/flight')\n"
    project = make_one(f"def test_it():\n{made}    open('made.txt', 'w').close()\n")
    env = dict(project.repo.env)
    session = open_session(project.path, environ=env, home=Path(env["HOME"]), now=lambda: datetime.now(UTC))
    edits = Edits(session.repo.git)
    assert not edits.survey().seen.dirty
    project.repo.write("tests/conftest.py", "")
    request = request_of(read_config(session.repo, head_of(session)), Asked(shard="it"))
    done = record_alone(session, request, None, tell=lambda _: None, begun=lambda: edits)
    claim = done.receipt.repo
    came, created = ("tests/conftest.py",), ("made.txt",)
    assert (claim.dirty, claim.dirty_paths, claim.created) == (
        (True, came, created) if noted else (True, created + came, ())
    )


def test_files_that_the_run_creates_are_listed_and_are_no_dirt(make_one):
    project = make_one("def test_it():\n    open('made.txt', 'w').close()\n")
    repo = project.receipt(project.record("it")["record"])["repo"]
    assert (repo["dirty"], repo["created"]) == (False, ["made.txt"])


def test_head_that_moves_during_the_run_makes_it_incomplete(make_one):
    body = "import subprocess\n\ndef test_it():\n    subprocess.run(['git', 'commit', '-q', '--allow-empty', '-m', 'x'], check=True)\n"
    project = make_one(body)
    document = project.record("it", expect=1)
    assert (document["outcome"], document["reasons"]) == ("incomplete", ["head-moved"])


def test_head_that_was_elsewhere_during_the_run_makes_it_incomplete_though_it_came_back(make_one):
    """What was read meanwhile was another commit's: tests import late, and read data when they run."""
    body = (
        "import subprocess\n\ndef test_it():\n    for words in (['commit', '-q', '--allow-empty', '-m', 'x'], "
        "['reset', '-q', '--hard', 'HEAD~1']):\n        subprocess.run(['git', *words], check=True)\n"
    )
    project = make_one(body)
    document = project.record("it", expect=1)
    assert (document["outcome"], document["reasons"]) == ("incomplete", ["head-moved"])


def test_extra_inputs_are_bound_by_content(make_project):
    config = "version: 1\nrepository: demo\nshards:\n  it: {paths: [tests], extra_paths: [built.so], command: pytest -q tests}\n"
    files = {"tests/test_it.py": PASSING, ".gitignore": "__pycache__/\n.pytest_cache/\nbuilt.so\n"}
    project = make_project(config, files)
    assert "built.so" in project.ledger("record", "--shard", "it", expect=2).err
    project.repo.write("built.so", b"\x7fELF one")
    project.record("it")
    assert project.verify() == ("passed", set())
    project.repo.write("built.so", b"\x7fELF two")
    assert project.verify() == ("failed", {"extra-changed"})
    (project.path / "built.so").unlink()
    assert project.verify() == ("passed", set())
    codes = {item["code"] for item in project.ledger("verify", "--json").document["findings"]}
    assert codes == {"extra-not-rechecked"}


# --- keys and the store -----------------------------------------------------------------------------------------


def test_the_command_never_sees_a_key(make_one):
    body = "import os\n\ndef test_it():\n    assert 'GITLEDGER_SIGNING_KEY' not in os.environ\n    assert 'SSH_AUTH_SOCK' not in os.environ\n"
    assert make_one(body).record("it", env={"SSH_AUTH_SOCK": "/nowhere"})["outcome"] == "passed"


def test_without_a_key_nothing_runs(make_one):
    project = make_one("def test_it():\n    open('ran', 'w').close()\n")
    done = project.ledger("record", "--shard", "it", env={"GITLEDGER_SIGNING_KEY": ""}, expect=2)
    assert "no-key" in done.err
    assert "ssh-keygen" in done.err
    assert not (project.path / "ran").exists()


def test_an_unsigned_receipt_is_stored_and_never_counts_in_restricted_mode(make_one):
    project = make_one(PASSING)
    project.record("it", "--unsigned", env={"GITLEDGER_SIGNING_KEY": ""})
    assert project.plan() == {"it": ("stale", "untrusted")}


def test_a_receipt_that_can_not_be_stored_is_exit_3_and_best_effort_is_the_childs(make_one):
    project = make_one(PASSING)
    for ref in ("refs/notes/gitledger", "refs/gitledger"):  # neither the notes nor their inbox can be made
        project.repo.git("update-ref", ref, "HEAD")
    document = project.record("it", expect=3)
    assert (document["stored"], document["outcome"], document["exit_status"]) == (False, "passed", 3)
    done = project.ledger("record", "--shard", "it", "--best-effort")
    assert "ref-conflict" in done.err
    assert "NOT STORED" in done.err.splitlines()[-1]


def test_a_receipt_that_the_notes_can_not_take_is_kept_beside_them_and_folded_in_by_the_next(make_one):
    project = make_one(PASSING)
    project.repo.git("symbolic-ref", "refs/notes/gitledger/records", "refs/heads/main")
    done = project.ledger("record", "--shard", "it")
    assert "git symbolic-ref --delete refs/notes/gitledger/records" in done.err
    assert "kept in refs/gitledger/inbox/" in done.err
    assert "recorded it: passed" in done.err.splitlines()[-1]
    project.repo.git("symbolic-ref", "--delete", "refs/notes/gitledger/records")
    assert project.plan() == {"it": ("fresh", "recorded")}
    project.record("it")
    assert project.repo.git("for-each-ref", "refs/gitledger/inbox") == ""
    assert len(project.repo.git("notes", "--ref=gitledger/records", "show", "HEAD").split()) == 2


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--shard", "ti"], "unknown-shard"),
        (["--shard", "it@x"], "unknown-shard"),
        (["--shard", "a b"], "bad-shard-name"),
        (["--shard", "it", "--paths", "x"], "shard-declared"),
        (["--shard", "it", "--timeout", "soon"], "bad-duration"),
        (["--shard", "new", "--paths", "missing", "--", "true"], "pattern-unmatched"),
        (["--shard", "new", "--paths", "../x", "--", "true"], "path-outside"),
        (["--shard", "new", "--paths", "tests"], "no-command"),
        (["--shard", "it", "--key", "nowhere"], "key-unreadable"),
        (["--shard", "new", "--paths", "tests", "--", "no-such-command"], "command-not-found"),
    ],
)
def test_words_that_make_no_sense_are_one_clear_error(make_one, args, code):
    done = make_one(PASSING).ledger("record", *args, expect=2)
    assert f"[{code}]" in done.err
    assert len(done.err.splitlines()) == 1


def test_interrupts_end_the_child_and_still_leave_a_receipt(make_one, tmp_path: Path):
    import subprocess
    import time

    project = make_one(
        PASSING + "def test_it():\n    import time\n    open('../started', 'w').close()\n    time.sleep(60)\n"
    )
    child = subprocess.Popen(
        ["git-ledger", "record", "--shard", "it", "--json"],
        cwd=project.path,
        env=dict(project.repo.env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGTERM)
    out, err = child.communicate(timeout=60)
    assert b'"stored": true' in out, err
    assert child.returncode != 0
    assert project.verify()[0] == "failed"


# --- what the recorder sees beside the tree ---------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [".pytest.ini", "conftest.py", "tests/conftest.py"])
def test_an_ignored_file_that_pytest_takes_for_its_configuration_is_dirt(make_one, hidden):
    project = make_one(PASSING + "def test_bad():\n    assert 0\n")
    project.repo.commit({".gitignore": f"__pycache__/\n.pytest_cache/\n/{hidden}\n"})
    text = (
        "[pytest]\naddopts = -k first\n"
        if hidden.endswith("ini")
        else "def pytest_pyfunc_call():\n    return True\n"
    )
    project.repo.write(hidden, text)
    document = project.record("it")
    repo = project.receipt(document["record"])["repo"]
    assert (repo["dirty"], repo["dirty_paths"]) == (True, [hidden])
    assert project.verify() == ("failed", {"dirty"})


@pytest.mark.parametrize("variable", [{"PYTEST_PLUGINS": "evil"}, {"PYTHONOPTIMIZE": "1"}])
def test_variables_that_change_what_pytest_runs_are_another_command(make_one, tmp_path: Path, variable):
    (tmp_path / "evil.py").write_text("def pytest_pyfunc_call():\n    return True\n")
    project = make_one(PASSING)
    document = project.record("it", env=variable | {"PYTHONPATH": str(tmp_path)}, expect=1)
    assert "other-command" in document["reasons"]


def test_a_wrapper_named_pytest_that_adds_words_is_another_command(make_one, tmp_path: Path):
    wrapper = tmp_path / "bin/pytest"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest -k first "$@"\n')
    wrapper.chmod(0o755)
    project = make_one(PASSING + "def test_bad():\n    assert 0\n")
    path = f"{wrapper.parent}{os.pathsep}{project.repo.env['PATH']}"
    document = project.record("it", env={"PATH": path}, expect=1)
    assert "other-command" in document["reasons"]


def test_tests_of_another_folder_are_not_the_trees(make_one, tmp_path: Path):
    project = make_one("def test_bad():\n    assert 0\n")
    (tmp_path / "elsewhere/tests").mkdir(parents=True)
    (tmp_path / "elsewhere/tests/test_it.py").write_text(PASSING)
    wrapper = tmp_path / "bin/pytest"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\ncd {tmp_path}/elsewhere && exec {sys.executable} -m pytest "$@"\n')
    wrapper.chmod(0o755)
    path = f"{wrapper.parent}{os.pathsep}{project.repo.env['PATH']}"
    document = project.record("it", env={"PATH": path}, expect=1)
    assert "config-outside" in document["reasons"]


def test_deselected_tests_are_never_passed_over_in_silence(make_project):
    config = "version: 1\nrepository: demo\nshards:\n  it: {paths: [tests], command: pytest -q tests -k first}\n"
    project = make_project(config, {"tests/test_it.py": PASSING + "def test_bad():\n    assert 0\n"})
    project.record("it")
    findings = project.ledger("verify", "--json").document["findings"]
    assert [(item["code"], item["found"].split()[0]) for item in findings] == [("deselected-tests", "1")]


def test_before_the_first_commit_every_command_says_so(make_repo, make_project, tmp_path: Path):
    project = make_project()
    empty = type(project)(make_repo("empty"), project.keys)
    for command in ("plan", "verify", "merge", "status"):
        assert "[no-commit]" in empty.ledger(command, expect=2).err
