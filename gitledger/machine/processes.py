"""Processes of a run, found by descent, by the run's marker in their environment, and by what they have open.

On Linux; elsewhere none are found.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from gitledger.machine.keeper import descendants, read_file, state_and_parent
from gitledger.machine.parents import ancestors

__all__ = ["MARKER", "end_marked", "live_compilers", "marked", "openers", "sweep"]

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


def _pids() -> tuple[int, ...]:
    """Return all processes but this one."""
    proc = Path("/proc")
    if not (proc / "self").exists():
        return ()
    return tuple(
        int(entry.name) for entry in proc.iterdir() if entry.name.isdigit() and int(entry.name) != os.getpid()
    )


def marked(marker: str) -> tuple[int, ...]:
    """Return the living processes, this one left out, that carry a run's marker and can be read by us."""
    return tuple(pid for pid in _pids() if _carries(pid, marker.encode()))


def openers(file: Path, *, writing: bool = False) -> tuple[int, ...]:
    """Return the processes, this one left out, that have a file open (for writing), as far as we may see."""
    return tuple(pid for pid in _pids() if _has_open(pid, str(file), writing=writing))


def _has_open(pid: int, file: str, *, writing: bool) -> bool:
    """Tell whether a process has a file open; by its name, since looking at the files themselves may hang."""
    try:
        links = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    for link in links:
        try:
            is_it = str(link.readlink()) == file
        except OSError:
            continue
        if is_it and (not writing or _is_for_writing(pid, link.name)):
            return True
    return False


def _is_for_writing(pid: int, descriptor: str) -> bool:
    """Tell it by proc(5) `fdinfo`, whose flags are octal; the lowest two bits are the access mode (open(2))."""
    for line in read_file(f"/proc/{pid}/fdinfo/{descriptor}").splitlines():
        if line.startswith(b"flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False


def sweep(marker: str) -> None:
    """KILL every process that carries a run's marker until none is left (for five seconds at most)."""
    _kill(lambda pid: _carries(pid, marker.encode()))


def end_marked(marker: str, *, log: Path | None = None, grace_s: float = 2.0) -> int:
    """End the processes of a run whose driver and keepers are dead, by TERM and then by KILL; return their number.

    They are those that carry its marker, and those that write to its `log` and are none that this one descends
    from: a daemon may have cleared its environment.
    """
    above = frozenset(ancestors()) if log is not None else frozenset()

    def is_of_it(pid: int) -> bool:
        if _carries(pid, marker.encode()):
            return True
        return log is not None and pid not in above and _has_open(pid, str(log), writing=True)

    found = [pid for pid in _pids() if is_of_it(pid)]
    for pid in found:
        _signal_if(pid, is_of_it, signal.SIGTERM)
        _signal_if(pid, is_of_it, signal.SIGCONT)  # a stopped process takes no TERM
    until = time.monotonic() + grace_s
    while found and any(map(is_of_it, found)) and time.monotonic() < until:
        time.sleep(0.05)
    if found:
        _kill(is_of_it)
    return len(found)


def _kill(is_one: Callable[[int], bool]) -> None:
    until = time.monotonic() + SWEEP_S
    while (found := [pid for pid in _pids() if is_one(pid)]) and time.monotonic() < until:
        for pid in found:
            _signal_if(pid, is_one, signal.SIGKILL)
        time.sleep(0.01)


def _signal_if(pid: int, is_one: Callable[[int], bool], signum: int) -> None:
    """Signal through a descriptor of the process, so that a reused number can't hit a stranger."""
    if not hasattr(os, "pidfd_open"):
        return
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if is_one(pid):
            signal.pidfd_send_signal(fd, signum)
    except OSError:
        return
    finally:
        os.close(fd)
