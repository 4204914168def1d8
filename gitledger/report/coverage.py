"""The coverage of a union as text: exact integers, the compared percentage, the threshold, what was left out."""

from __future__ import annotations

from gitledger.records.merged import CoverageClaim
from gitledger.records.threshold import decimals_of, parse_threshold, rounded
from gitledger.report.text import escaped, paint
from gitledger.verdict.coverage import CoverageUnion, percent
from gitledger.wording import counted

__all__ = ["coverage_lines"]

MAX_NAMES = 10


def coverage_lines(found: CoverageUnion, *, color: bool) -> list[str]:
    """Return what a union's coverage comes to; nothing where nobody measured and nobody asked."""
    if found.claim is not None:
        style = {True: "passed", False: "failed", None: "dim"}[found.claim.passed]
        lines = [paint(f"coverage: {_claim(found.claim, branch=found.branch)}", style, color=color)]
    elif found.faults:
        codes = ", ".join(dict.fromkeys(fault.code for fault in found.faults))
        lines = [paint(f"coverage: refused, there is no number to believe ({codes})", "failed", color=color)]
    elif any(item.code == "coverage-unjudged" for item in found.notes):
        lines = ["coverage: not judged, there is no number yet (coverage-unjudged)"]
    else:
        lines = ["coverage: no threshold, and not every shard is measured"] if found.notes else []
    for key, paths in found.dropped:
        named = ", ".join(escaped(path) for path in paths[:MAX_NAMES])
        more = f" and {len(paths) - MAX_NAMES} more" if len(paths) > MAX_NAMES else ""
        files = counted(len(paths), "file")
        lines.append(f"  {key} is carried, {files} dropped as changed since: {named}{more}")
    return lines


def _claim(claim: CoverageClaim, *, branch: bool) -> str:
    what = "lines and branches" if branch else "lines"
    text = f"{claim.covered}/{claim.total} {what}, {_percentages(claim)}"
    if claim.threshold is None:
        return f"{text}, no threshold"
    word = "passed" if claim.passed else "failed"
    return f"{text}, threshold {escaped(claim.threshold)}: {word}"


def _percentages(claim: CoverageClaim) -> str:
    """Return the percentage that the rule compares, and, where it was rounded, what it was rounded from."""
    decimals = claim.precision
    if claim.threshold is not None:
        decimals = max(decimals, decimals_of(parse_threshold(claim.threshold)))
    if not claim.total:
        return "nothing measured"
    from decimal import Decimal  # both are loaded by whoever shows a number
    from fractions import Fraction

    exact = Fraction(100 * claim.covered, claim.total)
    compared = rounded(claim.covered, claim.total, decimals)
    text = f"{Decimal(compared.numerator) / Decimal(compared.denominator):.{decimals}f}%"
    if compared == exact:
        return text
    if compared in (0, 100):  # never shown where it isn't so; a threshold of 100 takes nothing less either
        return f"{percent(claim)}…%"
    return f"{text} (rounded from {percent(claim)}…)"
