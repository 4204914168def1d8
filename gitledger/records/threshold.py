"""The one rule by which coverage meets its threshold, on exact integers, so that anybody can recompute it.

It is coverage.py's own since 7.17.1 (`should_fail_under`), on exact fractions in place of binary floats: the
percentage is rounded, half to even, to as many decimals as `precision` says, or as the threshold has if these are
more, and must not be less than the threshold. Only all of it meets 100. Nothing of nothing meets no threshold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # 3 ms that only those pay who measure
    from decimal import Decimal
    from fractions import Fraction

__all__ = ["decimals_of", "meets", "parse_threshold", "rounded"]


def parse_threshold(text: str) -> Decimal:
    """Return the threshold that `text` spells, more than 0 and at most 100; raises `ValueError`."""
    from decimal import Decimal, InvalidOperation

    try:
        value = Decimal(text.strip().removesuffix("%"))
    except InvalidOperation as error:
        raise ValueError("expected a number") from error
    if not value.is_finite() or not 0 < value <= 100:
        raise ValueError("expected more than 0 and at most 100")
    if decimals_of(value) > 20:
        raise ValueError("expected at most 20 decimals")
    return value


def decimals_of(value: Decimal) -> int:
    """Return the number of decimals that a threshold is spelled with, trailing zeros aside."""
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def rounded(covered: int, total: int, decimals: int) -> Fraction:
    """Return the percentage rounded half to even; `total` must not be 0."""
    from fractions import Fraction

    scale = 10**decimals
    return Fraction(round(Fraction(100 * covered * scale, total)), scale)


def meets(covered: int, total: int, threshold: str, precision: int) -> bool:
    """Tell whether `covered` of `total` meets the threshold; raises `ValueError` for a threshold that is none."""
    from fractions import Fraction

    value = parse_threshold(threshold)
    if total == 0:
        return False
    if value == 100:
        return covered == total
    return rounded(covered, total, max(precision, decimals_of(value))) >= Fraction(value)
