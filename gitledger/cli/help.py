"""`git ledger help`: the manual, in the terminal.

`git ledger --help` never reaches us: git takes it for `git help ledger` and looks for a man page.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from gitledger.cli.output import Output

_ALIASES = {"config": "configuration", "security-model": "security", "errors": "codes"}
_INTRODUCTION = """\
# Commands

This page is what `git ledger help --all` writes; `git ledger help COMMAND`, or `git ledger COMMAND -h`, shows one.
`git ledger --help` does not work: git takes it for `git help ledger` and looks for a man page.

Results go to stdout, messages to stderr. `--json` prints one document on stdout, also for an error:
`{"error": {"code", "exit_status", "hint", "message"}}`. An error is one line: what is wrong and where, its
[code](codes.md) in brackets, and what to try.

## Exit codes

| status | meaning |
|---|---|
| 0 | yes: done, passed, nothing to run |
| 1 | no: the verdict failed, the merge is not green or was refused, something is stale (`plan --exit-code`) |
| 2 | usage or configuration: nothing was judged and nothing ran |
| 3 | the ledger could not be written or published; nothing is lost locally |
| 70 | our own fault |
| 77 | skipped |
| 99 | inconclusive |
| 130 | interrupted |
| 141 | whoever read the output went away |

`run` exits with 0 where all that was asked for is green and the merge, if there was one, too; 1 where a shard or
the merge is not; 2 where the work tree became another than the commit's; 3 where a receipt was not stored; 99
where nothing failed and the machine could not run all; 128 and its number after a signal.

`record` exits as its command does: 128 and the number of a signal, 124 for a time-out; but 1 where the command
says 0 and the receipt is not green, and 3 where the receipt could not be stored (with `--best-effort`: as the
command even then). Its last line on stderr, and `--json`, tell which.

## Everywhere

"""


@click.command("help", short_help="The manual: a command, or a page")
@click.argument("topic", required=False)
@click.option("--all", "everything", is_flag=True, help="Every command, as Markdown (docs/reference/commands.md).")
@click.pass_context
def command(ctx: click.Context, topic: str | None, everything: bool) -> int:
    r"""Show the help of a command, or a page of the manual; without TOPIC, list both.

    \b
    git ledger help record
    git ledger help configuration
    """
    from difflib import get_close_matches

    from gitledger.cli.app import COMMANDS
    from gitledger.errors import UsageError

    output: Output = ctx.obj
    root = ctx.find_root()
    pages = _pages()
    if everything:
        output.result(_INTRODUCTION + "\n".join(_reference(root)))
        return 0
    if topic is None:
        listed = "\n".join(f"  {name:20} {_title(page)}" for name, page in pages.items())
        output.result(f"{root.get_help()}\n\nManual (git ledger help PAGE):\n{listed}")
        return 0
    if topic in COMMANDS:
        output.result(_context(root, topic).get_help())
        return 0
    name = _ALIASES.get(topic, topic)
    if name not in pages:
        near = get_close_matches(topic, [*COMMANDS, *pages, *_ALIASES], n=1)
        raise UsageError("unknown-topic", f"no help on {topic!a}", f"git ledger help {near[0] if near else ''}")
    output.result(pages[name].read_text("utf-8"))
    return 0


def _context(root: click.Context, name: str) -> click.Context:
    """Return the context in which the help of a command reads as if it had been called."""
    assert isinstance(root.command, click.Group)  # noqa: S101 - narrows the type
    found = root.command.get_command(root, name)
    assert found is not None  # noqa: S101 - narrows the type: every name of COMMANDS is a command
    return click.Context(found, info_name=name, parent=root)


def _reference(root: click.Context) -> Iterator[str]:
    """Yield the lines of the reference: options that stand everywhere, then each command with its own."""
    from gitledger.cli.app import COMMANDS

    yield from _options(root.command.params)
    everywhere = {parameter.name for parameter in root.command.params}
    for name, (_, line) in COMMANDS.items():
        context = _context(root, name)
        usage = " ".join(context.command.collect_usage_pieces(context))
        yield from ("", f"## {name}", "", f"{line}.", "", "```text", f"git ledger {name} {usage}", "```", "")
        yield from _paragraphs(context.command.help or "")
        yield from _options([item for item in context.command.params if item.name not in everywhere])


def _paragraphs(text: str) -> Iterator[str]:
    r"""Yield a help text as Markdown; what stands behind click's `\b` keeps its lines."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield from ("```text", *paragraph.split("\n")[1:], "```", "")
        else:
            yield from (*paragraph.split("\n"), "")


def _options(parameters: list[click.Parameter]) -> Iterator[str]:
    options = [item for item in parameters if isinstance(item, click.Option)]
    if not options:
        return
    yield from ("| option | meaning |", "|---|---|")
    for option in options:
        names = " / ".join(", ".join(group) for group in (option.opts, option.secondary_opts) if group)
        yield f"| `{names}{_value(option)}` | {option.help} |"


def _value(option: click.Option) -> str:
    """Return what an option takes, as it is written behind its name."""
    if option.is_flag:
        return ""
    if isinstance(option.type, click.Choice):
        return " " + r"\|".join(map(str, option.type.choices))
    return f" {option.metavar or 'N'}"


def _pages() -> Mapping[str, Traversable]:
    """Return the pages of the manual by name: those packaged with us, or in a clone those of `docs/`."""
    packaged = files("gitledger") / "_docs"
    root: Traversable = packaged if packaged.is_dir() else Path(__file__).parents[2] / "docs"
    found = {}
    for folder in (root, root / "how-to", root / "reference"):
        if folder.is_dir():
            for page in sorted(folder.iterdir(), key=lambda item: item.name):
                if page.name.endswith(".md"):
                    found[page.name.removesuffix(".md")] = page
    return found


def _title(page: Traversable) -> str:
    first = page.read_text("utf-8").partition("\n")[0]
    return first.lstrip("# ").strip()
