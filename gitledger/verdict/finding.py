"""Findings and verdicts: reasons as values, so that all of them are said at once (DESIGN section 1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gitledger.dataclass import dataclass

__all__ = ["Finding", "Verdict", "blocking", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One reason for or against, addressed to a person.

    `code` is a stable word (`git ledger explain CODE`), `rule` the section of the design that it comes from,
    `subject` the shard, record, key or path concerned, `remedy` the next command ("" where there is none). `gist`
    is what people are told once for all subjects that share it ("": what was found).
    """

    code: str
    rule: str
    subject: str
    expected: str
    found: str
    remedy: str
    blocks: bool
    gist: str = ""

    def encode(self) -> dict[str, Any]:
        """Return the JSON object of `verify --json`."""
        return {
            "blocks": self.blocks,
            "code": self.code,
            "expected": self.expected,
            "found": self.found,
            "remedy": self.remedy,
            "rule": self.rule,
            "subject": self.subject,
        }


def blocking(
    code: str, rule: str, subject: object, *, expected: str, found: str, remedy: str = "", gist: str = ""
) -> Finding:
    """Return a finding that keeps the verdict from passing."""
    return _finding(code, rule, subject, (expected, found, remedy, gist), blocks=True)


def note(code: str, rule: str, subject: object, *, expected: str, found: str, remedy: str = "") -> Finding:
    """Return a finding that is reported and blocks nothing."""
    return _finding(code, rule, subject, (expected, found, remedy, ""), blocks=False)


def _finding(code: str, rule: str, subject: object, words: tuple[str, str, str, str], *, blocks: bool) -> Finding:
    expected, found, remedy, gist = words
    return Finding(
        code=code,
        rule=rule,
        subject=str(subject),
        expected=expected,
        found=found,
        remedy=remedy,
        blocks=blocks,
        gist=gist,
    )


@dataclass(frozen=True, slots=True)
class Verdict:
    """Passes only when something was judged and nothing blocks."""

    judged: int
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Tell whether it passed; a verdict over nothing did not."""
        return self.judged > 0 and not any(finding.blocks for finding in self.findings)

    @classmethod
    def over(cls, judged: int, findings: Iterable[Finding]) -> Verdict:
        """Return the verdict over `judged` shards, blocking findings first, otherwise in the order given."""
        return cls(judged, tuple(sorted(findings, key=lambda finding: not finding.blocks)))
