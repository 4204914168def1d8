"""Findings as annotations of a GitHub job: workflow commands, no more of them than are shown.

GitHub shows ten errors and ten warnings of a step, and drops the others without a word; so the last one says how
many there are. Escapes as in "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gitledger.verdict.finding import Finding
from gitledger.wording import counted, suggested

__all__ = ["MAX_ANNOTATIONS", "annotation_lines", "silenced"]

MAX_ANNOTATIONS = 10
"""Annotations of one kind that a step shows."""
_LINE = re.compile(r"\Aline (\d+)\b")
_MAX_TEXT = 1000


def annotation_lines(findings: Sequence[Finding], *, file: str | None = None) -> list[str]:
    """Return a command for each finding that blocks; `file` is the workflow that they speak of."""
    blocking = [finding for finding in findings if finding.blocks]
    shown = blocking if len(blocking) <= MAX_ANNOTATIONS else blocking[: MAX_ANNOTATIONS - 1]
    lines = [_command(finding, file) for finding in shown]
    if len(shown) < len(blocking):
        lines.append(
            f"::error title=git ledger::{counted(len(blocking) - len(shown), 'more finding')}, in this step's log"
        )
    return lines


def silenced(text: str, token: str) -> str:
    """Return a text that others had a hand in, so that no line of it is taken for a workflow command."""
    return f"::stop-commands::{token}\n{text.rstrip()}\n::{token}::\n"


def _command(finding: Finding, file: str | None) -> str:
    properties = [("title", f"git ledger: {finding.code}")]
    if file is not None:
        properties.insert(0, ("file", file))
        if line := _LINE.match(finding.subject):
            properties.insert(1, ("line", line[1]))
    message = f"{finding.subject}: {finding.found}; expected {finding.expected}"
    message += suggested(finding.remedy)
    return f"::error {','.join(f'{name}={_property(value)}' for name, value in properties)}::{_data(message)}"


def _data(text: str) -> str:
    return _escaped(text[:_MAX_TEXT], "%\r\n")


def _property(text: str) -> str:
    return _escaped(text, "%\r\n:,")


def _escaped(text: str, special: Iterable[str]) -> str:
    wanted = set(special)
    return "".join(f"%{ord(char):02X}" if char in wanted else char for char in text)
