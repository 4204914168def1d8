"""The model as torch runs it, operation by operation, in the type that is asked for."""

from __future__ import annotations

from typing import Any

from gitledger.lanes.probe.subject import moved

ID = "torch-eager"
VERSION = "1"
TAKES = {"float32": ("float32", 1e-4), "bfloat16": ("bfloat16", 5e-2), "float16": ("float16", 1e-2)}
AUTO = None


def refuses(subject: Any, target: Any) -> str:  # noqa: ARG001 - every recipe is asked
    """Return why this recipe can't be asked of a model or device; "" where it can."""
    return ""


def prepare(subject: Any, target: Any, quantization: str) -> tuple[Any, Any]:
    """Return the call to be measured, and the module whose parameters must lie on the device."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    dtype = getattr(torch, quantization)
    module = subject.build()
    if quantization != subject.stored:
        module = module.to(dtype_name=quantization) if subject.form != "module" else module.to(dtype)
    module = module.to(device=target.device)
    inputs = moved(subject.inputs, device=target.device, dtype=dtype)
    return lambda: module(*inputs), module
