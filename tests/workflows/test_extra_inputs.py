"""Extra inputs in the work tree of whoever judges: absent, or there and another thing than what was recorded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CONFIG = """\
version: 1
repository: demo
shards:
  it: {paths: [src], extra_paths: [gone.so, built.so], command: "true", results: exit-status}
"""


def a_link_to_the_same_content(path: Path) -> None:
    path.rename(path.with_name("elsewhere.so"))
    path.symlink_to("elsewhere.so")


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.fixture
def recorded(make_project):
    project = make_project(CONFIG, {"src/a.py": "x = 1\n", ".gitignore": "*.so\n"})
    for name in ("gone.so", "built.so"):
        project.repo.write(name, b"\x7fELF")
    project.record("it")
    return project


@pytest.mark.parametrize("replace", [a_link_to_the_same_content, a_pipe, a_folder])
def test_an_extra_input_that_is_no_regular_file_any_more_is_here_and_different(recorded, replace):
    assert recorded.verify() == ("passed", set())
    (recorded.path / "gone.so").unlink()
    assert recorded.verify() == ("passed", set())
    replace(recorded.path / "built.so")
    assert recorded.verify() == ("failed", {"extra-changed"})
