"""A push that only says what it would do: what the hook publishes beside it would be real."""

from __future__ import annotations

import subprocess

import pytest

from gitledger.workflows.dry_push import is_dry_push

CONFIG = """\
version: 1
repository: demo
shards:
  it: {paths: [src], command: "true", results: exit-status}
"""
SAID = "git ledger: a dry run: the ledger is not published"
RECORDS = "refs/notes/gitledger/records"


@pytest.fixture
def hosted(make_hosted):
    hosted = make_hosted(CONFIG, {"src/a": "1"})
    hosted.repo.git("remote", "set-head", "origin", "main")
    hosted.repo.commit({"src/a": "2"})
    hosted.record("it")
    hosted.ledger("init")
    return hosted


def pushed(hosted, *words: str) -> str:
    done = subprocess.run(
        ["git", *words],
        cwd=hosted.path,
        env=dict(hosted.repo.env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_dry_run_publishes_nothing_and_the_push_after_it_does(hosted):
    def published() -> bool:
        return bool(hosted.repo.git("ls-remote", str(hosted.server), RECORDS))

    hosted.repo.git("config", "alias.p", "push --dry-run")
    for words in (
        ["push", "--dry-run", "origin", "main"],
        ["push", "-qn", "origin", "main"],
        ["p", "origin", "main"],
    ):
        said = pushed(hosted, *words)
        assert SAID in said, words
        assert "refs/heads/main: evidence passed" in said, "it is judged all the same"
        assert not published(), words
    assert SAID not in pushed(hosted, "-c", "core.editor=push -n", "push", "origin", "main")
    assert published()


@pytest.mark.parametrize(
    ("commands", "dry"),
    [
        ([], False),
        (["git push"], False),
        (["sh .git/hooks/pre-push", "git push --dry-run"], True),
        (["git ledger hook pre-push", "sh hook", "git -C x push origin -n"], True),
        (["/usr/lib/git-core/git-push --dry"], True),
        (["git push -fn"], True),
        (["git push --dry-run --no-dry-run"], False),
        (["git push -o n --delete x"], False),
        (["git push -o -n"], False),
        (["git push -on"], False),
        (["git push --push-option --dry-run"], False),
        (["git push -- -n"], False),
        (["git push --no-verify --d"], False),
        (["git push", "git push --dry-run"], False),
        (["git -c push commit -n", "bash"], False),
        (["git"], False),
        (["not-git push -n"], False),
    ],
)
def test_the_nearest_push_is_read_as_git_reads_it(commands, dry):
    assert is_dry_push([words.split() for words in commands]) == dry
