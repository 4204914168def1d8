"""Which recipes there are: the built-in ones, and those that packages of the probe's interpreter offer.

An offered recipe is looked at in a process of its own: loading it runs the package's code, which may fail, hang or
end its process, and takes no other recipe with it.
"""

from __future__ import annotations

from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.errors import DecodeError, UsageError
from gitledger.lanes import recipes as built_in
from gitledger.lanes.probe.registry import BUILT_IN_IDS, digest_of_file, module_name
from gitledger.lanes.supervise import ProbeRun, World, ask_names, ask_recipe
from gitledger.records.capability_recipes import BUILT_IN
from gitledger.records.capability_work import RecipeClaim
from gitledger.records.decode import Reader
from gitledger.records.ids import Digest, digest, shard_word

__all__ = ["Catalogue", "Unusable", "all_recipes", "recipe_of"]


@dataclass(frozen=True, slots=True)
class Unusable:
    """A recipe that a package offers and that can't be used: its id, shown escaped, and why."""

    recipe: str
    why: str

    @property
    def error(self) -> UsageError:
        """The error for whoever asked for just this one."""
        text = f"the recipe {self.recipe!a} can't be used: {self.why}"
        return UsageError("bad-recipe", text, "mend or remove the package that offers it")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Every recipe that can be used, the built-in ones first, and those that can't."""

    recipes: tuple[RecipeClaim, ...]
    unusable: tuple[Unusable, ...] = ()


def built_in_recipe(recipe: str) -> RecipeClaim:
    """Return the claim of a built-in recipe: its newest version, and the digest of its module as it lies here.

    A module that was edited has a digest that no version of the registry has, and its reports are refused.
    """
    file = Path(built_in.__path__[0]) / f"{module_name(recipe)}.py"
    version = max(BUILT_IN[recipe], key=int)
    return RecipeClaim(id=recipe, version=version, digest=Digest(digest_of_file(file)))


def recipe_of(recipe: str, world: World) -> RecipeClaim | Unusable:
    """Return the recipe of that id, or why it can't be used.

    Raises `UsageError` `unknown-recipe`, which names those that there are, and `python-unusable`.
    """
    if recipe in BUILT_IN_IDS:
        return built_in_recipe(recipe)
    offered = _names(world)
    if recipe not in offered:
        known = ", ".join([*BUILT_IN_IDS, *offered])
        raise UsageError("unknown-recipe", f"no recipe {recipe!a} is built in or installed", f"known: {known}")
    return _offered(recipe, world)


def all_recipes(world: World) -> Catalogue:
    """Return every recipe; raises `UsageError` `python-unusable` where nobody can tell which there are."""
    found = [_offered(name, world) for name in _names(world)]
    return Catalogue(
        recipes=(
            *(built_in_recipe(recipe) for recipe in BUILT_IN_IDS),
            *(item for item in found if isinstance(item, RecipeClaim)),
        ),
        unusable=tuple(item for item in found if isinstance(item, Unusable)),
    )


def _names(world: World) -> tuple[str, ...]:
    """Return the ids that packages offer; nothing of theirs runs for it."""
    run = ask_names(world)
    if fault := _fault(run):
        raise UsageError(
            "python-unusable", f"{world.python} can't say which recipes it has: {fault}", "--python PATH"
        )
    try:
        return tuple(dict.fromkeys(Reader({"id": item}, "recipes").text("id") for item in run.journal.recipes))
    except DecodeError as error:
        raise UsageError("python-unusable", f"{world.python}: {error.message}", "--python PATH") from error


def _offered(recipe: str, world: World) -> RecipeClaim | Unusable:
    run = ask_recipe(recipe, world)
    if fault := _fault(run):
        return Unusable(recipe, f"looking at it, {fault}")
    try:
        (item,) = run.journal.recipes
        entry = Reader(item, f"recipe {recipe!a}")
        if fault := entry.text("fault"):
            return Unusable(recipe, f"{entry.text('origin')!a}: {fault}")
        return RecipeClaim(
            id=entry.parsed("id", shard_word),
            version=entry.parsed("version", shard_word),
            digest=entry.parsed("digest", digest),
        )
    except ValueError:
        return Unusable(recipe, "its process said nothing of it")
    except DecodeError as error:
        return Unusable(recipe, error.message)


def _fault(run: ProbeRun) -> str:
    """Return how a process that was asked something broke off, "" where it did not."""
    ended = run.ended
    if ended.timed_out:
        return "its process did not end in time"
    if ended.status != 0:
        return f"its process ended with {ended.status if ended.signal is None else f'signal {ended.signal}'}"
    return run.journal.fault
