"""What to say of an option that a command doesn't have: the near ones, and where else its wish is granted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches

import click

__all__ = ["no_such_option"]

NEAR = 0.7
"""How alike two names must be, their dashes apart: by those alone `--dirty` was taken for `--wait`."""
MAX_NAMED = 3
_BESIDE_EDITS = frozenset({"dirty", "allow-dirty", "force"})


def no_such_option(error: click.NoSuchOption) -> tuple[str, str]:
    """Return message and hint for an option that is none."""
    command = error.ctx.command if error.ctx is not None else None
    known = [name for item in command.params for name in item.opts] if command is not None else []
    near = _nearest(error.option_name, known)
    text = f"no option {error.option_name}" + (f"; did you mean {' or '.join(near)}?" if near else "")
    name = (error.ctx.info_name if error.ctx is not None and error.ctx.parent is not None else None) or ""
    return text, _elsewhere(name, error.option_name) or f"git ledger help {name}".rstrip()


def _nearest(typed: str, known: Iterable[str]) -> list[str]:
    """Return the long options that `typed` may be a misspelling or a beginning of."""
    by_word = {name.lstrip("-"): name for name in known if name.startswith("--")}
    word = typed.lstrip("-")
    begun = [other for other in by_word if other.startswith(f"{word}-")]
    near = get_close_matches(word, by_word, n=MAX_NAMED, cutoff=NEAR)
    return [by_word[other] for other in dict.fromkeys([*begun, *near])][:MAX_NAMED]


def _elsewhere(command: str, typed: str) -> str:
    """Return what grants a wish that is no option of ours; "" where we know of nothing."""
    from gitledger.config.schema import PolicyConfig

    word = typed.lstrip("-")
    if command == "run" and word in _BESIDE_EDITS:
        return "git ledger record --shard NAME (beside uncommitted edits it records a run as dirty)"
    policy = {item.name for item in fields(PolicyConfig)}
    key = next((name for name in (word.replace("-", "_"), f"allow_{word}") if name in policy), None)
    return (
        ""
        if key is None
        else f"set policy.{key} in .gitledger/config.yaml (`git ledger help policy` says what it does)"
    )
