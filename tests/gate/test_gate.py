"""`git ledger gate`: which commit, by whose policy, and that nothing but evidence makes it green."""

from __future__ import annotations

import json

import pytest


def event_file(tmp_path, **payload) -> dict[str, str]:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(payload))
    return {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(path), "GITHUB_EVENT_NAME": "pull_request"}


def test_it_judges_merges_and_publishes_what_was_recorded(hosted, blocking):
    hosted.topic({"one/a": "1"})
    found = hosted.gate()
    assert blocking(found) == [("never-recorded", "one"), ("never-recorded", "two")]
    assert found["policy"]["from"] == "origin/main"
    assert found["policy"]["commit"] == hosted.head("main")
    assert found["merge"] == {"outcome": "refused", "record": None}

    hosted.record_all()
    found = hosted.gate()
    assert (found["verdict"], found["plan"]) == ("passed", {"fresh": 2, "carryable": 0, "stale": 0})
    assert found["merge"]["outcome"] == "passed"
    assert found["published"]["lines"] == 3
    assert hosted.gate()["merge"] is None  # a merged receipt that says it all is there: none is added

    elsewhere = hosted.clone("elsewhere")
    elsewhere.repo.git("checkout", "-q", "topic")
    found = elsewhere.gate("--no-merge")
    assert (found["verdict"], found["merge"], found["published"]) == ("passed", None, None)


def test_a_failure_that_is_recorded_elsewhere_is_fetched_first(hosted, blocking):
    hosted.topic()
    other = hosted.clone("other")
    other.repo.git("config", "gitledger.signingKey", str(hosted.key("runner")))
    other.repo.git("checkout", "-q", "topic")
    hosted.record_all()
    assert hosted.gate()["verdict"] == "passed"
    other.record("one", expect=1, env={"FAIL": "1"})
    other.ledger("sync")
    assert hosted.gate("--no-merge")["verdict"] == "failed"


def test_of_a_pull_request_the_head_is_judged_and_not_the_merge(hosted, tmp_path, blocking):
    head = hosted.topic({"one/a": "1"})
    hosted.repo.git("checkout", "-q", "main")
    hosted.repo.commit({"two/check.sh": "exit 0 # on main meanwhile\n"})
    hosted.repo.git("push", "-q", "origin", "main")
    hosted.repo.git("checkout", "-q", "topic")
    hosted.record_all()
    hosted.ledger("sync")

    runner = hosted.clone("runner")
    merge = runner.merge_ref(head)
    on_github = event_file(tmp_path, pull_request={"number": 7, "head": {"sha": head}, "base": {"ref": "main"}})
    found = runner.gate(env=on_github)
    assert (found["commit"], found["verdict"]) == (head, "passed")
    assert found["judged"] == "the head of pull request 7"

    without_file = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_REF": "refs/pull/7/merge",
        "GITHUB_SHA": merge,
        "GITHUB_BASE_REF": "main",
    }
    assert runner.gate(env=without_file)["commit"] == head
    assert runner.gate(merge, env=on_github)["commit"] == merge  # told otherwise


def test_of_no_other_merge_than_a_pull_requests_own_the_second_parent_is_judged(hosted):
    """`pull_request_target` checks out the base: the last head that was merged there is no head of this request."""
    merged = hosted.topic({"one/a": "1"})
    hosted.record_all()
    hosted.repo.git("checkout", "-q", "main")
    hosted.repo.git("merge", "-q", "--no-ff", "-m", "merged", merged)
    hosted.repo.git("push", "-q", "--no-verify", "origin", "main")
    said = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "pull_request_target",
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_SHA": hosted.head(),
        "GITHUB_BASE_REF": "main",
    }
    assert hosted.gate(env=said, expect=2)["error"]["code"] == "head-unknown"
    on_merge_ref = {"GITHUB_EVENT_NAME": "pull_request", "GITHUB_REF": "refs/pull/1/merge"}
    assert hosted.gate("--no-merge", env=said | on_merge_ref)["commit"] == merged


def test_the_tip_of_the_default_branch_is_not_judged_for_what_a_job_has_checked_out(hosted, tmp_path, blocking):
    """`workflow_dispatch`, a comment, a schedule: GITHUB_SHA is green, and the job has a change without evidence."""
    green = hosted.topic({"one/a": "1"})
    hosted.record_all()
    hosted.repo.commit({"one/a": "2"})
    said = event_file(tmp_path) | {"GITHUB_SHA": green}
    for name in ("workflow_dispatch", "issue_comment", "schedule", ""):
        found = hosted.gate(env=said | {"GITHUB_EVENT_NAME": name}, expect=2)
        assert found["error"]["code"] == "head-unknown"
        assert hosted.gate("HEAD", env=said, expect=1)["commit"] == hosted.head()  # as the hint says
    push = said | {"GITHUB_EVENT_NAME": "push"}  # its commit is its commit, whatever else lies there
    assert hosted.gate("--no-merge", env=push)["judged"] == "the commit of the event push"
    without = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "push"}
    assert hosted.gate(env=without, expect=1)["judged"] == "what is checked out"

    hosted.repo.git("checkout", "-q", "--detach", green)
    dispatched = said | {"GITHUB_EVENT_NAME": "workflow_dispatch"}
    assert hosted.gate("--no-merge", env=dispatched)["commit"] == green
    comment = event_file(tmp_path, issue={"number": 7, "pull_request": {"url": "u"}}) | {"GITHUB_SHA": green}
    found = hosted.gate(env=comment | {"GITHUB_EVENT_NAME": "issue_comment"}, expect=2)
    assert found["error"]["code"] == "head-unknown"


@pytest.mark.parametrize("key", ["workflow_run", "check_run", "check_suite", "deployment"])
def test_an_event_about_a_commit_is_judged_by_that_commit(hosted, tmp_path, key, blocking):
    head = hosted.topic({"one/a": "1"})
    field = "sha" if key == "deployment" else "head_sha"
    said = event_file(tmp_path, **{key: {field: head}})
    said |= {"GITHUB_EVENT_NAME": key, "GITHUB_SHA": hosted.head("main")}
    hosted.repo.git("checkout", "-q", "main")
    assert hosted.gate(env=said, expect=1)["commit"] == head


@pytest.mark.parametrize(
    ("env", "payload", "code"),
    [
        ({"GITHUB_REF": "refs/pull/7/merge", "GITHUB_SHA": "f" * 40}, None, "head-unknown"),
        ({"GITHUB_EVENT_NAME": "workflow_run"}, None, "head-unknown"),
        ({}, {"pull_request": {"head": {"sha": "main"}}}, "head-unknown"),
        ({}, {"pull_request": {"head": {"sha": "e" * 40}}}, "head-missing"),
        ({"GITHUB_BASE_REF": "no-such-branch", "GITHUB_EVENT_NAME": "push"}, {}, "no-target"),
        ({"GITHUB_BASE_REF": "a..b", "GITHUB_EVENT_NAME": "push"}, {}, "no-target"),
    ],
)
def test_what_a_runner_says_and_nobody_understands_is_no_verdict(hosted, tmp_path, env, payload, code):
    said = event_file(tmp_path, **payload) if payload is not None else {"GITHUB_ACTIONS": "true"}
    assert hosted.gate(env=said | env, expect=2)["error"]["code"] == code


def test_a_server_whose_head_names_a_branch_that_is_not_there_is_told_of_with_a_command_that_works(hosted):
    """`git init --bare` makes a HEAD of `master`; after a push of `main` nothing there says what is meant."""
    hosted.record_all()
    hosted.ledger("sync")
    hosted.repo.git("--git-dir", str(hosted.server), "symbolic-ref", "HEAD", "refs/heads/master")
    error = hosted.gate(expect=2)["error"]
    assert error["code"] == "no-target"
    assert (
        "its HEAD says master, and there is main. So there is no policy to apply; make main the"
        in error["message"]
    )
    assert error["hint"] == "git ledger gate --policy-from origin/main"
    assert hosted.gate("--policy-from", "origin/main")["verdict"] == "passed"


def test_an_event_file_that_is_no_json_is_no_verdict(hosted, tmp_path):
    said = event_file(tmp_path)
    (tmp_path / "event.json").write_text("[")
    assert hosted.gate(env=said, expect=2)["error"]["code"] == "head-unknown"


def test_t06_policy_is_that_of_the_target_branch_as_the_server_has_it_now(hosted, tmp_path, blocking):
    """The change loosens policy and adds its own key; and main was tightened after the runner's clone was made."""
    runner = hosted.clone("runner")
    mallory = f'mallory@example.org namespaces="gitledger" {hosted.public("mallory")}\n'
    config = (hosted.path / ".gitledger/config.yaml").read_text()
    loose = config.replace("alice@example.org, runner@example.org", "mallory@example.org")
    head = hosted.topic({".gitledger/config.yaml": loose, ".gitledger/allowed_signers": mallory})
    hosted.record_all(by="mallory")
    hosted.ledger("sync")
    runner.repo.git("fetch", "-q")
    runner.repo.git("checkout", "-q", "--detach", head)
    assert {code for code, _ in blocking(runner.gate("--no-merge"))} == {"untrusted"}

    hosted.repo.git("checkout", "-q", "-B", "topic", "main")
    head = hosted.topic({"one/a": "1"})
    hosted.record_all()
    hosted.ledger("sync")
    runner.repo.git("fetch", "-q")
    runner.repo.git("checkout", "-q", "--detach", head)
    assert runner.gate("--no-merge")["verdict"] == "passed"
    hosted.repo.git("checkout", "-q", "main")
    hosted.repo.commit({".gitledger/config.yaml": config.replace("allow_carried: true", "require_merged: true")})
    hosted.repo.git("push", "-q", "--no-verify", "origin", "main")
    assert blocking(runner.gate("--no-merge")) == [("merged-missing", "union")]


def test_a_shard_that_the_change_removes_blocks_until_a_maintainer_accepts_it(hosted, blocking):
    config = (hosted.path / ".gitledger/config.yaml").read_text()
    fewer = "\n".join(line for line in config.splitlines() if not line.startswith("  two:")) + "\n"
    hosted.topic({".gitledger/config.yaml": fewer})
    hosted.record("one")
    assert blocking(hosted.gate()) == [("shard-removed", "two")]
    assert hosted.gate("--accept-shards")["verdict"] == "passed"


def test_nothing_judged_is_no_pass(make_hosted):
    empty = make_hosted("version: 1\nrepository: demo\nshards: {}\n")
    assert empty.gate(expect=1)["verdict"] == "failed"


def test_without_a_remote_policy_must_be_named(project):
    assert project.ledger("gate", "--json", expect=2).document["error"]["code"] == "no-remote"
    done = project.ledger("gate", "--policy-from", "main", "--no-merge", expect=1)
    assert "nothing was fetched" in done.err


def test_a_target_without_configuration_is_no_verdict(make_repo, make_hosted, tmp_path):
    hosted = make_hosted()
    hosted.repo.git("push", "-q", "origin", f"{hosted.head('main~1')}:refs/heads/old")
    hosted.repo.git("checkout", "-q", "--orphan", "bare")
    hosted.repo.git("rm", "-rqf", ".")
    hosted.repo.commit({"a": "1"})
    hosted.repo.git("push", "-q", "--no-verify", "origin", "bare")
    hosted.repo.git("checkout", "-q", "main")
    said = {"GITLAB_CI": "true", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "bare"}
    assert hosted.gate(env=said, expect=2)["error"]["code"] == "no-config"


def test_on_gitlab_the_source_branch_is_judged_by_the_target_branch(hosted, tmp_path):
    """In a runner's clone: of one branch alone, and one commit deep; the target branch is fetched for its policy."""
    head = hosted.topic()
    hosted.record_all()
    hosted.ledger("sync")
    path = tmp_path / "runner"
    hosted.repo.git("clone", "-q", "--depth=1", "--branch=topic", f"file://{hosted.server}", str(path))
    runner = type(hosted)(
        type(hosted.project)(type(hosted.repo)(path, hosted.repo.env), hosted.keys), hosted.server
    )
    assert runner.repo.git("branch", "-r").strip() == "origin/topic"
    said = {
        "GITLAB_CI": "true",
        "CI_COMMIT_SHA": "f" * 40,  # of the merge that GitLab runs on
        "CI_MERGE_REQUEST_IID": "3",
        "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": head,
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
    }
    found = runner.gate("--no-merge", env=said)
    assert (found["commit"], found["verdict"], found["judged"]) == (head, "passed", "the head of merge request 3")
    assert (found["policy"]["from"], found["policy"]["commit"]) == ("origin/main", hosted.head("main"))
    del said["CI_MERGE_REQUEST_SOURCE_BRANCH_SHA"]
    assert runner.gate(env=said, expect=2)["error"]["code"] == "head-missing"


def test_what_could_not_be_published_exits_with_three_and_only_that(hosted):
    """A server that says no: the verdict is told, the merged receipt stays here, and the status says so."""
    hosted.topic()
    hosted.record_all()
    hosted.ledger("sync")
    hook = hosted.server / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho declined >&2\nexit 1\n")
    hook.chmod(0o755)
    assert hosted.gate("--no-merge")["verdict"] == "passed"
    done = hosted.ledger("gate", "--json", expect=3)
    assert done.document["verdict"] == "passed"
    assert "not published" in done.err
    hook.unlink()
    hosted.repo.git("remote", "set-url", "origin", str(hosted.server) + "-gone")
    assert hosted.gate("--no-merge", expect=3)["error"]["code"] == "fetch-failed"


def test_a_key_that_can_not_be_used_is_no_success_though_the_verdict_is(hosted, tmp_path):
    hosted.topic()
    hosted.record_all()
    done = hosted.ledger("gate", "--json", "--key", str(tmp_path / "no-such-key"), expect=2)
    assert (done.document["verdict"], done.document["merge"]) == ("passed", None)
    assert "not merged: " in done.err


def needs(**jobs: str) -> str:
    found = {name: {"result": result, "outputs": {}} for name, result in jobs.items()}
    if "plan" in jobs:
        found["plan"]["outputs"] = {"any": "false"}
    return json.dumps(found)


@pytest.mark.parametrize(
    ("said", "codes"),
    [
        (needs(plan="success", shard="success"), []),
        (needs(plan="success", shard="skipped"), []),  # the plan gave out any=false, and nothing is stale
        (needs(shard="skipped"), ["job-not-successful"]),
        (needs(plan="failure", shard="skipped"), ["job-not-successful"] * 2),
        (needs(plan="success", shard="cancelled"), ["job-not-successful"]),
        (needs(plan="success", shard="neutral"), ["job-not-successful"]),
        (needs(plan="success", shard=""), ["job-not-successful"]),
        ("", ["jobs-unknown"]),
        ("{}", ["jobs-unknown"]),
        ("[]", ["jobs-unknown"]),
        ('{"shard": null}', ["job-not-successful"]),
        ('{"shard": {"result": "failure"}, "shard": {"result": "success"}}', ["jobs-unknown"]),
        ('{"shard": {"result": "failure", "result": "success"}}', ["jobs-unknown"]),
    ],
)
def test_no_result_of_a_job_counts_but_success(said, codes):
    from gitledger.workflows.gate_needs import judge_needs

    assert [finding.code for finding in judge_needs(said, nothing_stale=True)] == codes


def test_a_job_that_was_skipped_while_something_is_stale_is_none_that_had_nothing_to_do(hosted, blocking):
    hosted.topic()
    hosted.record("one")
    found = blocking(hosted.gate("--needs", needs(plan="success", shard="skipped")))
    assert found == [("never-recorded", "two"), ("job-not-successful", "job shard")]


def test_the_summary_and_the_annotations_say_what_blocks(hosted, tmp_path):
    hosted.topic()
    summary = tmp_path / "summary"
    said = event_file(tmp_path) | {"GITHUB_EVENT_NAME": "push", "GITHUB_STEP_SUMMARY": str(summary)}
    done = hosted.ledger("gate", expect=1, env=said)
    text = summary.read_text()
    assert text.startswith("## ❌ git ledger: failed")
    assert "| two | ✗ stale | never-recorded | – |" in text
    errors = [line for line in done.out.splitlines() if line.startswith("::error ")]
    assert len(errors) == 2
    assert errors[0].startswith("::error title=git ledger%3A never-recorded::one: ")
    stopped, token = done.out.splitlines()[0].split("::stop-commands::")
    assert stopped == ""
    assert f"::{token}::" in done.out
