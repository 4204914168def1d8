"""What a run is seen to read: real processes below a real observer, and what becomes of what they told."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.suites.inject import with_observer
from gitledger.suites.observed import MAX_OBSERVED_BYTES, Observed, SetAside, inputs_among, read_observed


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository's folder, some of whose files are older than any run."""
    root = tmp_path / "tree"
    files = {
        "mod.py": "VALUE = 1\n",
        "pkg/__init__.py": "",
        "pkg/inner.py": "VALUE = 2\n",
        "data/x.txt": "x",
        "data/y.txt": "y",
        ".git/HEAD": "ref",
        "sub/.git": "gitdir: elsewhere",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    time.sleep(0.02)
    return root


@pytest.fixture
def observe(tree: Path, tmp_path: Path, suite_env):
    """Return what runs Python code in the tree and returns what was told of it."""

    def run(code: str, *command: str, cwd: Path | None = None, expect: int = 0, **env: str) -> set[str]:
        folder = tmp_path / f"observer-{len(list(tmp_path.glob('observer-*')))}"
        folder.mkdir()
        base = {**suite_env, "PYTHONDONTWRITEBYTECODE": "", **env}
        changed, log = with_observer(base, folder=folder, root=tree)
        program = [*(command or (sys.executable, "-c")), textwrap.dedent(code)]
        done = subprocess.run(program, cwd=cwd or tree, env=changed, capture_output=True, text=True, timeout=60)
        assert done.returncode == expect, done.stderr
        assert done.stderr == ""
        observed = read_observed(log.read_bytes())
        assert observed is not None
        return set(observed.certain) | {f"perhaps {path}" for path in observed.perhaps}

    return run


def test_imports_opens_and_relative_names(observe):
    code = """
        import os, pathlib
        import mod, pkg.inner
        open("data/x.txt").close()
        os.chdir("data")
        pathlib.Path("y.txt").read_bytes()
        os.close(os.open(b"x.txt", os.O_RDONLY))
    """
    assert observe(code) == {"mod.py", "pkg/__init__.py", "pkg/inner.py", "data/x.txt", "data/y.txt"}


def test_one_name_in_two_folders_is_two_files(observe, tree):
    (tree / "pkg/x.txt").write_text("x")
    time.sleep(0.02)
    code = "import os\nfor folder in 'data', '../pkg':\n    os.chdir(folder)\n    open('x.txt').close()"
    assert observe(code) == {"data/x.txt", "pkg/x.txt"}


@pytest.mark.parametrize("prefix", [False, True], ids=["beside", "elsewhere"])
def test_bytecode_counts_as_its_source(observe, tree, tmp_path, prefix):
    env = {"PYTHONPYCACHEPREFIX": str(tmp_path / "cache")} if prefix else {}
    for _ in range(2):
        assert observe("import mod, pkg.inner", **env) == {"mod.py", "pkg/__init__.py", "pkg/inner.py"}
        time.sleep(0.02)
    found = list((tmp_path / "cache" if prefix else tree).rglob("mod.*.pyc"))
    assert len(found) == 1


def test_symlinks_count_with_what_they_point_to(observe, tree, tmp_path):
    (tree / "link.txt").symlink_to("data/x.txt")
    (tree / "folder").symlink_to("data")
    (tree / "away").symlink_to(tmp_path)
    (tmp_path / "foreign.txt").write_text("f")
    time.sleep(0.02)
    assert observe("open('link.txt').close()") == {"link.txt", "data/x.txt"}
    assert observe("open('folder/y.txt').close()") == {"folder", "data/y.txt"}
    assert observe("open('away/foreign.txt').close()") == {"away"}
    outside = tmp_path / "way-in"
    outside.symlink_to(tree)
    assert observe(f"open({str(outside / 'data/x.txt')!r}).close()") == {"data/x.txt"}
    assert observe("open('loop').close()" if (tree / "loop").symlink_to("loop") else "") == set()


def test_what_the_run_wrote_is_no_input(observe, tree):
    code = """
        import os, shutil, subprocess
        open("made.txt", "w").close(); open("made.txt").close()
        open("data/x.txt", "w").close(); open("data/x.txt").close()
        shutil.copyfile("data/y.txt", "copy.txt"); open("copy.txt").close()
        subprocess.run(["cp", "/etc/hostname", "by-child.txt"]); open("by-child.txt").close()
        open("missing.txt.new", "x").close(); os.replace("missing.txt.new", "moved.txt"); open("moved.txt").close()
    """
    assert observe(code) == {"data/y.txt"}


def test_what_was_there_before_it_was_written_to_is_an_input(observe):
    assert observe("open('data/x.txt', 'r+').close()") == {"data/x.txt"}
    assert observe("f = open('data/y.txt', 'a'); f.write('z'); f.close()") == set()


def test_a_file_that_is_appended_to_and_read_is_an_input(observe):
    assert observe("f = open('data/y.txt', 'a'); f.write('z'); f.close(); open('data/y.txt').close()") == {
        "data/y.txt"
    }


def test_old_content_under_new_times_counts_where_the_commit_has_it(observe):
    code = """
        import os, shutil
        os.chmod("data/x.txt", 0o600); open("data/x.txt").close()
        shutil.copy2("data/y.txt", "copy.txt"); open("copy.txt").close()
    """
    assert observe(code) == {"perhaps data/x.txt", "data/y.txt", "perhaps copy.txt"}


def test_files_that_are_tried_and_not_there_and_gits_own_are_none(observe):
    code = """
        import os
        for name in "missing.txt", ".git/HEAD", "data":
            try:
                os.close(os.open(name, os.O_RDONLY))
            except OSError:
                pass
    """
    assert observe(code) == set()


def test_a_file_that_appears_later_is_looked_at_again(observe, tree, tmp_path):
    (tmp_path / "old.txt").write_text("old")
    os.utime(tmp_path / "old.txt", (1, 1))
    code = f"""
        import os
        try:
            open("late.txt")
        except OSError:
            pass
        os.rename({str(tmp_path / "old.txt")!r}, "late.txt")
        open("late.txt").close()
    """
    assert observe(code) == {"perhaps late.txt"}


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import mod'], check=True)",
        (
            "import os, subprocess, sys\n"
            "subprocess.run([sys.executable, '-c', 'import mod'], env={**os.environ, 'A': '1'}, cwd='.', check=True)"
        ),
        "import os\npid = os.fork()\nif not pid:\n    import mod\n    os._exit(0)\nos.waitpid(pid, 0)",
        (
            "import multiprocessing as m\nif __name__ == '__main__':\n    p = m.get_context('spawn').Process("
            "target=exec, args=('import mod',)); p.start(); p.join(); assert p.exitcode == 0"
        ),
        "import threading\nt = threading.Thread(target=__import__, args=('mod',)); t.start(); t.join()",
        "import os\nimport mod\nos._exit(0)",
    ],
    ids=["child", "child-with-env", "fork", "spawn", "thread", "os-exit"],
)
def test_children_tell_as_well(observe, code):
    assert observe(code) == {"mod.py"}


def test_scripts_that_are_handed_to_other_programs_count(observe, tree):
    (tree / "run.sh").write_text("#!/bin/sh\nexit 0\n")
    (tree / "run.sh").chmod(0o755)
    time.sleep(0.02)
    assert observe("import subprocess; subprocess.run(['./run.sh', 'data/x.txt'])") == {"run.sh", "data/x.txt"}
    assert observe("import subprocess; subprocess.run(['sh', 'run.sh'])") == {"run.sh"}
    assert observe("import subprocess; subprocess.run(['sh', '../run.sh'], cwd='data')") == {"run.sh"}
    assert observe("import subprocess; subprocess.run('true; exit 0', shell=True)") == set()


def test_databases_and_libraries_count(observe, tree):
    import sqlite3

    sqlite3.connect(tree / "old.db").execute("create table t (a)").connection.close()
    (tree / "lib.so").write_bytes(b"no library")
    time.sleep(0.02)
    code = """
        import ctypes, sqlite3
        sqlite3.connect("file:old.db?mode=ro", uri=True).close()
        try:
            ctypes.CDLL("./lib.so")
        except OSError:
            pass
    """
    assert observe(code) == {"old.db", "lib.so"}


def test_a_sitecustomize_of_ones_own_still_runs(observe, tree, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import os\nos.MARK = __file__\n")
    code = """
        import os, sys, sitecustomize
        assert os.MARK == sitecustomize.__file__ == os.path.join(os.environ["OWN"], "sitecustomize.py")
        assert not [place for place in sys.path if "observer" in place]
        import mod
    """
    assert observe(code, PYTHONPATH=str(own), OWN=str(own)) == {"mod.py"}


def test_tests_that_replace_the_system_see_no_difference(observe):
    code = """
        import os, io
        def refuse(*a, **k): raise AssertionError("called by the observer")
        real = open
        os.lstat = os.stat = os.open = os.write = os.getcwd = os.fsencode = os.path.realpath = refuse
        real("data/x.txt").close()
        class Odd(os.PathLike):
            def __fspath__(self): raise ZeroDivisionError
        try:
            real(Odd())
        except ZeroDivisionError:
            pass
    """
    assert observe(code) == {"data/x.txt"}


def test_names_of_any_bytes(observe, tree):
    name = b"a\n\x1b\xff.txt"
    with open(os.path.join(os.fsencode(tree), name), "wb"):
        pass
    time.sleep(0.02)
    assert observe(f"open({name!r}).close()") == {name.decode("utf-8", "surrogateescape")}


# -- in pytest


def watched(run_suite, tmp_path, files, *args, plugins=()):
    folder = tmp_path / "observer"
    folder.mkdir(exist_ok=True)
    tree = tmp_path / "tree"
    tree.mkdir(exist_ok=True)
    for name, text in files.items():
        (tree / name).write_text(textwrap.dedent(text))
    time.sleep(0.02)
    env, log = with_observer({}, folder=folder, root=tree)
    run = run_suite({}, *args, env=env, plugins=plugins)
    return run, read_observed(log.read_bytes())


FILES = {
    "test_it.py": """
        import pathlib, mod
        def test_one(): assert pathlib.Path("data.txt").read_text() == "data"
        def test_two(tmp_path): assert mod.VALUE
    """,
    "mod.py": "VALUE = 1\n",
    "data.txt": "data",
    "other.py": "VALUE = 2\n",
    "conftest.py": "import sys\nsys.path.insert(0, '.')\n",
    "pytest.ini": "[pytest]\n",
}


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["plain", "xdist"])
def test_a_run_of_pytest_and_its_workers_are_observed(run_suite, tmp_path, workers):
    run, observed = watched(run_suite, tmp_path, FILES, *workers, plugins=("xdist",) if workers else ())
    assert run.result.outcome == "passed", run.output
    assert run.result.observed
    assert run.result.roots == (str(tmp_path / "tree"),)
    assert observed.certain == {"test_it.py", "mod.py", "data.txt", "conftest.py", "pytest.ini"}


def test_a_run_is_observed_although_another_sitecustomize_came_first(run_suite, tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "sitecustomize.py").write_text("")
    wrapper = tmp_path / "wrapper.py"
    wrapper.write_text(
        "import os, sys\n"
        "os.environ['PYTHONPATH'] = sys.argv[1] + os.pathsep + os.environ['PYTHONPATH']\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'pytest'])\n"
    )
    folder, tree = tmp_path / "observer", tmp_path / "tree"
    folder.mkdir()
    tree.mkdir()
    for name, text in FILES.items():
        (tree / name).write_text(textwrap.dedent(text))
    time.sleep(0.02)
    env, log = with_observer({}, folder=folder, root=tree)
    command = (sys.executable, "-I", str(wrapper), str(tmp_path / "first"))
    run = run_suite({}, env=env, command=command)
    assert run.result.observed, run.output
    assert {"test_it.py", "mod.py", "data.txt", "conftest.py"} <= read_observed(log.read_bytes()).certain


def test_without_an_observer_nothing_is_said(run_suite):
    assert run_suite("def test_it(): pass\n").result.observed is False


def test_a_worker_that_tells_nothing_leaves_the_run_unobserved(nonce):
    from gitledger.suites.journal import read_journal

    lines = [f'["journal",1,"{nonce}",{{"observed":true}}]', '["unobserved","gw1"]', '["finish",0]']
    journal = read_journal("\n".join([*lines, ""]).encode(), nonce)
    assert journal.facts.observed
    assert journal.is_unobserved


# -- what was told, as hostile


@pytest.mark.parametrize(
    "data",
    [b"\0", b"a\0\0", b"a//b\0", b"../a\0", b"a/../b\0", b"./a\0", b"//a\0", b"a/\0", b"x" * 5_000 + b"\0"],
)
def test_what_the_observer_never_writes_makes_it_all_untold(data):
    assert read_observed(data) is None
    assert read_observed(b"good\0" + data) is None


def test_more_than_can_be_told_is_untold_and_a_torn_end_is_left_out():
    assert read_observed(b"a" * (MAX_OBSERVED_BYTES + 1)) is None
    assert read_observed(b"a\0b/c\0/d\0to") == Observed(frozenset({"a", "b/c"}), frozenset({"d"}))
    assert read_observed(b"") == Observed(frozenset(), frozenset())


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data):
    observed = read_observed(data)
    assert observed is None or all(not path.startswith("/") for path in observed.certain | observed.perhaps)


# -- what counts


def test_tracked_files_always_count_and_untracked_ones_unless_they_are_set_aside(tmp_path):
    (tmp_path / "env").mkdir()
    (tmp_path / "env/pyvenv.cfg").touch()
    (tmp_path / "pyvenv.cfg").touch()
    aside = {
        "env/lib/x.py",
        "lib/site-packages/x.py",
        "demo.egg-info/PKG-INFO",
        ".pytest_cache/v/x",
        ".hypothesis/x",
        ".coverage",
        ".coverage.host.1",
        "a/.mypy_cache/x",
    }
    counted = {"built.so", "src/built.so", ".env", "build/x.so", ".coveragerc", "env.py"}
    observed = Observed(frozenset(aside | counted), frozenset({"chmod.sh", "copied.txt"}))
    set_aside = SetAside(tmp_path)
    found = inputs_among(observed, is_tracked={"chmod.sh", ".coverage"}.__contains__, is_set_aside=set_aside)
    assert set(found) == counted | {"chmod.sh", ".coverage"}
    assert list(found) == sorted(found)
