"""Recipes by id: the built-in ones, and those that installed packages offer. Nothing is ever downloaded.

A package offers a recipe by an entry point in the group `gitledger.recipes`: a module (or an object) with `ID`,
`VERSION`, `TAKES`, `AUTO`, `refuses` and `prepare`, as the modules of `gitledger.lanes.recipes` have them. No
package can stand in for a built-in one.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

__all__ = ["BUILT_IN_IDS", "GROUP", "digest_of_file", "find", "offered"]

GROUP = "gitledger.recipes"
BUILT_IN_IDS = ("torch-eager", "torch-compile", "torch-bf16-autocast", "torch-int8-dynamic")
_ATTRIBUTES = ("ID", "VERSION", "TAKES", "AUTO", "refuses", "prepare")


def module_name(recipe: str) -> str:
    """Return the name of a built-in recipe's module."""
    return recipe.replace("-", "_")


def digest_of_file(file: Path) -> str:
    """Return the digest of a recipe: SHA-256 of its module, line ends as Unix has them."""
    return hashlib.sha256(file.read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def find(recipe: str) -> Any:
    """Return the recipe of that id; raises `LookupError` where there is none, or where two packages offer it."""
    if recipe in BUILT_IN_IDS:
        return importlib.import_module(f"gitledger.lanes.recipes.{module_name(recipe)}")
    found = [point for point in entry_points(group=GROUP) if point.name == recipe]
    if len(found) != 1:
        raise LookupError(f"{len(found)} packages offer a recipe {recipe!r}")
    loaded = found[0].load()
    missing = [name for name in _ATTRIBUTES if not hasattr(loaded, name)]
    if missing or recipe != loaded.ID:
        raise LookupError(f"{found[0].value} is no recipe {recipe!r}: {', '.join(missing) or loaded.ID}")
    return loaded


def digest_of(recipe: Any) -> str:
    """Return the digest of the module that a recipe is, or is defined in."""
    source = inspect.getsourcefile(recipe if inspect.ismodule(recipe) else type(recipe))
    if source is None:
        raise LookupError(f"recipe {recipe.ID} has no source file, so nothing can be said of what it executes")
    return digest_of_file(Path(source))


def offered() -> list[dict[str, str]]:
    """Return id, version, digest and origin of each recipe that packages offer; `fault` where one is none."""
    found = []
    for point in sorted(entry_points(group=GROUP), key=lambda item: item.name):
        entry = {"id": point.name, "version": "", "digest": "", "origin": point.value, "fault": ""}
        try:
            recipe = find(point.name)
            entry |= {"version": str(recipe.VERSION), "digest": digest_of(recipe)}
        except Exception as error:
            entry["fault"] = f"{type(error).__name__}: {error}"[:300]
        if point.name in BUILT_IN_IDS:
            entry["fault"] = "a built-in recipe has this id"
        found.append(entry)
    return found
