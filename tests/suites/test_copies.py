"""What a child loads of ours is a copy, with byte code that stands for the very copy or is not used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gitledger.suites import copies
from gitledger.suites.copies import copy_module, write_loader

SOURCE = "VALUE = {value}\ndef tell():\n    return tell\n"


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A folder in which our module `it.py` lies, as in an installation."""
    home = tmp_path / "installed"
    home.mkdir()
    (home / "it.py").write_text(SOURCE.format(value=1))
    monkeypatch.setattr(copies, "__file__", str(home / "copies.py"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return home


def loaded(folder: Path, *, verbose: bool = False) -> tuple[str, str]:
    """Return what a Python says that imports the copy, and what it says of how it did."""
    code = "import copied; print(copied.VALUE, copied.tell().__code__.co_filename)"
    words = [sys.executable, "-S", "-B", *(["-v"] if verbose else []), "-c", code]
    env = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip(), done.stderr


def copied(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    copy_module("it.py", folder, "copied")
    return folder


def test_a_copy_brings_byte_code_that_python_takes_and_that_names_the_copy(home, tmp_path):
    folder = copied(tmp_path, "one")
    said, how = loaded(folder, verbose=True)
    assert said == f"1 {folder / 'copied.py'}"
    assert f"matches {folder / 'copied.py'}" in how
    assert (folder / "copied.py").read_bytes() == (home / "it.py").read_bytes()


def test_byte_code_of_an_older_source_is_made_anew(home, tmp_path):
    copied(tmp_path, "one")
    (home / "it.py").write_text(SOURCE.format(value=22))
    folder = copied(tmp_path, "two")
    said, how = loaded(folder, verbose=True)
    assert said.startswith("22 ")
    assert "matches" in next(line for line in how.splitlines() if "copied.py" in line)


def test_where_no_byte_code_can_be_kept_the_copy_is_compiled_by_the_child(home, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder = copied(tmp_path, "one")
    assert not list(home.glob("__pycache__/*"))
    assert loaded(folder)[0] == f"1 {folder / 'copied.py'}"


def test_byte_code_that_lies_is_pythons_to_refuse(home, tmp_path):
    """Ours is never said to be of another source: a copy whose source has changed since is compiled."""
    folder = copied(tmp_path, "one")
    (folder / "copied.py").write_text(SOURCE.format(value=333))
    assert loaded(folder)[0].startswith("333 ")


def test_a_loader_is_the_module_for_whoever_asks_it_for_hooks(home, tmp_path):
    folder = copied(tmp_path, "one")
    write_loader(folder, "loads_it", "copied")
    code = (
        "import loads_it, copied; print(loads_it.tell is copied.tell, 'PYTEST_DONT_REWRITE' in loads_it.__doc__)"
    )
    env = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True True"
