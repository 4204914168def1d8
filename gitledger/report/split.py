"""What `git ledger split` says: parts, faults, advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gitledger.report.text import escaped, finding_lines, paint, table
from gitledger.verdict.finding import Finding
from gitledger.wording import counted

if TYPE_CHECKING:
    from gitledger.suites.advise import Advice

__all__ = ["advice_text", "check_text"]


def check_text(
    parts: Sequence[tuple[str, int, int, float]],
    findings: Sequence[Finding],
    orphans: Sequence[str],
    *,
    passed: bool,
    color: bool,
) -> str:
    """Return the parts (name, files, tests, seconds), every finding, and the tests of no shard."""
    rows = [
        (name, _count(files, "file"), _count(tests, "test"), f"{seconds:.1f} s")
        for name, files, tests, seconds in parts
    ]
    lines = [*table(rows, indent="  "), *finding_lines(findings, color=color)]
    lines += [f"    {escaped(name)}" for name in orphans[:100]]
    if len(orphans) > 100:
        lines.append(f"    and {len(orphans) - 100} more")
    word = "passed" if passed else "failed"
    lines.append(paint(f"split: {word}", word, color=color))
    return "\n".join(lines) + "\n"


def advice_text(found: Mapping[str, Advice], parts: Mapping[str, int]) -> str:
    """Return, for each shard, fixed and divisible time and what another number of parts would take."""
    lines = []
    for name, advice in found.items():
        now = advice.longest_us.get(parts[name])
        lines.append(
            f"{name}: {_seconds(advice.fit.fixed_us)} fixed in every part, "
            f"{_seconds(advice.divisible_us)} that divides (from {counted(advice.runs, 'run')})"
        )
        for number, longest in sorted(advice.longest_us.items()):
            change = "" if now is None or number == parts[name] else f", {_change(longest - now)}"
            mark = "now" if number == parts[name] else ""
            lines.append(
                f"  {counted(number, 'part')}: the longest takes {_seconds(longest)}{change} {mark}".rstrip()
            )
        lines.append(f"  advice: {_advised(advice, parts[name])}")
    return "\n".join(lines) + "\n"


WORTH = 0.1
"""The share of the longest part's time from which on another number of parts is worth it."""


def _advised(advice: Advice, parts: int) -> str:
    """Return what to do about the number of parts."""
    if advice.files < parts:
        most = "take `split` out" if advice.files < 2 else f"write `split: {advice.files}`"
        return f"its tests lie in {counted(advice.files, 'file')}, and a part is whole files: {most}"
    now = advice.longest_us[parts]
    fewer, more = advice.longest_us.get(parts - 1), advice.longest_us.get(parts + 1)
    if more is not None and now - more > WORTH * now:
        return f"write `split: {parts + 1}`, by which the longest part takes {_change(more - now)}"
    if fewer is not None and fewer - now < WORTH * now:
        one_less = "take `split` out" if parts == 2 else f"write `split: {parts - 1}`"
        return f"{one_less}: the longest part takes hardly more, and there is one start less"
    return f"leave it at {counted(parts, 'part')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _seconds(value_us: int) -> str:
    return f"{value_us / 10**6:.1f} s"


def _change(value_us: int) -> str:
    return f"{_seconds(abs(value_us))} {'more' if value_us > 0 else 'less'}"
