"""Which recipes there are: the built-in ones, and those that packages of the probe's interpreter offer."""

from __future__ import annotations

from pathlib import Path

from gitledger.errors import DecodeError, UsageError
from gitledger.lanes import recipes as built_in
from gitledger.lanes.probe.registry import BUILT_IN_IDS, digest_of_file, module_name
from gitledger.lanes.supervise import World, ask_recipes
from gitledger.records.capability_recipes import BUILT_IN
from gitledger.records.capability_work import RecipeClaim
from gitledger.records.decode import Reader
from gitledger.records.ids import Digest, digest, shard_word

__all__ = ["all_recipes", "recipe_of"]


def built_in_recipe(recipe: str) -> RecipeClaim:
    """Return the claim of a built-in recipe: its newest version, and the digest of its module as it lies here.

    A module that was edited has a digest that no version of the registry has, and its reports are refused.
    """
    file = Path(built_in.__path__[0]) / f"{module_name(recipe)}.py"
    version = max(BUILT_IN[recipe], key=int)
    return RecipeClaim(id=recipe, version=version, digest=Digest(digest_of_file(file)))


def recipe_of(recipe: str, world: World) -> RecipeClaim:
    """Return the recipe of that id; raises `UsageError` `unknown-recipe`, which names those that there are."""
    if recipe in BUILT_IN_IDS:
        return built_in_recipe(recipe)
    offered = {claim.id: claim for claim in _offered(world)}
    if recipe not in offered:
        known = ", ".join([*BUILT_IN_IDS, *offered])
        raise UsageError("unknown-recipe", f"no recipe {recipe!a} is built in or installed", f"one of {known}")
    return offered[recipe]


def all_recipes(world: World) -> tuple[RecipeClaim, ...]:
    """Return every recipe, the built-in ones first."""
    return (*(built_in_recipe(recipe) for recipe in BUILT_IN_IDS), *_offered(world))


def _offered(world: World) -> tuple[RecipeClaim, ...]:
    """Return what the interpreter's packages offer; raises `UsageError` `bad-recipe` for one that is none."""
    run = ask_recipes(world)
    if run.ended.status != 0 or run.journal.fault:
        text = run.journal.fault or f"it ended with {run.ended.status}"
        raise UsageError(
            "python-unusable", f"{world.python} can't say which recipes it has: {text}", "--python PATH"
        )
    found = []
    for number, item in enumerate(run.journal.recipes):
        try:
            entry = Reader(item, f"recipe {number}")
            if fault := entry.text("fault"):
                text = f"the recipe {entry.text('id')!a} of {entry.text('origin')!a} can't be used: {fault}"
                raise UsageError("bad-recipe", text, "mend or remove the package")
            found.append(
                RecipeClaim(
                    id=entry.parsed("id", shard_word),
                    version=entry.parsed("version", shard_word),
                    digest=entry.parsed("digest", digest),
                )
            )
        except DecodeError as error:
            raise UsageError("bad-recipe", error.message, "mend or remove the package") from error
    return tuple(found)
