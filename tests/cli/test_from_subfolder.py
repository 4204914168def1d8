"""What a hint tells to type works in whatever folder of the repository it is read: each is typed in one."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

import gitledger
from gitledger.wording import from_top, shell_word

ROOT = Path(gitledger.__file__).parent
CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: "true", results: exit-status}
"""
MORE = CONFIG + '  more: {paths: [src], command: "true", results: exit-status}\n'


@pytest.fixture
def typed(make_project):
    """Run `git ledger ARGS` in a subfolder, and type there what it says behind `try: ` or `next: `."""

    def typed(config: str | None, args: list[str], *, edited: str | None = None, before: str = "; try: "):
        project = make_project(config or CONFIG, {"src/deep/a": "1", ".gitignore": "*.pyc\n"})
        if config is None:
            project.repo.git("rm", "-q", "--cached", ".gitledger/config.yaml")
            project.repo.git("commit", "-qm", "without")
        if edited is not None:
            project.repo.write(".gitledger/config.yaml", edited)
        here = project.path / "src/deep"
        said = project.ledger("-C", "src/deep", *args, expect=None).err
        assert said.count(before) == 1, said
        hint = said.partition(before)[2].partition("\n")[0]
        env = dict(project.repo.env) | {"GIT_EDITOR": "echo message >"}
        subprocess.run(["bash", "-c", hint], cwd=here, env=env, check=True, timeout=60)
        return project, hint.partition("  # ")[0]

    return typed


@pytest.mark.parametrize("args", [["plan"], ["record", "--shard", "lint"], ["status"]])
def test_a_configuration_that_is_only_written_is_committed_from_below(typed, args):
    project, hint = typed(None, args)
    assert hint == "git add :/.gitledger && git commit"
    assert project.ledger("plan").status == 0


@pytest.mark.parametrize(
    ("args", "before"), [(["record", "--shard", "more"], "; try: "), (["plan"], "it counts once it is: ")]
)
def test_an_edited_configuration_is_committed_from_below(typed, args, before):
    project, hint = typed(CONFIG, args, edited=MORE, before=before)
    assert hint == "git commit :/.gitledger/config.yaml"
    assert set(project.plan()) == {"lint", "more"}


def test_an_empty_configuration_is_written_anew_from_below(typed):
    project, _ = typed("\n", ["plan"])
    assert "shards:" in (project.path / ".gitledger/config.yaml").read_text()


def test_what_init_wrote_is_committed_from_below(make_project):
    project = make_project(CONFIG, {"src/deep/a": "1"})
    (project.path / ".gitledger/config.yaml").unlink()
    project.repo.commit()
    said = project.ledger("-C", "src/deep", "init", "--ci", "github").err
    hint = re.search(r"then `(.*)`", said)[1]
    env = dict(project.repo.env) | {"GIT_EDITOR": "echo message >"}
    subprocess.run(["bash", "-c", hint], cwd=project.path / "src/deep", env=env, check=True, timeout=60)
    assert project.repo.git("ls-files", ".github", ".gitledger/config.yaml").count("\n") == 1


def test_a_path_is_quoted_where_a_shell_would_take_it_apart():
    assert from_top(".gitledger/config.yaml", "a b") == ":/.gitledger/config.yaml ':/a b'"
    assert shell_word("/tmp/it's") == """'/tmp/it'"'"'s'"""


def literal(node: ast.AST) -> str:
    """Return a text of the code with the names of what it is filled in with, "" for what is none."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(literal(part) or ast.unparse(part)[2:-1] for part in parts)
    return ""


def test_no_text_of_the_code_hands_git_a_path_that_holds_at_the_top_alone():
    """`:/` finds the top from anywhere, and so does `git rev-parse --show-toplevel`."""
    program = r"(?:git (?:add|commit|rm|mv|restore|checkout|diff)|rm|mv|cat|cp|chmod)\b"
    of_top = re.compile(program + r"[^`;|&]*? (?:\.git(?:ledger|hub)\b|\{(?!from_top)[a-zA-Z_.]*PATH\})")
    assert of_top.search("try: git add -f {CONFIG_PATH}")
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {literal(node)}"
        for path in sorted(ROOT.rglob("*.py"))
        if "_docs" not in path.parts
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if of_top.search(literal(node))
    ]
    assert not found, "\n".join(found)
