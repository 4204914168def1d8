"""docs/dependencies.md says why of each package that we ask for, and of no other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_dependency_has_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = {re.split(r"[<>=\[ ]", line)[0] for line in project["dependencies"]}
    rows = re.findall(
        r"^\| ([a-z0-9]+) \| .{5,} \| .{5,} \|$", (ROOT / "docs/dependencies.md").read_text("utf-8"), re.M
    )
    assert set(rows) - {"package"} == wanted
    assert len(rows) == len(wanted) + 1, "the head of the table"
