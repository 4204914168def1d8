"""Findings that are of one kind, brought together: what they share is told once, and so is what mends them all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gitledger.dataclass import dataclass

if TYPE_CHECKING:
    from gitledger.verdict.finding import Finding

__all__ = ["RUN", "Together", "together"]

RUN = "git ledger run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Findings of one code that expect the same and are mended by the same.

    `found` are what was found, each with the subjects of which it holds.
    """

    code: str
    blocks: bool
    expected: str
    remedy: str
    found: tuple[tuple[str, tuple[str, ...]], ...]


def together(findings: Iterable[Finding], *, run: str = RUN) -> list[Together]:
    """Return findings by what mends them, in the order of the first of each.

    What mends several that each ask for a run of their shard is `run`, the command that runs what is stale.
    """
    alike: dict[tuple[str, bool, str, str], list[Finding]] = {}
    for finding in findings:
        mending = (finding.code, finding.blocks, finding.expected, _for_all(finding, run))
        alike.setdefault(mending, []).append(finding)
    return [
        Together(
            code=code,
            blocks=blocks,
            expected=expected,
            remedy=remedy if len(found) > 1 else found[0].remedy,
            found=_by_text(found),
        )
        for (code, blocks, expected, remedy), found in alike.items()
    ]


def _by_text(findings: Iterable[Finding]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    subjects: dict[str, dict[str, None]] = {}
    for finding in findings:
        subjects.setdefault(finding.gist or finding.found, {})[finding.subject] = None
    return tuple((text, tuple(names)) for text, names in subjects.items())


def _for_all(finding: Finding, run: str) -> str:
    """Return what mends a finding and others like it: one run of all that is stale, where it is a run of this."""
    from gitledger.verdict.select import REASONS

    record = f"git ledger record --shard {finding.subject}"
    return finding.remedy.replace(record, run) if finding.code in REASONS else finding.remedy
