"""The one executor of git: bounded, hermetic, and quiet about credentials."""

from __future__ import annotations

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gitledger.errors import StoreError, UsageError
from gitledger.store.git import _QUIET_S, Git, _Pump


@pytest.fixture
def git(git_repo) -> Git:
    return Git(git_repo.path, git_repo.env)


def shell(script: str) -> list[str]:
    return ["-c", f"alias.sh=!{script}", "sh"]


def test_output_input_and_status_are_handed_on(git, git_repo):
    blob = b"\0binary\n" * 100_000
    oid = git.run("hash-object", "-w", "--stdin", stdin=blob).text
    assert git.run("cat-file", "blob", oid).stdout == blob
    assert git.run("rev-parse", "-q", "--verify", "HEAD", statuses=frozenset({0, 1})).status == 1


def test_input_that_the_command_does_not_read_is_no_error(git):
    assert git.run("rev-parse", "--git-dir", stdin=b"x" * 1_000_000).text == ".git"


def test_a_failure_names_the_command_and_what_git_said(git):
    with pytest.raises(StoreError) as caught:
        git.run("-c", "core.quotePath=false", "rev-parse", "--verify", "nothing")
    assert caught.value.code == "git-failed"
    assert "git rev-parse failed: fatal: Needed a single revision" in caught.value.message
    assert caught.value.exit_status == 3


def test_a_failure_shows_no_credentials_and_no_control_characters(git):
    with pytest.raises(StoreError) as caught:
        git.run(*shell(r"printf 'no\\033[31m https://me:hunter2@host/x\\nmore\\n' >&2; exit 3; :"))
    assert "hunter2" not in caught.value.message
    assert "\x1b" not in caught.value.message
    assert "\n" not in caught.value.message
    assert "https://host/x" in caught.value.message


def test_a_time_out_kills_git_and_its_helpers(git, tmp_path):
    mark = tmp_path / "mark"
    started = time.monotonic()
    with pytest.raises(StoreError) as caught:
        git.run(*shell(f"(sleep 1.5; touch {mark}) & sleep 60; :"), timeout_s=0.3)
    assert caught.value.code == "git-timeout"
    assert time.monotonic() - started < 5
    time.sleep(1.5)
    assert not mark.exists()


def test_a_helper_that_outlives_git_is_not_waited_for(git):
    started = time.monotonic()
    assert git.run(*shell("sleep 3 & echo done; :")).text == "done"
    assert time.monotonic() - started < 2


def test_endless_output_is_cut_off_as_an_error(git):
    with pytest.raises(StoreError) as caught:
        git.run(*shell("yes; :"), limit=100_000)
    assert caught.value.code == "git-output-too-large"


def test_no_git_is_one_clear_error(git_repo, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError) as caught:
        Git(git_repo.path, git_repo.env | {"PATH": str(empty)}).run("version")
    assert caught.value.code == "git-missing"


def test_a_folder_that_is_gone_is_not_taken_for_a_missing_git(git_repo, tmp_path):
    with pytest.raises(UsageError) as caught:
        Git(tmp_path / "gone", git_repo.env).run("version")
    assert caught.value.code == "not-a-folder"


def test_a_hooks_variables_point_git_nowhere_else(git_repo, make_repo):
    other = make_repo("other")
    hook = git_repo.env | {
        "GIT_DIR": str(other.path / ".git"),
        "GIT_WORK_TREE": str(other.path),
        "GIT_INDEX_FILE": str(other.path / ".git/index"),
        "GIT_PREFIX": "x/",
    }
    assert Git(git_repo.path, hook).run("rev-parse", "--absolute-git-dir").text == str(git_repo.path / ".git")
    chosen = Git(git_repo.path, hook, git_dir=other.path / ".git")
    assert chosen.run("rev-parse", "--absolute-git-dir").text == str(other.path / ".git")


def test_replace_refs_and_grafts_are_switched_off(git, git_repo):
    first = git_repo.commit({"a": "1"})
    second = git_repo.commit({"a": "2"})
    git_repo.git("replace", second, first)
    git_repo.write(".git/info/grafts", f"{second}\n")
    assert git.run("show", f"{second}:a").text == "2"
    assert git.run("rev-parse", f"{second}^").text == first


def test_git_speaks_english_and_prompts_for_nothing(git_repo):
    git = Git(
        git_repo.path, git_repo.env | {"LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de", "GIT_TERMINAL_PROMPT": "1"}
    )
    seen = git.run(*shell("env; tty </dev/tty 2>&1; :"), statuses=frozenset({0, 1})).text
    assert "LC_ALL=C\n" in seen
    assert "LANGUAGE" not in seen
    assert "GIT_TERMINAL_PROMPT=0\n" in seen


def test_what_a_child_prints_between_a_look_and_its_end_is_not_lost():
    """A look finds nothing; then the child prints and ends, all before its end is asked for."""

    class SlowlyAsked(subprocess.Popen):
        def poll(self):
            time.sleep(2 * _QUIET_S)
            return super().poll()

    script = f"sleep {1.5 * _QUIET_S}; echo late"
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with SlowlyAsked(["sh", "-c", script], **streams) as child:
        pump = _Pump(child, b"", 1_000)
        assert pump.run(time.monotonic() + 30)
    assert bytes(pump.stdout) == b"late\n"


def test_many_gits_at_once_lose_no_output(git, git_repo):
    names = [f"file-{number}" for number in range(20)]
    for name in names:
        git_repo.write(name, "x")
    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(git.run, "ls-files", "--others") for _ in range(200)]
    assert {done.result().text for done in found} == {"\n".join(sorted(names))}
