"""What `doctor` is asked for, to the tasks that it runs: a lane's own runs, or one model from elsewhere."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from gitledger.config.schema import Config, LaneConfig, LaneRun
from gitledger.dataclass import dataclass, replace
from gitledger.errors import ConfigError, UsageError
from gitledger.lanes.catalogue import Catalogue, Unusable, all_recipes, recipe_of
from gitledger.lanes.settings import Settings, parse_layers, settings_from
from gitledger.lanes.supervise import World
from gitledger.lanes.task import LaneTask
from gitledger.records.capability_match import MATCHABLE
from gitledger.records.capability_work import RecipeClaim

__all__ = ["AskedOfDoctor", "DoctorTasks", "check_lanes", "lane_named", "tasks_of"]

DEFAULT_RECIPE = "torch-eager"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedOfDoctor:
    """The options as they were given. With a lane, model, layers and quantization choose among its runs."""

    lane: str | None = None
    model: str | None = None
    layers: str | None = None
    quantization: str | None = None
    cpu: bool = False
    recipe: str | None = None
    all_recipes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorTasks:
    """What is to be run, in order; `lacking`: recipes that should be run and can't be, `passed_over`: others."""

    tasks: tuple[LaneTask, ...]
    lacking: tuple[Unusable, ...] = ()
    passed_over: tuple[Unusable, ...] = ()


def check_lanes(config: Config) -> None:
    """Raise `ConfigError` `bad-lane-match` where a lane matches what is no field of a report."""
    for lane in config.lanes.values():
        for field in lane.match:
            if field not in MATCHABLE:
                near = difflib.get_close_matches(field, MATCHABLE, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(MATCHABLE)}"
                raise ConfigError(
                    "bad-lane-match", f"lanes.{lane.name}.match: no field {field!a} of a report", hint
                )


def lane_named(config: Config, name: str) -> LaneConfig:
    """Return the lane of that name; raises `ConfigError` `unknown-lane`, naming the nearest."""
    if name in config.lanes:
        return config.lanes[name]
    near = difflib.get_close_matches(name, config.lanes, n=1)
    known = ", ".join(config.lanes) or "none"
    hint = f"did you mean {near[0]}?" if near else f"known: {known}"
    raise ConfigError("unknown-lane", f"no lane {name!a} is declared", hint)


def tasks_of(asked: AskedOfDoctor, config: Config | None, environ: Mapping[str, str], world: World) -> DoctorTasks:
    """Return what is to be run. Raises `UsageError` and `ConfigError` for what can't be meant.

    A recipe that a package offers and that can't be used keeps no other from being run; where nothing else is to
    be run, it is the error `bad-recipe`.
    """
    if asked.recipe is not None and asked.all_recipes:
        raise UsageError("usage", "one recipe or all of them", "leave --recipe or --all-recipes out")
    recipes = _Recipes(asked, world)
    if asked.lane is None:
        tasks = tuple(_from_settings(asked, settings_from(environ), recipes))
    elif config is None:
        raise ConfigError("no-config", f"lane {asked.lane!a} needs a configuration", "git ledger init")
    else:
        check_lanes(config)
        tasks = tuple(_from_lane(asked, lane_named(config, asked.lane), recipes))
    run = {task.recipe.id for task in tasks}
    lacking = tuple(item for item in recipes.unusable.values() if item.recipe in recipes.wanted - run)
    if not tasks and lacking:
        raise lacking[0].error
    passed_over = tuple(item for item in recipes.unusable.values() if item not in lacking)
    return DoctorTasks(tasks=tasks, lacking=lacking, passed_over=passed_over)


def _from_settings(asked: AskedOfDoctor, found: Settings, recipes: _Recipes) -> Iterator[LaneTask]:
    settings = replace(
        found,
        model=asked.model or found.model,
        layers=parse_layers(asked.layers) if asked.layers else found.layers,
        quantization=asked.quantization or found.quantization,
        cpu=asked.cpu or found.cpu,
    )
    for recipe in recipes.of((DEFAULT_RECIPE,)):
        yield LaneTask(
            recipe=recipe,
            model=settings.model,
            layers=settings.layers,
            quantization=settings.quantization,
            device="cpu" if settings.cpu else "auto",
        )


def _from_lane(asked: AskedOfDoctor, lane: LaneConfig, recipes: _Recipes) -> Iterator[LaneTask]:
    """Yield the tasks of a lane's runs, of those that the other options leave.

    A lane that does not say of itself that it is a CPU's is run on a GPU, or not at all.
    """
    runs = [run for run in lane.runs if _is_chosen(asked, run)]
    if not runs:
        declared = "; ".join(f"{run.model} {run.layers or 'whole'} {run.quantization}" for run in lane.runs)
        raise UsageError("no-such-run", f"lane {lane.name} declares no such run", f"known: {declared}")
    is_cpu = asked.cpu or lane.match.get("device.kind") == "cpu"
    for run in runs:
        for recipe in recipes.of(run.recipes):
            yield LaneTask(
                recipe=recipe,
                model=run.model,
                layers=run.layers,
                quantization=run.quantization,
                device="cpu" if is_cpu else "gpu",
                lane=lane.name,
                declared=dict(lane.match),
            )


def _is_chosen(asked: AskedOfDoctor, run: LaneRun) -> bool:
    layers = None if asked.layers is None else parse_layers(asked.layers)
    return (
        asked.model in (None, run.model)
        and (layers is None or layers == run.layers)
        and asked.quantization in (None, run.quantization)
    )


class _Recipes:
    """The recipes to run, each looked at once; and those that can't be used."""

    def __init__(self, asked: AskedOfDoctor, world: World) -> None:
        self.unusable: dict[str, Unusable] = {}
        self.wanted: set[str] = set()
        self._asked, self._world = asked, world
        self._known: dict[str, RecipeClaim] = {}
        self._all: Catalogue | None = None

    def of(self, declared: tuple[str, ...]) -> tuple[RecipeClaim, ...]:
        """Return the recipes of a run: all, the one that was named, or the declared ones."""
        if self._asked.all_recipes:
            # What a lane declares is wanted; the default recipe of a run without one is among the built-in ones.
            self.wanted.update(declared)
            if self._all is None:
                self._all = all_recipes(self._world)
                self.unusable = {item.recipe: item for item in self._all.unusable}
            return self._all.recipes
        names = declared if self._asked.recipe is None else (self._asked.recipe,)
        self.wanted.update(names)
        for name in names:
            if name not in self._known and name not in self.unusable:
                found = recipe_of(name, self._world)
                if isinstance(found, Unusable):
                    self.unusable[name] = found
                else:
                    self._known[name] = found
        return tuple(self._known[name] for name in names if name in self._known)
