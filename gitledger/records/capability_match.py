"""What a lane's `match` may speak of, and when an observed value is the declared one (DESIGN section 9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gitledger.records.capability_place import DeviceClaim, OsClaim, RuntimeClaim, TorchClaim

__all__ = ["MATCHABLE", "agrees", "disagreements", "observe"]

Place = tuple[DeviceClaim, TorchClaim, str | None, OsClaim, RuntimeClaim]
"""Device, torch, driver, system and interpreter: all that a lane can be told by."""


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


MATCHABLE: Mapping[str, Callable[[Place], str | None]] = {
    "device.kind": lambda place: place[0].kind,
    "device.name": lambda place: place[0].name,
    "device.arch": lambda place: place[0].arch,
    "device.count": lambda place: _text(place[0].count),
    "device.total_memory_bytes": lambda place: _text(place[0].total_memory_bytes),
    "torch.version": lambda place: place[1].version,
    "torch.git": lambda place: place[1].git,
    "torch.cuda": lambda place: place[1].cuda,
    "torch.hip": lambda place: place[1].hip,
    "driver": lambda place: place[2],
    "os.name": lambda place: place[3].name,
    "os.version": lambda place: place[3].version,
    "os.kernel": lambda place: place[3].kernel,
    "os.machine": lambda place: place[3].machine,
    "runtime.python": lambda place: place[4].python,
    "runtime.libc": lambda place: place[4].libc,
}
"""The fields that a lane may be told by; a lane that matches anything else matches nothing."""

_VERSIONS = frozenset(
    {
        "torch.version",
        "torch.cuda",
        "torch.hip",
        "driver",
        "os.version",
        "os.kernel",
        "runtime.python",
        "runtime.libc",
    }
)
"""Fields that hold versions: `6.4` also stands for `6.4.43482-0f2d60242`, and not for `6.40`."""
_BREAKS = (".", "+", "-")


def agrees(field: str, declared: str, observed: str | None) -> bool:
    """Tell whether an observed value is the declared one; what could not be learnt is not."""
    if observed is None or not declared or field not in MATCHABLE:
        return False
    if observed == declared:
        return True
    return field in _VERSIONS and observed.startswith(declared) and observed[len(declared)] in _BREAKS


def observe(declared: Mapping[str, str], place: Place) -> dict[str, str | None]:
    """Return what was found in place of each declared field; None where it was not learnt, or is no field."""
    return {field: MATCHABLE[field](place) if field in MATCHABLE else None for field in declared}


def disagreements(declared: Mapping[str, str], place: Place) -> list[str]:
    """Return each declared field that was found otherwise, as `field: declared X, observed Y`."""
    found = observe(declared, place)
    return [
        f"{field}: declared {text}, observed {found[field] or 'nothing'}"
        if field in MATCHABLE
        else f"{field}: not a field of a report"
        for field, text in declared.items()
        if not agrees(field, text, found[field])
    ]
