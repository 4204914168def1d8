"""Plan: the dry run of the union, as rows (DESIGN sections 6 and 10)."""

from __future__ import annotations

from typing import Any

from gitledger.records.decode import format_time
from gitledger.verdict.select import Choice
from gitledger.verdict.union import Union

__all__ = ["VERDICTS", "describe_choice", "summarise"]

VERDICTS = ("fresh", "carryable", "stale")


def describe_choice(choice: Choice) -> dict[str, Any]:
    """Return the row of `plan --json` and `verify --json` for one shard.

    `from_commit`, `record` and `ended_at` name the receipt that stands, else the one that the reason speaks of.
    """
    about = choice.result or choice.about
    return {
        "attempts": [item.held.id for item in choice.attempts],
        "changed_paths": list(choice.changed_paths),
        "detail": choice.detail,
        "distance": choice.distance,
        "ended_at": format_time(about.held.ended_at) if about else None,
        "from_commit": about.commit if about else None,
        "name": choice.shard.key.name,
        "outcome": choice.result.held.receipt.outcome.value if choice.result else None,
        "reason": choice.reason,
        "record": about.held.id if about else None,
        "variant": choice.shard.key.variant,
        "verdict": choice.verdict,
    }


def summarise(union: Union) -> dict[str, int]:
    """Return how many shards are fresh, carryable and stale."""
    return {verdict: sum(choice.verdict == verdict for choice in union.choices) for verdict in VERDICTS}
