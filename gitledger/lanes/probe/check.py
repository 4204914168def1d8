"""The output looked at: whether it is where it should be, finite, of the right shape, close to the reference."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from gitledger.lanes.probe.faults import ProbeError

__all__ = ["check_device", "distance", "inputs_digest", "is_finite", "outline", "tensor_digest"]


def tensor_digest(value: Any) -> str:
    """Return the SHA-256 of a tensor: its type and shape as text, then its bytes, in C order.

    Zero has one spelling here: -0.0 counts as 0.0, so that outputs that don't differ have one digest. Other
    arguments (numbers, words) count by their JSON-like spelling.
    """
    import torch

    hasher = hashlib.sha256()
    if isinstance(value, torch.Tensor):
        plain = value.detach().cpu().contiguous()
        plain = plain + 0.0 if plain.is_floating_point() else plain
        hasher.update(f"{str(plain.dtype).removeprefix('torch.')} {list(plain.shape)}\n".encode())
        if plain.numel():
            hasher.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
    else:
        hasher.update(repr(value).encode())
    return hasher.hexdigest()


def inputs_digest(inputs: tuple[Any, ...]) -> str:
    """Return the digest of a model's arguments: of the one, or over those of all."""
    digests = [tensor_digest(item) for item in inputs]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def outline(output: Any) -> dict[str, Any]:
    """Return the fields of a report's `forward` that are known before a single number is looked at."""
    return {
        "executed": True,
        "output_shape": list(output.shape),
        "output_dtype": str(output.dtype).removeprefix("torch."),
        "output_device": str(output.device),
        "finite": None,
        "output_digest": None,
        "reference": None,
    }


def is_finite(output: Any) -> bool:
    """Tell whether every number of the output is finite."""
    import torch

    return bool(torch.isfinite(output).all().item())


def check_device(target: Any, module: Any, output: Any) -> None:
    """Raise `device-mismatch` where parameters or output do not lie on the device.

    On a GPU the process must also have held memory there: what never did, ran somewhere else.
    """
    places = {str(parameter.device) for parameter in module.parameters()} if module is not None else set()
    wrong = {place for place in (*places, str(output.device)) if place != str(target.device)}
    if wrong:
        raise ProbeError("device-mismatch", f"asked for {target.device}, found {', '.join(sorted(wrong))}")
    if not target.is_cpu and target.allocated_bytes() == 0:
        raise ProbeError("device-mismatch", f"nothing was ever allocated on {target.device}")


def distance(output: Any, reference: Any) -> float | None:
    """Return |output - reference| / |reference| by the Euclidean norm, in float64; None where it is no number."""
    import torch

    ours, theirs = output.detach().cpu().to(torch.float64), reference.to(torch.float64)
    if ours.shape != theirs.shape:
        return None
    norm = float(torch.linalg.vector_norm(theirs))
    error = float(torch.linalg.vector_norm(ours - theirs))
    relative = error / norm if norm else (0.0 if error == 0.0 else math.inf)
    return relative if math.isfinite(relative) else None
