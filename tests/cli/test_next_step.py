"""What `status` tells to do next does it: no command that fails, or comes to the same, time after time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: "true", results: exit-status}
"""
EMPTY = "  unit: {paths: [tests], command: pytest tests}\n"


def next_of(project, *args: str) -> str:
    """Return what `status` says is next."""
    return project.ledger(*args, "status").out.rpartition("next: ")[2].rstrip("\n")


def test_a_shard_whose_paths_are_not_there_is_to_be_mended_before_any_run(make_project):
    """`run` refuses all of them, and `record` that one."""
    project = make_project(
        CONFIG + "  more: {paths: [src, nowhere.toml], command: 'true', results: exit-status}\n", {"src/a": "1"}
    )
    assert next_of(project) == "more: mend the shard in .gitledger/config.yaml"
    project.record("lint")
    assert next_of(project) == "more: mend the shard in .gitledger/config.yaml"


def test_a_suite_without_a_test_is_to_get_one(make_project):
    project = make_project(CONFIG + EMPTY, {"src/a": "1", "tests/README": "", ".gitignore": "__pycache__/\n"})
    project.ledger("record", "--shard", "unit", expect=5)
    assert next_of(project) == "git ledger run  # 2 shards"
    project.record("lint")
    wanted = (
        "write a test that its command runs, or let that find those there are; then git ledger record --shard unit"
    )
    assert next_of(project) == f"unit: {wanted}"
    assert f"try: {wanted}" in project.ledger("verify", expect=1).out


def test_a_command_that_is_not_here_is_to_be_installed(make_project):
    """`record` says `command-not-found` and leaves no receipt: the shard stays `never-recorded`."""
    config = CONFIG.replace('command: "true"', "command: nosuchlint src")
    project = make_project(config, {"src/a": "1"})
    obtain = "install nosuchlint, or activate the environment that has it"
    said = project.ledger("record", "--shard", "lint", expect=2).err
    assert f"[command-not-found]; try: {obtain}\n" in said
    assert next_of(project) == f"{obtain}; then git ledger record --shard lint"
    project.repo.commit(
        {".gitledger/config.yaml": config + "  more: {paths: [src], command: 'true', results: exit-status}\n"}
    )
    assert "lint: its command 'nosuchlint' is not found here\n" in project.ledger("status").out
    assert next_of(project).startswith("git ledger run"), "the other one can be run"


def test_without_pytest_one_is_told_how_it_comes(make_project, tmp_path: Path):
    """`command -v pytest` printed nothing and mended nothing."""
    project = make_project(CONFIG.replace("lint", "unit").replace('"true"', "pytest"), {"src/a": "1"})
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "git-ledger").symlink_to(Path(sys.executable).with_name("git-ledger"))
    for name in ("git", "ssh-keygen", "sh"):
        found = subprocess.run(["sh", "-c", f"command -v {name}"], capture_output=True, text=True, check=True)
        (tools / name).symlink_to(found.stdout.strip())
    said = project.ledger("record", "--shard", "unit", env={"PATH": str(tools)}, expect=2).err
    assert "[command-not-found]; try: python -m pip install pytest  # or activate the environment" in said


def test_evidence_that_passes_is_not_all_where_something_is_not_committed(make_project):
    """`nothing` was said beside edits, and beside a configuration that can't be read."""
    project = make_project(CONFIG, {"src/a": "1"})
    project.record("lint")
    assert next_of(project) == "nothing, the evidence passes"
    project.repo.write("src/a", "2")
    mend = "src/a: commit the edits, or undo them"
    assert next_of(project) == f"HEAD's evidence passes; what is not committed needs its own: {mend}"
    project.repo.git("checkout", "src/a")
    project.repo.write(".gitledger/config.yaml", "version: [\n")
    assert (
        next_of(project)
        == "mend .gitledger/config.yaml, which is edited and broken: git ledger explain config-syntax"
    )
    project.repo.git("checkout", ".gitledger")
    assert next_of(project) == "nothing, the evidence passes"


def test_a_push_is_named_where_it_publishes_both(make_project, make_repo):
    """`sync` and then `push` are two, and the hook does the one within the other."""
    project = make_project(CONFIG, {"src/a": "1"})
    server = make_repo("server.git", "--bare")
    project.repo.git("remote", "add", "origin", str(server.path))
    project.repo.git("push", "-q", "-u", "origin", "main")
    project.record("lint")
    assert next_of(project) == "git ledger sync origin", "there is no commit to push, and no hook"
    project.repo.commit({"README": "more"})
    project.record("lint")
    assert next_of(project) == "git ledger sync origin", "there is no hook"
    project.ledger("init")
    assert next_of(project) == "git push  # it publishes the ledger too"
    project.repo.git("push", "-q")
    assert next_of(project) == "nothing, the evidence passes"
