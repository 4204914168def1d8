"""The shell of our GitHub workflow, taken from its YAML and executed: real git remotes, an emulated runner."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUITE = {
    f"{part}/test_{part}.py": f"from app import {part}\n\n\ndef test_{part}():\n    assert {part}.f(1) == 2\n"
    for part in ("api", "web", "jobs")
}
SUITE |= {
    f"app/{part}.py": "def f(x):\n    if x > 5:\n        return 0\n    return x + 1\n"
    for part in ("api", "web", "jobs")
}
SUITE |= {
    ".gitignore": "__pycache__/\n.pytest_cache/\n.coverage*\n",
    "app/__init__.py": "",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n[tool.coverage.run]\nsource = ["app"]\n',
}
CONFIG = """\
version: 1
repository: demo
shards:
  unit: {split: 3, command: pytest -q -p no:cacheprovider --cov=app api web jobs}
coverage: {fail_under: 70}
policy: {allowed_signers: [alice@example.org, runner@example.org], ci_key_fingerprints: ["RUNNER"]}
"""


def key_of(hosted) -> dict[str, str]:
    return {"LEDGER_KEY": hosted.key("runner").read_text()}


def test_the_seeds_story_of_three_shards_one_threshold_and_one_that_never_starts(
    make_hosted, make_github, pull_request
):
    """Red, naming the shard that never ran; its rerun alone makes it green; the threshold is applied once."""
    hosted = make_hosted(CONFIG, SUITE)
    head = hosted.topic({"app/api.py": SUITE["app/api.py"] + "\n\nLATER = 1\n"})
    github = make_github(hosted, pull_request(hosted, head), secrets=key_of(hosted))

    assert github.run(broken=("unit-2-of-3",)) == "failure"
    assert github.results["plan"]["outputs"]["count"] == "3"
    assert github.results["shard"]["entries"] == {
        "unit-1-of-3": "success",
        "unit-2-of-3": "cancelled",
        "unit-3-of-3": "success",
    }
    assert "never-recorded" in github.logs["gate"]
    assert "job shard: cancelled [job-not-successful]" in github.logs["gate"]
    assert "| unit-2-of-3 | ✗ stale | never-recorded | – |" in github.summaries["gate"]

    assert github.run_job("shard", only=("unit-2-of-3",)) == "success"  # "Re-run failed jobs": no other runs again
    assert github.run_job("gate") == "success"
    assert "coverage: 10/13 lines" in github.logs["gate"]
    assert github.summaries["gate"].startswith("## ✅ git ledger: passed")
    assert f"judging {head[:12]}, the head of pull request 7" in github.logs["gate"]

    hosted.repo.git("fetch", "-q")
    hosted.ledger("sync", "--fetch-only")
    assert hosted.verify("--policy-from", "origin/main", head)[0] == "passed"


def test_a_red_shard_is_published_and_stays_red_until_it_is_mended(hosted, make_github, pull_request):
    head = hosted.topic({"one/check.sh": "exit 3\n"})
    github = make_github(hosted, pull_request(hosted, head), secrets=key_of(hosted))
    assert github.run() == "failure"
    assert github.results["shard"]["entries"] == {"one": "failure", "two": "success"}
    assert "not-green" in github.summaries["gate"]
    assert "::stop-commands::" in github.logs["one"]

    head = hosted.topic({"one/check.sh": "exit 0\n"})
    again = make_github(hosted, pull_request(hosted, head), secrets=key_of(hosted))
    assert again.run() == "success"
    assert list(again.results["shard"]["entries"]) == ["one"]  # two is carried


def test_a_setup_that_fails_is_red_and_so_is_a_plan_that_fails(hosted, make_github, pull_request):
    event = pull_request(hosted, hosted.topic())
    github = make_github(hosted, event, secrets=key_of(hosted), inputs={"setup": "echo hello; false"})
    assert github.run() == "failure"
    assert set(github.results["shard"]["entries"].values()) == {"failure"}
    github = make_github(hosted, event, secrets=key_of(hosted), inputs={"max-jobs": "0x"})
    assert github.run() == "failure"
    assert github.results["plan"]["result"] == "failure"
    assert github.results["shard"]["result"] == "skipped"


def test_on_main_and_in_a_merge_queue(hosted, make_github):
    main = hosted.head("main")
    event = {"after": main, "repository": {"default_branch": "main"}}
    github = make_github(hosted, event, name="push", secrets=key_of(hosted), inputs={"max-jobs": "1"})
    assert github.run() == "success"
    assert list(github.results["shard"]["entries"]) == ["one and 1 more"]
    group = {**event, "merge_group": {"head_sha": main, "base_ref": "refs/heads/main"}}
    github = make_github(hosted, group, name="merge_group", secrets=key_of(hosted))
    assert github.run() == "success"
    assert "the head of a merge group" in github.logs["gate"]


@pytest.fixture
def fork(hosted, make_repo):
    """A fork on the same server, with a commit of a contributor's."""
    hosted.repo.git("checkout", "-q", "-b", "theirs")
    head = hosted.repo.commit({"one/a": "theirs"})
    place = make_repo("fork.git", "--bare")
    hosted.repo.git("push", "-q", "--no-verify", str(place.path), "theirs:topic")
    return head, place.path


def test_a_forks_evidence_counts_by_its_signers(hosted, fork, make_github, pull_request):
    """A maintainer recorded into the fork's ledger; nothing runs here, and nothing of the fork is believed unsigned."""
    head, place = fork
    hosted.record_all()
    hosted.repo.git("push", "-q", "--no-verify", str(place), "refs/notes/gitledger/*:refs/notes/gitledger/*")
    github = make_github(hosted, pull_request(hosted, head, fork=place))
    assert github.run() == "success"
    assert github.results["shard"]["result"] == "skipped"


def test_a_forks_own_runs_travel_as_bundles_and_count_for_nothing_without_a_key(
    hosted, fork, make_github, pull_request
):
    head, place = fork
    github = make_github(hosted, pull_request(hosted, head, fork=place))
    assert github.run() == "failure"
    bundles = sorted((github.folder / "temp/artifacts").glob("*/ledger.bundle"))
    assert len(bundles) == 2
    assert "never-recorded" in github.summaries["gate"]
    assert "unsigned" in github.logs["gate"]
    assert "refs/notes/gitledger/records" not in hosted.repo.git("ls-remote", "origin")

    # The same bundles, recorded by a runner with a key that policy trusts, are all that it takes.
    trusted = make_github(hosted, pull_request(hosted, head, fork=place), secrets=key_of(hosted))
    assert trusted.run() == "success"
    assert "2 taken" in trusted.logs["gate"] or "1 taken" in trusted.logs["gate"]
