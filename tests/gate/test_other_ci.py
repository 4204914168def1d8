"""Our action, the GitLab component and the shell recipe: their own shell, executed against a real remote."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = """\
on: [pull_request]
permissions: {}
jobs:
  plan:
    outputs: {matrix: "${{ steps.ledger.outputs.matrix }}", any: "${{ steps.ledger.outputs.any }}"}
    steps:
      - uses: actions/checkout@v5
        with: {ref: "${{ github.event.pull_request.head.sha }}", fetch-depth: 0}
      - {id: ledger, uses: owner/git-ledger/hooks/github@v1, with: {mode: plan}}
  shard:
    needs: plan
    if: needs.plan.outputs.any == 'true'
    strategy: {fail-fast: false, matrix: "${{ fromJSON(needs.plan.outputs.matrix) }}"}
    steps:
      - uses: actions/checkout@v5
        with: {ref: "${{ github.event.pull_request.head.sha }}", fetch-depth: 0}
      - uses: owner/git-ledger/hooks/github@v1
        with: {mode: shard, shards: "${{ matrix.shards }}", key: "${{ secrets.LEDGER_KEY }}", version: ""}
  gate:
    needs: [plan, shard]
    if: always()
    steps:
      - uses: actions/checkout@v5
        with: {ref: "${{ github.event.pull_request.head.sha }}", fetch-depth: 0}
      - uses: owner/git-ledger/hooks/github@v1
        with: {mode: gate, needs: "${{ toJSON(needs) }}", key: "${{ secrets.LEDGER_KEY }}"}
"""


def test_our_action_plans_records_and_judges(hosted, make_github, pull_request, tmp_path):
    flow = tmp_path / "flow.yml"
    flow.write_text(ACTION)
    event = pull_request(hosted, hosted.topic({"one/check.sh": "exit 4\n"}))
    secrets = {"LEDGER_KEY": hosted.key("runner").read_text()}
    github = make_github(hosted, event, secrets=secrets, source=flow)
    assert github.run() == "failure"
    assert github.results["shard"]["entries"] == {"one": "failure", "two": "success"}
    event = pull_request(hosted, hosted.topic({"one/check.sh": "exit 0\n"}))
    assert make_github(hosted, event, secrets=secrets, source=flow).run() == "success"

    flow.write_text(ACTION.replace("mode: gate", "mode: gaet"))
    github = make_github(hosted, event, secrets=secrets, source=flow)
    assert github.run() == "failure"
    assert "mode is 'gaet'" in github.logs["gate"]
    flow.write_text(
        ACTION.replace('needs: "${{ toJSON(needs) }}", key', 'needs: "", key')
    )  # a misspelt expression
    github = make_github(hosted, event, secrets=secrets, source=flow)
    assert github.run() == "failure"
    assert "jobs-unknown" in github.logs["gate"]


# --- GitLab -------------------------------------------------------------------------------------------------------


@dataclass
class GitLab:
    """Runs the jobs of the component and of the child pipeline that it generates: each in a clone of its own."""

    hosted: Any
    folder: Path
    variables: dict[str, str]
    logs: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        header, body = (ROOT / "hooks/gitlab/git-ledger.yml").read_text("utf-8").split("\n---\n")
        inputs = yaml.safe_load(header)["spec"]["inputs"]
        given = {"setup": 'test -z "${GITLEDGER_SIGNING_KEY:-}"'} | {}
        text = re.sub(
            r"\$\[\[ inputs\.(\w+) \]\]",
            lambda found: str(given.get(found[1], inputs[found[1]]["default"])).replace('"', '\\"'),
            body.replace("GITLEDGER_SETUP: $[[ inputs.setup ]]", 'GITLEDGER_SETUP: "$[[ inputs.setup ]]"'),
        )
        self.flow = yaml.safe_load(text)
        self.folder.mkdir()
        (self.folder / "pip").write_text('#!/bin/sh\necho "pip $*"\n')
        (self.folder / "pip").chmod(0o755)
        url = "https://git-ledger:job-token@gitlab.example/group/demo.git"
        self.hosted.repo.git("config", "--global", f"url.{self.hosted.server}.insteadOf", url)

    def run(self, flow: dict[str, Any], name: str) -> bool:
        """Run one job as a runner does: before_script and script in one shell, then after_script in another."""
        job = flow[name]
        base = flow.get(job.get("extends", ""), {})
        body = {**flow.get("default", {}), **base, **job}
        body["variables"] = {**base.get("variables", {}), **job.get("variables", {})}
        assert body["variables"]["GIT_DEPTH"] == "0"
        place = self.folder / re.sub(r"\W", "-", name)
        env = {key: value for key, value in self.hosted.repo.env.items() if key != "GITLEDGER_SIGNING_KEY"}
        env |= {
            "GITLAB_CI": "true",
            "PATH": f"{self.folder}{os.pathsep}{env['PATH']}",
            **self.variables,
            **body["variables"],
        }
        subprocess.run(["git", "clone", "-q", str(self.hosted.server), str(place)], env=env, check=True)
        subprocess.run(["git", "checkout", "-q", "--detach", env["CI_COMMIT_SHA"]], cwd=place, env=env, check=True)
        statuses = []
        for script in ([*body.get("before_script", []), *body["script"]], body.get("after_script", [])):
            done = subprocess.run(
                ["bash", "-eo", "pipefail", "-c", "\n".join(script)],
                cwd=place,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=120,
            )
            statuses.append(done.returncode)
            self.logs[name] = self.logs.get(name, "") + done.stdout
        return statuses[0] == 0

    def pipeline(self, *, broken: tuple[str, ...] = ()) -> dict[str, bool]:
        """Run plan, child pipeline and gate; return what became of each job."""
        results = {"plan": self.run(self.flow, "git-ledger-plan")}
        trigger = self.flow["git-ledger-shards"]
        assert trigger["trigger"]["strategy"] == "depend"
        self.variables |= trigger["variables"]
        child = yaml.safe_load((self.folder / "git-ledger-plan/git-ledger-jobs.yml").read_text())
        for name, job in child.items():
            if isinstance(job, dict) and (
                "extends" in job or (name != "default" and "script" in job and name[0] != ".")
            ):
                job.setdefault("variables", {}).setdefault("GIT_DEPTH", "0")
                results[name] = name not in broken and self.run(child, name)
        results["gate"] = self.run(self.flow, "git-ledger-gate")
        return results


@pytest.fixture
def gitlab(hosted, tmp_path):
    """A maker of merge request pipelines: of a commit, into main."""

    def make(head: str, number: int) -> GitLab:
        return GitLab(
            hosted,
            tmp_path / f"gitlab-{number}",
            {
                "CI_COMMIT_SHA": head,
                "CI_DEFAULT_BRANCH": "main",
                "CI_MERGE_REQUEST_IID": "3",
                "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
                "CI_SERVER_PROTOCOL": "https",
                "CI_REPOSITORY_URL": "https://gitlab-ci-token:t@gitlab.example/group/demo.git",
                "CI_JOB_TOKEN": "job-token",
                "GITLEDGER_SIGNING_KEY": str(hosted.key("runner")),
            },
        )

    return make


def test_the_gitlab_component_from_plan_to_gate(hosted, gitlab):
    head = hosted.topic({"one/a": "1"})
    first = gitlab(head, 1)
    assert first.pipeline(broken=("shard two",)) == {
        "plan": True,
        "shard one": True,
        "shard two": False,
        "gate": False,
    }
    assert "two: never recorded" in first.logs["git-ledger-gate"]
    assert "the head of merge request 3" in first.logs["git-ledger-gate"]
    again = gitlab(head, 2)
    assert again.pipeline() == {"plan": True, "shard two": True, "gate": True}
    assert gitlab(head, 3).pipeline() == {"plan": True, "nothing is stale": True, "gate": True}


def test_the_shell_recipe_for_any_other_ci(hosted):
    def recipe(*args: str, expect: int) -> str:
        env = dict(hosted.repo.env) | {"GITLEDGER_SIGNING_KEY": str(hosted.key("runner"))}
        done = subprocess.run(
            ["sh", str(ROOT / "hooks/gate.sh"), *args],
            cwd=hosted.path,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout

    hosted.topic({"one/check.sh": "exit 1\n"})
    assert recipe("plan", expect=0).split() == ["one", "two"]
    recipe("run", "one", expect=1)
    assert "refs/notes/gitledger/records" in hosted.repo.git("ls-remote", "origin")  # the failure is published
    recipe("judge", expect=1)
    hosted.topic({"one/check.sh": "exit 0\n"})
    recipe("run", expect=0)
    assert recipe("plan", expect=0) == ""
    assert "verdict: passed" in recipe("judge", expect=0)
    recipe("deploy", expect=2)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_shell_recipe_takes_no_policy_but_the_one_that_the_remote_has_now(hosted, shell):
    """A branch that was deleted there is still here as a tracking ref; a failed look at it judges nothing."""
    hosted.topic()
    hosted.record_all()
    hosted.repo.git("push", "-q", "--no-verify", "origin", "main:lax")
    hosted.repo.git("--git-dir", str(hosted.server), "branch", "-qD", "lax")
    assert hosted.repo.git("rev-parse", "-q", "--verify", "refs/remotes/origin/lax")
    env = dict(hosted.repo.env) | {"GITLEDGER_TARGET": "lax"}
    for part in ("plan", "run", "judge"):
        command = [shell, str(ROOT / "hooks/gate.sh"), part]
        done = subprocess.run(command, cwd=hosted.path, env=env, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (2, ""), part
        assert "couldn't find remote ref refs/heads/lax" in done.stderr
        assert "Traceback" not in done.stderr
