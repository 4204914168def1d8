"""A remote that has branches and no default one: why, which is meant, and what mends it for everybody.

As a rule a bare repository was made with another name for its first branch than the one that was pushed.
"""

from __future__ import annotations

from collections.abc import Iterable

from gitledger.dataclass import dataclass
from gitledger.store.repository import Repository
from gitledger.store.unborn_head import unborn_head
from gitledger.wording import few, shell_word

__all__ = ["NoDefault", "no_default_of"]

_ASK_S = 10.0
"""How long a remote may take to say what its HEAD names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoDefault:
    """`cause` is a sentence without its end; `likely` the branch that is meant, `mend` how the server is told."""

    cause: str
    likely: str
    mend: str


def no_default_of(repository: Repository, remote: str, branches: Iterable[str]) -> NoDefault:
    """Return what is to be said of a remote with these branches, one at least, of which its HEAD names none."""
    names = sorted(branches)
    likely = _likely(names, repository.config("init.defaultBranch"))
    rest = [name for name in names if name != likely]
    there = f"{likely} (and {few(rest)})" if rest else likely
    unborn = unborn_head(repository, remote, timeout_s=_ASK_S)
    head = f"its HEAD says {unborn}, and there is {there}" if unborn else f"its HEAD is none; there is {there}"
    return NoDefault(
        cause=f"{remote} has branches and no default one: {head}",
        likely=likely,
        mend=(
            f"make {likely} the default branch there, in a forge's settings or in a bare repository by "
            f"`git symbolic-ref HEAD {shell_word(f'refs/heads/{likely}')}`"
        ),
    )


def _likely(branches: list[str], configured: str | None) -> str:
    """Return which of these branches is likely meant to be the default one."""
    usual = (name for name in (configured, "main", "master") if name in branches)
    return next((name for name in usual if name), branches[0])
