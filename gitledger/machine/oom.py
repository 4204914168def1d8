"""Whether the kernel's out-of-memory killer struck, read from the memory cgroup of a process.

Sources: cgroup v2, `memory.events`, key `oom_kill` (Documentation/admin-guide/cgroup-v2.rst), counted up the
hierarchy; cgroup v1, `memory.oom_control`, key `oom_kill` (Documentation/admin-guide/cgroup-v1/memory.rst).
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["OomWatch", "memory_counters", "read_counter"]


def read_counter(file: Path) -> int | None:
    """Return a cgroup's `oom_kill` count; None where the file or the key is missing."""
    try:
        lines = file.read_text("ascii", "replace").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(" ")
        if key == "oom_kill" and value.strip().isdigit():
            return int(value)
    return None


def _mounts(mountinfo: str) -> list[tuple[str, str, str]]:
    """Return (version, root, mount point) of each cgroup file system that may control memory (proc(5))."""
    found = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or not kind:
            continue
        if kind[0] == "cgroup2" or (kind[0] == "cgroup" and "memory" in kind[-1].split(",")):
            found.append(("v2" if kind[0] == "cgroup2" else "v1", fields[3], fields[4]))
    return found


def memory_counters(cgroups: str, mountinfo: str) -> tuple[Path, ...]:
    """Return the files that count OOM kills for a process, from its `/proc/PID/cgroup` and the mounts."""
    paths = {}
    for line in cgroups.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            paths["v2"] = path
        elif "memory" in controllers.split(","):
            paths["v1"] = path
    files = []
    for version, root, point in _mounts(mountinfo):
        if version in paths:
            inside = paths[version].removeprefix(root if root != "/" else "").strip("/")
            files.append(Path(point, inside, "memory.events" if version == "v2" else "memory.oom_control"))
    return tuple(files)


class OomWatch:
    """The counters of every memory cgroup that one process was seen in, and what they stood at then."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._text = ""
        self._base: dict[Path, int] = {}

    def observe(self, pid: int | str) -> None:
        """Note the process's cgroup (`pid` may be "self"); costs one small read where it hasn't changed."""
        try:
            text = (self._proc / str(pid) / "cgroup").read_text("utf-8", "replace")
            if text == self._text:
                return
            self._text = text
            mounts = (self._proc / "self" / "mountinfo").read_text("utf-8", "replace")
        except OSError:
            return
        for file in memory_counters(text, mounts):
            count = read_counter(file)
            if count is not None:
                self._base.setdefault(file, count)

    def struck(self) -> bool | None:
        """Return whether a counter rose since it was first seen; None where there is none to read."""
        counts = [(read_counter(file), base) for file, base in self._base.items()]
        read = [now > base for now, base in counts if now is not None]
        return any(read) if read else None
