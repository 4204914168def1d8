"""What may stand at the end of a command line that somebody is typing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

import click

from gitledger.cli.output import Output
from gitledger.dataclass import dataclass, replace

__all__ = ["candidates"]

Candidate = tuple[str, str]
"""A word, and what it is; the latter may be empty."""

_BY_NAME = {
    "shard": "shards",
    "shards": "shards",
    "variant": "variants",
    "lane": "lanes",
    "policy_from": "refs",
    "commit": "refs",
    "what": "refs",
    "revisions": "refs",
    "remote": "remotes",
    "code": "codes",
    "topic": "topics",
    "recipe": "recipes",
}
"""What a parameter of that name takes, of any command: names of this repository, or of ours."""


@dataclass(slots=True)
class _Typed:
    """What stands before the word that is being typed."""

    folders: list[str] = field(default_factory=list)
    name: str | None = None
    command: click.Command | None = None
    waiting: click.Option | None = None
    given: set[str] = field(default_factory=set)
    arguments: int = 0
    is_over: bool = False


def candidates(root: click.Context, output: Output, words: Sequence[str]) -> list[Candidate]:
    """Return what may stand in place of the last word, which may be empty: nothing where files are meant."""
    *before, current = words
    typed = _read(root, before)
    for folder in typed.folders:
        output = replace(output, directory=(output.directory / folder).resolve())
    if typed.is_over:
        return []
    if typed.waiting is not None:
        return _fitting(_values(typed.waiting, output), current)
    head, equals, rest = current.partition("=")
    if equals and head.startswith("--"):
        option = _option(typed.command or root.command, head)
        values = _values(option, output) if option else ()
        return [(f"{head}={value}", about) for value, about in _fitting(values, rest)]
    if current.startswith("-"):
        return _fitting(_options(typed.command or root.command, typed.given), current)
    if typed.command is None:
        return _fitting(_commands(), current)
    argument = _argument(typed.command, typed.arguments)
    return _fitting(_values(argument, output) if argument else (), current)


def _read(root: click.Context, before: Sequence[str]) -> _Typed:
    """Return what the words before mean, as far as that can be told without running anything."""
    assert isinstance(root.command, click.Group)  # noqa: S101 - narrows the type
    typed = _Typed()
    for word in before:
        if typed.waiting is not None:
            if "-C" in typed.waiting.opts:
                typed.folders.append(word)
            typed.waiting = None
        elif word == "--":
            typed.is_over = True
        elif word.startswith("-") and word != "-":
            option = _option(typed.command or root.command, word.partition("=")[0])
            typed.given.update(() if option is None or option.multiple else (*option.opts, *option.secondary_opts))
            if option is not None and not option.is_flag and "=" not in word:
                typed.waiting = option
        elif typed.name is None:
            typed.name, typed.command = word, root.command.get_command(root, word)
            typed.is_over = typed.command is None
        else:
            typed.arguments += 1
    return typed


def _option(command: click.Command, name: str) -> click.Option | None:
    options = (item for item in command.params if isinstance(item, click.Option))
    return next((item for item in options if name in (*item.opts, *item.secondary_opts)), None)


def _argument(command: click.Command, place: int) -> click.Argument | None:
    arguments = [item for item in command.params if isinstance(item, click.Argument)]
    if place < len(arguments):
        return arguments[place]
    return arguments[-1] if arguments and arguments[-1].nargs == -1 else None


def _fitting(found: Iterator[Candidate] | Sequence[Candidate], start: str) -> list[Candidate]:
    return [(value, about) for value, about in found if value.startswith(start)]


def _commands() -> Iterator[Candidate]:
    from gitledger.cli.app import COMMANDS

    for name, (_, line) in COMMANDS.items():
        yield name, line


def _options(command: click.Command, given: set[str]) -> Iterator[Candidate]:
    """Yield the options that may still be given, long names first."""
    for option in command.params:
        if isinstance(option, click.Option):
            for name in sorted((*option.opts, *option.secondary_opts), key=lambda name: not name.startswith("--")):
                if name not in given:
                    yield name, option.help or ""
    yield "--help", "Show this message and exit."


def _values(parameter: click.Parameter, output: Output) -> Iterator[Candidate]:
    """Yield what a parameter takes, where that can be known."""
    kind = _BY_NAME.get(parameter.name or "")
    if isinstance(parameter.type, click.Choice):
        yield from ((str(choice), "") for choice in parameter.type.choices if choice != "words")
    elif kind == "codes":
        from gitledger.report.codes import read_codes

        yield from ((code, entry.chapter) for code, entry in read_codes().items())
    elif kind == "topics":
        from gitledger.cli.help import topics

        yield from topics()
    elif kind == "recipes":
        from gitledger.records.capability_recipes import BUILT_IN

        yield from ((name, "") for name in BUILT_IN)
    elif kind is not None:
        from gitledger.cli.world import enter
        from gitledger.errors import LedgerError
        from gitledger.workflows.words import words_here

        try:
            session = enter(output, offline=True)
        except LedgerError:
            return
        yield from ((word, "") for word in words_here(session, kind))
