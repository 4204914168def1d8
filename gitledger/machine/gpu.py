"""Which GPUs a command with a given environment can see: asked of the vendors' tools, in processes of their own.

Nothing here says that a GPU works; only an executed run does. Facts only: no host names, no serial numbers, and
UUIDs only where the configuration allows them (`record.gpu_uuid`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gitledger.dataclass import dataclass
from gitledger.machine.tool import ask_tool
from gitledger.records.environment import Gpu

__all__ = ["Device", "chosen", "visible_gpus"]

TOOL_TIMEOUT_S = 20.0  # without persistence mode, nvidia-smi initialises every device: seconds on large machines
TORCH_TIMEOUT_S = 60.0
MAX_DEVICES = 1024
MAX_NAME_CHARS = 200
MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One GPU as its tool describes it; `memory_bytes` 0 is unknown."""

    name: str
    uuid: str = ""
    memory_bytes: int = 0


def visible_gpus(
    env: Mapping[str, str],
    *,
    uuids: bool,
    torch_python: str | None = None,
    timeout_s: float = TOOL_TIMEOUT_S,
) -> Gpu | None:
    """Return the GPUs that a command with this environment can see, or None: none there, or no tool that tells.

    Asked in turn: `nvidia-smi`, `amd-smi`, `rocm-smi`, and, where an interpreter is given, torch in a process of
    its own. `CUDA_VISIBLE_DEVICES`, `ROCR_VISIBLE_DEVICES` and `HIP_VISIBLE_DEVICES` are heeded; indices count
    in the tool's order (PCI bus). Never raises, and never waits longer than `timeout_s` for a tool.
    """
    for source in (_nvidia, _amd_smi, _rocm_smi):
        found = source(env, timeout_s)
        if found is not None:
            return _shaped(found, uuids=uuids)
    if torch_python is not None:
        found = _torch(env, torch_python)
        return _shaped(found, uuids=uuids) if found is not None else None
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    vendor: str
    source: str
    devices: tuple[Device, ...]
    driver: str | None
    runtime: str | None


def _shaped(found: _Found, *, uuids: bool) -> Gpu | None:
    if not found.devices:
        return None
    sizes = tuple(device.memory_bytes for device in found.devices)
    ids = tuple(device.uuid for device in found.devices)
    return Gpu(
        vendor=found.vendor,
        names=tuple(device.name for device in found.devices),
        uuids=ids if uuids and all(ids) else (),
        memory_bytes=sizes if all(sizes) else (),
        driver=found.driver,
        runtime=found.runtime,
        source=found.source,
    )


def _clean(text: object) -> str:
    """Return a tool's word, bounded and without control characters; empty for the ways to say "don't know"."""
    if not isinstance(text, str):
        return ""
    word = "".join(char for char in text if char.isprintable()).strip()[:MAX_NAME_CHARS]
    return "" if word.strip("[]").lower() in {"n/a", "not supported", "unknown", "none", "unknown error"} else word


def chosen(devices: Sequence[Device], value: str | None) -> tuple[Device, ...]:
    """Return the devices that a `…_VISIBLE_DEVICES` value selects, in its order; all where it is unset.

    The CUDA programming guide's rule (CUDA_VISIBLE_DEVICES): indices, or unambiguous prefixes of UUIDs; the first
    invalid entry hides itself and all after it, and a device named twice hides all.
    """
    if value is None:
        return tuple(devices)
    picked: list[Device] = []
    for entry in (part.strip() for part in value.split(",")):
        device = _named(devices, entry)
        if device is None:
            break
        if any(device is other for other in picked):
            return ()
        picked.append(device)
    return tuple(picked)


def _named(devices: Sequence[Device], entry: str) -> Device | None:
    if re.fullmatch(r"[0-9]{1,6}", entry):
        return devices[int(entry)] if int(entry) < len(devices) else None
    matches = [device for device in devices if len(entry) > 4 and device.uuid.lower().startswith(entry.lower())]
    return matches[0] if len(matches) == 1 else None


def _nvidia(env: Mapping[str, str], timeout_s: float) -> _Found | None:
    query = "--query-gpu=uuid,memory.total,driver_version,name"
    answer = ask_tool(["nvidia-smi", query, "--format=csv,noheader,nounits"], env=env, timeout_s=timeout_s)
    # nvidia-smi quotes nothing, so the name, which may hold a comma, is asked for last.
    rows = [line.split(",", 3) for line in (answer or "").splitlines() if line.startswith("GPU-")]
    rows = [row for row in rows if len(row) == 4][:MAX_DEVICES]
    if not rows:
        return None
    devices = [
        Device(uuid=_clean(uuid), memory_bytes=_number(size) * MIB, name=_clean(name))
        for uuid, size, _driver, name in rows
    ]
    wanted = env.get("CUDA_VISIBLE_DEVICES")
    if wanted is not None and "MIG-" in wanted:
        listing = ask_tool(["nvidia-smi", "-L"], env=env, timeout_s=timeout_s) or ""
        devices = _mig_devices(listing)
    version = ask_tool(["nvidia-smi", "--version"], env=env, timeout_s=timeout_s) or ""
    cuda = re.search(r"CUDA Version\s*:\s*([0-9.]{1,20})", version)
    return _Found(
        vendor="nvidia",
        source="nvidia-smi",
        devices=chosen(devices, wanted),
        driver=_clean(rows[0][2]) or None,
        runtime=f"cuda {cuda[1]}" if cuda else None,
    )


def _mig_devices(listing: str) -> list[Device]:
    """Return the MIG instances that `nvidia-smi -L` lists, each named after its GPU and profile."""
    parent, devices = "", []
    for line in listing.splitlines()[:MAX_DEVICES]:
        if gpu := re.match(r"GPU [0-9]+: (.{1,200}?) \(UUID: ", line):
            parent = gpu[1]
        elif mig := re.match(r"\s+MIG (\S{1,40})\s+Device\s+[0-9]+: \(UUID: (MIG-[^)]{1,100})\)", line):
            devices.append(Device(name=_clean(f"{parent} MIG {mig[1]}"), uuid=_clean(mig[2])))
    return devices


def _number(text: object) -> int:
    """Return a tool's non-negative integer, 0 for anything else."""
    match = re.fullmatch(r"\s*([0-9]{1,18})(?:\.[0-9]*)?\s*", str(text))
    return int(match[1]) if match else 0


def _json_in(answer: str | None) -> Any:
    """Return the JSON document in a tool's answer, which warnings may precede; None where there is none."""
    text = answer or ""
    starts = [place for place in (text.find("{"), text.find("[")) if place >= 0]
    for start in sorted(starts):
        try:
            return json.JSONDecoder().raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue
    return None


def _child(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _rocm_visible(devices: Sequence[Device], env: Mapping[str, str]) -> tuple[Device, ...]:
    """Return what ROCm shows: ROCR filters, then HIP (else CUDA's variable) counts in what is left."""
    shown = chosen(devices, env.get("ROCR_VISIBLE_DEVICES"))
    return chosen(shown, env.get("HIP_VISIBLE_DEVICES", env.get("CUDA_VISIBLE_DEVICES")))


def _amd_smi(env: Mapping[str, str], timeout_s: float) -> _Found | None:
    argv = ["amd-smi", "static", "--asic", "--vram", "--driver", "--json"]
    document = _json_in(ask_tool(argv, env=env, timeout_s=timeout_s))
    cards = document.get("gpu_data") if isinstance(document, dict) else document
    if not isinstance(cards, list):
        return None
    devices, driver = [], None
    for card in cards[:MAX_DEVICES]:
        if name := _clean(_child(card, "asic", "market_name")):
            unit = {"GB": 1 << 30, "MB": MIB}.get(str(_child(card, "vram", "size", "unit")), 0)
            devices.append(
                Device(
                    name=_with_arch(name, _child(card, "asic", "target_graphics_version")),
                    uuid=_amd_uuid(_child(card, "asic", "asic_serial")),
                    memory_bytes=_number(_child(card, "vram", "size", "value")) * unit,
                )
            )
            driver = driver or _clean(_child(card, "driver", "version")) or None
    return _amd_found("amd-smi", devices, driver, env, timeout_s)


def _rocm_smi(env: Mapping[str, str], timeout_s: float) -> _Found | None:
    argv = [
        "rocm-smi",
        "--showproductname",
        "--showuniqueid",
        "--showmeminfo",
        "vram",
        "--showdriverversion",
        "--json",
    ]
    document = _json_in(ask_tool(argv, env=env, timeout_s=timeout_s))
    if not isinstance(document, dict):
        return None
    cards = sorted((int(key[4:]), card) for key, card in document.items() if re.fullmatch(r"card[0-9]{1,4}", key))
    devices = []
    for _index, card in cards[:MAX_DEVICES]:
        words = [_clean(_child(card, key)) for key in ("Card Series", "Card series", "Card Model", "Card model")]
        if name := next((word for word in words if word), ""):
            devices.append(
                Device(
                    name=_with_arch(name, _child(card, "GFX Version")),
                    uuid=_amd_uuid(_child(card, "Unique ID")),
                    memory_bytes=_number(_child(card, "VRAM Total Memory (B)") or ""),
                )
            )
    driver = _clean(_child(document, "system", "Driver version")) or None
    return _amd_found("rocm-smi", devices, driver, env, timeout_s)


def _amd_found(
    source: str, devices: Sequence[Device], driver: str | None, env: Mapping[str, str], timeout_s: float
) -> _Found | None:
    if not devices:
        return None
    version = (ask_tool(["hipconfig", "--version"], env=env, timeout_s=timeout_s) or "").strip()
    runtime = f"hip {version}" if re.fullmatch(r"[0-9][\w.-]{0,60}", version) else None
    return _Found(vendor="amd", source=source, devices=_rocm_visible(devices, env), driver=driver, runtime=runtime)


def _with_arch(name: str, arch: object) -> str:
    word = _clean(arch)
    return f"{name} ({word})" if re.fullmatch(r"gfx[0-9a-f]{3,8}", word) and word not in name else name


def _amd_uuid(text: object) -> str:
    """Return the UUID in ROCm's spelling (`GPU-` and 16 hex digits), which ROCR_VISIBLE_DEVICES uses."""
    match = re.fullmatch(r"0x([0-9a-fA-F]{1,16})", _clean(text))
    return f"GPU-{match[1].lower().rjust(16, '0')}" if match else ""


TORCH_QUESTION = """
import json, torch
cuda = torch.cuda.is_available()
found = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())] if cuda else []
print(json.dumps({"hip": torch.version.hip, "cuda": torch.version.cuda,
                  "devices": [[p.name, p.total_memory] for p in found]}))
"""


def _torch(env: Mapping[str, str], python: str) -> _Found | None:
    """Return what torch sees, asked in a process of its own: it heeds the variables by itself."""
    document = _json_in(ask_tool([python, "-c", TORCH_QUESTION], env=env, timeout_s=TORCH_TIMEOUT_S))
    listed = _child(document, "devices")
    if not isinstance(listed, list):
        return None
    devices = tuple(
        Device(name=_clean(item[0]), memory_bytes=_number(item[1]))
        for item in listed[:MAX_DEVICES]
        if isinstance(item, list) and len(item) == 2
    )
    hip, cuda = _clean(_child(document, "hip") or ""), _clean(_child(document, "cuda"))
    return _Found(
        vendor="amd" if hip else "nvidia" if cuda else "other",
        source="torch",
        devices=devices,
        driver=None,
        runtime=f"hip {hip}" if hip else f"cuda {cuda}" if cuda else None,
    )
