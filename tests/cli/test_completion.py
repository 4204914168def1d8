"""What `git ledger <TAB>` offers, asked of our own words and in real shells."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from gitledger.cli.app import COMMANDS, app
from gitledger.cli.completion_scripts import SCRIPTS
from gitledger.cli.completion_words import candidates
from gitledger.cli.output import Output

CONFIG = """\
version: 1
repository: demo
shards:
  unit: {paths: [src], command: "true", results: exit-status, variants: [a100, mi300]}
  lint: {paths: [src], command: "true", results: exit-status}
lanes:
  gfx1151: {match: {os.name: linux}, runs: [{model: m7b}]}
"""
GIT_COMPLETION = Path("/usr/share/bash-completion/completions/git")
PATIENCE_S = 30.0


@pytest.fixture
def declared(make_project):
    """A project with two shards, one of which has variants, a lane, and a tag."""
    project = make_project(CONFIG, {"src/a.txt": "1"})
    project.repo.git("tag", "v1.0")
    project.repo.git("remote", "add", "upstream", "../nowhere")
    return project


@pytest.fixture
def offered(declared):
    """What may stand in place of the last word, asked in process."""

    def ask(*words: str) -> list[str]:
        output = Output(
            directory=declared.path, environ=declared.repo.env, quiet=False, verbose=False, color=False
        )
        return [word for word, _ in candidates(click.Context(app), output, words)]

    return ask


def test_each_word_is_completed_by_what_it_means(offered):
    assert offered("") == list(COMMANDS)
    assert offered("re") == ["record", "revoke"]
    assert offered("--no") == ["--no-color"]
    shards = ["unit@a100", "unit@mi300", "lint"]
    assert offered("record", "--shard", "") == offered("run", "") == offered("run", "lint", "") == shards
    assert offered("scope", "unit@m") == ["unit@mi300"]
    assert offered("record", "--shard=l") == ["--shard=lint"]
    assert offered("record", "--shard", "unit", "--variant", "") == ["a100", "mi300"]
    assert offered("doctor", "--lane", "") == ["gfx1151"]
    assert offered("doctor", "--recipe", "torch-e") == ["torch-eager"]
    assert offered("verify", "v") == ["v1.0"]
    assert offered("plan", "--policy-from", "m") == ["main"]
    assert offered("sync", "") == ["upstream"]
    assert offered("plan", "--format", "") == ["github", "gitlab", "slurm"]
    assert offered("explain", "not-g") == ["not-green"]
    assert "configuration" in offered("help", "conf")
    assert "schemas/plan" in offered("help", "schemas/")


def test_options_are_offered_that_can_still_be_given(offered):
    assert {"--shard", "--variant", "--json", "--quiet", "-C", "--help"} <= set(offered("record", "-"))
    assert "--shard" not in offered("record", "--shard", "lint", "-")
    assert "--paths" in offered("record", "--paths", "src", "-"), "this one may be given again"


@pytest.mark.parametrize(
    "words",
    [
        ("record", "--", ""),  # the command's own words
        ("record", "--junit", ""),  # a file: the shell knows those
        ("nonsuch", ""),
        ("verify", "main", ""),
    ],
)
def test_nothing_is_offered_where_nothing_of_ours_fits(offered, words):
    assert offered(*words) == []


def test_another_folder_is_asked_where_one_is_named(offered, declared, make_repo):
    make_repo("elsewhere")
    assert offered("-C", "..", "record", "--shard", "") == []
    assert offered("-C", "../elsewhere", "verify", "") == ["HEAD"]
    assert offered("-C", "..", "-C", "repo", "run", "l") == ["lint"]


def test_every_shell_is_given_a_script_that_it_can_read(declared):
    assert set(SCRIPTS) == {"bash", "zsh", "fish"}
    for shell, script in SCRIPTS.items():
        assert declared.ledger("completion", shell).out == script
        if shutil.which(shell):
            subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=PATIENCE_S)
    assert "is not one of bash, zsh, fish" in declared.ledger("completion", "csh", expect=2).err


def needed(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"LOUDLY: there is no {program} here")
    return found


def seen(data: bytes) -> str:
    """Return what a terminal would show: no escape codes, and what was written over is gone."""
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", data.decode("utf-8", "replace"))
    shown: list[str] = []
    place = 0
    for char in text:
        if char == "\b":
            place -= 1
        else:
            shown[place : place + 1] = char
            place += 1
    return "".join(shown)


class Terminal:
    """A shell in a terminal, typed at. Every wait has an end."""

    def __init__(self, command: list[str], folder: Path, env: dict[str, str]) -> None:
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, env)
        self.data = b""

    def type(self, text: str, wanted: str) -> str:
        """Type something and return what stands there once `wanted` does, or when patience ends."""
        self.data = b""
        os.write(self.file, text.encode())
        end = time.monotonic() + PATIENCE_S
        while wanted not in seen(self.data) and time.monotonic() < end:
            if select.select([self.file], [], [], 0.1)[0]:
                try:
                    self.data += os.read(self.file, 65536)
                except OSError:
                    break
        return seen(self.data)

    def close(self) -> None:
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.file)


@pytest.fixture
def terminal(declared, tmp_path):
    """Open shells in the project; they are ended with the test."""
    opened: list[Terminal] = []

    def open_shell(command: list[str], *setup: str) -> Terminal:
        env = {**declared.repo.env, "TERM": "xterm", "COLUMNS": "200", "HOME": str(tmp_path)}
        opened.append(Terminal(command, declared.path, env))
        for line in (*setup, "echo REA''DY"):
            os.write(opened[-1].file, line.encode() + b"\n")
        assert "READY" in opened[-1].type("", "READY")
        return opened[-1]

    yield open_shell
    for shell in opened:
        shell.close()


CASES = [
    ("git ledger rec\t", "git ledger record "),
    ("git-ledger run li\t", "git-ledger run lint "),
    ("git ledger record --shard unit@a\t", "--shard unit@a100 "),
    ("git -C ../repo ledger record --shard=l\t", "--shard=lint "),
    ("git ledger record --junit src/\t", "src/a.txt"),
]
"""What is typed, and what stands there then."""


def test_bash_completes_git_ledger_beside_gits_own_completion(terminal):
    if not GIT_COMPLETION.exists():
        pytest.skip("LOUDLY: git's completion for bash is not installed")
    load = (f"source {GIT_COMPLETION}", 'eval "$(git ledger completion bash)"')
    shell = terminal([needed("bash"), "--norc", "-i"], *load)
    for typed, wanted in CASES:
        assert wanted in shell.type(typed, wanted)
        shell.type("\x15", "")  # rub it out


def test_zsh_completes_git_ledger_beside_its_own_completion_of_git(terminal):
    load = ("autoload -U compinit; compinit -u -D", 'eval "$(git ledger completion zsh)"')
    shell = terminal([needed("zsh"), "-f", "-i"], *load)
    for typed, wanted in [*CASES[:3], CASES[4], ("git ledg\t", "git ledger ")]:
        assert wanted in shell.type(typed, wanted)
        shell.type("\x15", "")  # rub it out


def test_fish_completes_git_ledger_beside_its_own_completion_of_git(declared, tmp_path):
    script = tmp_path / "git-ledger.fish"
    script.write_text(SCRIPTS["fish"])
    cases = {typed.rstrip("\t"): wanted for typed, wanted in CASES} | {"git ledg": "ledger "}
    asked = "; ".join(f"complete -C '{typed}'; echo ==" for typed in cases)
    done = subprocess.run(
        [needed("fish"), "-c", f"source {script}; {asked}"],
        cwd=declared.path,
        env={**declared.repo.env, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S * 2,
        check=False,
    )
    found = done.stdout.split("==\n")
    words = [[line.partition("\t")[0] for line in part.splitlines()] for part in found]
    assert words[: len(cases)] == [
        ["record"],
        ["lint"],
        ["unit@a100"],
        ["--shard=lint"],
        ["src/a.txt"],
        ["ledger"],
    ], done


def test_a_question_that_fails_offers_nothing_and_says_nothing(tmp_path, hermetic_env):
    """In no repository, at a prompt: an error would be in the way."""
    command = [str(Path(sys.executable).parent / "git-ledger"), "completion", "words", "record", "--shard", ""]
    done = subprocess.run(command, cwd=tmp_path, env=hermetic_env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
