"""A model, or some of its layers, ready to be built: what loaders return and recipes take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Subject", "first_tensor", "moved"]


@dataclass(frozen=True)
class Subject:
    """The layers of a model that are to be executed.

    `form` is `module` (built from weights), `script` (TorchScript) or `program` (`torch.export`). `total` counts
    the model's layers, `start` to `end` (inclusive) are those of the subject. `stored` is the type of its
    weights, as torch names it (`float32`). `build()` gives a fresh callable module on the CPU in that type;
    `inputs` are its arguments, on the CPU.
    """

    form: str
    total: int
    start: int
    end: int
    stored: str
    build: Callable[[], Any]
    inputs: tuple[Any, ...]


def moved(value: Any, *, device: Any = None, dtype: Any = None) -> Any:
    """Return arguments with every tensor on `device`, floating ones in `dtype`; whatever else as it is."""
    import torch

    if isinstance(value, torch.Tensor):
        floats = value.is_floating_point() and dtype is not None
        return value.to(device=device, dtype=dtype if floats else None)
    if isinstance(value, tuple | list):
        return type(value)(moved(item, device=device, dtype=dtype) for item in value)
    if isinstance(value, dict):
        return {key: moved(item, device=device, dtype=dtype) for key, item in value.items()}
    return value


def first_tensor(value: Any) -> Any:
    """Return the first floating tensor of an output; None where there is none."""
    import torch

    if isinstance(value, torch.Tensor):
        return value if value.is_floating_point() else None
    if hasattr(value, "last_hidden_state"):
        return value.last_hidden_state
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return next((found for found in map(first_tensor, items) if found is not None), None)
