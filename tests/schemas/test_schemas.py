"""Every document that a command prints has a published JSON Schema, and every stored thing has one too.

Here the schemas themselves are held against the commands and the formats. That the commands print what they say is
tried wherever a test calls one with `--json`: the `Project` of tests/conftest.py holds each document against them.
"""

from __future__ import annotations

import base64
import copy
import json
import runpy
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgpack
import pytest
from jsonschema import Draft202012Validator, ValidationError

from gitledger.cli.app import COMMANDS, app

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/reference/schemas"
MAKE = runpy.run_path(str(Path(__file__).parent / "make.py"))
SCHEMAS = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}
STORED = {"body", "envelope", "statement", "capability-report", "durations", "error"}


def takers_of_json() -> list[str]:
    context = click.Context(app)
    return [
        name
        for name in COMMANDS
        if (command := app.get_command(context, name)) and any("--json" in item.opts for item in command.params)
    ]


def test_every_command_that_takes_json_has_a_schema_and_no_schema_is_of_nothing():
    assert set(SCHEMAS) == {*takers_of_json(), *STORED}
    assert len(takers_of_json()) > 15


def test_the_files_are_what_make_writes():
    made = {name: MAKE["text"](schema) for name, schema in MAKE["schemas"]().items()}
    assert made == {path.stem: path.read_text("utf-8") for path in FOLDER.glob("*.json")}, (
        "python tests/schemas/make.py"
    )


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_schema_is_one_of_its_draft_and_stands_alone(name):
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:gitledger:schema:{name}:v1"
    assert schema["title"]
    assert {item["$ref"] for item in objects(schema) if "$ref" in item} <= {
        f"#/$defs/{key}" for key in schema["$defs"]
    }


@pytest.mark.parametrize("name", sorted(set(SCHEMAS) - {"statement"}))
def test_every_object_of_it_is_closed(name):
    """What a program reads must not be there one day and gone the next; additions are said here first."""
    opened = [
        item
        for item in objects(SCHEMAS[name])
        if "properties" in item and "additionalProperties" not in item and "required" in item
    ]
    assert [
        item for item in opened if set(item["properties"]) != {"kind"}
    ] == []  # told apart by kind, then closed


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every object within a schema, itself included; what is data in it (`properties`) by its values."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


def test_the_page_lists_each_schema():
    page = (ROOT / "docs/reference/json.md").read_text("utf-8")
    assert {name for name in SCHEMAS if f"(schemas/{name}.json)" in page} == set(SCHEMAS)


ONE_SHARD = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: "true", results: exit-status}
"""


@pytest.fixture
def recorded(make_project) -> Any:
    """A recorded and merged project of one shard."""
    project = make_project(ONE_SHARD, {"src/a": "1"})
    project.record("lint")
    project.ledger("merge", "--json")
    return project


def test_a_document_with_one_field_more_less_or_other_is_refused(recorded, check_document):
    plan = recorded.ledger("plan", "--json").document
    for spoil in (
        lambda shard: shard.update(surprise=1),
        lambda shard: shard.pop("reason"),
        lambda shard: shard.update(verdict="maybe"),
        lambda shard: shard.update(distance="far"),
    ):
        document = copy.deepcopy(plan)
        check_document(["plan", "--json"], json.dumps(document))
        spoil(document["shards"][0])
        with pytest.raises(AssertionError, match=r"schemas/plan\.json"):
            check_document(["plan", "--json"], json.dumps(document))


def test_what_is_stored_is_what_the_formats_say(recorded, check_document):
    lines = [json.loads(line) for line in recorded.ledger("show", "--raw").out.splitlines()]
    assert len(lines) == 2
    for line in lines:
        Draft202012Validator(SCHEMAS["envelope"]).validate(line)
        Draft202012Validator(SCHEMAS["statement"]).validate(json.loads(base64.b64decode(line["payload"])))
    document = recorded.ledger("show", "--json").document
    document["records"][0]["statement"]["predicate"]["surprise"] = 1
    with pytest.raises(AssertionError, match="surprise"):  # what this version writes is all said
        check_document(["show", "--json"], json.dumps(document))
    later = document["records"][0]["statement"]  # and what another version adds, readers ignore
    Draft202012Validator(SCHEMAS["statement"]).validate(later)


def test_a_statement_that_readers_accept_is_one_by_its_schema():
    vectors = json.loads((ROOT / "tests/records/vectors/receipts.json").read_text("utf-8"))
    accepted = [json.loads(item["line"]) for item in vectors if item["expect"] == "accepted"]
    assert len(accepted) > 5
    for line in accepted:
        Draft202012Validator(SCHEMAS["statement"]).validate(json.loads(base64.b64decode(line["payload"])))


def test_every_kind_of_body_is_what_its_schema_says(make_project):
    """Of a real run with coverage: results, inputs, a log, a fragment, each as msgpack gives it to any reader."""
    config = ONE_SHARD.replace('command: "true", results: exit-status', "command: pytest -q --cov=src tests")
    test = "from src.a import one\n\ndef test_one():\n    assert one() == 1\n"
    files = {"src/a.py": "def one():\n    return 1\n", "tests/test_a.py": test}
    project = make_project(config, {**files, "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n'})
    bodies = project.receipt(project.record("lint")["record"])["bodies"]
    assert set(bodies) == {"tests", "coverage", "inputs", "log"}
    for name, body in bodies.items():
        done = subprocess.run(
            ["git", "cat-file", "blob", body["oid"]], cwd=project.path, capture_output=True, check=True
        )
        value = msgpack.unpackb(zlib.decompress(done.stdout[1:]))
        assert value["kind"] == name
        Draft202012Validator(SCHEMAS["body"]).validate(value)
        with pytest.raises(ValidationError):
            Draft202012Validator(SCHEMAS["body"]).validate({**value, "surprise": 1})


@pytest.mark.parametrize("name", ["plan", "explain"])
def test_an_error_is_a_document_too(tmp_path, hermetic_env, check_document, name):
    command = [str(Path(sys.executable).parent / "git-ledger"), name, "--json", "--no-such-option"]
    done = subprocess.run(command, cwd=tmp_path, env=hermetic_env, capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "usage")
    check_document(command[1:], done.stdout)
    Draft202012Validator(SCHEMAS["error"]).validate(json.loads(done.stdout))


@pytest.mark.parametrize(
    "args",
    [("plan", "--format", "github", "--json"), ("import", "--config", "--json"), ("show", "--raw", "--json")],
)
def test_what_is_asked_for_as_json_is_never_something_else(recorded, args):
    done = recorded.ledger(*args, expect=None)
    assert (done.status, done.document["error"]["code"]) == (2, "usage")
