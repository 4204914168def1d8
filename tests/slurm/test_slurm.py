"""`run --on slurm` against a real one-node Slurm: `make test-slurm` installs and starts it, SLURM_CONF names it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slurm

HEAD = "version: 1\nrepository: demo\nshards:\n"


def shards(lines: dict[str, str]) -> str:
    """Return a configuration of shards whose commands are shell lines; what follows `##` is more of the shard."""
    text = HEAD
    for name, given in lines.items():
        line, _, more = given.partition("##")
        text += f"  {name}: {{paths: [src], command: \"sh -c '{line.strip()}'\", results: exit-status{more}}}\n"
    return text


@pytest.fixture(autouse=True)
def cluster(hermetic_env: dict[str, str]) -> str:
    """The cluster that the tests were started for; without one they fail, since they were asked for."""
    conf = os.environ.get("SLURM_CONF", "")
    assert conf, "there is no cluster: `make test-slurm` starts one"
    hermetic_env["SLURM_CONF"] = conf
    return conf


@pytest.fixture
def out(hermetic_env: dict[str, str], tmp_path: Path) -> Path:
    """A folder that the shards see as `$OUT`."""
    folder = tmp_path / "out"
    folder.mkdir()
    hermetic_env["OUT"] = str(folder)
    return folder


@pytest.fixture
def on_slurm(make_project, out) -> Iterator[Callable[..., Any]]:
    """Return a maker of projects; jobs that a failed test left are ended after it."""
    yield lambda config: make_project(config, {"src/a": "1\n"})
    subprocess.run(["scancel", "--user=root"], timeout=60, check=False)


def state(project: Any) -> dict[str, Any]:
    [file] = (project.path / ".git/gitledger/slurm").glob("*/state.json")
    return json.loads(file.read_text())


def test_stale_shards_are_one_sparse_array_and_are_merged(on_slurm, out):
    project = on_slurm(shards({name: f"env > $OUT/{name}" for name in ("a", "b", "c", "d")}))
    project.ledger("record", "--shard", "b")

    done = project.ledger("run", "--on", "slurm", "--json").document

    assert (done["exit_status"], done["not_run"]) == (0, [])
    [tasks] = state(project)["arrays"].values()
    assert tasks == {"0": "a", "2": "c", "3": "d"}, "the numbers that are missing, and no others"
    assert {item["name"] for item in done["ran"]} == {"a", "c", "d"}
    assert project.verify() == ("passed", set())
    seen = (out / "a").read_text()
    assert "SLURM_ARRAY_TASK_ID=0" in seen
    assert "GITLEDGER_SIGNING_KEY" not in seen
    assert project.receipt(done["ran"][0]["record"])["signer"]["key_fingerprint"]

    again = project.ledger("run", "--on", "slurm", "--json").document
    assert (again["exit_status"], again["ran"], len(state(project)["arrays"])) == (0, [], 1)


def test_a_failure_a_lost_task_and_one_that_can_not_start_are_told_apart(on_slurm):
    """The recorder on the node is killed by its own shard: no receipt comes, and that is no failure of a test."""
    lost = "kill -9 $(ps -o ppid= -p $(ps -o ppid= -p $PPID)); sleep 60"  # keeper, guard, recorder
    config = shards({"good": "true", "bad": "false", "lost": lost})
    project = on_slurm(config + "  none: {paths: [src], command: no-such-program, results: exit-status}\n")

    done = project.ledger("run", "--on", "slurm", "--json", expect=1).document

    assert {item["name"]: item["outcome"] for item in done["ran"]} == {"good": "passed", "bad": "failed"}
    assert {item["name"]: item["code"] for item in done["not_run"]} == {
        "lost": "slurm-task-lost",
        "none": "slurm-task-lost",
    }
    reasons = {item["name"]: item["reason"] for item in done["not_run"]}
    assert "FAILED" in reasons["lost"]
    assert "command-not-found" in reasons["none"]
    assert project.plan()["lost"] == ("stale", "never-recorded")


def test_arrays_are_cut_below_the_limit_and_needs_are_kept_apart(on_slurm, out):
    """The cluster's MaxArraySize is 8; two tasks with a GPU each run at once, on different devices."""
    meet = "touch $OUT/{0}; n=0; until test -e $OUT/{1}; do n=$((n+1)); test $n -lt 300 || exit 1; sleep 0.1; done"
    lines = {f"s{number}": "true" for number in range(9)}
    for one, other in (("x", "y"), ("y", "x")):
        lines[one] = (
            f"{meet.format(one, other)}; echo $CUDA_VISIBLE_DEVICES >> $OUT/devices ##, gpus: 1, memory: 64MiB"
        )
    project = on_slurm(shards(lines))

    done = project.ledger("run", "--on", "slurm", "--json").document

    assert done["exit_status"] == 0
    arrays = sorted(state(project)["arrays"].values(), key=len)
    assert [sorted(tasks.values()) for tasks in arrays] == [["s8"], ["x", "y"], [f"s{n}" for n in range(8)]]
    assert all(int(index) < 8 for tasks in arrays for index in tasks)
    assert sorted((out / "devices").read_text().split()) == ["0", "1"]


def wait_for(condition: Callable[[], object], seconds: float = 150.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_who_stops_waiting_comes_back_to_the_same_jobs(on_slurm, out):
    project = on_slurm(shards({"a": "touch $OUT/on; until test -e $OUT/go; do sleep 0.1; done", "b": "true"}))
    waiting = subprocess.Popen(
        ["git-ledger", "run", "--on", "slurm"],
        cwd=project.path,
        env=dict(project.repo.env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for((out / "on").exists)
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=60)
    finally:
        waiting.kill()
    assert waiting.returncode == 130
    assert "the jobs go on" in err
    before = state(project)["arrays"]

    (out / "go").touch()
    done = project.ledger("run", "--on", "slurm", "--json").document

    assert (done["exit_status"], state(project)["arrays"]) == (0, before)
    assert project.verify()[0] == "passed"


def test_what_the_following_job_has_signed_with_a_key_of_its_own_is_no_loss(on_slurm, out):
    """The one who waits is stopped until all is over; the home has a key, so nothing is left for them to sign."""
    project = on_slurm(shards({"a": "touch $OUT/on; sleep 2", "b": "false"}))
    home = Path(project.repo.env["HOME"]) / ".ssh"
    home.mkdir(mode=0o700)
    (home / "id_ed25519").write_bytes(project.key("alice").read_bytes())
    (home / "id_ed25519").chmod(0o600)
    waiting = subprocess.Popen(
        ["git-ledger", "run", "--on", "slurm", "--json"],
        cwd=project.path,
        env=dict(project.repo.env),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for((out / "on").exists)
        wait_for(lambda: state(project)["followers"])
        waiting.send_signal(signal.SIGSTOP)
        wait_for(lambda: not subprocess.run(["squeue", "-h"], capture_output=True, check=True, timeout=60).stdout)
        waiting.send_signal(signal.SIGCONT)
        said, _ = waiting.communicate(timeout=90)
    finally:
        waiting.kill()

    document = json.loads(said)
    assert {item["name"]: item["outcome"] for item in document["ran"]} == {"a": "passed", "b": "failed"}
    assert (document["not_run"], waiting.returncode) == ([], 1)


def test_a_task_that_is_cancelled_leaves_what_it_had(on_slurm, out):
    project = on_slurm(shards({"a": "touch $OUT/on; sleep 300"}))
    waiting = subprocess.Popen(
        ["git-ledger", "run", "--on", "slurm", "--json"],
        cwd=project.path,
        env=dict(project.repo.env),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for((out / "on").exists)
        [job] = state(project)["arrays"]
        subprocess.run(["scancel", f"{job}_0"], check=True, timeout=60)
        said, _ = waiting.communicate(timeout=90)
    finally:
        waiting.kill()

    [ran] = json.loads(said)["ran"]
    assert "interrupted" in ran["reasons"]
    assert waiting.returncode == 1


def test_the_script_of_a_plan_does_the_same_without_us_in_between(on_slurm, tmp_path):
    project = on_slurm(shards({"a": "true", "b": "true"}))
    spool = tmp_path / "spool"
    script = project.ledger("plan", "--format", "slurm", "--spool", str(spool)).out
    subprocess.run(["sh", "-c", script], cwd=project.path, env=dict(project.repo.env), check=True, timeout=60)
    wait_for(lambda: len(list(spool.glob("*.entry")) + list(spool.glob("*.taken"))) == 2)
    wait_for(
        lambda: not subprocess.run(["squeue", "-h"], capture_output=True, check=True, timeout=60).stdout.strip()
    )

    project.ledger("run", "--collect", str(spool))

    assert project.verify() == ("passed", set())


def test_what_slurm_refuses_is_one_clear_error(on_slurm):
    project = on_slurm(shards({"a": "true"}))

    said = project.ledger("run", "--on", "slurm", "--sbatch=--partition=nowhere", expect=2)

    assert "[slurm-refused]" in said.err
    assert "partition" in said.err
