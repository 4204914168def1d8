"""Durations and sizes as people write them: `2h`, `1h30m`, `500ms`, `12GiB`, `500MB`."""

from __future__ import annotations

import re

__all__ = ["parse_duration", "parse_size"]

_DURATION_PART = r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s|m|h|d)"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNIT_ORDER = ("d", "h", "m", "s", "ms")
_SIZE = r"\A([0-9]{1,15}(?:\.[0-9]{1,6})?) ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)\Z"
_BYTES = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}


def parse_duration(text: str) -> float:
    """Return the seconds that `text` spells: numbers with `d`, `h`, `m`, `s`, `ms`, largest unit first.

    Raises `ValueError` for anything else, a bare number and zero included.
    """
    parts = re.findall(_DURATION_PART, text)
    units = [unit for _, unit in parts]
    spelled = "".join(number + unit for number, unit in parts)
    if not parts or spelled != text or units != sorted(set(units), key=_UNIT_ORDER.index):
        raise ValueError("expected a duration, as 30s, 15m, 2h or 1h30m")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if seconds <= 0:
        raise ValueError("expected a duration longer than nothing")
    return seconds


def parse_size(text: str) -> int:
    """Return the bytes that `text` spells, as `12GiB` (2^30) or `12GB` (10^9).

    Raises `ValueError` for anything else: a bare `12G`, which tools read in both ways, and zero included.
    """
    match = re.match(_SIZE, text)
    if not match:
        raise ValueError("expected a size, as 512MiB, 12GiB or 12GB")
    size = round(float(match.group(1)) * _BYTES[match.group(2)])
    if size <= 0:
        raise ValueError("expected a size above zero")
    return size
