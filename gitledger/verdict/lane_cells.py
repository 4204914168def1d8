"""The cells of the release check: what must have been shown to work, one lane, model, layers and recipe each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from gitledger.config.schema import LaneConfig
from gitledger.dataclass import dataclass
from gitledger.records.capability import CapabilityReport
from gitledger.records.capability_match import disagreements

__all__ = ["Cell", "CellStatus", "cells_of", "mismatches"]

ARCH_OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
"""Makes ROCm take a device for one of another architecture; with `_0` and so on behind it, one of several."""


class CellStatus(StrEnum):
    """What a release check says of a cell; only `passed` is a pass."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    SKIPPED = "skipped"
    MISSING = "missing"
    STALE = "stale"
    MISMATCHED = "mismatched"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One recipe on one run of one lane. `layers` None: the whole model."""

    lane: LaneConfig
    model: str
    layers: tuple[int, int] | None
    quantization: str
    recipe: str

    def __str__(self) -> str:
        where = "whole" if self.layers is None else f"layers {self.layers[0]}-{self.layers[1]}"
        how = "" if self.quantization == "auto" else f" {self.quantization}"
        return f"{self.lane.name}: {self.model} {where}{how} by {self.recipe}"

    def is_asked(self, report: CapabilityReport) -> bool:
        """Tell whether a report was made for this cell: by what was asked for, not by what came of it."""
        asked = report.quantization.requested, report.recipe.id, report.model.requested, report.lane.id
        if asked != (self.quantization, self.recipe, self.model, self.lane.name):
            return False
        layers = report.layers
        if self.layers is not None:
            return (layers.start, layers.end) == self.layers
        return report.is_whole_model or (layers.start == 0 and layers.end is None)


def cells_of(lanes: Mapping[str, LaneConfig]) -> Iterator[Cell]:
    """Yield every cell that the lanes declare, in file order."""
    for lane in lanes.values():
        for run in lane.runs:
            for recipe in run.recipes:
                yield Cell(
                    lane=lane,
                    model=run.model,
                    layers=run.layers,
                    quantization=run.quantization,
                    recipe=recipe,
                )


def mismatches(lane: LaneConfig, report: CapabilityReport) -> list[str]:
    """Return each way in which a report was not made on the declared lane.

    A CPU run certifies only a lane that says of itself that it is one: any other is taken for a GPU's. A run under
    a lane repeats what the lane declared then, if not always what it declares by now: one that repeats nothing was
    made under no such lane. Where a variable says which architecture the device is to pass for, what was observed
    is that variable, and no device.
    """
    found = disagreements(lane.match, report.place)
    spoofed = [name for name in report.overrides if name.startswith(ARCH_OVERRIDE)]
    if spoofed and "device.arch" in lane.match:
        text = ", ".join(f"{name}={report.overrides[name]}" for name in sorted(spoofed))
        found.append(f"device.arch: declared {lane.match['device.arch']}, told by {text} and by no device")
    if lane.match and not report.lane.declared:
        found.append(f"it repeats nothing of what the lane declares ({', '.join(lane.match)})")
    if report.device.kind == "cpu" and "device.kind" not in lane.match:
        found.append("a CPU run, and the lane does not declare device.kind: cpu")
    return found
