"""Node ids of every shape, and runs that were cut (cases U05, U07)."""

from __future__ import annotations

import sys

import pytest

from gitledger.records.bodies import collection_digest, decode_tests, encode_tests

FOUR = """
    import pytest
    def test_one(): pass
    def test_two(): pass
    @pytest.mark.slow
    def test_three(): pass
    @pytest.mark.slow
    def test_four(): pass
"""
INI = "[pytest]\nmarkers =\n    slow: takes its time\n"


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
@pytest.mark.parametrize("cut", [("-k", "one"), ("-m", "not slow"), ("--deselect", "test_it.py::test_one")])
def test_u05_a_cut_run_shows_in_its_digests(run_suite, cut, workers):
    files = {"pytest.ini": INI, "test_it.py": FOUR}
    plugins = ("xdist",) if workers else ()
    whole = run_suite(files, *workers, plugins=plugins).result
    part = run_suite(files, *cut, *workers, plugins=plugins).result
    assert part.full_digest == whole.full_digest == whole.selected_digest
    assert part.selected_digest != part.full_digest
    assert part.full_count == 4
    assert part.counts.deselected == 4 - part.counts.collected > 0
    assert whole.counts.deselected == 0
    assert part.narrowed


def test_u05_a_plugin_that_drops_tests_without_saying_so_shows_as_well(run_suite):
    conftest = "def pytest_collection_modifyitems(items): del items[2:]\n"
    part = run_suite({"pytest.ini": INI, "conftest.py": conftest, "test_it.py": FOUR}).result
    assert (part.full_count, part.counts.collected, part.counts.deselected) == (4, 2, 2)
    assert part.full_digest != part.selected_digest


def test_u05_a_shuffled_run_has_the_same_digests(run_suite):
    conftest = "def pytest_collection_modifyitems(items): items.reverse()\n"
    plain = run_suite({"pytest.ini": INI, "test_it.py": FOUR}).result
    shuffled = run_suite({"pytest.ini": INI, "conftest.py": conftest, "test_it.py": FOUR}).result
    assert shuffled.outcome == "passed"
    assert shuffled.full_digest == plain.full_digest == shuffled.selected_digest
    assert shuffled.selected_ids[0] == "test_it.py::test_four"
    assert shuffled.full_ids[0] == "test_it.py::test_one"


@pytest.mark.parametrize("option", ["--lf", "--sw"])
def test_u05_a_run_that_depends_on_an_earlier_one_is_incomplete(run_suite, option):
    files = {"test_a.py": "def test_a(): pass\n", "test_b.py": "def test_b(): pass\n"}
    run = run_suite(files, option)
    assert run.end.status == 0
    assert (run.result.outcome, run.result.reasons) == ("incomplete", ("last-failed",))


def test_u05_node_ids_on_the_command_line_make_another_collection(run_suite):
    files = {"pytest.ini": INI, "test_it.py": FOUR}
    whole, part = run_suite(files).result, run_suite(files, "test_it.py::test_one").result
    assert part.full_digest != whole.full_digest


def test_everything_deselected_is_no_pass(run_suite):
    run = run_suite({"pytest.ini": INI, "test_it.py": FOUR}, "-k", "nothing")
    assert (run.result.outcome, run.result.reasons) == ("incomplete", ("no-tests",))
    assert run.result.full_count == 4


HOSTILE = [
    "new\nline",
    "a::b",
    "[x]",
    "nul\x00",
    "pi|pe",
    "\u202eright-to-left\u202c",
    'quo"te\\',
    "\x1b[31mred",
    "e\u0301 composed apart",
    "\u00e9 composed",
    "x" * 10_000,
    "@g1",
    "",
    " ",
    "../..",
]


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
def test_u07_hostile_ids_are_kept_exactly_and_never_merged(run_suite, workers):
    conftest = f"""
        HOSTILE = {HOSTILE!r}
        def pytest_generate_tests(metafunc):
            metafunc.parametrize("n", range(len(HOSTILE)))
        def pytest_itemcollected(item):
            name = "test_it.py::" + HOSTILE[item.callspec.params["n"]]
            if hasattr(item, "_id"):
                item._id = type(item._id).parse(name)  # pytest 9.2 and later
            else:
                item._nodeid = name
    """
    run = run_suite(
        {"conftest.py": conftest, "test_it.py": "def test_a(n): assert n != 3\n"},
        *workers,
        plugins=("xdist",) if workers else (),
    )
    expected = {f"test_it.py::{name}": "failed" if place == 3 else "passed" for place, name in enumerate(HOSTILE)}
    got = {item.node_id: item.outcome.value for item in run.result.results}
    assert got == expected
    assert run.result.reasons == ("test-failed",)
    assert run.data.isascii()
    assert decode_tests(encode_tests(run.result.results)) == run.result.results
    assert run.result.selected_digest == collection_digest(list(expected))


@pytest.mark.parametrize("name", ["test_\n.py", "test_a b.py", "test_[1].py", "test_\u00e9.py", "test_e\u0301.py"])
def test_u07_file_names_go_into_ids_as_they_are(run_suite, name):
    run = run_suite({name: "def test_a(): pass\n"}, "--import-mode=importlib")
    assert run.result.outcome == "passed"
    assert run.result.full_ids == (f"{name}::test_a",)


def test_u07_real_parameters_without_escaping(run_suite):
    ini = "[pytest]\ndisable_test_id_escaping_and_forfeit_all_rights_to_community_support = true\n"
    code = f"import pytest\n@pytest.mark.parametrize('p', {HOSTILE[:10]!r})\ndef test_a(p): pass\n"
    run = run_suite({"pytest.ini": ini, "test_it.py": code})
    # pytest itself can't put an id with a NUL into the environment; what it says then is an error, never a pass.
    assert len(run.result.full_ids) == 10
    assert "test_it.py::test_a[new\nline]" in run.result.full_ids
    assert "test_it.py::test_a[e\u0301 composed apart]" in run.result.full_ids
    assert "test_it.py::test_a[\u00e9 composed]" in run.result.full_ids


def test_an_id_longer_than_the_limit_is_refused_not_cut(run_suite):
    conftest = """
        def pytest_collection_modifyitems(items):
            type(items[0]).nodeid = property(lambda item: "x" * 70_000)
    """
    run = run_suite({"conftest.py": conftest, "test_it.py": "def test_a(): pass\n"})
    assert run.result.outcome == "error"
    assert "journal-mistrusted" in run.result.reasons


def test_an_ini_file_outside_the_repository_makes_a_run_incomplete(run_suite, tmp_path):
    (tmp_path / "outside.ini").write_text("[pytest]\n")
    tree = tmp_path / "tree"
    run = run_suite("def test_a(): pass\n", "-c", "../outside.ini", "--rootdir=.", repository=str(tree.resolve()))
    assert (run.result.outcome, run.result.reasons) == ("incomplete", ("config-outside",))
    assert run_suite("def test_a(): pass\n", repository=str(tree.resolve())).result.outcome == "passed"


@pytest.mark.parametrize("mode", ["prepend", "append", "importlib"])
def test_every_import_mode(run_suite, mode):
    assert run_suite("def test_a(): pass\n", f"--import-mode={mode}").result.outcome == "passed"


def test_other_ways_to_start_pytest(run_suite, tmp_path):
    (tmp_path / "runner.py").write_text("import pytest, sys\nsys.exit(pytest.main(sys.argv[1:]))\n")
    run = run_suite("def test_a(): pass\n", command=(sys.executable, str(tmp_path / "runner.py")))
    assert run.result.outcome == "passed"
