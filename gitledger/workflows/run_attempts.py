"""Attempts that a run may still start: what `policy.max_attempts` leaves, by the rule that verify goes by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gitledger.errors import LedgerError, PolicyError
from gitledger.records.ids import ShardKey
from gitledger.records.receipt import ShardReceipt
from gitledger.verdict.attempts import attempts_used
from gitledger.verdict.select import Choice
from gitledger.verdict.union import Union
from gitledger.wording import counted

__all__ = ["attempts_left", "may_retry", "overdrawn", "without_used_up"]

_FINAL = frozenset({"other-command", "head-moved", "extra-moved", "interrupted"})
"""Reasons that another attempt would only repeat."""


def attempts_left(union: Union, limit: int | None) -> dict[ShardKey, int | None]:
    """Return how many attempts each shard has left on the commit; None where policy sets no limit."""
    used = {field.shard.key: attempts_used(field.fresh) for field in union.fields}
    return {key: None if limit is None else max(0, limit - number) for key, number in used.items()}


def without_used_up(
    todo: Sequence[Choice], union: Union, limit: int | None
) -> tuple[tuple[Choice, ...], dict[ShardKey, LedgerError]]:
    """Return the shards that may be run, and why the others may not: verify would reject what came of it."""
    left = attempts_left(union, limit)
    faults: dict[ShardKey, LedgerError] = {}
    for choice in todo:
        key = choice.shard.key
        if left.get(key) == 0:
            attempts = counted(limit or 0, "attempt")
            text = f"{key} was not run: policy.max_attempts allows {attempts} a commit, and no more would count"
            faults[key] = PolicyError("attempts-used-up", text, "mend it and commit: a new commit counts anew")
    return tuple(choice for choice in todo if choice.shard.key not in faults), faults


def overdrawn(union: Union, asked: Iterable[ShardKey], limit: int | None) -> tuple[ShardKey, ...]:
    """Return the shards of which verify says `too-many-attempts`: of those asked for, or all once all stand."""
    wanted = set(asked)
    if all(choice.result is not None for choice in union.choices):
        wanted |= {choice.shard.key for choice in union.choices}
    return tuple(
        choice.shard.key
        for choice in union.choices
        if limit is not None and choice.shard.key in wanted and attempts_used(choice.attempts) > limit
    )


def may_retry(receipt: ShardReceipt, left: int | None) -> bool:
    """Tell whether another attempt could end better than this one, and policy would count it."""
    return (
        not receipt.is_green
        and not receipt.repo.dirty
        and not _FINAL.intersection(receipt.reasons)
        and (left is None or left > 0)
    )
