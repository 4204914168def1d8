"""`record --trace`: what no observer in Python sees is named, refused and proposed like all that was read."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gitledger.machine.trace import Tracing

pytestmark = pytest.mark.usefixtures("tracer")

CONFIG = """\
version: 1
repository: demo
shards:
  unit: {{paths: {unit}, command: pytest -q tests}}
  lint: {{paths: {lint}, command: sh lint.sh, results: exit-status}}
  suite: {{paths: [suite.sh], command: sh suite.sh, results: {{junit: report.xml}}}}
policy:
  allow_carried: true
  require_observed_scope: true
"""
FILES = {
    "data/open.txt": "1",
    "data/cat.txt": "2",
    "data/map.txt": "3",
    "data/base.db": "",
    "rules/lint.txt": "4",
    "lint.sh": "cat rules/lint.txt && echo done > made.log && cat made.log\n",
    "suite.sh": (
        'cat data/cat.txt && echo \'<testsuite><testcase classname="a" name="b" time="0"/></testsuite>\''
        " > report.xml\n"
    ),
    "tests/test_unit.py": (
        "import ctypes, sqlite3, subprocess\n\n"
        "def test_open():\n    assert ctypes.CDLL(None).fopen(b'data/open.txt', b'r')\n\n"
        "def test_map():\n"
        "    libc = ctypes.CDLL(None)\n"
        "    fd = libc.open(b'data/map.txt', 0)\n"
        "    assert libc.mmap(None, 1, 1, 2, fd, 0)\n\n"
        "def test_base():\n    sqlite3.connect('file:data/base.db?mode=ro', uri=True).execute('select 1')\n\n"
        "def test_cat():\n    assert subprocess.check_output(['cat', '-u', 'data/cat.txt'])\n"
    ),
    "pyproject.toml": "",
    ".gitignore": "__pycache__/\n.pytest_cache/\nmade.log\nreport.xml\n",
}
TIGHT = CONFIG.format(unit="[tests]", lint="[lint.sh]")
UNSEEN = ["data/cat.txt", "data/map.txt", "data/open.txt"]


@pytest.fixture
def leaky(make_project):
    return make_project(TIGHT, FILES)


def outside(project, shard: str, *args: str, **known) -> list[str] | None:
    return project.receipt(project.record(shard, *args, **known)["record"])["manifest"].get("outside")


def test_f01_what_compiled_code_and_children_open_is_a_leak(leaky):
    assert outside(leaky, "unit") == ["data/base.db"]  # the observer is told of databases
    done = leaky.ledger("record", "--shard", "unit", "--json", "--trace")
    assert (
        "leaky: read outside the declared scope: data/base.db, data/cat.txt, data/map.txt, data/open.txt"
        in done.err
    )
    receipt = leaky.receipt(done.document["record"])
    assert receipt["manifest"]["outside"] == ["data/base.db", *UNSEEN]
    assert receipt["session"]["argv"] == ["pytest", "-q", "tests"]
    assert (receipt["outcome"], receipt["reasons"]) == ("passed", [])
    assert leaky.ledger("scope", "unit", "--json").document["proposed"]["paths"] == ["data", "tests"]


def test_shards_without_pytest_are_observed_and_mended(leaky):
    assert outside(leaky, "lint") is None
    assert leaky.plan()["lint"] == ("stale", "leaky")
    assert outside(leaky, "lint", "--trace") == ["rules/lint.txt"]
    assert outside(leaky, "suite", "--trace") == ["data/cat.txt"]
    document = leaky.ledger("scope", "lint", "--json").document
    assert document["proposed"] == {"extra_paths": [], "paths": ["lint.sh", "rules"]}
    assert (document["outside"], document["roots_known"]) == (["rules/lint.txt"], False)
    leaky.repo.commit({".gitledger/config.yaml": CONFIG.format(unit="[tests, data]", lint="[lint.sh, rules]")})
    leaky.record("lint", "--trace")
    assert leaky.plan()["lint"] == ("fresh", "recorded")
    leaky.repo.commit({"data/open.txt": "other"})
    assert leaky.plan()["lint"] == ("carryable", "unchanged")
    leaky.repo.commit({"rules/lint.txt": "other"})
    assert leaky.plan()["lint"][0] == "stale"


def test_statuses_and_other_commands_stay_as_they_are(leaky):
    ends = (
        ("exit 7", 7, None, "failed", ["test-failed"]),
        ("kill -TERM $$", 143, 15, "failed", ["test-failed", "signal"]),
    )
    for line, status, number, outcome, reasons in ends:
        document = leaky.record("lint", "--trace", "--", "sh", "-c", line, expect=status)
        assert (document["outcome"], document["signal"]) == (outcome, number)
        assert document["reasons"] == [*reasons, "other-command"]
    document = leaky.record("lint", "--trace", "--timeout", "1s", "--", "sleep", "60", expect=124)
    assert "timeout" in document["reasons"]
    done = leaky.ledger("record", "--shard", "lint", "--trace", "--", "no-such-program", expect=2)
    assert "[command-not-found]" in done.err


def test_an_interruption_is_recorded_and_not_observed(leaky):
    words = ["git-ledger", "record", "--shard", "lint", "--json", "--trace", "--"]
    begun = leaky.path / ".git/begun"
    started = subprocess.Popen(
        [*words, "sh", "-c", f"echo > {begun}; sleep 60"],
        cwd=leaky.path,
        env=dict(leaky.repo.env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 30
    while not begun.exists() and time.monotonic() < until:
        time.sleep(0.02)
    started.send_signal(signal.SIGTERM)
    _, err = started.communicate(timeout=30)
    assert started.returncode == 143
    assert "not observed: the run was interrupted" in err
    assert "interrupted" in err


def test_without_a_tracer_nothing_runs(leaky, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "strace").write_text(
        "#!/bin/sh\necho 'strace: PTRACE_TRACEME: Operation not permitted' >&2; exit 1\n"
    )
    (tools / "strace").chmod(0o755)
    env = {"PATH": f"{tools}{os.pathsep}{leaky.repo.env['PATH']}"}
    done = leaky.ledger("record", "--shard", "lint", "--trace", expect=2, env=env)
    assert "[trace-unavailable]" in done.err
    assert "Operation not permitted" in done.err
    assert not (leaky.path / "made.log").exists()
    assert "no records" in leaky.ledger("show", "--json", expect=None).err or not records(leaky)


def records(project) -> list[object]:
    return project.ledger("show", "--json").document["records"]


def test_the_option_needs_a_command(leaky):
    for args in (["--shard", "suite", "--junit", "report.xml"], ["--capability", "x.json"]):
        assert "[usage]" in leaky.ledger("record", "--trace", *args, expect=2).err


def test_a_killed_tracer_leaves_the_run_unobserved(leaky):
    """Nothing is narrower for it: neither what the observer saw, nor a part of the trace, is taken for all."""
    kill = "kill -KILL $(sed -n 's/TracerPid:\\s*//p' /proc/$$/status); sleep 0.1; exit 0"
    done = leaky.ledger("record", "--shard", "lint", "--json", "--trace", "--", "sh", "-c", kill, expect=None)
    assert "not observed: the trace breaks off" in done.err
    assert leaky.receipt(done.document["record"])["manifest"].get("outside") is None


def test_a_trace_over_its_bound_leaves_the_run_unobserved(make_session_run):
    run = make_session_run(max_bytes=500)
    assert run.inputs is None
    assert run.result.outcome.value == "passed"
    assert any("longer than" in note for note in run.result.notes)
    assert make_session_run(max_bytes=1 << 20).inputs.paths == ("data/cat.txt", "suite.sh")


@pytest.fixture
def make_session_run(leaky, monkeypatch):
    """Return what executes the shard `suite` traced, in this process, with another bound on traces."""
    from dataclasses import replace
    from datetime import UTC, datetime

    from gitledger.workflows import traced
    from gitledger.workflows.asked import Asked, request_of
    from gitledger.workflows.execute import execute
    from gitledger.workflows.record import look
    from gitledger.workflows.session import open_session
    from gitledger.workflows.trusted import read_config

    def run(*, max_bytes: int):
        env = dict(leaky.repo.env)
        session = open_session(leaky.path, environ=env, home=Path(env["HOME"]), now=lambda: datetime.now(UTC))
        request = request_of(read_config(session.repo, session.repo.head()), Asked(shard="suite"))
        with monkeypatch.context() as patch:
            patch.setattr(traced, "Tracing", lambda tracer, folder: Tracing(tracer, folder, max_bytes))
            return execute(session, replace(request, trace=True), look(session, request.definition))

    return run
