"""docs/reference/commands.md is what `help --all` writes, and what it says of exit codes is so."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gitledger import errors
from gitledger.cli.app import COMMANDS, GROUPS
from gitledger.cli.man import VARIABLES

ROOT = Path(__file__).parents[2]
PAGE = (Path(__file__).parents[2] / "docs/reference/commands.md").read_text("utf-8")


@pytest.fixture(scope="module")
def said():
    """Run the installed command outside of any repository."""

    def run(*args: str) -> str:
        command = [str(Path(sys.executable).parent / "git-ledger"), *args]
        return subprocess.run(command, cwd="/", capture_output=True, text=True, check=True).stdout

    return run


def test_the_page_is_what_help_prints(said):
    assert said("help", "--all") == PAGE, "git ledger help --all > docs/reference/commands.md"


def test_every_command_and_exit_status_stands_on_the_page():
    assert re.findall(r"^## (.+)$", PAGE, re.M) == ["Exit codes", "Everywhere", *COMMANDS]
    listed = {int(number) for number in re.findall(r"^\| (\d+) \| ", PAGE, re.M)}
    assert listed == {value for name, value in vars(errors).items() if name.startswith("EXIT_")} | {130, 141}


def test_the_help_lists_every_command_once_by_what_it_is_for(said):
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(COMMANDS)
    assert re.findall(r"^  ([a-z]+) {2,}[A-Z]", said("-h"), re.M) == listed


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_examples_keep_their_lines_in_the_help(said, name):
    """A raw docstring spells click's mark as two characters; it must not be shown as they are."""
    text = said(name, "-h") if name else said("-h")
    assert "\\b" not in text
    assert "\b" not in text
    assert not [line for line in text.splitlines() if line.count("git ledger") > 2]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example_and_every_example_can_be_typed(said, name, parse_commands):
    """The examples are those of the help, comments behind them aside."""
    shown = [
        line.strip() for line in said(name, "-h").splitlines() if "git ledger" in line and "Usage:" not in line
    ]
    examples = [line for line in shown if re.match(r"(eval \"\$\()?git ledger ", line)]
    assert [line for line in examples if name in line], "its docstring has no example behind a \\b"
    for line in examples:
        assert parse_commands(line) == [], line


def test_an_example_that_can_not_be_typed_is_noticed(parse_commands):
    assert parse_commands("git ledger plan --exit-code | head; x=$(git ledger status --json)") == []
    for line in (
        "git ledger plan --exitcode",
        "git ledger verfy",
        "true && git ledger run --mode night",
        "git ledger revoke",
    ):
        assert len(parse_commands(line)) == 1, line


def test_the_manual_page_is_what_help_prints(said):
    page = (ROOT / "docs/reference/git-ledger.1").read_text("utf-8")
    assert said("help", "--man") == page, "git ledger help --man > docs/reference/git-ledger.1"


@pytest.fixture
def manual(tmp_path, hermetic_env):
    """An installation as pip lays it out, and a runner of programs that see it on PATH."""
    for program in ("man", "groff"):
        if shutil.which(program) is None:
            pytest.skip(f"LOUDLY: there is no {program} here")
    scripts, pages = tmp_path / "venv/bin", tmp_path / "venv/share/man/man1"
    scripts.mkdir(parents=True)
    (scripts / "git-ledger").symlink_to(Path(sys.executable).parent / "git-ledger")
    pages.mkdir(parents=True)
    shutil.copy(ROOT / "docs/reference/git-ledger.1", pages)
    env = {**hermetic_env, "PATH": f"{scripts}:{hermetic_env['PATH']}", "MANPAGER": "cat", "MANWIDTH": "100"}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
        )

    return run


def test_git_finds_the_manual_page_beside_the_installed_command(manual):
    for words in (("git", "help", "ledger"), ("git", "ledger", "--help")):
        done = manual(*words)
        assert done.returncode == 0, done.stderr
        assert "git-ledger - signed test evidence" in " ".join(re.sub(".\b", "", done.stdout).split())


def test_the_manual_page_says_every_command_option_and_variable(manual):
    text = " ".join(re.sub(r".\x08|\x1b\[[0-9;]*m", "", manual("git", "help", "ledger").stdout).split())
    for name in COMMANDS:
        assert f"git ledger {name} " in text
    for option in set(re.findall(r"^\| `(--[a-z-]+)", PAGE, re.M)):
        assert option in text
    for name in VARIABLES:
        assert name in text
    groff = manual("groff", "-man", "-ww", "-z", "-Tutf8", str(ROOT / "docs/reference/git-ledger.1"))
    assert groff.stderr == "", "troff has something to say of the page"


def test_variables_on_the_manual_page_are_those_that_the_reference_names_and_the_code_reads():
    reference = (ROOT / "docs/reference/configuration.md").read_text("utf-8")
    source = "".join(
        path.read_text("utf-8") for path in (ROOT / "gitledger").rglob("*.py") if path.name != "man.py"
    )
    for name in VARIABLES:
        assert f'"{name}"' in source or name == "GITLEDGER_DOCTOR_MODEL", name
        assert f"`{name}`" in reference, name


def test_the_page_can_be_installed_where_man_looks(tmp_path, hermetic_env):
    command = [str(Path(sys.executable).parent / "git-ledger"), "help", "--install-man"]
    done = subprocess.run(command, cwd=tmp_path, env=hermetic_env, capture_output=True, text=True, check=True)
    written = Path(hermetic_env["HOME"]) / ".local/share/man/man1/git-ledger.1"
    assert written.read_text("utf-8") == (ROOT / "docs/reference/git-ledger.1").read_text("utf-8")
    assert str(written) in done.stderr
