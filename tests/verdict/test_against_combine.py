"""Against `coverage combine` and `coverage report` on the same data.

Where both are right the totals are the same. Where coverage says a plausible number and exits with 0 though part
of the measurement is missing, unreadable or of something else, the union refuses, or counts what is there.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import coverage
import pytest
from coverage.cmdline import main

from gitledger.records.fragments import FileCoverage, Fragment
from gitledger.suites.coverage_read import read
from gitledger.suites.measured import Measurement, fragment_from
from gitledger.verdict.situation import CoverageRule

pytestmark = pytest.mark.filterwarnings("ignore::coverage.exceptions.CoverageWarning")

SOURCE = "src/pkg/work.py"
TEXT = "".join(f"def f{n}(x):\n    if x:\n        return 1\n    return 2\n\n\n" for n in range(3))
SHARDS = ("s0", "s1", "s2")
STATEMENTS = 12


class Suite:
    """A source tree of which each of three shards runs a third; coverage's data files, and our fragments of them."""

    def __init__(self, folder: Path, blob: Callable[[str], str], *options: str) -> None:
        self.root = folder
        self.blob = blob
        self.options = options
        self.texts = {SOURCE: TEXT, "src/pkg/__init__.py": "", "src/__init__.py": ""}
        for path, text in self.texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)

    def data(self, shard: str) -> Path:
        return self.root / f".coverage.{shard}"

    def run(self, shard: str, code: str, *options: str, source: str = "src") -> None:
        """Run code under the real coverage; its data file is the shard's."""
        script = self.root / "run.py"
        script.write_text(code)
        command = [
            sys.executable,
            "-m",
            "coverage",
            "run",
            f"--source={source}",
            f"--data-file={self.data(shard)}",
        ]
        env = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run([*command, *self.options, *options, str(script)], cwd=self.root, env=env, check=True)

    def measure(self) -> None:
        for number, shard in enumerate(SHARDS):
            self.run(shard, f"from src.pkg.work import f{number}\nf{number}(0), f{number}(1)\n")

    def fragment(self, shard: str, **changes: object) -> Fragment:
        """Read a data file as `record` does."""
        place = self.root.parent / f"reading-{shard}-{len(list(self.root.parent.iterdir()))}"
        (place / "data").mkdir(parents=True)
        (place / "scratch").mkdir()
        shutil.copy(self.data(shard), place / "data" / "data")
        (place / "tracked").write_bytes(b"\0".join(map(os.fsencode, self.texts)))
        request = {
            "data": str(place / "data"),
            "config_file": changes.pop("config_file", None),
            "cwd": str(self.root),
            "root": str(self.root),
            "own": str(place),
            "tracked": str(place / "tracked"),
            "scratch": str(place / "scratch"),
        }
        answer = read(json.loads(json.dumps(request)))
        facts = Measurement(
            executable="", cwd="", config_file=None, data_file="", core="CTracer", **{
                "branch": "--branch" in self.options, "version": coverage.__version__, **changes}
        )  # fmt: skip
        return fragment_from(answer, facts, lambda paths: {path: self.blob(self.read(path)) for path in paths})

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def combined(self, *options: str, threshold: int = 50) -> tuple[int, float]:
        """Return the worst exit status of `coverage combine` and `coverage report --fail-under`, and the total."""
        status = main(["combine", "-q", *options])
        report = main(["report", f"--fail-under={threshold}", *(o for o in options if o == "-i")])
        main(["json", "-q", "-o", "total.json", *(o for o in options if o == "-i")])
        total = json.loads((self.root / "total.json").read_text())["totals"]["percent_covered"]
        return status or report or 0, total


@pytest.fixture
def suite(tmp_path: Path, blob, monkeypatch) -> Suite:
    made = Suite(tmp_path / "tree", blob)
    monkeypatch.chdir(made.root)
    return made


@pytest.fixture
def judged(world):
    """Return a function that judges fragments by shard: the codes that block, and the covered and total numbers."""
    world.shards.clear()
    world.declare(*SHARDS)
    world.coverage = CoverageRule(threshold="50")

    def judge(suite: Suite, fragments: dict[str, object], sources: dict[str, str] | None = None):
        world.sources = suite.texts if sources is None else sources
        for place, shard in enumerate(SHARDS):
            given = fragments.get(shard)
            world.record(shard, started=2 * place, **({} if given is None else {"fragment": given}))
        claim = world.union().coverage.claim
        return world.codes(), None if claim is None else (claim.covered, claim.total)

    return judge


@pytest.mark.parametrize("options", [(), ("--branch",)], ids=["lines", "branches"])
def test_totals_are_the_same_where_both_are_right(suite, judged, options):
    suite.options = options
    for number, shard in enumerate(SHARDS[:2]):
        suite.run(shard, f"from src.pkg.work import f{number}\nf{number}(0)\n")
    suite.run("s2", "from src.pkg.work import f0\nf0(1)\n")
    codes, numbers = judged(suite, {shard: suite.fragment(shard) for shard in SHARDS})
    status, total = suite.combined()
    assert (status, codes) == (0, set())
    assert numbers is not None
    assert 100 * numbers[0] / numbers[1] == pytest.approx(total)
    assert numbers == ((8, 12) if not options else (11, 18))


def test_1_a_fragment_that_never_arrived(suite, judged):
    suite.measure()
    fragments = {shard: suite.fragment(shard) for shard in SHARDS[:2]}
    suite.data("s2").unlink()
    assert suite.combined() == (0, 75.0)
    assert judged(suite, fragments) == ({"coverage-missing"}, None)


def damage_schema(path: Path) -> None:
    with sqlite3.connect(path) as base:
        base.execute("update coverage_schema set version = 6")
    base.close()


DAMAGE = {
    "2_empty": lambda path: path.write_bytes(b""),
    "3_garbage": lambda path: path.write_bytes(b"no data at all\n" * 99),
    "4_truncated": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "5_of_another_schema": damage_schema,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_c01_a_damaged_data_file(suite, judged, damage):
    suite.measure()
    fragments = {shard: suite.fragment(shard) for shard in SHARDS[:2]}
    damage(suite.data("s2"))
    with pytest.raises(Exception, match=r"(?i)empty|database|schema|malformed|data file"):
        suite.fragment("s2")  # so the receipt is without one, and says why
    assert suite.combined() == (0, 75.0)
    assert judged(suite, fragments) == ({"coverage-missing"}, None)


def test_6_one_shards_data_under_two_names_in_place_of_another(suite, judged):
    suite.measure()
    fragments = {shard: suite.fragment(shard) for shard in SHARDS[:2]}
    shutil.copy(suite.data("s1"), suite.data("s2"))
    assert suite.combined() == (0, 75.0)
    assert judged(suite, fragments) == ({"coverage-missing"}, None)


def test_7_sources_edited_after_they_were_measured(suite, judged):
    suite.measure()
    fragments = {shard: suite.fragment(shard) for shard in SHARDS}
    (suite.root / SOURCE).write_text("A = 1\nB = 2\n" + TEXT)
    status, total = suite.combined()
    assert (status, total < 100) == (0, True)
    now = {**suite.texts, SOURCE: suite.read(SOURCE)}
    assert judged(suite, fragments, now) == ({"coverage-source"}, None)


def test_8_a_source_that_is_gone_with_ignored_errors(suite, judged):
    (suite.root / "src/pkg/poor.py").write_text("def f():\n    return 1\n" * 9)
    suite.texts["src/pkg/poor.py"] = suite.read("src/pkg/poor.py")
    suite.measure()
    fragments = {shard: suite.fragment(shard) for shard in SHARDS}
    (suite.root / "src/pkg/poor.py").unlink()
    assert suite.combined("-i", threshold=100)[0] in (0, 1)
    assert main(["report", "-i", "--fail-under=100"]) == 0
    now = {path: text for path, text in suite.texts.items() if "poor" not in path}
    assert judged(suite, fragments, now) == ({"coverage-source"}, None)


def test_9_nothing_measured_is_no_hundred_percent(suite, judged):
    for shard in SHARDS:
        suite.run(shard, "import src\n", "--omit=src/pkg/*")
    fragments = {shard: suite.fragment(shard) for shard in SHARDS}
    assert suite.combined(threshold=100)[0] == 0
    assert judged(suite, fragments) == ({"coverage-empty"}, None)


def test_10_other_versions_of_coverage(suite, judged):
    suite.measure()
    fragments: dict[str, object] = {shard: suite.fragment(shard) for shard in SHARDS[:2]}
    found = suite.fragment("s2")
    fragments["s2"] = Fragment(version="7.4.0", core=found.core, branch=found.branch, files=found.files)
    assert suite.combined() == (0, 100.0)
    assert judged(suite, fragments) == ({"coverage-versions"}, None)


def test_11_a_shard_that_excluded_more_than_the_others(suite, judged):
    suite.measure()
    (suite.root / "loose.ini").write_text("[report]\nexclude_lines = return\n")
    fragments = {shard: suite.fragment(shard) for shard in SHARDS[:2]}
    fragments["s2"] = suite.fragment("s2", config_file=str(suite.root / "loose.ini"))
    assert suite.combined() == (0, 100.0)
    assert judged(suite, fragments) == ({"coverage-disagrees"}, None)


def test_12_c05_checkouts_in_two_folders_count_twice(suite, judged, tmp_path, blob, monkeypatch):
    other = Suite(tmp_path / "elsewhere", blob)
    for number, where in enumerate((suite, other, suite)):
        where.run(SHARDS[number], f"from src.pkg.work import f{number}\nf{number}(0), f{number}(1)\n")
    fragments = {shard: (other if shard == "s1" else suite).fragment(shard) for shard in SHARDS}
    shutil.move(other.data("s1"), suite.data("s1"))
    status, total = suite.combined()
    assert status == 0
    assert len(json.loads((suite.root / "total.json").read_text())["files"]) == 6
    assert total < 70
    assert judged(suite, fragments) == (set(), (STATEMENTS, STATEMENTS))


def test_13_c05_nested_folders_of_one_name_are_taken_for_each_other(suite, judged):
    nested = {"a/t.py": "def f():\n    return 1\n", "b/a/t.py": "def g():\n    x = 1\n    return x\n"}
    for path, text in nested.items():
        (suite.root / path).parent.mkdir(parents=True)
        (suite.root / path).write_text(text)
    suite.texts = nested
    (suite.root / ".coveragerc").write_text("[run]\nrelative_files = true\n")
    code = "import sys\nsys.path[:0] = ['a', 'b/a']\nimport t\nt.f()\nsys.path.pop(0); del sys.modules['t']\nimport t\nt.g()\n"
    for shard in SHARDS:
        suite.run(shard, code, source="a,b")
    fragments = {shard: suite.fragment(shard, config_file=str(suite.root / ".coveragerc")) for shard in SHARDS}
    status, _ = suite.combined()
    files = json.loads((suite.root / "total.json").read_text())["files"]
    assert (status, len(files)) == (0, 1)
    codes, numbers = judged(suite, fragments)
    assert (codes, numbers and numbers[1]) == (set(), 5)


def test_14_c03_a_branch_fragment_costs_combine_its_inputs(suite, judged):
    """Not silent, but it deletes what it had read already; here nothing is touched."""
    suite.measure()
    suite.run("s2", "from src.pkg.work import f2\nf2(0)\n", "--branch")
    fragments = {shard: suite.fragment(shard, branch=shard == "s2") for shard in SHARDS}
    assert main(["combine", "-q"]) == 1
    assert not suite.data("s0").exists()
    assert judged(suite, fragments) == ({"coverage-branch"}, None)


def test_a_data_file_with_branches_from_a_run_that_said_lines_is_no_fragment(suite):
    suite.run("s0", "from src.pkg.work import f0\nf0(0)\n", "--branch")
    with pytest.raises(Exception, match="another kind"):
        suite.fragment("s0", branch=False)


def test_a_fragment_holds_what_the_report_says_file_by_file(suite):
    suite.options = ("--branch",)
    suite.run("s0", "from src.pkg.work import f0\nf0(0)\n")
    files: tuple[FileCoverage, ...] = suite.fragment("s0").files
    main(["json", "-q", f"--data-file={suite.data('s0')}", "-o", "one.json"])
    report = json.loads((suite.root / "one.json").read_text())["files"]
    assert {file.path for file in files} == set(report)
    for file in files:
        summary = report[file.path]["summary"]
        assert file.covered == summary["covered_lines"] + summary["covered_branches"]
        assert file.total == summary["num_statements"] + summary["num_branches"]
