"""Coverage through the installed command: shards measure, the union is judged once, exports come out again."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from gitledger.records.fragments import decode_fragment

WORK = "".join(f"def f{n}(x):\n    if x:\n        return 1\n    return 2\n\n\n" for n in range(3))
TESTS = {
    f"tests/test_{n}.py": f"from src.work import f{n}\n\ndef test_it():\n    assert f{n}(1) == 1 and f{n}(0) == 2\n"
    for n in range(3)
}
PYPROJECT = """\
[tool.pytest.ini_options]
pythonpath = ["."]
testpaths = ["tests"]
addopts = "-p pytest_cov --cov=src --cov-branch --cov-report= --cov-fail-under={threshold}"
[tool.coverage.run]
{run}
"""
IGNORED = "__pycache__/\n.pytest_cache/\n.coverage*\ncoverage.xml\n"
SPLIT = "version: 1\nrepository: demo\nshards:\n  unit: {command: pytest -q, split: 3}\npolicy: {allow_carried: true}\n"
WHOLE = SPLIT.replace(", split: 3", "")
PARTS = [f"unit-{n}-of-3" for n in (1, 2, 3)]


@pytest.fixture(autouse=True)
def few_plugins(hermetic_env):
    """Load no plugin that a command doesn't ask for: the others cost half of each run."""
    hermetic_env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"


@pytest.fixture
def make_measured(make_project):
    """Return a maker of projects whose three functions are each covered by one test file."""

    def make(config: str = SPLIT, more=None, *, threshold: str = "95", run: str = ""):
        files = {
            "src/__init__.py": "",
            "src/work.py": WORK,
            "src/never.py": "X = 1\n",
            **TESTS,
            "pyproject.toml": PYPROJECT.format(threshold=threshold, run=run),
            ".gitignore": IGNORED,
        }
        return make_project(config, {**files, **(more or {})})

    return make


def run(project, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=project.path, env=dict(project.repo.env), capture_output=True, text=True, check=False
    )


def totals(project) -> tuple[int, int]:
    """Return covered and total of the data file in the work tree, as coverage counts them."""
    run(project, sys.executable, "-m", "coverage", "json", "-q", "-o", "coverage.json")
    path = project.path / "coverage.json"
    found = json.loads(path.read_text())["totals"]
    path.unlink()
    covered = found["covered_lines"] + found.get("covered_branches", 0)
    return covered, found["num_statements"] + found.get("num_branches", 0)


def verified(project, *args: str) -> dict:
    return project.ledger("verify", "--json", *args, expect=None).document


def test_three_parts_make_the_number_of_the_whole_and_their_threshold_is_applied_once(make_measured):
    project = make_measured(threshold="94")
    whole = run(project, "pytest", "-q")
    assert whole.returncode == 0, whole.stdout
    expected = totals(project)
    assert run(project, "pytest", "-q", "tests/test_0.py").returncode == 1  # a local run keeps its threshold
    for part in PARTS:
        done = project.record(part)  # a third is under it, and green
        assert (done["outcome"], done["exit_status"]) == ("passed", 0)
    document = verified(project)
    assert document["verdict"] == "passed"
    assert document["coverage"] == {
        "covered": expected[0],
        "total": expected[1],
        "threshold": "94",
        "precision": 0,
        "passed": True,
    }
    merged = project.ledger("merge", "--json").document
    assert merged["coverage"] == document["coverage"]
    assert project.receipt(merged["record"])["coverage"] == document["coverage"]
    line = f"coverage: {expected[0]}/{expected[1]} lines and branches, 9"
    for command in ("verify", "merge"):
        (shown,) = [text for text in project.ledger(command).out.splitlines() if text.startswith("coverage:")]
        assert shown.startswith(line)
        assert shown.endswith(", threshold 94: passed")

    project.ledger("export", "coverage", "-o", ".coverage")
    assert totals(project) == expected
    xml = project.ledger("export", "coverage-xml").out
    assert 'filename="src/work.py"' in xml or 'filename="work.py"' in xml
    assert 'lines-covered="12"' in xml
    lcov = project.ledger("export", "lcov").out
    assert "SF:src/work.py" in lcov
    assert "SF:src/never.py" in lcov
    assert lcov.count("\nDA:") == 13


def test_c04_under_the_threshold_a_merge_is_written_as_failed_and_exits_1(make_measured):
    project = make_measured(WHOLE, threshold="96")
    project.record("unit")
    document = verified(project)
    assert (document["verdict"], document["coverage"]["passed"]) == ("failed", False)
    assert {item["code"] for item in document["findings"] if item["blocks"]} == {"coverage-under"}
    assert project.ledger("merge", "--json", expect=1).document["outcome"] == "failed"


@pytest.mark.parametrize("option", ["relative_files = true", 'patch = ["subprocess"]', 'core = "sysmon"'])
def test_c05_ways_of_measuring_give_one_number(make_measured, option):
    """Nested folders of one name, under xdist too, with whatever core and paths the project chose."""
    nested = {"src/a/__init__.py": "", "src/a/src/__init__.py": "", "src/a/src/work.py": "Y = 1\n"}
    project = make_measured(WHOLE.replace("pytest -q", "pytest -q -p xdist -n 2"), nested, run=option)
    whole = run(project, "pytest", "-q")
    assert whole.returncode in (0, 1)
    project.record("unit")
    document = verified(project)
    assert document["coverage"]["total"] == 13 + 1 + 6
    assert document["coverage"]["covered"] == 18


def test_c08_data_of_other_runs_before_and_after_is_neither_taken_nor_lost(make_measured):
    project = make_measured(
        WHOLE.replace("pytest -q", "pytest -q --cov-append tests/test_0.py"),
        threshold="96",
    )
    assert run(project, "pytest", "-q").returncode == 1
    before = totals(project)
    project.record("unit")
    found = verified(project)["coverage"]
    assert found["covered"] < before[0]
    assert totals(project) == before  # the run under record left the local data alone
    assert run(project, "pytest", "-q", "tests/test_1.py", "--cov=src").returncode == 1
    assert verified(project)["coverage"] == found


CHILD = """\
import os, subprocess, sys
def test_child(tmp_path):
    (tmp_path / "app.py").write_text("A = 1\\nB = 2\\n")
    (tmp_path / "inside.py").write_text("import sys; sys.path.insert(0, os.getcwd())")
    env = dict(os.environ, PYTHONPATH=os.getcwd())
    subprocess.run([sys.executable, "-c", "import src.never"], check=True, env=env)
    subprocess.run([sys.executable, "app.py"], cwd=tmp_path, check=True)
"""


def shown_bodies(project):
    """Return what the one receipt of HEAD says of its bodies."""
    (record,) = project.ledger("show", "--json").document["records"]
    return record["statement"]["predicate"]["bodies"]


def test_c07_a_childs_files_that_are_no_source_are_out_of_the_total_and_said(make_measured):
    config = WHOLE.replace("pytest -q", "coverage run -m pytest -q -p no:cov -o addopts=")
    run_options = 'branch = true\npatch = ["subprocess"]\nparallel = true'
    project = make_measured(config, {"tests/test_child.py": CHILD}, threshold="50", run=run_options)
    done = project.ledger("record", "--shard", "unit")
    assert "not among the commit's" in done.err
    # The message names three, in the order of their paths; the fragment names all of them.
    oid = shown_bodies(project)["coverage"]["oid"]
    blob = subprocess.run(
        ["git", "cat-file", "blob", oid], cwd=project.path, capture_output=True, check=True
    ).stdout
    assert any(path.endswith("app.py") for path in decode_fragment(blob).outside)
    document = verified(project)
    names = project.ledger("export", "lcov").out
    assert "app.py" not in names
    assert "SF:src/never.py" in names  # only the child imported it
    assert document["coverage"]["passed"] is True


def test_c01_a_shard_without_coverage_is_missing_in_plan_verify_and_merge(make_measured):
    project = make_measured(WHOLE)
    project.record("unit")
    project.repo.commit({".gitledger/config.yaml": WHOLE.replace("pytest -q", "pytest -q --no-cov")})
    assert project.record("unit")["outcome"] == "passed"
    assert set(project.plan().values()) == {("stale", "coverage-missing")}
    findings = project.ledger("merge", "--json", expect=1).document["findings"]
    assert {(item["code"], item["blocks"]) for item in findings} == {
        ("coverage-missing", True),
        ("coverage-unjudged", False),
    }


def test_a_threshold_that_nothing_was_held_against_is_said_beside_the_shards_that_lack(make_measured):
    """A red verdict without a word on coverage left open whether it had been enough."""
    project = make_measured()
    document = project.ledger("verify", "--json", expect=1).document
    assert document["coverage"] is None
    (item,) = (item for item in document["findings"] if item["code"] == "coverage-unjudged")
    assert (item["blocks"], item["found"]) == (False, f"not judged, nothing stands for {', '.join(PARTS)}")
    assert "threshold of 95" in item["expected"]
    for command, status in (("verify", 1), ("merge", 1)):
        said = project.ledger(command, expect=status).out
        assert "coverage: not judged, there is no number yet (coverage-unjudged)\n" in said, command
        assert f"· coverage: {item['found']} [coverage-unjudged]\n" in said, command
    project.repo.commit({"pyproject.toml": "", ".gitledger/config.yaml": WHOLE})
    assert "coverage" not in project.ledger("verify", expect=1).out, "nobody asks for any"


@pytest.mark.parametrize(
    ("config", "pyproject", "code"),
    [
        ("coverage: {fail_under: 50}\n", {"threshold": "60"}, "thresholds-disagree"),
        ("", {"threshold": "0"}, "threshold-zero"),
    ],
)
def test_thresholds_that_disagree_or_are_zero_are_errors(make_measured, config, pyproject, code):
    project = make_measured(SPLIT + config, **pyproject)
    done = project.ledger("verify", expect=2)
    assert f"[{code}]" in done.err


def test_f10_a_change_that_omits_more_is_judged_by_the_refs_configuration(make_measured):
    project = make_measured(WHOLE, threshold="94")
    project.repo.git("branch", "trusted")
    project.repo.commit({"pyproject.toml": PYPROJECT.format(threshold="10", run='omit = ["src/never.py"]')})
    project.record("unit")
    assert project.verify()[0] == "passed"
    verdict, codes = project.verify("--policy-from", "trusted")
    assert (verdict, codes) == ("failed", {"coverage-redefined"})
    found = verified(project, "--policy-from", "trusted", "--accept-shards")
    assert (found["verdict"], found["coverage"]["threshold"]) == ("passed", "94")


TWO = """\
version: 1
repository: demo
shards:
  a: {paths: [src/a.py, tests/test_a.py], command: pytest -q -p pytest_cov --cov=src tests/test_a.py}
  b: {paths: [src/b.py, tests/test_b.py], command: pytest -q -p pytest_cov --cov=src tests/test_b.py}
  lint: {paths: [src], command: python -m compileall -q src, results: exit-status, coverage: none}
coverage: {fail_under: 60}
policy: {allow_carried: true}
"""


def test_c06_f02_a_carried_fragment_is_cut_to_unchanged_files_and_the_threshold_computed_anew(make_project):
    body = "def f(x):\n    if x:\n        return 1\n    return 2\n"
    test = "from src.{0} import f\n\ndef test_it():\n    assert f(1) == 1\n"
    project = make_project(
        TWO,
        {
            "src/a.py": body,
            "src/b.py": body,
            "tests/test_a.py": test.format("a"),
            "tests/test_b.py": test.format("b"),
            "pytest.ini": "[pytest]\npythonpath = .\n",
            ".gitignore": IGNORED,
        },
    )
    for shard in ("a", "b", "lint"):
        project.record(shard)
    assert verified(project)["coverage"]["covered"] == 6
    project.repo.commit({"src/b.py": body + "Z = 3\n"})
    assert project.plan()["a"] == ("carryable", "unchanged")
    project.record("b")
    project.record("lint")
    document = verified(project)
    assert document["verdict"] == "passed"
    assert (document["coverage"]["covered"], document["coverage"]["total"]) == (7, 9)
    cut = [item for item in document["findings"] if item["code"] == "coverage-cut"]
    assert [(item["subject"], "src/b.py" in item["found"]) for item in cut] == [("a", True)]
    project.repo.commit({".gitledger/config.yaml": TWO.replace("60", "90")})
    assert {verdict for verdict, _ in project.plan().values()} == {"carryable"}
    assert project.verify() == ("failed", {"coverage-under"})
    assert "  a is carried, 1 file dropped as changed since: src/b.py\n" in project.ledger("verify", expect=1).out


def test_a_commit_that_ends_the_threshold_is_told_no_run_and_a_way_that_is_green(make_measured):
    """To run it again was the hint: it reran everything, stayed red, and used up an attempt each time."""
    project = make_measured(WHOLE)
    measuring, ended = PYPROJECT.format(threshold="95", run=""), " --cov-fail-under=95"
    project.repo.git("branch", "trusted")
    project.repo.commit({"pyproject.toml": measuring.replace(f"--cov=src --cov-branch --cov-report={ended}", "")})
    project.record("unit")
    said = project.ledger("verify", "--policy-from", "trusted", expect=1).out
    assert "[coverage-missing]" in said
    assert (
        "coverage, since trusted still has a threshold; that this commit has none holds once it has landed" in said
    )
    assert "git ledger run" not in said
    assert "git ledger record" not in said
    assert project.verify() == ("passed", set()), "as it will once it has landed"

    project.repo.git("switch", "-q", "-c", "in-two-steps", "trusted")
    project.repo.commit({"pyproject.toml": measuring.replace(ended, "")})
    project.record("unit")
    assert project.verify("--policy-from", "trusted", "--accept-shards") == ("passed", set())
    project.repo.git("branch", "-f", "trusted")
    project.repo.commit({"pyproject.toml": measuring.replace(f"--cov=src --cov-branch --cov-report={ended}", "")})
    project.record("unit")
    assert project.verify("--policy-from", "trusted", "--accept-shards") == ("passed", set())


def test_a_shard_that_no_longer_measures_is_to_be_run_with_what_measures_where_the_threshold_stands(make_measured):
    project = make_measured(WHOLE)
    project.repo.git("branch", "trusted")
    text = PYPROJECT.format(threshold="95", run="").replace("--cov=src --cov-branch --cov-report= ", "")
    project.repo.commit({"pyproject.toml": text})
    project.record("unit")
    said = project.ledger("verify", "--policy-from", "trusted", expect=1).out
    assert "once it has landed" not in said
    assert "try: git ledger record --shard unit  # with a command that measures" in said
