"""Which environments are held against each other, and what may not differ between them (DESIGN sections 6, 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gitledger.config.schema import MergeConfig
from gitledger.records.environment import Environment, Platform
from gitledger.records.ids import ShardKey

__all__ = ["ENVIRONMENT_KEYS", "Group", "difference", "group_of", "plain"]

Group = str | None
"""Shards whose environments are held against each other: one variant, or all that have none."""

_NO_GPU = "no GPU"

ENVIRONMENT_KEYS: dict[str, Callable[[Environment], object]] = {
    "python": lambda environment: environment.python,
    "platform": lambda environment: environment.platform,
    "pytest": lambda environment: environment.pytest,
    "gitledger": lambda environment: environment.gitledger,
    "coverage": lambda environment: environment.coverage,
    "gpu": lambda environment: (environment.gpu.vendor, *environment.gpu.names) if environment.gpu else (_NO_GPU,),
}
"""What `carry.environment` may name, and how each is read; None: the tool took no part in the run.

Only `gpu` knows no None: a run that saw no GPU is another run than one that saw one.
"""


def group_of(key: ShardKey, merge: MergeConfig) -> Group:
    """Return what an environment is compared within: all shards under `strict`, else one variant."""
    return "*" if merge.environment == "strict" else key.variant


def difference(one: Environment, others: Iterable[Environment], keys: Iterable[str]) -> str:
    """Return which of `keys` differ between `one` and any of the others, as text; "" where none does."""
    found = dict.fromkeys(text for other in others for text in _differences(one, other, keys))
    return "; ".join(found)


def _differences(one: Environment, other: Environment, keys: Iterable[str]) -> Iterator[str]:
    for key in keys:
        mine, theirs = ENVIRONMENT_KEYS[key](one), ENVIRONMENT_KEYS[key](other)
        if mine is not None and theirs is not None and mine != theirs:
            yield f"{key}: {plain(mine)} against {plain(theirs)}"


def plain(value: object) -> str:
    """Return a facet of an environment as a person would say it; text from outside is escaped."""
    if isinstance(value, Platform):
        value = (value.system, value.machine, value.libc or "unknown libc")
    if isinstance(value, tuple):
        return " ".join(map(plain, value))
    return ascii(value)[1:-1] if isinstance(value, str) else str(value)
