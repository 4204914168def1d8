"""Whether what runs is what the shard declares: one rule, wherever pytest takes its words from (DESIGN section 8)."""

from __future__ import annotations

import pytest

from gitledger.workflows.declared import is_declared_command

DECLARED = ("pytest", "-q", "tests")
LOOKS = [
    "",
    "-q",
    "-vv",
    "-ra",
    "-r fE",
    "-s",
    "--tb=short",
    "--tb short",
    "--color=no",
    "--color no",
    "--no-header",
    "--durations=3",
    "-p no:cacheprovider",
    "-pno:cacheprovider",
    "-q -ra --color=yes --tb long",
]
MORE = [
    "-k first",
    "-q -k first",
    "--lf",
    "-x",
    "-p no:python",
    "-p",
    "-p other",
    "--color no -x",
    "-r -x -x",
    "tests/test_it.py::test_first",
    "--deselect tests/test_it.py",
    "-o addopts=",
    "--maxfail=1",
    "'",
]


@pytest.mark.parametrize("words", LOOKS)
def test_flags_that_only_print_change_nothing_in_the_command_or_in_the_variable(words):
    assert is_declared_command(DECLARED, DECLARED, {"PYTEST_ADDOPTS": words})
    assert is_declared_command((*DECLARED, *words.split()), DECLARED, {})


@pytest.mark.parametrize("words", MORE)
def test_u05_whatever_else_pytest_is_told_makes_it_another_command(words):
    assert not is_declared_command(DECLARED, DECLARED, {"PYTEST_ADDOPTS": words})
    assert not is_declared_command((*DECLARED, *words.split()), DECLARED, {})


@pytest.mark.parametrize("name", ["PYTEST_PLUGINS", "PYTHONOPTIMIZE"])
def test_other_variables_that_change_what_runs_are_words_that_nobody_declared(name):
    assert not is_declared_command(DECLARED, DECLARED, {name: "-q"})
    assert is_declared_command(DECLARED, DECLARED, {name: ""})


@pytest.mark.parametrize("command", [["make", "test"], ["sh", "-c", "pytest tests"], ["python", "-m", "unittest"]])
def test_variables_are_words_also_of_a_command_that_is_not_plainly_pytest(command):
    """`-o python_files=test_good.py` made a shard of `sh -c 'pytest tests'` green of which half had failed."""
    for environ in (
        {"PYTEST_ADDOPTS": "-o python_files=one.py"},
        {"PYTEST_PLUGINS": "x"},
        {"PYTHONOPTIMIZE": "1"},
    ):
        assert not is_declared_command(command, command, environ)
    assert is_declared_command(command, command, {"PYTEST_ADDOPTS": "-q --tb=short"})
