"""docs/reference/configuration.md and policy.md say what the schema says: every key, its default, what waits."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from gitledger.config import load, load_lanes, schema
from gitledger.config.load import ENVIRONMENT_KEYS, load_config
from gitledger.report.codes import read_codes

DOCS = Path(__file__).parents[2] / "docs"
SOURCE = DOCS.parent / "gitledger"
CONFIGURATION = (DOCS / "reference/configuration.md").read_text("utf-8")
POLICY = (DOCS / "reference/policy.md").read_text("utf-8")
SECTIONS = {
    "coverage": schema.CoverageConfig,
    "merge": schema.MergeConfig,
    "carry": schema.CarryConfig,
    "hooks": schema.HooksConfig,
    "record": schema.RecordConfig,
    "notes": schema.NotesConfig,
}


def section(page: str, title: str) -> str:
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.S | re.M)[1]


def rows(text: str) -> dict[str, list[str]]:
    """Return the cells behind the key, by key, of every table row that begins with code."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `") and len(cells) >= 3:
            found[cells[0].strip("` ")] = cells[1:]
    return found


def fields(kind: type) -> dict[str, object]:
    return {name.rstrip("_"): getattr(kind(), name) for name in kind.__dataclass_fields__}


def spelled(value: object) -> str:
    """Return a default as the pages spell it."""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`[{', '.join(value)}]`"
    if isinstance(value, dict):
        return "`{}`"
    if isinstance(value, float):
        return f"`{value:g}s`"
    return "`null`" if value is None else f"`{value}`"


@pytest.mark.parametrize("name", SECTIONS)
def test_every_key_of_a_section_stands_on_the_page_with_its_default(name):
    shown = rows(section(CONFIGURATION, name))
    wanted = {f"{name}.{key}": spelled(value) for key, value in fields(SECTIONS[name]).items()}
    assert {key: cells[0] for key, cells in shown.items()} == wanted


def test_every_top_level_key_stands_on_the_page():
    assert set(rows(section(CONFIGURATION, "Top level"))) == set(load._ROOT)


def test_every_key_of_a_shard_stands_on_the_page_with_its_default():
    shown = {key: cells[0] for key, cells in rows(section(CONFIGURATION, "A shard")).items()}
    default = schema.ShardConfig(name="x")
    names = [name for name in schema.ShardConfig.__dataclass_fields__ if name not in ("name", "command_text")]
    wanted = {name: spelled(getattr(default, name)) for name in names} | {"results": "`pytest`"}
    assert shown == wanted


def test_every_key_of_a_lane_stands_on_the_page():
    shown = set(rows(section(CONFIGURATION, "A lane")))
    assert shown == {*load_lanes._KNOWN, *(f"runs[].{key}" for key in load_lanes._RUN)}


def test_every_key_of_policy_stands_on_its_page_with_its_default():
    assert {key: cells[0] for key, cells in rows(POLICY).items()} == {
        key: spelled(value) for key, value in fields(schema.PolicyConfig).items()
    }


def test_the_findings_that_a_policy_key_causes_are_codes():
    known = set(read_codes())
    for key, cells in rows(POLICY).items():
        codes = re.findall(r"`([a-z-]+)`", cells[-1])
        assert codes, key
        assert set(codes) <= known, key


def test_the_environment_keys_are_all_named():
    text = rows(section(CONFIGURATION, "carry"))["carry.environment"][1]
    assert re.findall(r"`([a-z._]+)`", text) == list(ENVIRONMENT_KEYS)


@cache
def refused() -> str:
    """Return what the code says where it refuses a key that it can't put in force."""
    texts = (path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    nodes = (node for text in texts if '"unsupported-yet"' in text for node in ast.walk(ast.parse(text)))
    calls = (node for node in nodes if isinstance(node, ast.Call) and len(node.args) > 1)
    said = [ast.unparse(call.args[1]) for call in calls if getattr(call.args[0], "value", "") == "unsupported-yet"]
    return "\n".join(said)


def test_what_is_not_in_force_yet_is_marked_so():
    pages = rows(CONFIGURATION) | rows(POLICY)
    marked = {key for key, cells in pages.items() if "**Not yet" in " ".join(cells)}
    said = refused()
    assert {key for key in pages if re.search(rf"\b{re.escape(key)}\b(?!\.)", said)} == marked, (
        "mark it, or take the mark away: **Not yet:**"
    )


def test_limits_lists_no_command_that_there_is():
    from gitledger.cli.app import COMMANDS

    lines = re.findall(r"^\* the commands (.*(?:\n  .*)*)", (DOCS / "limits.md").read_text("utf-8"), re.M)
    assert not set(re.findall(r"`(\w+)`", " ".join(lines))) & set(COMMANDS)


def test_every_yaml_example_of_the_pages_loads():
    """The tutorial's and how-tos' too; a piece of a file is completed first. Other tools' files are theirs."""
    pages = [CONFIGURATION, POLICY, (DOCS / "tutorial.md").read_text("utf-8")]
    pages += [page.read_text("utf-8") for page in sorted((DOCS / "how-to").glob("*.md"))]
    examples = [text for page in pages for text in re.findall(r"^```yaml\n(.*?)^```$", page, re.S | re.M)]
    examples = [text for text in examples if re.match(rf"(?:{'|'.join(load._ROOT)}):", text)]
    assert len(examples) >= 4
    for text in examples:
        whole = text if text.startswith("version:") else f"version: 1\nrepository: example\n{text}"
        load_config(whole.encode(), source="example")


def test_limits_names_every_key_that_is_refused():
    text = (DOCS / "limits.md").read_text("utf-8")
    assert not [key for key in rows(CONFIGURATION) | rows(POLICY) if key in refused() and key not in text]
