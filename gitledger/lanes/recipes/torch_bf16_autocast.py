"""Weights in float32, products in bfloat16, as torch.autocast chooses for the device."""

from __future__ import annotations

from typing import Any

from gitledger.lanes.probe.subject import moved

ID = "torch-bf16-autocast"
VERSION = "1"
TAKES = {"bfloat16": ("bfloat16", 5e-2)}
AUTO = "bfloat16"


def refuses(subject: Any, target: Any) -> str:  # noqa: ARG001 - every recipe is asked
    """Return why this recipe can't be asked of a model or device; "" where it can."""
    return "" if subject.stored == "float32" else f"autocast begins with float32, the weights are {subject.stored}"


def prepare(subject: Any, target: Any, quantization: str) -> tuple[Any, Any]:  # noqa: ARG001 - there is one
    """Return the call to be measured, and the module whose parameters must lie on the device."""
    import torch

    module = subject.build().to(device=target.device)
    inputs = moved(subject.inputs, device=target.device)

    def call() -> Any:
        with torch.autocast(target.device.type, dtype=torch.bfloat16):
            return module(*inputs)

    return call, module
