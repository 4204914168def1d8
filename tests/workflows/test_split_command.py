"""`git ledger split`, `flaky` and declared report files, through the installed command."""

from __future__ import annotations

import json

import pytest

TEST = "import time\n\ndef test_it():\n    time.sleep({0})\n"
FILES = {
    **{f"tests/test_{name}.py": TEST.format(0.01) for name in "abc"},
    "other/test_lost.py": TEST.format(0),
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-m \"not slow\"'\nmarkers = ['slow']\n",
    "other/test_slow.py": "import pytest\n\n@pytest.mark.slow\ndef test_it(): pass\n",
    ".gitignore": "__pycache__/\n.pytest_cache/\nout.json\n",
}
CONFIG = """\
version: 1
repository: demo
shards:
  unit: {{split: {parts}, command: pytest -q tests}}
{more}"""


@pytest.fixture(autouse=True)
def few_plugins(hermetic_env):
    """Load no plugin that a command doesn't ask for: the others cost half of each run."""
    hermetic_env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"


def test_the_check_collects_for_real_and_names_tests_of_no_shard(make_project):
    project = make_project(CONFIG.format(parts=2, more=""), FILES)
    document = project.ledger("split", "--check", "--json", expect=1).document
    assert [(part["name"], part["tests"]) for part in document["parts"]] == [
        ("unit-1-of-2", 1),
        ("unit-2-of-2", 2),
    ]
    assert document["orphans"] == ["other/test_lost.py::test_it"]
    assert {item["code"] for item in document["findings"]} == {"tests-of-no-shard", "deselected"}
    assert project.repo.git("status", "--porcelain") == ""

    more = "  rest: {command: pytest -q other}\n"
    project.repo.commit({".gitledger/config.yaml": CONFIG.format(parts=2, more=more)})
    assert "split: passed" in project.ledger("split").out

    more = "  rest: {command: pytest -q other tests/test_a.py}\n"
    project.repo.commit({".gitledger/config.yaml": CONFIG.format(parts=4, more=more)})
    document = project.ledger("split", "--json", expect=1).document
    assert {item["code"] for item in document["findings"] if item["blocks"]} == {
        "duplicate-tests",
        "split-too-many",
    }

    project.repo.write("tests/test_a.py", "import nothing_of_that_name\n")
    document = project.ledger("split", "--json", expect=1).document
    assert "collection-error" in {item["code"] for item in document["findings"]}


def test_where_no_shard_is_split_that_is_said_and_it_is_no_yes(make_project):
    """It said `split: passed` of nothing."""
    config = CONFIG.replace("split: {parts}, ", "").format(more="  rest: {command: pytest -q other}\n")
    project = make_project(config, FILES)
    said = "no declared shard is split, so there are no parts to look at [no-split]; try: write `split: 2`"
    done = project.ledger("split", "--json", expect=2)
    assert said in done.err
    assert done.document["error"]["code"] == "no-split"
    assert said in project.ledger("split", "--advise", expect=2).err

    project.repo.commit({".gitledger/config.yaml": config.replace("rest: {command: pytest -q other}", "")})
    text = project.ledger("split", expect=1).out
    assert "    other/test_lost.py::test_it\n" in text
    assert "· configuration: no declared shard is split, so there are no parts to look at [no-split]\n" in text
    assert text.endswith("split: failed\n")


def test_durations_are_refreshed_from_the_ledger_and_the_next_cut_stands_on_them(make_project):
    files = {**FILES, "tests/test_a.py": TEST.format(0.4)}
    project = make_project(CONFIG.format(parts=2, more=""), files)
    assert "[no-durations]" in project.ledger("split", "--write", expect=2).err
    assert "[no-durations]" in project.ledger("split", "--advise", expect=2).err
    for part in ("unit-1-of-2", "unit-2-of-2"):
        project.record(part)
    project.ledger("split", "--write")
    written = json.loads((project.path / ".gitledger/durations.json").read_text())
    assert written["version"] == 1
    assert written["workers"] == [None]
    assert sorted(written["tests"]) == [f"tests/test_{name}.py::test_it" for name in "abc"]
    assert written["tests"]["tests/test_a.py::test_it"] > 0.4
    advice = project.ledger("split", "--advise", "--json").document["unit"]
    assert set(advice["longest_seconds"]) == {"1", "2", "3"}
    assert advice["fixed_seconds"] > 0
    durations = json.loads(project.ledger("export", "durations").out)
    assert durations == written["tests"]
    project.repo.commit({".gitledger/durations.json": json.dumps(written)})
    parts = project.ledger("split", "--json", expect=1).document["parts"]
    assert [part["files"] for part in parts] == [["tests/test_a.py"], ["tests/test_b.py", "tests/test_c.py"]]


FLAKY = """\
import os
def test_steady(): pass
def test_moody(): assert os.environ.get("MOOD") != "bad"
"""


def test_flaky_names_what_changed_under_one_manifest_and_only_that(make_project):
    config = "version: 1\nrepository: demo\nshards:\n  unit: {command: pytest -q tests}\n"
    project = make_project(config, {"tests/test_it.py": FLAKY, ".gitignore": FILES[".gitignore"]})
    project.record("unit")
    assert project.ledger("flaky", "--json").document == []
    project.record("unit", env={"MOOD": "bad"}, expect=1)
    project.record("unit")
    (found,) = project.ledger("flaky", "--json", "--exit-code", expect=1).document
    assert (found["node_id"], found["outcomes"]) == ("tests/test_it.py::test_moody", {"failed": 1, "passed": 2})
    assert "test_moody" in project.ledger("flaky").out
    project.repo.commit({"tests/test_it.py": FLAKY + "\n"})
    project.record("unit", env={"MOOD": "bad"}, expect=1)
    (again,) = project.ledger("flaky", "--json").document
    assert again == found


WRITER = """\
import json, sys
status = sys.argv[2]
test = {"name": "works", "status": status, "duration": 1}
counts = {name: int(name == status) for name in ("passed", "failed", "skipped", "pending", "other")}
results = {"tool": {"name": "t"}, "summary": {"tests": 1, **counts}, "tests": [test]}
line = {"nodeid": "a.py::works", "outcome": status, "duration": 0.1, "$report_type": "TestReport"}
log = [{"$report_type": "SessionStart"}, *({**line, "when": when} for when in ("setup", "call", "teardown"))]
log.append({"exitstatus": 0, "$report_type": "SessionFinish"})
with open("out.json", "w") as file:
    if sys.argv[1] == "ctrf":
        json.dump({"reportFormat": "CTRF", "results": results}, file)
    else:
        file.writelines(json.dumps(item) + "\\n" for item in log)
"""


@pytest.mark.parametrize("kind", ["ctrf", "reportlog"])
def test_a_declared_report_file_is_read_and_nothing_else_is_believed(make_project, kind):
    config = (
        "version: 1\nrepository: demo\nshards:\n"
        f"  good: {{command: python write.py {kind} passed, results: {{{kind}: out.json}}, coverage: none}}\n"
        f"  bad: {{command: python write.py {kind} failed, results: {{{kind}: out.json}}}}\n"
        f"  stale: {{command: python -c pass, results: {{{kind}: out.json}}}}\n"
    )
    project = make_project(config, {"write.py": WRITER, ".gitignore": "out.json\n"})
    assert project.record("stale", expect=1)["reasons"] == ["report-missing"]
    assert project.record("good")["outcome"] == "passed"
    assert project.record("stale", expect=1)["reasons"] == ["report-stale"]
    assert project.record("bad", expect=1)["outcome"] == "failed"
    after = project.record("good", f"--{kind}", "out.json", expect=1)
    assert project.receipt(after["record"])["session"]["witnessed"] is False
