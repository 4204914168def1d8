"""Which model, layers and quantization the environment names. There is no default model anywhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.errors import UsageError

__all__ = ["DOWNLOAD_VARIABLES", "OVERRIDES", "Settings", "overrides_of", "parse_layers", "settings_from"]

_PREFIXES = ("GITLEDGER_DOCTOR_", "MESHNET_DOCTOR_")
DOWNLOAD_VARIABLES = ("GITLEDGER_DOWNLOAD_DIR", "MESHNET_DOWNLOAD_DIR")
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")
_LAYERS = re.compile(r"\A([0-9]{1,7})(?:-([0-9]{1,7}))?\Z")
_HALF_OPEN = re.compile(r"\A[0-9]+(?::|\.\.)[0-9]+\Z")

OVERRIDES = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HSA_OVERRIDE_GFX_VERSION",
    "HSA_ENABLE_SDMA",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_TUNABLEOP_ENABLED",
    "PYTORCH_ROCM_ARCH",
    "ATEN_CPU_CAPABILITY",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "ONEDNN_MAX_CPU_ISA",
)
"""The variables that a report keeps, and nothing else of the environment: they change what a device seems."""
_OF_ONE_DEVICE = re.compile(r"\AHSA_OVERRIDE_GFX_VERSION_[0-9]{1,4}\Z")
MAX_OVERRIDE = 200
_MAX_NUMBERED = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What was asked for. `model` None: nothing was. `layers` None: the whole model; else both ends included."""

    model: str | None = None
    layers: tuple[int, int | None] | None = None
    quantization: str = "auto"
    cpu: bool = False


def settings_from(environ: Mapping[str, str]) -> Settings:
    """Return what `GITLEDGER_DOCTOR_*` (else `MESHNET_DOCTOR_*`) say; an empty variable says nothing.

    Raises `UsageError` `bad-layers` or `bad-flag` for what can't be meant.
    """
    start, end = _number(environ, "SHARD_START"), _number(environ, "SHARD_END")
    layers = None if start is None and end is None else (start or 0, end)
    if layers is not None and layers[1] is not None and layers[1] < layers[0]:
        raise _bad_layers(f"{layers[0]}-{layers[1]}", "the last layer, which is included, lies before the first")
    return Settings(
        model=_value(environ, "MODEL") or None,
        layers=layers,
        quantization=_value(environ, "QUANTIZATION") or "auto",
        cpu=_flag(environ, "CPU"),
    )


def parse_layers(text: str) -> tuple[int, int]:
    """Return first and last layer of `0-15` or `7`, both included; raises `UsageError` `bad-layers`."""
    match = _LAYERS.match(text)
    if match is None:
        if _HALF_OPEN.match(text):
            raise _bad_layers(text, "is how tools write a range without its end; here both ends are included")
        raise _bad_layers(text, "expected FIRST-LAST, both included, or one layer")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise _bad_layers(text, "the last layer, which is included, lies before the first")
    return first, last


def overrides_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the allow-listed variables that are set; the ids of devices in them are left out."""
    numbered = sorted(name for name in environ if _OF_ONE_DEVICE.match(name))[:_MAX_NUMBERED]
    found = {name: environ[name] for name in (*OVERRIDES, *numbered) if environ.get(name)}
    return {
        name: re.sub(r"\b(?:GPU|MIG)-[0-9A-Za-z/-]+", "GPU-…", value)[:MAX_OVERRIDE]
        for name, value in found.items()
    }


def download_folders(environ: Mapping[str, str], base: Path) -> tuple[Path, ...]:
    """Return the folders in which models are looked up by name; relative ones are taken from `base`."""
    return tuple(base / environ[name] for name in DOWNLOAD_VARIABLES if environ.get(name))


def _value(environ: Mapping[str, str], name: str) -> str:
    return next(
        (environ[prefix + name].strip() for prefix in _PREFIXES if environ.get(prefix + name, "").strip()), ""
    )


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = _value(environ, name)
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,7}", text):
        raise _bad_layers(text, f"{_PREFIXES[0]}{name} takes the number of a layer")
    return int(text)


def _flag(environ: Mapping[str, str], name: str) -> bool:
    text = _value(environ, name).lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise UsageError(
        "bad-flag", f"{_PREFIXES[0]}{name} is {text!a}, expected 1 or 0", f"unset {_PREFIXES[0]}{name}"
    )


def _bad_layers(text: str, why: str) -> UsageError:
    return UsageError("bad-layers", f"layers {text!a}: {why}", "--layers 0-15")
