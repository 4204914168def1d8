"""What makes a shard this shard, and what doesn't."""

from __future__ import annotations

import dataclasses
import json

import pytest

from gitledger.config.load import load_config
from gitledger.config.schema import Config
from gitledger.manifest.definition import Definition
from gitledger.records.ids import ShardKey


def config(shard: str) -> Config:
    return load_config(f"version: 1\nrepository: r\nshards: {{s: {shard}}}".encode(), source="c")


INPUTS = "paths: [src, tests], excluded_paths: [src/gen], extra_paths: [x]"
BASE = f"{{{INPUTS}, command: pytest tests}}"


def digest(shard: str, key: str = "s") -> str:
    return Definition.of(config(shard), ShardKey.parse(key)).digest


@pytest.mark.parametrize(
    "changed",
    [
        "{paths: [src], excluded_paths: [src/gen], extra_paths: [x], command: pytest tests}",
        "{paths: [src, tests], extra_paths: [x], command: pytest tests}",
        "{paths: [src, tests], excluded_paths: [src/gen], command: pytest tests}",
        f"{{{INPUTS}, command: pytest tests/test_one.py}}",
        f"{{{INPUTS}, command: pytest tests, coverage: none}}",
        f"{{{INPUTS}, command: pytest tests, results: {{junit: j}}}}",
        f"{{{INPUTS}}}",
    ],
)
def test_every_part_of_a_definition_shows_in_its_digest(changed: str) -> None:
    assert digest(changed) != digest(BASE)


@pytest.mark.parametrize(
    "same",
    [
        "{paths: [tests, ./src], excluded_paths: [src//gen], extra_paths: [./x], command: [pytest, tests]}",
        BASE.replace("}", ", gpus: 1, memory: 12GiB, timeout: 2h}"),
    ],
)
def test_spelling_order_and_machine_needs_do_not(same: str) -> None:
    assert digest(same) == digest(BASE)


def test_parts_and_variants_are_told_apart_and_another_variant_redefines_nothing() -> None:
    shard = "{command: pytest, split: 2, variants: [a, b]}"
    digests = {Definition.of(config(shard), key).digest for key in config(shard).shard_keys()}
    assert len(digests) == 4
    more = shard.replace("[a, b]", "[c, a, b]")
    assert digest(more, "s-1-of-2@a") == digest(shard, "s-1-of-2@a")
    assert digest(shard.replace("split: 2", "split: 3"), "s-1-of-3@a") != digest(shard, "s-1-of-2@a")


def test_the_canonical_form_is_a_promise() -> None:
    """Its digest stands in every receipt: a changed spelling here is a new major version."""
    found = Definition.of(config("{command: pytest -q, split: 2}"), ShardKey("s-2-of-2"))
    assert found.canonical == (
        b'{"command":["pytest","-q"],"coverage":null,"definition":1,"excluded_paths":[],"extra_paths":[],'
        b'"name":"s-2-of-2","paths":["."],"results":{"file":null,"kind":"pytest"},"split":{"index":2,"total":2},'
        b'"variant":null}'
    )
    assert json.loads(found.canonical)["split"] == {"index": 2, "total": 2}


def test_a_marker_belongs_to_pytest_shards_and_changes_nothing_where_there_is_none() -> None:
    def marked(shard: str) -> Definition:
        text = f"version: 1\nrepository: demo\nrecord: {{marker: gpu}}\nshards:\n  s: {shard}\n"
        return Definition.of(load_config(text.encode(), source="test"), ShardKey("s"))

    plain = Definition.of(config("{command: pytest}"), ShardKey("s"))
    assert b"marker" not in plain.canonical
    assert b'"marker":"gpu"' in marked("{command: pytest}").canonical
    assert marked("{command: pytest}").digest != plain.digest
    lint = "{command: ruff check, results: exit-status}"
    assert marked(lint).digest == digest(lint, "s")


def test_a_definition_that_is_replaced_in_part_has_a_form_of_its_own():
    before = Definition.undeclared(ShardKey("s"), command=["pytest"], paths=["src"])
    after = dataclasses.replace(before, paths=("tests",))
    assert after.canonical == Definition.undeclared(ShardKey("s"), command=["pytest"], paths=["tests"]).canonical
    assert before.canonical != after.canonical
