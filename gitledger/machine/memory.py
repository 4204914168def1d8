"""How much memory this process and what it starts may take: the machine's, and what its cgroups allow.

Sources: proc(5) `meminfo`; cgroup v2 `memory.max`, `memory.current`, `memory.stat`
(Documentation/admin-guide/cgroup-v2.rst); cgroup v1 `memory.limit_in_bytes`, `memory.usage_in_bytes`
(Documentation/admin-guide/cgroup-v1/memory.rst). A limit of any cgroup above holds for all below it.
"""

from __future__ import annotations

from pathlib import Path

from gitledger.dataclass import dataclass
from gitledger.machine.oom import memory_counters

__all__ = ["Memory", "memory_now"]

_V2 = ("memory.max", "memory.current", "inactive_file")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """`total_bytes` is the most that can ever be had here, `free_bytes` what can be had now without swapping."""

    total_bytes: int
    free_bytes: int


def memory_now(proc: Path = Path("/proc")) -> Memory | None:
    """Return the memory that can be had; None where the system doesn't tell (then nothing is held against it)."""
    facts = _numbers(proc / "meminfo", unit=1024)
    total, free = facts.get("MemTotal:"), facts.get("MemAvailable:")
    if total is None or free is None:
        return None
    for folder, names in _cgroups(proc):
        limit, used = _number(folder / names[0]), _number(folder / names[1])
        if limit is None or used is None:
            continue
        # Clean pages of files are given up before anything is killed.
        spare = _numbers(folder / "memory.stat").get(names[2], 0)
        total, free = min(total, limit), min(free, max(0, limit - used + spare))
    return Memory(total_bytes=total, free_bytes=free)


def _cgroups(proc: Path) -> list[tuple[Path, tuple[str, str, str]]]:
    """Return the memory cgroups of this process, outwards to the roots of their hierarchies."""
    try:
        texts = [(proc / "self" / name).read_text("utf-8", "replace") for name in ("cgroup", "mountinfo")]
    except OSError:
        return []
    found = []
    for counter in memory_counters(*texts):
        names = _V2 if counter.name == "memory.events" else _V1
        folder = counter.parent
        while (folder / names[1]).exists():
            found.append((folder, names))
            folder = folder.parent
    return found


def _number(file: Path) -> int | None:
    """Return the number in a file; None for `max`, and where there is none."""
    try:
        text = file.read_text("ascii", "replace").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _numbers(file: Path, *, unit: int = 1) -> dict[str, int]:
    try:
        lines = file.read_text("ascii", "replace").splitlines()
    except OSError:
        return {}
    fields = (line.split() for line in lines)
    return {words[0]: int(words[1]) * unit for words in fields if len(words) > 1 and words[1].isdigit()}
