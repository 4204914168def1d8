"""Strict loading of `lanes` (DESIGN section 9)."""

from __future__ import annotations

from gitledger.config.schema import LaneConfig, LaneRun
from gitledger.config.section import Section, kind
from gitledger.records.ids import shard_word

__all__ = ["load_lanes"]

_KNOWN = ("required", "signers", "match", "runs")
_RUN = ("model", "layers", "quantization", "recipes")


def load_lanes(section: Section) -> dict[str, LaneConfig]:
    """Return the declared lanes in file order; raises `ConfigError`. A lane without runs is refused."""
    lanes = {}
    for name in section.names():
        try:
            shard_word(name)
        except ValueError as error:
            section.fail(name, f"not a lane's name: {error}")
        lanes[name] = _lane(section.child(name, _KNOWN), name)
    return lanes


def _lane(section: Section, name: str) -> LaneConfig:
    return LaneConfig(
        name=name,
        required=section.or_default("required", section.boolean, True),
        signers=section.or_default("signers", lambda key: section.texts(key, str), None),
        match=_match(section.child("match", None)),
        runs=_runs(section),
    )


def _match(section: Section) -> dict[str, str]:
    found = {}
    for key in section.names():
        value = section.raw(key)
        if isinstance(value, bool):
            section.fail(key, f"expected a string, found {kind(value)}; quote it")
        if isinstance(value, int):
            found[key] = str(value)
            continue
        if value is not None and not isinstance(value, str | list | dict):  # a number with a fraction
            section.fail(key, f"versions are text; quote {value}")
        found[key] = section.text(key)
    return found


def _runs(section: Section) -> tuple[LaneRun, ...]:
    if not section.has("runs"):
        section.fail("runs", "missing; a lane without runs proves nothing")
    items = section.items("runs")
    if not items:
        section.fail("runs", "expected at least one run")
    runs = [
        _run(Section(section.document, item, f"{section.at('runs')}[{i}]", _RUN)) for i, item in enumerate(items)
    ]
    for i, run in enumerate(runs):
        if run in runs[:i]:
            section.fail(f"runs[{i}]", "stands here twice")
    return tuple(runs)


def _run(section: Section) -> LaneRun:
    default = LaneRun(model="-")
    if not section.has("model"):
        section.fail("model", "missing")
    recipes = section.or_default("recipes", lambda key: section.texts(key, shard_word), default.recipes)
    if not recipes:
        section.fail("recipes", "expected at least one recipe")
    return LaneRun(
        model=section.text("model"),
        layers=section.or_default("layers", lambda key: _layers(section, key), None),
        quantization=section.or_default("quantization", section.text, default.quantization),
        recipes=recipes,
    )


def _layers(section: Section, key: str) -> tuple[int, int]:
    found = []
    for item in section.items(key):
        if isinstance(item, bool) or not isinstance(item, int):
            section.fail(key, f"expected integers, found {kind(item)}")
        found.append(item)
    if len(found) != 2 or not 0 <= found[0] <= found[1] <= 1_000_000:
        section.fail(key, "expected [first, last], both inclusive, first no greater than last")
    return found[0], found[1]
