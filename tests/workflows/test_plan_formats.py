"""A plan as jobs of GitHub, GitLab and Slurm: what is stale, no job for what is not, and never an empty matrix."""

from __future__ import annotations

import json
import os
import stat
import subprocess

import pytest
import yaml

CONFIG = """\
version: 1
repository: demo
shards:
  unit: {split: 2, paths: [src], command: pytest -q tests}
  l1: {paths: [src], command: "true", results: exit-status, variants: [a100, mi300], gpus: 1, memory: 3GiB, timeout: 30m}
  lint: {paths: [README.md], command: "true", results: exit-status}
"""
FILES = {"src/a.py": "1\n", "README.md": "1\n"}


@pytest.fixture
def planned(make_project):
    project = make_project(CONFIG, FILES)
    project.ledger("record", "--shard", "lint")
    return project


def outputs(text: str) -> dict[str, str]:
    """Return what a step's outputs are after these lines went to `$GITHUB_OUTPUT`."""
    lines = text.splitlines()
    assert all("=" in line for line in lines)
    return dict(line.split("=", 1) for line in lines)


def test_github_gets_a_matrix_of_the_stale_shards_and_variants(planned):
    found = outputs(planned.ledger("plan", "--format", "github", "--exit-code", expect=1).out)

    assert (found["count"], found["any"]) == ("4", "true")
    assert json.loads(found["matrix"]) == {
        "include": [
            {"gpus": 0, "name": "unit-1-of-2", "shards": "unit-1-of-2", "variant": ""},
            {"gpus": 0, "name": "unit-2-of-2", "shards": "unit-2-of-2", "variant": ""},
            {"gpus": 1, "name": "l1@a100", "shards": "l1@a100", "variant": "a100"},
            {"gpus": 1, "name": "l1@mi300", "shards": "l1@mi300", "variant": "mi300"},
        ]
    }


def test_github_gets_fewer_jobs_where_asked_for_and_variants_stay_apart(planned):
    found = outputs(planned.ledger("plan", "--format", "github", "--max-jobs", "3").out)

    assert [item["shards"] for item in json.loads(found["matrix"])["include"]] == [
        "unit-1-of-2 unit-2-of-2",
        "l1@a100",
        "l1@mi300",
    ]
    said = planned.ledger("plan", "--format", "github", "--max-jobs", "2", expect=2)
    assert "[too-many-jobs]" in said.err


def test_github_takes_no_more_than_256_jobs_and_the_error_names_the_way_out(make_project):
    shards = "".join(f'  s{i}: {{paths: [src], command: "true", results: exit-status}}\n' for i in range(257))
    project = make_project(f"version: 1\nrepository: demo\nshards:\n{shards}", {"src/a": "1"})

    said = project.ledger("plan", "--format", "github", expect=2)

    assert "[too-many-jobs]; try: --max-jobs 256" in said.err
    assert outputs(project.ledger("plan", "--format", "github", "--max-jobs", "256").out)["count"] == "256"


@pytest.fixture
def nothing_stale(make_project):
    project = make_project(
        'version: 1\nrepository: demo\nshards:\n  lint: {paths: [src], command: "true", results: exit-status}\n',
        {"src/a": "1"},
    )
    project.ledger("record", "--shard", "lint")
    return project


def test_where_nothing_is_stale_no_engine_is_given_an_empty_plan(nothing_stale, tmp_path):
    found = outputs(nothing_stale.ledger("plan", "--format", "github").out)
    assert found == {"matrix": '{"include":[]}', "count": "0", "any": "false"}

    pipeline = yaml.safe_load(nothing_stale.ledger("plan", "--format", "gitlab").out)
    assert [name for name in pipeline if name != "workflow"] == ["nothing is stale"]

    script = nothing_stale.ledger("plan", "--format", "slurm", "--spool", str(tmp_path / "spool")).out
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert "nothing is submitted" in done.stdout


def test_gitlab_gets_a_child_pipeline_with_a_job_for_each(planned):
    pipeline = yaml.safe_load(planned.ledger("plan", "--format", "gitlab").out)

    assert pipeline.pop("workflow") == {"rules": [{"when": "always"}]}
    del pipeline[".git-ledger"]
    assert list(pipeline) == ["shard unit-1-of-2", "shard unit-2-of-2", "shard l1@a100", "shard l1@mi300"]
    assert pipeline["shard l1@a100"] == {
        "extends": ".git-ledger",
        "variables": {"GITLEDGER_GPUS": "1", "GITLEDGER_SHARDS": "l1@a100", "GITLEDGER_VARIANT": "a100"},
    }


def test_a_job_of_gitlab_runs_its_own_shards_and_is_red_for_no_other(make_project):
    """Whoever ends last covers the whole; a merge of it would be red for what another job did."""
    shards = '  bad: {paths: [src], command: "false", results: exit-status}\n'
    shards += "".join(
        f'  {name}: {{paths: [src], command: "true", results: exit-status}}\n' for name in ("good", "last")
    )
    project = make_project(f"version: 1\nrepository: demo\nshards:\n{shards}", {"src/a": "1"})
    text = project.ledger("plan", "--format", "gitlab", "--max-jobs", "2").out
    pipeline = yaml.safe_load(text)
    script = [line for line in pipeline[".git-ledger"]["script"] if "sync" not in line]
    jobs = [job["variables"]["GITLEDGER_SHARDS"] for name, job in pipeline.items() if name.startswith("shard ")]
    ends = {}
    for words in sorted(jobs, key=lambda words: "bad" not in words):
        env = {**project.repo.env, "GITLEDGER_SHARDS": words}
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", "\n".join(script)], cwd=project.path, env=env, timeout=120
        )
        ends[words] = done.returncode

    assert {("bad" in words, status) for words, status in ends.items()} == {(True, 1), (False, 0)}


def test_gitlab_takes_the_jobs_template_from_a_file_of_the_repository(planned):
    pipeline = yaml.safe_load(planned.ledger("plan", "--format", "gitlab", "--include", "ci/ledger.yml").out)

    assert pipeline["include"] == [{"local": "ci/ledger.yml"}]
    assert ".git-ledger" not in pipeline


SBATCH = """#!/bin/sh
n=$(ls "$OUT" | wc -l)
{ echo "$*"; cat; } > "$OUT/$n"
echo "10$n;cluster"
"""


def test_slurm_gets_a_script_that_submits_arrays_by_need_and_a_merge_after_them(planned, tmp_path):
    """`sbatch` is a stand-in here that keeps what it is given; tests/slurm runs the real one."""
    tools, out = tmp_path / "tools", tmp_path / "submitted"
    for folder in (tools, out):
        folder.mkdir()
    (tools / "sbatch").write_text(SBATCH)
    (tools / "sbatch").chmod(0o755)
    spool = tmp_path / "a spool"
    script = planned.ledger("plan", "--format", "slurm", "--sbatch=--partition=gpu", "--spool", str(spool)).out

    env = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "OUT": str(out)}
    for shell in ("sh", "bash"):
        subprocess.run([shell, "-n", "-c", script], check=True, timeout=60)
    subprocess.run(["sh", "-c", script], env=env, check=True, timeout=60)

    first, second, merge = ((out / str(number)).read_text() for number in range(3))
    assert first.startswith("--parsable\n#!/bin/sh\n")
    assert "#SBATCH --array=0-1\n" in first
    assert "(0) shard=unit-1-of-2 ;;" in first
    assert "--gres" not in first
    assert {"#SBATCH --array=2-3", "#SBATCH --gres=gpu:1", "#SBATCH --mem=3072M", "#SBATCH --time=32"} <= set(
        second.splitlines()
    )
    assert "#SBATCH --partition=gpu\n" in second
    assert merge.startswith("--dependency=afterany:100:101\n")
    assert f"run --collect '{spool}'" in merge
    assert stat.S_IMODE(spool.stat().st_mode) == 0o700
    for text in (first, second, merge):
        subprocess.run(["sh", "-n"], input=text.partition("\n")[2], text=True, check=True, timeout=60)


def test_slurm_is_given_no_two_shards_that_write_one_report(make_project):
    shard = "{paths: [src], command: 'true', results: {junit: report.xml}}"
    project = make_project(f"version: 1\nrepository: demo\nshards:\n  a: {shard}\n  b: {shard}\n", {"src/a": "1"})

    assert "[report-shared]" in project.ledger("plan", "--format", "slurm", expect=2).err
