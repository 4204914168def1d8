"""Processes of a run, found by descent and by the run's marker in their environment (Linux; elsewhere none)."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from gitledger.machine.keeper import descendants, read_file, state_and_parent

__all__ = ["MARKER", "end_marked", "live_compilers", "marked", "sweep"]

MARKER = "GITLEDGER_RUN"  # ids of the runs that a process belongs to, outermost first, joined by ":"
SWEEP_S = 5.0
# As proc(5) `comm` names them, which is cut at 15 characters. Drivers that only wait for these (ninja, make) are
# not among them: a build is alive while something compiles.
COMPILERS = frozenset(
    (
        *(
            "as",
            "cc1",
            "cc1plus",
            "clang",
            "clang++",
            "collect2",
            "f951",
            "icpx",
            "icx",
            "llc",
            "lto1",
            "opt",
            "rustc",
        ),
        *("cicc", "cudafe++", "fatbinary", "hipcc", "nvcc", "nvlink", "ptxas"),
        *("ld", "ld.bfd", "ld.gold", "ld.lld", "lld", "mold"),
    )
)


def live_compilers(root: int) -> tuple[str, ...]:
    """Return the compilers and linkers that run among a process's descendants, stopped ones left out."""
    found = []
    for pid in descendants(root):
        name = read_file(f"/proc/{pid}/comm").decode("utf-8", "replace").strip()
        if (name in COMPILERS or name.startswith("clang-")) and state_and_parent(pid)[0] not in ("T", "t"):
            found.append(name)
    return tuple(found)


def _carries(pid: int, marker: bytes) -> bool:
    for variable in read_file(f"/proc/{pid}/environ").split(b"\0"):
        name, _, value = variable.partition(b"=")
        if name == MARKER.encode() and marker in value.split(b":"):
            return state_and_parent(pid)[0] not in ("Z", "X", "")
    return False


def marked(marker: str) -> tuple[int, ...]:
    """Return the living processes, this one left out, that carry a run's marker and can be read by us."""
    proc = Path("/proc")
    if not (proc / "self").exists():
        return ()
    pids = (int(entry.name) for entry in proc.iterdir() if entry.name.isdigit())
    return tuple(pid for pid in pids if pid != os.getpid() and _carries(pid, marker.encode()))


def sweep(marker: str) -> None:
    """KILL every process that carries a run's marker until none is left (for five seconds at most)."""
    until = time.monotonic() + SWEEP_S
    while (found := marked(marker)) and time.monotonic() < until:
        for pid in found:
            _signal_if_marked(pid, marker, signal.SIGKILL)
        time.sleep(0.01)


def end_marked(marker: str, *, grace_s: float = 2.0) -> int:
    """End every process that carries a run's marker, by TERM and then by KILL; return how many there were."""
    found = marked(marker)
    for pid in found:
        _signal_if_marked(pid, marker, signal.SIGTERM)
        _signal_if_marked(pid, marker, signal.SIGCONT)  # a stopped process takes no TERM
    until = time.monotonic() + grace_s
    while found and marked(marker) and time.monotonic() < until:
        time.sleep(0.05)
    if found:
        sweep(marker)
    return len(found)


def _signal_if_marked(pid: int, marker: str, signum: int) -> None:
    """Signal through a descriptor of the process, so that a reused number can't hit a stranger."""
    if not hasattr(os, "pidfd_open"):
        return
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if _carries(pid, marker.encode()):
            signal.pidfd_send_signal(fd, signum)
    except OSError:
        return
    finally:
        os.close(fd)
