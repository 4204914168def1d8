"""What is said of coverage where the judged commit ends a threshold that policy still has.

The trusted threshold holds until the change has landed (DESIGN section 4), and the commit no longer measures: to
run its shards again is a circle.
"""

from __future__ import annotations

from collections.abc import Iterable

from gitledger.dataclass import replace
from gitledger.verdict.finding import Finding

__all__ = ["ending"]

_WAY = (
    "measure until then (pytest --cov): let one change end the threshold and a later one the measuring, each with "
    "--accept-shards"
)
"""What is green all the way; who lets the push through as it is needs none of it."""
_UNMEASURED = frozenset({"coverage-missing", "coverage-empty"})


def ending(findings: Iterable[Finding], source: str) -> tuple[Finding, ...]:
    """Return findings that tell of a threshold which the policy of `source` has and the judged commit doesn't.

    `source` is that ref as a person would type it, or "" where no threshold ends: then they stay as they are.
    """
    if not source:
        return tuple(findings)
    return tuple(_told(item, source) if item.code in _UNMEASURED and item.blocks else item for item in findings)


def _told(finding: Finding, source: str) -> Finding:
    since = f"coverage, since {source} still has a threshold; that this commit has none holds once it has landed"
    return replace(finding, expected=since, remedy=_WAY)
