"""Where the one threshold stands: the ledger's configuration, coverage's own, pytest-cov's option (section 8)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gitledger.config.load import load_config
from gitledger.errors import ConfigError
from gitledger.suites.coverage_settings import coverage_settings
from gitledger.workflows.coverage_rule import coverage_pin, coverage_rule

BASE = "version: 1\nrepository: demo\nshards: {unit: {command: pytest}}\n"


def rule(files: dict[str, str], more: str = ""):
    read = lambda name: files[name].encode() if name in files else None  # noqa: E731
    return coverage_rule(read, load_config((BASE + more).encode(), source="config"))


@pytest.mark.parametrize(
    ("files", "more", "threshold", "precision"),
    [
        ({}, "", None, 0),
        ({}, "coverage: {fail_under: 55.50, precision: 2}", "55.50", 2),
        ({".coveragerc": "[report]\nfail_under = 61.5\nprecision = 1\n"}, "", "61.5", 1),
        ({".coveragerc": "[coverage:report]\nfail_under = 61\n"}, "", "61", 0),
        ({".coveragerc.toml": "[report]\nfail_under = 61.25\n"}, "", "61.25", 0),
        ({"setup.cfg": "[coverage:report]\nfail_under = 7\n"}, "", "7", 0),
        ({"tox.ini": "[coverage:report]\nfail_under = 8\n"}, "", "8", 0),
        ({"pyproject.toml": "[tool.coverage.report]\nfail_under = 9\n"}, "", "9", 0),
        ({".coveragerc": "[run]\n", "pyproject.toml": "[tool.coverage.report]\nfail_under = 9\n"}, "", None, 0),
        ({"setup.cfg": "[report]\nfail_under = 7\n"}, "", None, 0),
        ({"pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-q --cov-fail-under=55"\n'}, "", "55", 0),
        ({"pyproject.toml": '[tool.pytest]\naddopts = ["--cov-fail-under", "56"]\n'}, "", "56", 0),
        ({"pytest.ini": "[pytest]\naddopts = --cov-fail-under=57 --cov-precision=3\n"}, "", "57", 3),
        ({"pytest.toml": '[pytest]\naddopts = ["--cov-fail-under=58"]\n'}, "", "58", 0),
        ({"tox.ini": "[pytest]\naddopts = --cov-fail-under=59\n"}, "", "59", 0),
        ({"setup.cfg": "[tool:pytest]\naddopts = --cov-fail-under 60\n"}, "", "60", 0),
        ({"pytest.ini": "[pytest]\n", "setup.cfg": "[tool:pytest]\naddopts = --cov-fail-under 60\n"}, "", None, 0),
        ({"pytest.ini": "[pytest]\naddopts = --cov-config=ci.ini\n", "ci.ini": "[report]\nfail_under=70\n"}, "", "70", 0),
        ({".coveragerc": "[report]\nfail_under = 55.0\n"}, "coverage: {fail_under: 55}", "55", 0),
    ],
)  # fmt: skip
def test_the_threshold_is_found_where_coverage_and_pytest_would_find_it(files, more, threshold, precision):
    found = rule(files, more)
    assert (found.threshold, found.precision) == (threshold, precision)


@pytest.mark.parametrize(
    ("files", "more", "code"),
    [
        ({".coveragerc": "[report]\nfail_under = 61\n"}, "coverage: {fail_under: 60}", "thresholds-disagree"),
        (
            {"pytest.ini": "[pytest]\naddopts=--cov-fail-under=1\n", ".coveragerc": "[report]\nfail_under=2\n"},
            "",
            "thresholds-disagree",
        ),
        ({".coveragerc": "[report]\nfail_under = 0\n"}, "", "threshold-zero"),
        ({".coveragerc": "[report]\nfail_under = 0.0\n"}, "coverage: {fail_under: 60}", "threshold-zero"),
        ({"pytest.ini": "[pytest]\naddopts = --cov-fail-under=0\n"}, "", "threshold-zero"),
        ({".coveragerc": "[report]\nfail_under = ${MIN}\n"}, "", "threshold-malformed"),
        ({".coveragerc": "[report]\nfail_under = 101\n"}, "", "threshold-malformed"),
        ({".coveragerc": "[report]\nprecision = many\n"}, "", "threshold-malformed"),
        ({".coveragerc": "fail_under = 1\n"}, "", "coverage-config"),
        ({"pyproject.toml": "[tool\n"}, "", "coverage-config"),
        ({"pytest.ini": "[pytest]\naddopts = 'x\n"}, "", "coverage-config"),
    ],
)
def test_thresholds_that_disagree_are_zero_or_none_are_errors(files, more, code):
    with pytest.raises(ConfigError) as caught:
        rule(files, more)
    assert caught.value.code == code


PYPROJECT = "[project]\nname = 'x'\n[tool.coverage.run]\nsource = ['src']\n"
CHANGES = {
    "omits more": PYPROJECT + "omit = ['src/bad.py']\n",
    "measures less": PYPROJECT.replace("'src'", "'src/a'"),
    "excludes more": PYPROJECT + "[tool.coverage.report]\nexclude_lines = ['.*']\n",
    "an option": PYPROJECT + "[tool.pytest.ini_options]\naddopts = '--no-cov'\n",
}


def pins(old: dict[str, str], new: dict[str, str], *, more: str = "", accepted: bool = False):
    files = {"old": old, "new": new}
    repo = SimpleNamespace(file_at=lambda commit, name: (files[commit].get(name) or "").encode() or None)
    configs = [load_config((BASE + text).encode(), source="config") for text in ("", more)]
    return [
        (item.code, item.blocks)
        for item in coverage_pin(
            repo, ("new", configs[1]), ("old", configs[0]), accepted=accepted, source="origin/main"
        )
    ]


@pytest.mark.parametrize("text", CHANGES.values(), ids=CHANGES.keys())
def test_another_way_to_count_than_the_refs_is_redefined(text):
    assert pins({"pyproject.toml": PYPROJECT}, {"pyproject.toml": text}) == [("coverage-redefined", True)]
    assert pins({"pyproject.toml": PYPROJECT}, {"pyproject.toml": text}, accepted=True) == [
        ("coverage-redefined", False)
    ]


def test_what_says_nothing_of_coverage_redefines_nothing():
    other = PYPROJECT.replace("'x'", "'y'") + "[tool.ruff]\nline-length = 99\n"
    assert pins({"pyproject.toml": PYPROJECT}, {"pyproject.toml": other}) == []


def test_a_threshold_that_moves_and_a_file_that_breaks_are_redefinitions():

    files = {"pyproject.toml": PYPROJECT}
    assert pins(files, files, more="coverage: {fail_under: 1}\n") == [("coverage-redefined", True)]
    assert pins(files, {"pyproject.toml": "["}) == [("coverage-redefined", True)]
    assert pins(files, files) == []


def test_a_configuration_file_that_a_command_names_is_part_of_it():
    def digest(text: str) -> str:
        read = {"ci.ini": text.encode()}.get
        return coverage_settings(read, [["pytest", "--cov-config=ci.ini"]]).digest

    assert digest("[run]\n") == digest("[run]\n") != digest("[run]\nomit = x\n")
