"""The model compiled as one graph by torch.compile with its default back end; a graph break is a failure."""

from __future__ import annotations

from typing import Any

from gitledger.lanes.probe.faults import ProbeError
from gitledger.lanes.probe.subject import moved

ID = "torch-compile"
VERSION = "1"
TAKES = {"float32": ("float32", 1e-4), "bfloat16": ("bfloat16", 5e-2), "float16": ("float16", 1e-2)}
AUTO = None


def refuses(subject: Any, target: Any) -> str:  # noqa: ARG001 - every recipe is asked
    """Return why this recipe can't be asked of a model or device; "" where it can."""
    return "" if subject.form == "module" else f"torch.compile leaves a {subject.form} as it is"


def prepare(subject: Any, target: Any, quantization: str) -> tuple[Any, Any]:
    """Return the call to be measured, and the module whose parameters must lie on the device.

    It is compiled here, by a first call; raises `ProbeError` where torch ran it without compiling anything.
    """
    import torch
    from torch._dynamo.utils import counters

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    dtype = getattr(torch, quantization)
    module = subject.build().to(device=target.device, dtype=dtype)
    inputs = moved(subject.inputs, device=target.device, dtype=dtype)
    compiled = torch.compile(module, fullgraph=True)
    counters.clear()
    compiled(*inputs)
    if counters["stats"]["unique_graphs"] < 1:
        raise ProbeError("forward-failed", "torch.compile compiled no graph")
    return lambda: compiled(*inputs), module
