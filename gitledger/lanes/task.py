"""What one recipe is to do, and where: handed to a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gitledger.dataclass import dataclass
from gitledger.records.capability_work import RecipeClaim

__all__ = ["LaneTask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneTask:
    """One recipe on one model. `lane` None: under no lane; `declared` is the lane's `match`.

    `model` None: none was configured. `layers` None: the whole model; a last layer of None: to the end. `device`:
    `auto`, `cpu` or `gpu`.
    """

    recipe: RecipeClaim
    model: str | None
    layers: tuple[int, int | None] | None = None
    quantization: str = "auto"
    device: str = "auto"
    lane: str | None = None
    declared: Mapping[str, str] = field(default_factory=dict)
