"""What a traced run is seen to read: the rules of the observer, for programs that no observer is in."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitledger.machine.child import run_child
from gitledger.machine.strace import Event, TraceFault, read_trace
from gitledger.machine.trace import Tracing
from gitledger.suites import traced
from gitledger.suites.traced import standing_files, told_by_trace


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
        "tool": '#!/bin/sh\nexec cat "$@"\n',
        ".git/HEAD": "ref",
        "sub/.git": "gitdir: elsewhere",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "tool").chmod(0o755)
    return root


@pytest.fixture
def trace(tree: Path, tmp_path: Path, tracer, hermetic_env):
    """Return what runs a command line of a shell in the tree, traced, and returns what was told of it."""

    def run(line: str, *, cwd: Path | None = None, expect: int = 0, **env: str) -> set[str]:
        folder = tmp_path / f"trace-{len(list(tmp_path.glob('trace-*')))}"
        folder.mkdir()
        time.sleep(0.02)
        (folder / "began").touch()
        standing = standing_files(tree, began_ns=(folder / "began").stat().st_ctime_ns)
        tracing = Tracing(tracer, folder)
        ended = run_child(
            ["sh", "-c", line],
            cwd=cwd or tree,
            env={**hermetic_env, **env},
            log=folder / "log",
            clock=lambda: datetime.now(UTC),
            timeout_s=60,
            tracing=tracing,
        )
        assert ended.status == expect, (folder / "log").read_text()
        with tracing.file.open("rb") as lines:
            observed = told_by_trace(read_trace(lines, str(cwd or tree)), standing)
        return set(observed.certain) | {f"perhaps {path}" for path in observed.perhaps}

    return run


@pytest.fixture
def trace_python(trace, tmp_path):
    """Return what runs Python code in the tree, traced."""

    def run(code: str, **env: str) -> set[str]:
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(code))
        env = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPATH": ".", **env}
        return trace(f"exec {sys.executable} -S {script}", **env)

    return run


def test_children_scripts_and_relative_names(trace):
    assert trace("cat data/x.txt; cd data; cat y.txt ../mod.py") == {"data/x.txt", "data/y.txt", "mod.py"}
    assert trace("cd data; ../tool ./x.txt") == {"tool", "data/x.txt"}
    assert trace("cat missing.txt", expect=1) == set()
    assert trace("ls data > /dev/null; test -e data/x.txt; cat .git/HEAD sub/.git") == set()


def test_compiled_code_that_opens_by_itself(trace_python):
    code = """
        import ctypes, sqlite3
        libc = ctypes.CDLL(None)
        assert libc.fopen(b"data/x.txt", b"r")
    """
    assert trace_python(code) == {"data/x.txt"}


@pytest.mark.parametrize("prefix", [False, True], ids=["beside", "elsewhere"])
def test_bytecode_counts_as_its_source(trace_python, tree, tmp_path, prefix):
    env = {"PYTHONPYCACHEPREFIX": str(tmp_path / "cache")} if prefix else {}
    for _ in range(2):
        assert trace_python("import mod, pkg.inner", **env) == {"mod.py", "pkg/__init__.py", "pkg/inner.py"}
    assert len(list((tmp_path / "cache" if prefix else tree).rglob("mod.*.pyc"))) == 1


def test_symlinks_count_with_what_they_point_to(trace, tree, tmp_path):
    (tree / "link.txt").symlink_to("data/x.txt")
    (tree / "folder").symlink_to("data")
    (tree / "away").symlink_to(tmp_path)
    (tree / "run").symlink_to("tool")
    (tree / "loop").symlink_to("loop")
    (tmp_path / "foreign.txt").write_text("f")
    outside = tmp_path / "way-in"
    outside.symlink_to(tree)
    assert trace("cat link.txt") == {"link.txt", "data/x.txt"}
    assert trace("cat folder/../data/y.txt folder/x.txt") == {"folder", "data/x.txt", "data/y.txt"}
    assert trace("cat away/foreign.txt") == {"away"}
    assert trace("./run < /dev/null") == {"run", "tool"}
    assert trace(f"cat {outside}/link.txt") == {"link.txt", "data/x.txt"}
    assert trace("cat loop", expect=1) == set()


def test_a_symlink_that_the_run_replaces_leads_elsewhere(trace, tree):
    (tree / "folder").symlink_to("data")
    (tree / "to").symlink_to("folder/x.txt")
    assert trace("cat folder/x.txt; rm folder; ln -s pkg folder; cat folder/inner.py to", expect=1) == {
        *("folder", "data/x.txt", "pkg/inner.py"),
    }


def test_what_is_removed_through_a_replaced_symlink_hides_nothing_else(trace, tree):
    (tree / "up").symlink_to(".")
    (tree / "pkg/data").mkdir()
    (tree / "pkg/data/y.txt").write_text("p")
    line = "cat up/mod.py; rm up; ln -s pkg up; rm up/data/y.txt; cat data/y.txt"
    assert trace(line) == {"up", "mod.py", "data/y.txt"}


def test_a_program_that_is_started_by_a_symlink_of_the_run(trace, tree):
    (tree / "true").write_bytes(Path("/bin/true").read_bytes())
    (tree / "true").chmod(0o755)
    assert trace("ln -s . here; here/true") == {"true"}


def test_what_the_run_wrote_is_no_input(trace):
    line = """
        echo a > made.txt; cat made.txt
        echo a > data/x.txt; cat data/x.txt
        cp data/y.txt copy.txt; cat copy.txt
        echo a > new; mv new moved.txt; cat moved.txt
        echo a > other; mv other mod.py; cat mod.py
        rm tool; echo a >> tool; cat tool
    """
    assert trace(line) == {"data/y.txt"}


def test_what_was_read_before_it_was_written_to_is_an_input(trace):
    assert trace("cat data/x.txt; echo a > data/x.txt; cat data/x.txt; rm data/x.txt") == {"data/x.txt"}
    assert trace("echo a >> data/y.txt") == set()
    assert trace("echo a >> data/y.txt; cat data/y.txt") == {"data/y.txt"}
    assert trace(": <> mod.py") == {"mod.py"}


def test_old_content_under_new_times_counts_where_the_commit_has_it(trace, tmp_path):
    (tmp_path / "old.txt").write_text("old")
    os.utime(tmp_path / "old.txt", (1, 1))
    line = (
        f"cp -p {tmp_path}/old.txt data/x.txt; cp -p {tmp_path}/old.txt data/new.txt; cat data/x.txt data/new.txt"
    )
    assert trace(line) == {"perhaps data/x.txt", "perhaps data/new.txt"}


def test_what_was_moved_is_read_under_its_old_name(trace):
    assert trace("mv data/x.txt z.txt") == {"data/x.txt"}
    assert trace(
        "mv data d2; mkdir data; echo a > data/y.txt; cat data/y.txt d2/y.txt; mv d2 d3; cat d3/y.txt"
    ) == {"data/y.txt"}


def test_what_was_made_and_moved_is_none(trace):
    assert trace("echo a > pkg/inner.py; mv pkg p2; mkdir pkg; cat p2/inner.py") == set()


def test_a_hard_link_reads_what_it_names(trace):
    assert trace("ln data/x.txt hard.txt; cat hard.txt") >= {"data/x.txt"}


def test_a_file_that_lists_before_and_git_does_not_know_counts(trace, tree):
    (tree / "built.so").write_text("x")
    assert trace("cat built.so; echo a > out.log; echo b >> out.log; cat out.log") == {"built.so"}


def test_databases_of_the_run_and_of_the_tree(trace_python, tree):
    code = """
        import sqlite3
        for name in "old.db", "new.db":
            base = sqlite3.connect(name); base.execute("create table if not exists t (x)"); base.commit()
    """
    assert trace_python(code) == set()
    (tree / "new.db").unlink()
    assert trace_python(code) == {"old.db"}


def test_what_may_be_one_of_several_files_hides_none_of_them(tree):
    standing = standing_files(tree, began_ns=0)
    names = tuple(f"{standing.root}/{name}" for name in ("data/x.txt", "data/y.txt"))
    opened = Event("open", (), real=names[0], reads=True)
    for first in (Event("unlink", names), Event("rename", ("/a",), names), Event("link", ("/a",), names)):
        assert told_by_trace([first, opened], standing).certain == {"data/x.txt"}
    assert told_by_trace([Event("unlink", names[:1]), opened], standing).certain == set()
    assert told_by_trace([Event("exec", names)], standing).certain == {"data/x.txt", "data/y.txt"}


def test_too_many_files_are_not_narrowed(tree, monkeypatch):
    monkeypatch.setattr(traced, "MAX_STANDING_FILES", 3)
    with pytest.raises(TraceFault, match="in the work tree"):
        standing_files(tree, began_ns=0)
    monkeypatch.undo()
    standing = standing_files(tree, began_ns=0)
    monkeypatch.setattr(traced, "MAX_OBSERVED_FILES", 1)
    opened = [Event("open", (), real=f"{standing.root}/{name}", reads=True) for name in ("mod.py", "data/x.txt")]
    with pytest.raises(TraceFault, match="were read"):
        told_by_trace(opened, standing)
