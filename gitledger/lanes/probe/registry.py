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

__all__ = ["BUILT_IN_IDS", "GROUP", "digest_of_file", "find", "names", "offered"]

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


def names() -> list[str]:
    """Return the ids of the recipes that packages offer; none of them is loaded."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def offered(recipe: str) -> dict[str, str]:
    """Return id, version, digest and origin of a recipe that a package offers; `fault` where it is none."""
    origin = ", ".join(point.value for point in entry_points(group=GROUP) if point.name == recipe)
    entry = {"id": recipe, "version": "", "digest": "", "origin": origin, "fault": ""}
    if recipe in BUILT_IN_IDS:
        return {**entry, "fault": "a built-in recipe has this id"}
    try:
        loaded = find(recipe)
        return {**entry, "version": str(loaded.VERSION), "digest": digest_of(loaded)}
    except (Exception, SystemExit) as error:
        return {**entry, "fault": f"{type(error).__name__}: {error}"[:300]}
