"""The device that a recipe runs on: chosen, proven by a first allocation, described, and synchronised.

That a device is visible proves nothing; what is described here is observed, and never decides.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from gitledger.lanes.probe.faults import ProbeError

__all__ = ["Target", "choose", "describe", "describe_torch", "total_memory"]


class Target:
    """One device: its name for torch, and how to wait until all that was asked of it is done."""

    def __init__(self, device: Any, kind: str) -> None:
        self.device = device
        self.kind = kind

    @property
    def is_cpu(self) -> bool:
        """Tell whether it is the processor itself."""
        return self.kind == "cpu"

    def synchronise(self) -> None:
        """Wait for the device: without it a time is that of a request, not of its work, and errors are missed."""
        if not self.is_cpu:
            import torch

            torch.cuda.synchronize(self.device)

    def allocated_bytes(self) -> int:
        """Return the most memory that this process has held on the device; 0 on the processor."""
        if self.is_cpu:
            return 0
        import torch

        return int(torch.cuda.max_memory_allocated(self.device))


def choose(requested: str) -> Target:
    """Return the device for `auto`, `cpu` or `gpu`, once something was computed on it.

    Raises `ProbeError`: `device-absent` where a GPU was asked for and torch sees none, `device-mismatch` where
    what was put on it lies elsewhere; and whatever the first allocation raises.
    """
    import torch

    has_gpu = torch.cuda.is_available() and torch.cuda.device_count() > 0
    if requested == "gpu" and not has_gpu:
        build = "HIP" if torch.version.hip else "CUDA" if torch.version.cuda else "CPU"
        raise ProbeError("device-absent", f"torch {torch.__version__} ({build} build) sees no GPU")
    if requested == "cpu" or not has_gpu:
        return Target(torch.device("cpu"), "cpu")
    target = Target(torch.device("cuda", torch.cuda.current_device()), "hip" if torch.version.hip else "cuda")
    probe = torch.ones(64, device=target.device)
    if probe.device.type != "cuda":
        raise ProbeError("device-mismatch", f"what was put on {target.device} lies on {probe.device}")
    total = float((probe + probe).sum().item())
    target.synchronise()
    if total != 128.0:
        raise ProbeError("output-invalid", f"{target.device} adds 64 twos to {total}")
    return target


def describe(target: Target) -> dict[str, Any]:
    """Return the fields of a report's `device` that the process can see."""
    if target.is_cpu:
        return {
            "kind": "cpu",
            "name": _processor(),
            "arch": platform.machine(),
            "index": None,
            "count": 1,
            "total_memory_bytes": total_memory(),
        }
    import torch

    properties = torch.cuda.get_device_properties(target.device)
    arch = getattr(properties, "gcnArchName", "") if target.kind == "hip" else ""
    return {
        "kind": target.kind,
        "name": str(properties.name),
        "arch": arch.partition(":")[0] or f"sm_{properties.major}{properties.minor}",
        "index": int(target.device.index),
        "count": int(torch.cuda.device_count()),
        "total_memory_bytes": int(properties.total_memory),
    }


def describe_torch() -> dict[str, Any]:
    """Return the fields of a report's `torch`."""
    import torch

    return {
        "version": str(torch.__version__),
        "git": getattr(torch.version, "git_version", None),
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
    }


def total_memory() -> int | None:
    """Return the machine's memory in bytes; None where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def _processor() -> str | None:
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return platform.processor() or None
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Processor", "cpu model"):
            return value.strip() or None
    return platform.processor() or None
