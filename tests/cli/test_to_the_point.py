"""Hints that speak of what was typed, and not of something beside it."""

from __future__ import annotations

import subprocess

import pytest

CONFIG = """\
version: 1
repository: demo
shards:
  unit: {paths: [src], command: "true", results: exit-status}
  lint: {paths: [src], command: "true", results: exit-status}
  l1: {paths: [src], command: "true", results: exit-status, variants: [a100, mi300]}
"""


@pytest.fixture
def plain(make_project):
    """A project with a few shards; nothing is recorded."""
    return make_project(CONFIG, {"src/a": "1"})


def test_a_slip_in_the_name_of_a_ref_names_the_nearest(plain, make_repo):
    """`git fetch` would bring nothing of that name."""
    server = make_repo("server.git", "--bare")
    plain.repo.git("remote", "add", "origin", str(server.path))
    plain.repo.git("push", "-q", "origin", "main")
    plain.repo.git("tag", "release-1.0")
    plain.repo.git("branch", "mains")  # none is meant by `main~7`, of which there is no seventh
    for typed, meant in (("origin/mian", "origin/main"), ("mian", "main"), ("release-1.O", "release-1.0")):
        for args in (("verify", typed), ("verify", "--policy-from", typed), ("plan", typed)):
            said = plain.ledger(*args, expect=2).err
            assert (
                f"'{typed}' names no commit of this repository [unknown-commit]; did you mean {meant}?\n" in said
            )
    assert "did you mean origin/main~0?" in plain.ledger("plan", "origin/mian~0", expect=2).err
    assert "did you mean refs/heads/main?" in plain.ledger("plan", "refs/heads/mian", expect=2).err
    for typed in ("nosuch", "main~7", "feature/x"):
        assert "try: git fetch\n" in plain.ledger("verify", typed, expect=2).err, typed


def test_a_command_of_one_s_own_needs_paths(plain):
    said = plain.ledger("record", "--shard", "adhoc", "--", "true", expect=2).err
    assert (
        "no shard 'adhoc' is declared; one that is not declared needs --paths [unknown-shard]; known: unit" in said
    )
    assert "--paths" not in plain.ledger("record", "--shard", "adhoc", expect=2).err, "what would it run?"


def test_a_path_that_an_option_named_is_to_be_corrected_there(plain):
    adhoc = ("record", "--shard", "adhoc", "--paths", "src", "--exclude-paths", "nosuch", "--", "true")
    for args in (adhoc, (*adhoc[:4], "nosuch", "--", "true")):
        said = plain.ledger(*args, expect=2).err
        assert "[pattern-unmatched]; try: correct the option; `git ls-files` lists what is tracked" in said
        assert "configuration" not in said


def test_a_variant_that_a_shard_lacks_is_told_from_a_shard_that_is_not_there(plain):
    """`unit@a100` was answered by "did you mean unit?"."""
    for args in (("run", "unit@a100"), ("record", "--shard", "unit", "--variant", "a100")):
        assert (
            "shard 'unit' has no variants [unknown-shard]; try: name it as unit\n"
            in plain.ledger(*args, expect=2).err
        )
    said = plain.ledger("run", "l1@a10", expect=2).err
    assert "shard 'l1' has no variant 'a10' [unknown-shard]; known: l1@a100, l1@mi300" in said
    assert "did you mean unit?" in plain.ledger("run", "unti", expect=2).err


def test_a_remote_that_is_not_there_is_not_answered_by_another_command(plain):
    plain.repo.git("remote", "add", "origin", "nowhere")
    for args in (("gate", "--remote", "orign"), ("sync", "orign")):
        assert (
            "'orign' is no remote of this clone [no-remote]; did you mean origin?\n"
            in plain.ledger(*args, expect=2).err
        )
    assert "[no-remote]; known: origin\n" in plain.ledger("gate", "--remote", "elsewhere", expect=2).err


@pytest.mark.parametrize(("needs", "found"), [("{", "it is not JSON"), ("", "an empty text"), ("{}", "none")])
def test_a_gate_says_what_is_wrong_with_what_it_was_told_of_the_jobs(plain, needs, found):
    assert (
        f"needs: {found} [jobs-unknown]"
        in plain.ledger("gate", "--policy-from", "HEAD", "--needs", needs, expect=1).out
    )


@pytest.mark.parametrize(
    ("args", "env", "setting", "way"),
    [
        (("--key", "/nope"), {}, (), "give --key the path of a key"),
        (
            (),
            {"GITLEDGER_SIGNING_KEY": "/nope"},
            (),
            "set GITLEDGER_SIGNING_KEY to the path of a key, or unset it",
        ),
        ((), {}, ("gitledger.signingKey", "/nope"), "git config gitledger.signingKey PATH"),
        ((), {}, ("user.signingKey", "/nope"), "git config user.signingKey PATH"),
    ],
)
def test_a_key_that_is_not_there_is_named_anew_where_it_was_named(plain, args, env, setting, way):
    if setting:
        plain.repo.git("config", *setting)
    said = plain.ledger("record", "--shard", "unit", *args, env={"GITLEDGER_SIGNING_KEY": "", **env}, expect=2).err
    assert f"[key-unreadable]; try: {way}\n" in said


def test_junk_for_a_key_is_to_be_looked_at_by_its_name(plain, tmp_path):
    (tmp_path / "a junk").write_text("junk\n")
    said = plain.ledger("record", "--shard", "unit", "--key", str(tmp_path / "a junk"), expect=2).err
    assert f"[key-unreadable]; try: ssh-keygen -l -f '{tmp_path}/a junk'\n" in said


def test_a_locked_key_without_an_agent_needs_one_first(plain, tmp_path):
    """`ssh-add` alone could not open a connection to an agent."""
    key = tmp_path / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(key)], check=True)
    record = ("record", "--shard", "unit", "--key", str(key))
    said = plain.ledger(*record, expect=2).err
    assert f'[passphrase-needed]; try: eval "$(ssh-agent)" && ssh-add {key}\n' in said
    said = plain.ledger(*record, env={"SSH_AUTH_SOCK": str(tmp_path / "none")}, expect=2).err
    assert f"[passphrase-needed]; try: ssh-add {key}\n" in said


def test_init_asks_once_for_all_that_git_writes_commits_with(plain):
    """`init` asked for an address, and the first `record` then for a name."""
    nobody = {f"GIT_{who}_{what}": "" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    said = plain.ledger("init", env=nobody, expect=2).err
    both = 'git config user.name "Your Name" && git config user.email you@example.org'
    assert f"git has no user.name and no user.email to write commits with [no-identity]; try: {both}\n" in said
    said = plain.ledger("init", "--principal", "alice", env=nobody).err
    assert (
        f"identity: git has no user.name and no user.email to write commits with, and records are written as such: {both}"
        in said
    )
    assert "identity" not in plain.ledger("init").err


def test_a_word_for_a_number_is_said_to_be_none(plain):
    for args in (("run", "-j", "x"), ("run", "--retries", "x"), ("plan", "--max-jobs", "x")):
        said = plain.ledger(*args, expect=2).err
        assert "'x' is no whole number [usage]" in said
        assert "integer range" not in said


def test_a_run_without_versions_of_tools_leaves_no_comma_behind(plain):
    plain.record("unit")
    shown = plain.ledger("show").out
    assert ", \n" not in shown
    assert ",\n" not in shown


def test_a_list_of_codes_is_not_headed_by_numbers_of_nothing(plain):
    for args in (("explain",), ("explain", "never-recorded")):
        assert "(section" not in plain.ledger(*args).out


def test_advice_on_a_split_says_what_to_do(make_project):
    """Of a suite in one file it said how long that takes, and nothing else."""
    config = "version: 1\nrepository: demo\nshards:\n  unit: {paths: [tests], command: pytest tests, split: 2}\n"
    test = "import time\n\n\ndef test_it():\n    time.sleep(0.01)\n"
    project = make_project(
        config, {"tests/test_a.py": test, "tests/test_b.py": test, ".gitignore": "__pycache__/\n"}
    )
    project.ledger("record", "--shard", "unit-1-of-2")
    said = project.ledger("split", "--advise").out
    assert said.endswith("  advice: its tests lie in 1 file, and a part is whole files: take `split` out\n")
    project.ledger("record", "--shard", "unit-2-of-2")
    said = project.ledger("split", "--advise").out
    assert said.endswith(
        "  advice: take `split` out: the longest part takes hardly more, and there is one start less\n"
    )
