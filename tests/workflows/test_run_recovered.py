"""What runs had come to whose driver was killed before it could record them (R18, R22), with real processes.

The driver is stopped, its shard ends under its keeper alone, and then the driver is killed: it never knew.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitledger.store.leftovers import sweep_folders

UNTIL_GO = (
    "touch $OUT/on; n=0; until test -e $OUT/go; do n=$((n+1)); test $n -lt 1500 || exit 99; sleep 0.02; done"
)


def one(line: str, more: str = "") -> str:
    """Return the configuration of one shard that says it runs, waits for `$OUT/go`, and does what `line` says."""
    shard = f"{{paths: [src], command: [sh, -c, 'echo it >> $OUT/ran; {UNTIL_GO}; {line}'], results: exit-status}}"
    return f"version: 1\nrepository: demo\nshards:\n  it: {shard}\n{more}"


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    assert found
    return found


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture
def strand() -> Iterator[Callable[..., None]]:
    """Run a project's shards until one waits, stop the driver, let the shard end, and kill the driver."""
    drivers: list[subprocess.Popen[bytes]] = []

    def run_and_kill(project, *command: str, ends: bool = True) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        words = ["git-ledger", *(command or ("run",))]
        driver = subprocess.Popen(words, cwd=project.path, env=dict(project.repo.env), **quiet)
        drivers.append(driver)
        until((project.out / "on").exists)
        os.kill(driver.pid, signal.SIGSTOP)
        if ends:
            (project.out / "go").touch()
            until(lambda: list(flight(project).glob("*.end")))
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait(60)
        (project.out / "go").touch()

    yield run_and_kill
    for driver in drivers:
        driver.kill()
        driver.wait(60)


def flight(project) -> Path:
    return project.path / ".git/gitledger/flight"


def attempts(project) -> list[dict[str, Any]]:
    """Return the receipts of the only shard, the oldest first."""
    [row] = project.ledger("plan", "--json").document["shards"]
    return [project.receipt(record) for record in reversed(row["attempts"])]


@pytest.mark.parametrize(
    ("line", "status", "number"), [("exit 7", 7, None), ("ulimit -c 0; kill -SEGV $$", None, 11)]
)
def test_r22_a_command_that_failed_before_its_driver_was_killed_has_failed(driven, strand, line, status, number):
    """Else the next run would take it for one that was interrupted, and might turn green."""
    project = driven(one(line, "policy: {max_attempts: 1}\n"))
    strand(project)

    said = project.ledger("run", expect=1)

    [first] = attempts(project)
    assert (first["outcome"], first["session"]["exit_status"], first["session"]["signal"]) == (
        "failed",
        status,
        number,
    )
    assert "interrupted" not in first["reasons"]
    assert "recorded what it had come to when its driver was killed: 0 passed and 1 failed of 1" in said.err
    assert project.ran() == ["it"], "there is no attempt left for it"
    assert list(flight(project).iterdir()) == []


def test_r18_r22_what_had_passed_before_its_driver_was_killed_is_not_run_again(driven, strand):
    project = driven(one("exit 0"))
    strand(project)

    done = project.run()

    assert (done.exit_status, done.results, project.ran()) == (0, {}, ["it"])
    assert "1 passed and 0 failed of 1" in project.watch.heard[-1]
    assert project.verify()[0] == "passed"
    [only] = attempts(project)
    assert only["session"]["exit_status"] == 0
    assert list(flight(project).iterdir()) == []


SUITE = """\
import os, pathlib, time

def test_fine():
    pass

def test_waits():
    out = pathlib.Path(os.environ["OUT"])
    with (out / "ran").open("a") as file:
        file.write("it\\n")
    (out / "on").touch()
    end = time.monotonic() + 60
    while not (out / "go").exists() and time.monotonic() < end:
        time.sleep(0.02)
"""
PYTEST = (
    "version: 1\nrepository: demo\nshards:\n  it: {paths: [src, tests], command: python -m pytest -q --cov=src tests}\n"
    "coverage: {fail_under: 1}\n"
)


def test_r18_r22_a_pytest_shard_is_recorded_whole_as_its_driver_would_have(driven, strand):
    files = {
        "tests/test_it.py": "import src.a\n" + SUITE,
        "src/a.py": "x = 1\n",
        ".gitignore": "__pycache__/\n.pytest_cache/\n",
    }
    project = driven(PYTEST, files)
    strand(project)

    done = project.run()

    assert (done.exit_status, done.results, project.ran()) == (0, {}, ["it"])
    [only] = attempts(project)
    assert (only["outcome"], only["counts"]["passed"], only["session"]["finished"]) == ("passed", 2, True)
    assert {"tests", "coverage", "inputs", "log"} <= set(only["bodies"])
    assert project.verify()[0] == "passed"


JUNIT = "<testsuite><testcase classname='c' name='t'/></testsuite>"


@pytest.mark.parametrize("is_written_anew", [False, True])
def test_r18_a_report_is_the_runs_own_only_where_nobody_wrote_it_later(driven, strand, is_written_anew):
    script = f'echo it >> $OUT/ran; {UNTIL_GO}; echo "{JUNIT}" > report.xml\n'
    shard = "{paths: [src], command: [sh, src/it.sh], results: {junit: report.xml}}"
    project = driven(
        f"version: 1\nrepository: demo\nshards:\n  it: {shard}\n",
        {"src/it.sh": script, ".gitignore": "report.xml\n"},
    )
    strand(project)
    if is_written_anew:
        time.sleep(0.05)  # several ticks of the clock that stamps files
        (project.path / "report.xml").write_text(JUNIT)

    assert project.run().exit_status == 0

    outcomes = [item["outcome"] for item in attempts(project)]
    assert outcomes == (["incomplete", "passed"] if is_written_anew else ["passed"])
    assert project.ran() == ["it"] * len(outcomes)


TOUCH = {
    "an edit that was taken back": lambda project: restored(project, "src/a.py"),
    "another version of ours": lambda project: renoted(project, version="0.0.0"),
    "another machine on the same disk": lambda project: renoted(project, host="another"),
    "other inputs": lambda project: renoted(project, manifest="0" * 64),
    "a clock that was set meanwhile": lambda project: prolonged(project),
    "its folder gone": lambda project: shutil.rmtree(json.loads(note(project).read_text())["folder"]),
    "no end known": lambda project: next(flight(project).glob("*.end")).unlink(),
}


def note(project) -> Path:
    [found] = flight(project).glob("*.json")
    return found


def renoted(project, **changes: str) -> None:
    note(project).write_text(json.dumps(json.loads(note(project).read_text()) | changes))


def prolonged(project) -> None:
    """Let the command have lasted an hour by the clock that nobody sets."""
    [file] = flight(project).glob("*.end")
    status, rss, reason, duration_ns, ended_ns = file.read_text().split()
    file.write_text(f"{status} {rss} {reason} {int(duration_ns) + 3600 * 10**9} {ended_ns}\n")


def restored(project, path: str) -> None:
    file = project.path / path
    before, times = file.read_text(), file.stat()
    file.write_text("other\n")
    file.write_text(before)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_r18_a_zero_counts_only_where_all_that_a_normal_end_looks_at_is_as_it_was(driven, strand):
    project = driven(one("exit 0"))
    for number, (what, touch) in enumerate(TOUCH.items()):
        for name in ("on", "go", "ran"):
            (project.out / name).unlink(missing_ok=True)
        project.repo.commit({"src/a.py": f"{number}\n"})
        strand(project)
        touch(project)

        done = project.run()

        assert (done.exit_status, project.ran()) == (0, ["it", "it"]), what
        first, second = attempts(project)
        assert (first["outcome"], second["outcome"]) == ("incomplete", "passed"), what
        assert "interrupted" in first["reasons"], what


def test_r22_what_a_killed_driver_took_along_was_interrupted_and_did_not_fail(driven, strand):
    project = driven(one("exit 0"))
    strand(project, ends=False)

    assert project.run().exit_status == 0

    first, second = attempts(project)
    assert (first["outcome"], first["counts"]["failed"]) == ("incomplete", 0)
    assert second["outcome"] == "passed"
    assert project.ledger("flaky", "--json").document == []


def test_r18_of_a_run_on_another_commit_a_failure_is_recorded_there_and_nothing_else(driven, strand):
    project = driven(one("exit 7"))
    was = project.repo.git("rev-parse", "HEAD")
    strand(project)
    project.repo.commit({"src/a.py": "2\n"})

    assert project.run().exit_status == 1

    [there] = project.ledger("plan", was, "--json").document["shards"]
    assert [project.receipt(record)["repo"]["commit"] for record in there["attempts"]] == [was]
    assert [item["repo"]["commit"] for item in attempts(project)] == [project.repo.git("rev-parse", "HEAD")]


def test_r18_of_a_success_on_another_commit_nothing_is_said(driven, strand):
    project = driven(one("exit 0"))
    was = project.repo.git("rev-parse", "HEAD")
    strand(project)
    project.repo.commit({"src/a.py": "2\n"})

    assert project.run().exit_status == 0

    [there] = project.ledger("plan", was, "--json").document["shards"]
    assert there["attempts"] == []


def test_r18_the_next_driver_may_keep_its_temporary_files_elsewhere(driven, strand, tmp_path):
    """A batch system gives each job a TMPDIR of its own."""
    project = driven(one("exit 0"))
    strand(project)
    other = tmp_path / "other"
    other.mkdir()

    said = project.ledger("run", env={"TMPDIR": str(other)})

    assert "recorded what it had come to when its driver was killed: 1 passed" in said.err
    assert project.ran() == ["it"]


def test_r18_what_a_dead_run_left_waits_for_its_record_however_long(driven, strand, tmp_path):
    """Other leavings of ours are swept after two days: a weekend would make a failure forgotten."""
    project = driven(one("exit 0"))
    strand(project)
    folder = Path(json.loads(next(flight(project).glob("*.json")).read_text())["folder"])
    long_ago = time.time() - 3 * 24 * 3600
    for path in (folder, *folder.iterdir()):
        os.utime(path, (long_ago, long_ago))

    sweep_folders(folder.parent)
    assert folder.exists()
    shutil.rmtree(flight(project))
    sweep_folders(folder.parent)
    assert not folder.exists()


def test_a_receipt_that_was_stored_right_before_the_kill_is_not_made_twice(driven, strand):
    project = driven(one("exit 0"))
    strand(project)
    kept = project.path.parent / "kept"
    shutil.copytree(flight(project), kept)
    project.run()
    [row] = project.ledger("plan", "--json").document["shards"]
    shutil.copytree(kept, flight(project), dirs_exist_ok=True)
    next(flight(project).glob("*.json")).with_suffix(".record").write_text(row["record"])

    project.run()

    assert len(attempts(project)) == 1
    assert list(flight(project).iterdir()) == []


RECORD = ("record", "--shard", "it")


@pytest.mark.parametrize("command", [("run",), RECORD])
def test_r22_a_record_that_was_killed_loses_nothing_either(driven, strand, command):
    project = driven(one("test -e $OUT/good || exit 7"))
    strand(project, *RECORD)
    (project.out / "good").touch()

    said = project.ledger(*command)

    assert "recorded what it had come to when its driver was killed: 0 passed and 1 failed of 1" in said.err
    assert [item["outcome"] for item in attempts(project)] == ["failed", "passed"]
    assert list(flight(project).iterdir()) == []


def test_a_record_that_was_killed_on_a_dirty_tree_is_as_dirty_as_it_would_have_been(driven, strand):
    project = driven(one("exit 0"))
    project.repo.write("src/a.py", "edited\n")
    project.repo.write("src/new.py", "")
    time.sleep(0.1)
    strand(project, *RECORD)

    project.ledger(*RECORD)

    first, second = attempts(project)
    assert (first["outcome"], first["repo"]) == (second["outcome"], second["repo"])
    assert first["repo"]["dirty_paths"] == ["src/a.py", "src/new.py"]


def test_a_record_that_lives_is_nobody_elses_to_record(driven):
    project = driven(one("exit 0"))
    living = subprocess.Popen(["git-ledger", *RECORD], cwd=project.path, env=dict(project.repo.env))
    try:
        until((project.out / "on").exists)
        killer = threading.Timer(1.0, (project.out / "go").touch)
        killer.start()
        said = project.ledger("run")
        assert "recorded what" not in said.err
        assert living.wait(60) == 0
    finally:
        living.kill()
        living.wait(60)
    assert [item["outcome"] for item in attempts(project)] == ["passed", "passed"]
    assert list(flight(project).iterdir()) == []


def test_what_could_not_be_stored_is_kept_and_made_into_a_receipt_by_the_next_run(driven):
    shard = "{paths: [src], command: [sh, -c, 'echo it >> $OUT/ran'], results: exit-status}"
    project = driven(f"version: 1\nrepository: demo\nshards:\n  it: {shard}\n")
    refs = ("refs/notes/gitledger", "refs/gitledger")  # neither the notes nor their inbox can be made
    for ref in refs:
        project.repo.git("update-ref", ref, "HEAD")
    first = project.run()
    for ref in refs:
        project.repo.git("update-ref", "-d", ref)

    second = project.run()

    assert (first.exit_status, second.exit_status, second.results, project.ran()) == (3, 0, {}, ["it"])
    assert "recorded what it had come to, which was not stored then: 1 passed" in project.watch.heard[-1]
    assert project.verify()[0] == "passed"


def test_a_run_that_can_not_be_noted_down_does_not_begin_and_leaves_nothing(driven):
    shard = "{paths: [src], command: [sh, -c, 'echo it >> $OUT/ran'], results: exit-status}"
    project = driven(f"version: 1\nrepository: demo\nshards:\n  it: {shard}\n")
    for name in ("flight", "logs"):
        place = project.path / ".git/gitledger" / name
        place.parent.mkdir(exist_ok=True)
        shutil.rmtree(place, ignore_errors=True)
        place.write_text("no folder")
        done = project.run()
        [fault] = done.faults.values()
        assert (fault.code, done.exit_status) == ("flight-unwritable" if name == "flight" else "log-unwritable", 2)
        assert (project.ran(), project.watch.begun) == ([], [])
        place.unlink()
    assert project.run().exit_status == 0


def test_halves_of_notes_that_never_were_are_swept_once_they_are_old(driven):
    shard = "{paths: [src], command: 'true', results: exit-status}"
    project = driven(f"version: 1\nrepository: demo\nshards:\n  it: {shard}\n")
    notes = flight(project)
    notes.mkdir(parents=True)
    for name in ("it.0a.half", "it@v.0b.end", "it.0b.end.half", "it.0c.record", "it.0d.half"):
        (notes / name).touch()
        if name != "it.0d.half":
            os.utime(notes / name, (1, 1))
    (notes / "it.py3.0e.json").touch()
    (notes / "it.py3.0e.end").touch()
    os.utime(notes / "it.py3.0e.end", (1, 1))

    project.run()

    assert sorted(path.name for path in notes.iterdir()) == ["it.0d.half", "it.py3.0e.end"]


LEAVES = "echo $$ > $OUT/main; setsid sh -c 'echo $$ > $OUT/orphan; exec sleep 300' & touch $OUT/on; sleep 300"


@pytest.mark.parametrize("command", [("run",), ("record", "--shard", "it")])
def test_r22_what_outlived_driver_and_keeper_is_ended_before_anything_begins(driven, strand, command):
    """They were all killed at once: nobody was left to end what had a session of its own. It carries our marker."""
    inner = LEAVES.replace("'", "''")
    shard = f"{{paths: [src], command: [sh, -c, 'test -e $OUT/go && exit 0; {inner}'], results: exit-status}}"
    project = driven(f"version: 1\nrepository: demo\nshards:\n  it: {shard}\n")
    driver = subprocess.Popen(
        ["git-ledger", "run"], cwd=project.path, env=dict(project.repo.env), stderr=subprocess.DEVNULL
    )
    orphan = int(until(lambda: (project.out / "orphan").exists() and (project.out / "orphan").read_text()))
    until((project.out / "on").exists)
    keeper = parent(int((project.out / "main").read_text()))
    everybody = (parent(keeper), keeper, driver.pid)
    for signum in (signal.SIGSTOP, signal.SIGKILL):
        for pid in everybody:
            os.kill(pid, signum)
    driver.wait(60)
    assert lives(orphan)
    (project.out / "go").touch()

    said = project.ledger(*command)

    assert not lives(orphan)
    assert "that it had left when its driver was killed" in said.err
