"""GPUs to hand out: which there are, what a command must be told to get one, and whether nobody is on it.

A device is clean where no process computes on it and its memory in use is what it was when the driver began, some
slack aside: a command that was killed leaves its memory to the driver of the card, which takes seconds to give it
back. Facts come from the vendors' tools, in processes of their own; see `gpu.py` for who is asked what.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field

from gitledger.dataclass import dataclass
from gitledger.machine.gpu import MIB, TOOL_TIMEOUT_S
from gitledger.machine.tool import ask_tool
from gitledger.wording import counted

__all__ = ["DevicePool", "DeviceState", "find_devices"]

SLACK_BYTES = 512 * MIB
"""By how much a device may hold more than at the start and still be clean: contexts of displays and daemons."""
_NVIDIA_QUERY = "--query-gpu=index,uuid,memory.used,memory.total"
_NVIDIA_APPS = "--query-compute-apps=gpu_uuid,pid"
_FORMAT = "--format=csv,noheader,nounits"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """One device as its tool tells: its place in the tool's order, memory in bytes, and how many compute on it."""

    index: int
    uuid: str
    used_bytes: int
    total_bytes: int
    processes: int = 0


@dataclass(slots=True, kw_only=True)
class DevicePool:
    """The devices of this machine that may be handed out.

    `variable` is what names them to a command. `tokens` are the words that it takes, each standing for one device;
    `states` those devices as they were at first, empty where only the variable tells that there are any.
    """

    vendor: str
    variable: str
    tokens: tuple[str, ...]
    states: Mapping[str, DeviceState] = field(default_factory=dict)

    def variables(self, tokens: tuple[str, ...]) -> dict[str, str]:
        """Return the variables with which a command sees exactly these devices.

        Indices count as the tools do only in the order of the PCI bus, which CUDA has to be told.
        """
        order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if self.vendor == "nvidia" else {}
        return {**order, self.variable: ",".join(tokens)}

    def unclean(self, token: str, env: Mapping[str, str]) -> str:
        """Return in words why a device is not clean now, or ""; asks the vendor's tool."""
        first = self.states.get(token)
        if first is None:
            return ""
        now = next((state for state in _states(self.vendor, env) if _is_same(state, first)), None)
        if now is None:
            return "the vendor's tool does not tell of it any more"
        if now.processes:
            return f"computed on by {counted(now.processes, 'process', 'processes')}"
        allowed = min(first.used_bytes, first.total_bytes // 2) + SLACK_BYTES
        if now.used_bytes > allowed:
            return f"{now.used_bytes // MIB} MiB of its memory are in use"
        return ""


def find_devices(env: Mapping[str, str]) -> DevicePool | None:
    """Return the devices that a command with this environment can see; None where there are none.

    A `…_VISIBLE_DEVICES` that is set already narrows them, and its words are handed on as they are: whoever
    started us (a person, Slurm) has chosen. Without a vendor's tool it alone tells.
    """
    for vendor, variable in (("nvidia", "CUDA_VISIBLE_DEVICES"), ("amd", "HIP_VISIBLE_DEVICES")):
        states = _states(vendor, env)
        if states:
            return _pool(vendor, variable, states, env)
    for vendor, variable in (("nvidia", "CUDA_VISIBLE_DEVICES"), ("amd", "HIP_VISIBLE_DEVICES")):
        words = _words(env.get(variable))
        if words:
            return DevicePool(vendor=vendor, variable=variable, tokens=words)
    return None


def _pool(vendor: str, variable: str, states: list[DeviceState], env: Mapping[str, str]) -> DevicePool | None:
    given = env.get(variable, env.get("CUDA_VISIBLE_DEVICES"))
    if given is None:
        named = {str(state.index): state for state in states}
    else:
        named = {}
        for word in _words(given):
            state = next((item for item in states if _names(word, item)), None)
            if state is None and not word.startswith("MIG-"):
                break  # as CUDA reads it: the first invalid word hides itself and all after it
            named[word] = (
                state if state is not None else DeviceState(index=-1, uuid="", used_bytes=0, total_bytes=0)
            )
    if not named:
        return None
    known = {word: state for word, state in named.items() if state.uuid}
    return DevicePool(vendor=vendor, variable=variable, tokens=tuple(named), states=known)


def _words(value: str | None) -> tuple[str, ...]:
    words = (word.strip() for word in (value or "").split(","))
    return tuple(dict.fromkeys(word for word in words if word and word not in ("-1", "NoDevFiles")))


def _names(word: str, state: DeviceState) -> bool:
    if word.isdigit():
        return int(word) == state.index
    return len(word) > 4 and state.uuid.lower().startswith(word.lower())


def _is_same(one: DeviceState, other: DeviceState) -> bool:
    return one.uuid == other.uuid


def _states(vendor: str, env: Mapping[str, str]) -> list[DeviceState]:
    return _nvidia(env) if vendor == "nvidia" else _amd(env)


def _nvidia(env: Mapping[str, str]) -> list[DeviceState]:
    answer = ask_tool(["nvidia-smi", _NVIDIA_QUERY, _FORMAT], env=env, timeout_s=TOOL_TIMEOUT_S)
    rows = [[cell.strip() for cell in line.split(",")] for line in (answer or "").splitlines()]
    rows = [row for row in rows if len(row) == 4 and row[0].isdigit() and row[1].startswith("GPU-")]
    if not rows:
        return []
    apps = ask_tool(["nvidia-smi", _NVIDIA_APPS, _FORMAT], env=env, timeout_s=TOOL_TIMEOUT_S) or ""
    busy = [line.partition(",")[0].strip() for line in apps.splitlines()]
    return [
        DeviceState(
            index=int(index),
            uuid=uuid,
            used_bytes=_mib(used),
            total_bytes=_mib(total),
            processes=busy.count(uuid),
        )
        for index, uuid, used, total in rows
    ]


def _mib(text: str) -> int:
    return int(text) * MIB if text.isdigit() else 0


def _amd(env: Mapping[str, str]) -> list[DeviceState]:
    argv = ["rocm-smi", "--showuniqueid", "--showmeminfo", "vram", "--json"]
    answer = ask_tool(argv, env=env, timeout_s=TOOL_TIMEOUT_S) or ""
    try:
        document = json.loads(answer[answer.find("{") :] or "{}")
    except (ValueError, RecursionError):
        return []
    cards = document.items() if isinstance(document, dict) else ()
    found = []
    for key, card in cards:
        place = re.fullmatch(r"card([0-9]{1,4})", key)
        if place and isinstance(card, dict):
            found.append(
                DeviceState(
                    index=int(place[1]),
                    uuid=str(card.get("Unique ID") or key),
                    used_bytes=_whole(card.get("VRAM Total Used Memory (B)")),
                    total_bytes=_whole(card.get("VRAM Total Memory (B)")),
                )
            )
    return sorted(found, key=lambda state: state.index)


def _whole(text: object) -> int:
    return int(str(text)) if re.fullmatch(r"[0-9]{1,18}", str(text)) else 0
