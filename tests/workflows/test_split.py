"""Splits through the installed command: parts are shards, every job cuts alike, and the union is the whole suite."""

from __future__ import annotations

import json

import pytest

TEST = "import pytest\n\n@pytest.mark.parametrize('n', range({n}))\ndef test_it(n):\n    pass\n"
FILES = {f"tests/test_{name}.py": TEST.format(n=place + 1) for place, name in enumerate("abcdefg")}
SUPPORT = {
    "pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n',
    ".gitignore": "__pycache__/\n.pytest_cache/\n.coverage*\n",
}
CONFIG = """\
version: 1
repository: demo
shards:
  unit: {{split: {parts}, command: pytest -q{more}}}
policy: {{allow_carried: true}}
"""
PARTS = ["unit-1-of-3", "unit-2-of-3", "unit-3-of-3"]


@pytest.fixture(autouse=True)
def few_plugins(hermetic_env):
    """Load no plugin that a command doesn't ask for: the others cost half of each run."""
    hermetic_env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"


@pytest.fixture
def make_split(make_project):
    """Return a maker of projects with one shard in parts."""

    def make(files=None, *, parts: int = 3, more: str = "", durations: object = None):
        found = {**SUPPORT, **(FILES if files is None else files)}
        if durations is not None:
            found[".gitledger/durations.json"] = json.dumps(durations)
        return make_project(CONFIG.format(parts=parts, more=more), found)

    return make


def recorded(project, *names: str) -> list[tuple[dict, list[str]]]:
    """Return predicate and node ids of HEAD's records, in the order of `names` and of their runs."""
    records = project.ledger("show", "--tests", "--json").document["records"]
    found = [(item["statement"]["predicate"], [test["node_id"] for test in item["tests"]]) for item in records]
    return sorted(found, key=lambda item: names.index(item[0]["shard"]["name"]))


def test_parts_are_shards_whose_union_is_the_suite(make_split):
    project = make_split()
    assert list(project.plan()) == PARTS
    found = []
    for part in PARTS:
        project.record(part)
    for number, (receipt, _) in enumerate(recorded(project, *PARTS), 1):
        assert receipt["shard"]["split"] == {"index": number, "total": 3}
        assert receipt["collection"]["full_count"] == 28
        counts = receipt["counts"]
        assert counts["collected"] + counts["deselected"] == 28
        found.append((receipt["collection"]["full_digest"], counts["passed"]))
    assert len({digest for digest, _ in found}) == 1
    assert sum(passed for _, passed in found) == 28
    assert min(passed for _, passed in found) > 0
    assert project.verify() == ("passed", set())
    merged = project.receipt(project.ledger("merge", "--json").document["record"])
    assert merged["counts"]["collected"] == 28


def test_a_part_that_never_ran_is_named(make_split):
    project = make_split()
    for part in PARTS[:2]:
        project.record(part)
    findings = project.ledger("merge", "--json", expect=1).document["findings"]
    assert [(item["code"], item["subject"]) for item in findings] == [("never-recorded", PARTS[2])]


def test_u12_a_retry_runs_the_same_tests(make_split):
    others = {f"tests/test_{name}.py::test_it[0]": 0.1 for name in "bcdefg"}
    project = make_split(durations={"tests/test_a.py::test_it[0]": 30, **others})
    for _ in range(2):
        project.record(PARTS[0])
    assert [ids for _, ids in recorded(project, PARTS[0])] == 2 * [["tests/test_a.py::test_it[0]"]]


def test_u09_durations_decide_and_six_of_one_against_thirty_are_three_three_thirty(make_split):
    files = {f"tests/test_{name}.py": TEST.format(n=1) for name in "abcdefg"}
    times = {f"tests/test_{name}.py::test_it[0]": 30 if name == "g" else 1 for name in "abcdefg"}
    project = make_split(files, durations=times)
    for part in PARTS:
        project.record(part)
    assert [receipt["counts"]["passed"] for receipt, _ in recorded(project, *PARTS)] == [3, 3, 1]


SHUFFLE = """\
import os, random, pytest
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    random.Random(os.environ["SEED"]).shuffle(items)
"""


def test_u10_a_random_order_in_each_job_leaves_one_partition(make_split):
    project = make_split({**FILES, "conftest.py": SHUFFLE})
    for seed, part in enumerate(PARTS):
        project.record(part, env={"SEED": str(seed)})
    ids = [node_id for _, ids in recorded(project, *PARTS) for node_id in ids]
    assert len(ids) == len(set(ids)) == 28
    assert project.verify() == ("passed", set())


def test_u10_under_xdist_with_random_order_too(make_split):
    project = make_split({**FILES, "conftest.py": SHUFFLE}, more=" -p xdist -n 2")
    for seed, part in enumerate(PARTS):
        project.record(part, env={"SEED": str(seed)})
    found = recorded(project, *PARTS)
    for receipt, _ in found:
        assert (receipt["session"]["workers"], receipt["collection"]["full_count"]) == (2, 28)
    ids = [node_id for _, ids in found for node_id in ids]
    assert len(ids) == len(set(ids)) == 28
    assert project.verify() == ("passed", set())


@pytest.mark.parametrize("durations", [["no"], {"a": float("nan"), "tests/test_b.py::test_it[0]": -1}])
def test_u11_bad_durations_are_warned_of_and_the_parts_still_make_up_the_suite(make_split, durations):
    project = make_split(durations=durations)
    for part in PARTS:
        assert "git ledger: warning:" in project.ledger("record", "--shard", part).out
    assert project.verify() == ("passed", set())


def test_u09_more_parts_than_files_run_nothing_and_say_why(make_split):
    project = make_split({"tests/test_a.py": TEST.format(n=5)})
    done = project.ledger("record", "--shard", PARTS[0], expect=5)
    assert "3 parts of 1 file:" in done.out
    assert project.verify()[0] == "failed"


def test_new_durations_make_every_part_stale(make_split):
    project = make_split()
    for part in PARTS:
        project.record(part)
    project.repo.commit({"README.md": "no input of a cut"})
    project.repo.commit({".gitledger/durations.json": '{"tests/test_a.py::test_it[0]": 9}'})
    assert set(project.plan().values()) == {("stale", "inputs-changed")}


def test_a_selection_of_the_command_is_no_part_of_the_full_collection(make_split):
    """`-k` in the declared command chooses before the cut; what it leaves out belongs to no part."""
    project = make_split(more=" -k 'not test_a'")
    for part in PARTS:
        project.record(part)
    receipt = project.receipt(project.ledger("plan", "--json").document["shards"][0]["record"])
    assert receipt["collection"]["full_count"] == 27
    assert project.verify() == ("passed", set())


def test_a_file_that_skips_as_a_whole_counts_once(make_split):
    project = make_split(
        {**FILES, "tests/test_z.py": "import pytest\npytest.skip('no', allow_module_level=True)\n"}
    )
    for part in PARTS:
        project.record(part)
    assert project.verify() == ("failed", {"skipped-tests"})
    assert project.verify("--allow-skipped") == ("passed", set())


DROPS = """\
import pytest
@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_collection_modifyitems(items):
    yield
    items[:] = items[1:]
def pytest_configure(config):
    class Late:
        @pytest.hookimpl(tryfirst=True)
        def pytest_collection_finish(self, session):
            session.items[:] = session.items[1:]
    config.pluginmanager.register(Late())
"""


def test_a_plugin_that_drops_tests_after_the_cut_is_found_out(make_split):
    """Each part is green by itself in pytest's eyes."""
    project = make_split({**FILES, "conftest.py": DROPS})
    document = project.record(PARTS[2], expect=1)
    assert "not-the-part" in document["reasons"]
    assert project.verify()[0] == "failed"
