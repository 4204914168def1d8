"""Which run may start now: by the memory and the GPUs that runs declare, and by what this machine has free.

What our own runs hold is waited for as long as it takes. What somebody else holds (another program's memory, a
device that isn't clean yet) is waited for within bounds, and then named as the machine's fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from gitledger.dataclass import dataclass
from gitledger.machine.devices import DevicePool
from gitledger.machine.memory import Memory
from gitledger.wording import counted

__all__ = ["Admission", "Blocked", "Grant", "Need"]

GIB = 1 << 30
ASK_EVERY_S = 1.0
"""How often a machine that has nothing free is asked again: a vendor's tool takes seconds on some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a run declares: memory in bytes, and a number of GPUs."""

    memory_bytes: int = 0
    gpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a run was given: `variables` tell its command which devices are its own."""

    need: Need = Need()
    devices: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a run can't start now. `is_final`: it never will here, or has been waited for long enough."""

    why: str
    is_final: bool = False


@dataclass(slots=True, kw_only=True)
class Admission:
    """Gives and takes back. `memory` and `clock` (monotonic seconds) are asked whenever that matters."""

    env: Mapping[str, str]
    memory: Callable[[], Memory | None]
    devices: DevicePool | None
    wait_s: float
    clock: Callable[[], float]
    _held: list[Grant] = field(default_factory=list)
    _budget: int | None = None
    _since: dict[str, float] = field(default_factory=dict)
    _asked: dict[str, tuple[float, str]] = field(default_factory=dict)

    def ask(self, name: str, need: Need) -> Grant | Blocked:
        """Return what the run `name` may have now, or why not."""
        reason = self._never(need)
        if reason:
            return Blocked(reason, is_final=True)
        is_ours, reason = self._memory(need)
        tokens: tuple[str, ...] = ()
        if not reason and need.gpus:
            is_ours, reason, tokens = self._pick(need.gpus)
        if reason:
            return self._blocked(name, reason, is_ours=is_ours)
        self._since.pop(name, None)
        variables = self.devices.variables(tokens) if self.devices and tokens else {}
        grant = Grant(need=need, devices=tokens, variables=variables)
        self._held.append(grant)
        return grant

    def take_back(self, grant: Grant) -> None:
        """Free what a run held; whether its devices are clean again is looked at when they are given next."""
        self._held.remove(grant)
        for token in grant.devices:
            self._asked.pop(token, None)

    def _never(self, need: Need) -> str:
        count = len(self.devices.tokens) if self.devices else 0
        if need.gpus > count:
            return f"it declares {counted(need.gpus, 'GPU')}, and {count} can be seen here"
        memory = self.memory() if need.memory_bytes else None
        if memory is not None and need.memory_bytes > memory.total_bytes:
            return (
                f"it declares {_gib(need.memory_bytes)} of memory, and {_gib(memory.total_bytes)} can be had here"
            )
        return ""

    def _blocked(self, name: str, why: str, *, is_ours: bool) -> Blocked:
        if is_ours:
            self._since.pop(name, None)
            return Blocked(why)
        now_s = self.clock()
        waited_s = now_s - self._since.setdefault(name, now_s)
        if waited_s >= self.wait_s:
            return Blocked(f"{why}, after {waited_s:.0f} s", is_final=True)
        return Blocked(why)

    def _memory(self, need: Need) -> tuple[bool, str]:
        """Return whether our own runs are in the way, and in words why there is not enough ("" where there is).

        While none of ours holds memory, what is free now is what all of ours may share until that is so again:
        what a run has declared and not yet taken up is not free.
        """
        if not need.memory_bytes:
            return False, ""
        held = sum(grant.need.memory_bytes for grant in self._held)
        if not held or self._budget is None:
            memory = self.memory()
            self._budget = None if memory is None else memory.free_bytes
        if self._budget is None or held + need.memory_bytes <= self._budget:
            return False, ""
        wanted, left = _gib(need.memory_bytes), _gib(max(0, self._budget - held))
        return bool(held), f"waits for {wanted} of memory, {left} are free"

    def _pick(self, count: int) -> tuple[bool, str, tuple[str, ...]]:
        pool = self.devices
        if pool is None:
            return False, "no GPU can be seen here", ()
        taken = {token for grant in self._held for token in grant.devices}
        free = [token for token in pool.tokens if token not in taken]
        if len(free) < count:
            return True, f"waits for {counted(count, 'GPU')}, {len(free)} free", ()
        clean, faults = [], []
        for token in free:
            fault = self._fault(pool, token)
            if fault:
                faults.append(f"GPU {token}: {fault}")
            else:
                clean.append(token)
            if len(clean) == count:
                return False, "", tuple(clean)
        return bool(taken) and len(clean) + len(taken) >= count, "; ".join(faults), ()

    def _fault(self, pool: DevicePool, token: str) -> str:
        """Return why a device isn't clean, asked at most once a second; a clean one is asked again each time."""
        now_s = self.clock()
        asked_s, fault = self._asked.get(token, (float("-inf"), ""))
        if not fault or now_s - asked_s >= ASK_EVERY_S:
            fault = pool.unclean(token, self.env)
            self._asked[token] = (now_s, fault)
        return fault


def _gib(number: int) -> str:
    return f"{number / GIB:.1f} GiB"
