"""Linear layers with int8 weights by channel, activations quantized as they come, on the CPU.

The tolerance is coarse: the error of int8 grows from layer to layer. It tells wrong results, not small losses.
"""

from __future__ import annotations

import warnings
from typing import Any

from gitledger.lanes.probe.faults import ProbeError
from gitledger.lanes.probe.subject import moved

ID = "torch-int8-dynamic"
VERSION = "1"
TAKES = {"int8": ("int8", 5e-1)}
AUTO = "int8"


def refuses(subject: Any, target: Any) -> str:
    """Return why this recipe can't be asked of a model or device; "" where it can."""
    if not target.is_cpu:
        return f"torch's dynamic quantization runs on the CPU, not on {target.device}"
    return "" if subject.form == "module" else f"a {subject.form} holds no linear layers that could be replaced"


def prepare(subject: Any, target: Any, quantization: str) -> tuple[Any, Any]:  # noqa: ARG001 - there is one
    """Return the call to be measured, and None: quantized weights are no parameters.

    Raises `ProbeError` where this torch has no dynamic quantization, or the model no linear layer.
    """
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic
        except ImportError as error:
            raise ProbeError(
                "dependency-missing", f"torch {torch.__version__} has no torch.ao.quantization"
            ) from error
        chosen = {torch.nn.Linear: per_channel_dynamic_qconfig}
        module = quantize_dynamic(subject.build().float(), chosen, dtype=torch.qint8)
    replaced = sum("quantized" in type(item).__module__ for item in module.modules())
    if not replaced:
        raise ProbeError("recipe-not-applicable", "the model has no linear layer")
    inputs = moved(subject.inputs, dtype=torch.float32)
    return lambda: module(*inputs), None
