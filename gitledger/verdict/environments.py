"""Which environments are held against each other, and what may not differ between them (DESIGN sections 6, 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gitledger.config.schema import MergeConfig
from gitledger.records.environment import Environment, Platform
from gitledger.records.ids import ShardKey

__all__ = ["ENVIRONMENT_KEYS", "Group", "difference", "group_of", "plain"]

Group = str | None
"""Shards whose environments are held against each other: one variant, or all that have none."""

NO_GPU = "no GPU"


def _gpu(*names: str) -> Callable[[Environment], object]:
    """Return a reader of fields of the GPU data; a run that saw no GPU is another run than one that saw one."""

    def read(environment: Environment) -> object:
        gpu = environment.gpu
        return (NO_GPU,) if gpu is None else tuple(_known(getattr(gpu, name)) for name in names)

    return read


def _platform(name: str) -> Callable[[Environment], object]:
    return lambda environment: _known(getattr(environment.platform, name))


def _known(value: object) -> object:
    return "unknown" if value is None else value


ENVIRONMENT_KEYS: dict[str, Callable[[Environment], object]] = {
    "python": lambda environment: environment.python,
    "platform": lambda environment: environment.platform,
    "platform.system": _platform("system"),
    "platform.machine": _platform("machine"),
    "platform.libc": _platform("libc"),
    "pytest": lambda environment: environment.pytest,
    "gitledger": lambda environment: environment.gitledger,
    "coverage": lambda environment: environment.coverage,
    "gpu": _gpu("vendor", "names"),
    "gpu.vendor": _gpu("vendor"),
    "gpu.names": _gpu("names"),
    "gpu.uuids": _gpu("uuids"),
    "gpu.memory_bytes": _gpu("memory_bytes"),
    "gpu.driver": _gpu("driver"),
    "gpu.runtime": _gpu("runtime"),
}
"""What `carry.environment` may name, and how each is read.

None, of Python, pytest or coverage alone: the tool took no part in the run, so there is nothing to agree in. What
should be known of a machine and isn't (`unknown`) agrees with nothing known.
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
        return " ".join(map(plain, value)) or "none"
    return ascii(value)[1:-1] if isinstance(value, str) else str(value)
