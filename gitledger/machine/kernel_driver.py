"""Which driver the kernel has loaded for GPUs of a kind where no vendor's tool is there to ask (in containers)."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["kernel_driver"]

_NVIDIA = re.compile(r"\b[0-9]+(?:\.[0-9]+){1,2}\b")
_MAX_BYTES = 4096


def kernel_driver(kind: str, root: Path = Path("/")) -> str | None:
    """Return the driver's version for `cuda` or `hip`, None where none is loaded or it does not say.

    NVIDIA's module tells it in `/proc/driver/nvidia/version`; AMD's in `/sys/module/amdgpu/version` where it is
    their own build, and is part of the kernel elsewhere: then it is named by the kernel's release.
    """
    if kind == "cuda":
        found = _NVIDIA.search(_read(root / "proc/driver/nvidia/version").partition("\n")[0])
        return found[0] if found else None
    if kind != "hip":
        return None
    version = _read(root / "sys/module/amdgpu/version").strip()
    if version:
        return version[:100]
    return f"amdgpu of {os.uname().release}" if (root / "sys/module/amdgpu").is_dir() else None


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
