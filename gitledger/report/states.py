"""What a report shows for a shard at a commit: one word for what `verify` made of it.

The rules have decided before anything gets here. What is shown as standing, `passed` or `carried`, is what they
let stand and nothing that blocks speaks against; all else has a word of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from gitledger.records.ids import ShardKey

if TYPE_CHECKING:
    from gitledger.verdict.finding import Finding
    from gitledger.verdict.select import Choice

__all__ = ["GLYPHS", "STANDING", "STATES", "blocking_codes", "cell_state", "subjects_of"]

GLYPHS = {
    "passed": "✓",
    "carried": "○",
    "failed": "✗",
    "error": "!",
    "incomplete": "◐",
    "rejected": "⊘",
    "stale": "~",
    "missing": "·",
    "unknown": "?",
}
"""Each state with the sign that says it without colour."""
STATES = tuple(GLYPHS)
STANDING = frozenset({"passed", "carried"})
_REFUSED = frozenset(
    {
        "coverage-missing",
        "dirty",
        "duplicate-tests",
        "future",
        "leaky",
        "malformed",
        "other-command",
        "policy",
        "revoked",
        "untrusted",
        "unwitnessed",
    }
)
"""Reasons for which there is a receipt, and it doesn't count."""


def cell_state(choice: Choice, against: Collection[str]) -> str:
    """Return the state of a shard; `against` are the codes of findings about it that block the verdict.

    `failed`, `error` and `incomplete` are how the run ended that stands against it, on this commit or an older one
    with the same inputs; `rejected`: something was recorded that does not count; `missing`: nothing ever was;
    `unknown`: a shallow clone can't tell.
    """
    if choice.verdict in ("fresh", "carryable"):
        if against:
            return "rejected"
        return "passed" if choice.verdict == "fresh" else "carried"
    if choice.reason in ("not-green", "incomplete"):
        about = choice.result or choice.about
        ended = "failed" if about is None else about.held.receipt.outcome.value
        return "failed" if ended in STANDING else ended
    if choice.reason in _REFUSED:
        return "rejected"
    return {"never-recorded": "missing", "history-cut": "unknown"}.get(choice.reason, "stale")


def blocking_codes(choices: Iterable[Choice], findings: Iterable[Finding]) -> dict[ShardKey, tuple[str, ...]]:
    """Return by shard the codes of the findings about it that block; one about a split is about all its parts."""
    by_subject: dict[str, list[str]] = {}
    for finding in findings:
        if finding.blocks:
            by_subject.setdefault(finding.subject, []).append(finding.code)
    found = {}
    for choice in choices:
        told = tuple(dict.fromkeys(code for name in subjects_of(choice) for code in by_subject.get(name, ())))
        if told:
            found[choice.shard.key] = told
    return found


def subjects_of(choice: Choice) -> list[str]:
    """Return what findings about a shard call it: its key, and that of the split that it is a part of."""
    key, split = choice.shard.key, choice.shard.split
    if split is None:
        return [str(key)]
    base = key.name.removesuffix(f"-{split.index}-of-{split.total}")
    return [str(key), str(ShardKey(base, key.variant))]
