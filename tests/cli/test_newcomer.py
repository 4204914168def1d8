"""The stumbles of somebody who has read only the README: each is said before, or with what mends it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FILES = {"src/a": "1", "build/b": "1"}
CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: "true", results: exit-status}
"""


@pytest.fixture
def beginner(make_project):
    """A project with a virtual environment that nobody ignores, as `python -m venv` makes it before Python 3.13."""
    project = make_project(CONFIG, {"src/a": "1"})
    project.repo.write(".venv/bin/activate", "")
    return project


def test_init_names_what_would_make_every_run_dirty(beginner):
    said = beginner.ledger("init", "--ci", "github").err
    assert "dirty: .venv/: runs beside them count for nothing; add `.venv/` to .gitignore and commit that" in said
    assert ".github" not in said.partition("dirty: ")[2].partition("\n")[0], "ours is to be committed anyway"
    beginner.repo.write(".gitignore", ".venv/\n")
    assert "dirty: .gitignore:" in beginner.ledger("init").err
    beginner.repo.commit()
    assert "dirty" not in beginner.ledger("init").err


def test_a_dirty_run_says_what_mends_it_wherever_it_is_looked_at(beginner):
    """Recording it again would not: `git ledger record` alone was a circle."""
    said = beginner.ledger("record", "--shard", "lint").err
    assert "dirty: .venv/bin/activate; add `.venv/` to .gitignore and commit that" in said
    mend = "add `.venv/` to .gitignore and commit that; then git ledger record --shard lint"
    assert mend in beginner.ledger("verify", expect=1).out
    assert (
        "next: .venv/: add `.venv/` to .gitignore and commit that; then git ledger run"
        in beginner.ledger("status").out
    )
    beginner.repo.commit({".gitignore": ".venv/\n"})
    assert "next: git ledger record --shard lint" in beginner.ledger("status").out
    beginner.ledger("record", "--shard", "lint")
    assert "next: nothing, the evidence passes" in beginner.ledger("status").out


def test_status_says_run_where_several_shards_are_stale(project):
    assert "next: git ledger run  # 2 shards" in project.ledger("status").out


def test_a_shard_that_is_named_without_its_option_is_understood_and_the_question_has_an_answer(project):
    named = project.ledger("record", "beta", expect=2).err
    assert "named by --shard, not by 'beta' alone [usage]; try: git ledger record --shard beta" in named
    assert (
        "what is to be recorded? [usage]; try: git ledger record --shard alpha"
        in project.ledger("record", expect=2).err
    )
    assert "try: git ledger record --shard alpha" in project.ledger("record", "nonsuch", expect=2).err


def test_a_clone_without_the_ledger_says_how_it_gets_there(project, tmp_path):
    """There nothing seems to be recorded, which is not so."""
    project.record("alpha")
    project.record("beta")
    project.repo.git("clone", "-q", ".", str(tmp_path / "clone"))
    clone = ("-C", str(tmp_path / "clone"))
    sentence = "this clone has no ledger; `git ledger sync --fetch-only origin` brings that of origin"
    for args, status in ((("verify",), 1), (("plan",), 0), (("status",), 0), (("log",), 0)):
        assert sentence in project.ledger(*clone, *args, expect=status).err, args
    project.ledger(*clone, "sync", "--fetch-only")
    for args in (("verify",), ("plan",), ("status",), ("log",)):
        assert "has no ledger" not in project.ledger(*clone, *args).err, args


def test_a_repository_without_a_remote_is_told_of_none(project):
    assert "has no ledger" not in project.ledger("verify", expect=1).err


def test_what_is_named_as_dirt_is_never_a_folder_that_holds_tracked_files(make_project):
    """Who lets `.gitignore` name `tests/`, since that was named, hides every test to come."""
    project = make_project(CONFIG, {"src/a": "1", "src/deep/b": "1"})
    project.repo.write("src/deep/__pycache__/b.pyc", "")
    project.repo.write("src/deep/__pycache__/c.pyc", "")
    project.repo.write("src/a", "2")
    assert "next: src/a, src/deep/__pycache__/: commit them" in project.ledger("status").out
    assert "dirty: src/a, src/deep/__pycache__/: runs" in project.ledger("init").err


def test_a_shard_that_names_nothing_is_mended_in_the_configuration_and_not_by_another_run(make_project):
    project = make_project(CONFIG.replace("[src]", "[nowhere]"), {"src/a": "1"})
    assert "[malformed]\n      expected a green receipt, fresh or carried; try: mend the shard in .gitledger" in (
        project.ledger("verify", expect=1).out
    )


def test_a_run_of_another_command_is_told_of_the_variable_that_may_have_made_it_one(make_project):
    """CI often sets PYTEST_ADDOPTS for every job: recording once more comes to the same."""
    project = make_project(CONFIG, {"src/a": "1"})
    project.ledger("record", "--shard", "lint", "--", "true", "too", expect=1)
    said = project.ledger("verify", expect=1).out
    assert "git ledger record --shard lint  # without words of your own, and with PYTEST_ADDOPTS unset" in said


@pytest.mark.parametrize(
    ("config", "way_out"),
    [
        ("", 'rm "$(git rev-parse --show-toplevel)/.gitledger/config.yaml" && git ledger init'),
        ("version: 1\n", "write `repository: NAME`"),
    ],
)
def test_a_configuration_that_init_leaves_alone_is_not_said_to_be_mended_by_init(make_project, config, way_out):
    project = make_project(CONFIG, {"src/a": "1"})
    project.repo.commit({".gitledger/config.yaml": config})
    assert f"try: {way_out}" in project.ledger("plan", expect=2).err


def test_a_key_that_the_commit_does_not_know_is_said_before_the_run(make_project):
    """A colleague's first receipt counts for nothing, and the plan goes on about somebody else's older one."""
    project = make_project(CONFIG, {"src/a": "1"})
    assert "your key" not in project.ledger("record", "--shard", "lint").err
    project.repo.commit({".gitledger/allowed_signers": ""})
    said = project.ledger("record", "--shard", "lint").err
    assert "warning: your key SHA256:" in said
    assert "`git ledger init` adds it" in said


def test_a_stranger_s_newer_run_is_named_where_an_older_receipt_of_other_inputs_stands(make_project):
    """`inputs-changed` sent them to record again, with the same key: what is wrong is whose it is."""
    project = make_project(CONFIG + "  build: {paths: [build], command: 'true', results: exit-status}\n", FILES)
    project.ledger("run")
    project.repo.commit({"src/a": "2", "build/b": "2"})
    assert project.plan() == {"lint": ("stale", "inputs-changed"), "build": ("stale", "inputs-changed")}
    key = str(project.key("mallory"))
    project.ledger("record", "--shard", "lint", "--key", key)
    assert project.plan() == {"lint": ("stale", "untrusted"), "build": ("stale", "inputs-changed")}
    for args, status in ((("plan",), 0), (("status",), 0), (("verify",), 1)):
        said = project.ledger(*args, expect=status).out
        assert re.search(r"✗ lint +stale +untrusted +[0-9a-f]{12}: unknown-signer\n", said), args
        whose = r"lint: a run of these inputs that SHA256:\S{43} signed does not count \(unknown-signer\) \[untrusted\]"
        assert len(re.findall(whose, said)) == 1, args
    row = project.ledger("plan", "--json").document["shards"][0]
    assert "covers these inputs, but its signature does not count (unknown-signer): SHA256:" in row["detail"]
    assert (
        "try: git ledger record --shard lint  # with a key that policy lists"
        in project.ledger("verify", expect=1).out
    )


def test_a_stranger_s_newer_run_is_named_beside_an_older_failure_of_the_same_inputs(make_project):
    project = make_project(CONFIG.replace('"true"', "test -e mended"), FILES)
    project.ledger("record", "--shard", "lint", expect=1)
    project.repo.write("mended", "")
    project.repo.write(".git/info/exclude", "mended\n")
    project.ledger("record", "--shard", "lint", "--key", str(project.key("mallory")))
    assert project.plan() == {"lint": ("stale", "not-green")}


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("", "is not in .gitledger/allowed_signers, or not valid now, so this commit's own policy won't count"),
        (
            f"policy: {{allowed_key_fingerprints: ['SHA256:{'A' * 43}']}}\n",
            "is not among policy.allowed_key_fingerprints",
        ),
        ("policy: {allowed_signers: [bob@example.org]}\n", "belongs to nobody whom policy.allowed_signers names"),
    ],
)
def test_run_and_record_say_once_before_anything_runs_that_a_key_will_not_count(make_project, policy, why):
    project = make_project(CONFIG.replace('"true"', "echo ran") + policy, FILES)
    by = () if policy else ("--key", str(project.key("mallory")))
    for args in (("record", "--shard", "lint", *by), ("run", "--tail", *by)):
        said = project.ledger(*args, expect=None)
        assert said.err.count("won't count what you record") == 1, said
        assert why in said.err.splitlines()[0], said


def test_run_asks_the_policy_that_it_is_told_to_take(make_project):
    project = make_project(CONFIG, FILES)
    project.repo.git("branch", "trusted")
    project.repo.commit({".gitledger/allowed_signers": ""})
    assert "won't count" not in project.ledger("run", "--policy-from", "trusted").err


def test_what_tests_leave_is_named_by_the_lines_that_let_it_be(make_project):
    """A project without .gitignore: its first run made the second one dirty."""
    files = {"tests/test_it.py": "def test_it():\n    pass\n"}
    config = CONFIG.replace('[src], command: "true", results: exit-status', "[tests], command: pytest -q tests")
    project = make_project(config, files)
    advice = (
        "leavings: add `__pycache__/` and `.coverage` to .gitignore: what tests leave makes the next run dirty"
    )
    assert advice in project.ledger("init").err
    project.repo.write(".venv/pyvenv.cfg", "")
    said = project.ledger("init").err
    assert "add `.venv/` to .gitignore and commit that" in said
    assert advice in said, "one after the other would be two stumbles"
    (project.path / ".venv/pyvenv.cfg").unlink()
    env = {"PYTHONDONTWRITEBYTECODE": ""}
    project.ledger("record", "--shard", "lint", env=env)
    again = project.ledger("record", "--shard", "lint", env=env)
    assert "add `__pycache__/` to .gitignore and commit that" in again.err
    mend = "add `__pycache__/` to .gitignore and commit that; or put it away: git stash -u"
    assert mend in project.ledger("run", "--all", expect=2).err
    project.repo.write(".coverage", "")
    project.repo.write("notes.txt", "")
    assert (
        "commit them, or let .gitignore name them (`.coverage` and `__pycache__/`)" in project.ledger("init").err
    )
    (project.path / "notes.txt").unlink()
    project.repo.commit({".gitignore": "__pycache__/\n.coverage\n"})
    assert "gitignore" not in project.ledger("init").err
    project.ledger("run", "--all", env=env)
    assert "gitignore" not in project.ledger("status").out


def test_a_configuration_that_is_written_and_not_committed_is_to_be_committed_and_not_written_anew(make_project):
    project = make_project(CONFIG, FILES)
    project.repo.git("rm", "-q", "--cached", "-r", ".gitledger")
    project.repo.git("commit", "-q", "-m", "without")
    said = project.ledger("status", expect=2).err
    assert "[no-config]; try: git add :/.gitledger && git commit" in said
    project.repo.git("clean", "-qfd")
    assert "[no-config]; try: git ledger init && git add :/.gitledger" in project.ledger("status", expect=2).err


def test_a_clone_is_sent_to_fetch_before_it_is_sent_to_record(project, tmp_path):
    project.record("alpha")
    project.repo.git("clone", "-q", ".", str(tmp_path / "clone"))
    said = project.ledger("-C", str(tmp_path / "clone"), "status").out
    assert (
        "next: git ledger sync --fetch-only origin; where nobody has recorded yet, git ledger run  # 2 shards"
        in said
    )
    project.ledger("-C", str(tmp_path / "clone"), "sync", "--fetch-only", "origin")
    assert "next: git ledger record --shard beta" in project.ledger("-C", str(tmp_path / "clone"), "status").out


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("version: 1\nrepository: demo\nshards: [\n", "[config-syntax]"),
        (
            CONFIG.replace("command", "comand"),
            "unknown key shards.lint.comand [unknown-key]; did you mean command?",
        ),
        (
            "",
            '[config-syntax]; try: rm "$(git rev-parse --show-toplevel)/.gitledger/config.yaml" && git ledger init',
        ),
    ],
)
def test_init_says_of_a_configuration_that_can_t_be_read_that_it_is_broken_and_where(make_project, config, said):
    project = make_project(CONFIG, FILES)
    project.repo.write(".gitledger/config.yaml", config)
    done = project.ledger("init", expect=2)
    assert said in done.err
    assert "is there" not in done.err
    assert ".gitledger/config.yaml" in done.err


def test_a_second_merge_of_the_same_says_so_and_writes_nothing(make_project):
    project = make_project(CONFIG, FILES)
    project.record("lint")
    first = project.ledger("merge", "--json").document["record"]
    again = project.ledger("merge")
    assert f"merge: passed, nothing new to merge since merged receipt {first[:12]}" in again.out
    assert project.ledger("merge", "--json").document["record"] == first
    other = project.ledger("merge", "--json", "--key", str(project.key("bob"))).document["record"]
    assert other != first, "another key's word is another's: it vouches for keys that expire"
    project.record("lint")
    assert project.ledger("merge", "--json").document["record"] not in (first, other)


def test_an_export_without_a_file_is_no_surprise(make_project, tmp_path):
    """A bundle fell into the work tree, which was dirty then; and a page was printed on the terminal."""
    project = make_project(CONFIG, FILES)
    project.record("lint")
    said = project.ledger("export", "bundle", expect=2).err
    assert "[usage]; try: git ledger export bundle -o ../ledger.bundle" in said
    assert project.repo.git("status", "--porcelain") == ""
    for format_ in ("html", "markdown", "junit"):
        assert project.ledger("export", format_).out, "a pipe takes it"


def test_an_export_to_a_terminal_says_what_to_type(make_project):
    import pty

    project = make_project(CONFIG, FILES)
    ours, theirs = pty.openpty()
    command = [Path(sys.executable).parent / "git-ledger", "export", "html"]
    done = subprocess.run(
        command,
        cwd=project.path,
        env=project.repo.env,
        stdout=theirs,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert done.stderr.endswith(b"[usage]; try: git ledger export html -o report.html\n")


def test_coverage_that_nobody_measured_is_not_to_be_had_by_verify(make_project):
    """`try: git ledger verify` was a circle: it is green."""
    config = CONFIG.replace('"true"', "'true'")
    project = make_project(config, FILES)
    assert "try: git ledger record --shard lint" in project.ledger("export", "coverage", expect=2).err
    project.record("lint")
    said = project.ledger("export", "coverage", expect=2).err
    assert "let its command measure (pytest --cov), then git ledger record --shard lint" in said


def test_a_word_that_is_no_record_is_not_fetched(make_project):
    project = make_project(CONFIG, FILES)
    said = project.ledger("show", "12345678", expect=2).err
    assert "no record or commit begins with '12345678' [unknown-record]; try: git ledger log" in said
    record = project.record("lint")["record"]
    said = project.ledger("show", record[:6], expect=2).err
    assert (
        f"no commit begins with '{record[:6]}', and a record is named by 8 digits or more [unknown-record]" in said
    )


def test_a_key_that_init_was_handed_is_said_not_to_be_kept_until_it_is(make_project):
    """The next record would find no key, or sign with another one."""
    project = make_project(CONFIG, {"src/a": "1"})
    other = str(project.key("bob"))
    said = project.ledger("init", "--key", other, "--principal", "bob").err
    variable = "GITLEDGER_SIGNING_KEY" in project.repo.env
    command = f"export GITLEDGER_SIGNING_KEY={other}" if variable else f"git config gitledger.signingKey {other}"
    assert f"to sign with it in this clone: {command}\n" in said
    project.repo.git("config", "gitledger.signingKey", other)
    said = project.ledger("init", "--key", other, env={"GITLEDGER_SIGNING_KEY": ""}).err
    assert "in this clone" not in said


def test_before_the_first_commit_every_command_says_what_makes_one(make_project, make_repo):
    """`git commit` alone refuses where nothing is added, and `git ledger log HEAD` comes to the same error."""
    empty = make_repo("empty")
    project = make_project(CONFIG, {"src/a": "1"})
    empty.git("config", "core.hooksPath", "/dev/null")
    for config, way in (
        (False, "git ledger init && git add :/.gitledger"),
        (True, "git add :/.gitledger && git commit"),
    ):
        if config:
            (empty.path / ".gitledger").mkdir()
            (empty.path / ".gitledger/config.yaml").write_text("version: 1\n")
        for words in (["log"], ["show"], ["status"], ["plan"], ["scope", "lint"], ["import", "x.json"]):
            said = project.ledger("-C", str(empty.path), *words, expect=2).err
            assert f"[no-commit]; try: {way}" in said, words


def test_inside_the_git_folder_one_is_told_to_go_up(make_project):
    project = make_project(CONFIG, {"src/a": "1"})
    inside = str(project.path / ".git")
    for words in (["init"], ["record", "--shard", "lint"], ["scope", "lint"]):
        said = project.ledger("-C", inside, *words, expect=2).err
        assert "this is the .git folder, and no work tree: " in said, words
        assert f"[no-work-tree]; try: cd {project.path}\n" in said, words


def test_a_ref_of_a_remote_that_is_not_there_is_not_to_be_fetched(make_project):
    project = make_project(CONFIG, {"src/a": "1"})
    said = project.ledger("verify", "--policy-from", "origin/main", expect=2).err
    assert "[unknown-commit]; try: git remote add origin URL" in said
    assert "try: git log --all --oneline" in project.ledger("verify", "topic", expect=2).err
    project.repo.git("remote", "add", "origin", "nowhere")
    assert "try: git fetch" in project.ledger("verify", "--policy-from", "origin/main", expect=2).err
