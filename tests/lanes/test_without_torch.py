"""The default suite needs no torch, and takes none: whatever it imports, the probe's process alone imports torch."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "gitledger"
HEAVY = {"torch", "safetensors", "transformers", "numpy"}
EVERYTHING = """
import importlib, pkgutil, sys

class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "safetensors", "transformers"}:
            raise ImportError(f"{name} was imported")

sys.meta_path.insert(0, Refuses())
import gitledger
names = [module.name for module in pkgutil.walk_packages(gitledger.__path__, "gitledger.")]
for name in names:
    if not name.endswith(("sitecustomize", "__main__")):
        importlib.import_module(name)
print(len(names))
"""


@pytest.mark.parametrize("name", ["torch", "safetensors", "transformers"])
def test_this_very_suite_runs_where_torch_cannot_be_imported(name):
    """tests/conftest.py refuses it to every test, installed or not; in `make test-lanes` alone it does not."""
    with pytest.raises(ImportError):
        importlib.import_module(name)


def test_every_module_of_ours_can_be_imported_where_torch_cannot():
    done = subprocess.run(
        [sys.executable, "-c", EVERYTHING], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200


def heavy_imports(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found |= {name.partition(".")[0] for name in names} & HEAVY
    return found


def test_only_the_probe_and_its_recipes_name_torch_and_never_at_import():
    homes = (SOURCE / "lanes" / "probe", SOURCE / "lanes" / "recipes")
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        if path.parent not in homes:
            assert not heavy_imports(tree) - {"numpy"}, path
        at_import = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert not heavy_imports(ast.Module(at_import, [])), path


def test_what_the_probe_imports_of_ours_is_standard_library_only():
    """It runs in an interpreter that has torch and none of our dependencies; an older one may do."""
    allowed = {"gitledger.lanes.probe", "gitledger.lanes.recipes"}
    for path in sorted([*(SOURCE / "lanes/probe").glob("*.py"), *(SOURCE / "lanes/recipes").glob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gitledger"):
                assert any((node.module or "").startswith(place) for place in allowed), (path, node.module)


def test_the_probe_holds_no_key_and_reaches_no_network():
    for path in sorted((SOURCE / "lanes").rglob("*.py")):
        text = path.read_text("utf-8")
        for word in ("urllib", "requests", "socket", "http.client", "huggingface_hub", "pip install -"):
            assert word not in text, (path, word)


def test_no_model_is_anybodys_default():
    for path in sorted((SOURCE / "lanes").rglob("*.py")):
        for word in ("minilm", "silero", "llama", "meta-", "mistral", "gpt2"):
            assert word not in path.read_text("utf-8").lower(), (path, word)


def test_the_registry_names_what_the_built_in_recipes_are():
    """A recipe that changes gets a new version, and a new line beside the old one."""
    from gitledger.lanes.catalogue import built_in_recipe
    from gitledger.lanes.probe.registry import BUILT_IN_IDS
    from gitledger.records.capability_recipes import BUILT_IN, TAKES

    assert tuple(BUILT_IN) == tuple(TAKES) == BUILT_IN_IDS
    for recipe in BUILT_IN_IDS:
        claim = built_in_recipe(recipe)
        module = importlib.import_module(f"gitledger.lanes.recipes.{recipe.replace('-', '_')}")
        assert (claim.id, claim.version) == (module.ID, module.VERSION)
        assert TAKES[recipe] == module.TAKES
        assert BUILT_IN[recipe][claim.version] == claim.digest, f'"{claim.version}": Digest("{claim.digest}")'


def test_a_report_by_a_changed_built_in_recipe_is_refused(passed, redigested):
    import json

    from gitledger.errors import DecodeError
    from gitledger.records.capability import CapabilityReport

    document = json.loads(passed.to_json())
    document["recipe"]["digest"] = "0" * 64
    with pytest.raises(DecodeError, match=r"recipe\.digest.*a changed recipe"):
        CapabilityReport.from_json(redigested(document))


def test_a_newer_recipe_than_we_know_is_read_and_counts_for_nothing(world, passed):
    from dataclasses import replace

    record = world.put(replace(passed, recipe=replace(passed.recipe, version="99")))
    assert world.cell()[0] == "missing"
    assert world.ignored() == {record: "unknown-recipe-version"}
