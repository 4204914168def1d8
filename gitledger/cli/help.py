"""`git ledger help`: the manual, in the terminal.

`git ledger --help` never reaches us: git takes it for `git help ledger` and runs `man git-ledger`, which finds our
page beside most installations (`man.py`); this works everywhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from gitledger.cli.man import man_page
from gitledger.cli.output import Output

_ALIASES = {"config": "configuration", "security-model": "security", "errors": "codes"}
_INTRODUCTION = """\
# Commands

This page is what `git ledger help --all` writes; `git ledger help COMMAND`, or `git ledger COMMAND -h`, shows one.
`git ledger --help` is git's: it runs `man git-ledger`, where a
[manual page](../how-to/install.md#the-manual-page) can be found.

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
@click.option("--man", "as_man", is_flag=True, help="Every command, as a manual page (git-ledger.1).")
@click.option("--install-man", is_flag=True, help="Write the manual page where `man` looks in your home.")
@click.pass_context
def command(ctx: click.Context, topic: str | None, everything: bool, as_man: bool, install_man: bool) -> int:
    r"""Show the help of a command, a page of the manual, or a JSON Schema; without TOPIC, list them.

    \b
    git ledger help record
    git ledger help configuration
    git ledger help schemas/plan
    git ledger help --install-man       where `git ledger --help` finds no page
    """
    from gitledger.errors import UsageError

    output: Output = ctx.obj
    root = ctx.find_root()
    asked = [topic is not None, everything, as_man, install_man]
    if sum(asked) > 1:
        raise UsageError(
            "usage", "a topic, --all, --man and --install-man are four questions", "ask one at a time"
        )
    if everything:
        output.result(_INTRODUCTION + "\n".join(_reference(root)))
    elif as_man or install_man:
        text = man_page(root, _contexts(root))
        if install_man:
            _install(output, text)
        else:
            output.result(text)
    elif topic is None:
        listed = "\n".join(f"  {name:20} {_title(page)}" for name, page in _pages().items())
        output.result(f"{root.get_help()}\n\nManual (git ledger help PAGE):\n{listed}")
        output.result("  schemas/NAME         JSON Schemas of all that --json prints: git ledger help json")
    else:
        output.result(_on(topic, root))
    return 0


def _on(topic: str, root: click.Context) -> str:
    """Return what there is on a topic; raises `UsageError` `unknown-topic` with the nearest."""
    from difflib import get_close_matches

    from gitledger.cli.app import COMMANDS
    from gitledger.errors import UsageError

    if topic in COMMANDS:
        return _context(root, topic).get_help()
    pages = {**_pages(), **_schemas()}
    name = _ALIASES.get(topic, topic)
    if name not in pages:
        # A word of a page's name will do, where only one has it.
        within = [page for page in pages if topic and topic in page.split("/")[-1].split("-")]
        if len(within) != 1:
            near = within or get_close_matches(topic, [*COMMANDS, *pages, *_ALIASES], n=1)
            hint = f"known: {', '.join(within)}" if within else " ".join(["git ledger help", *near])
            raise UsageError("unknown-topic", f"no help on {topic!a}", hint)
        name = within[0]
    return pages[name].read_text("utf-8")


def topics() -> Iterator[tuple[str, str]]:
    """Yield what there is help on, each with a line that says what it is."""
    from gitledger.cli.app import COMMANDS

    yield from ((name, line) for name, (_, line) in COMMANDS.items())
    yield from ((name, _title(page)) for name, page in _pages().items() if name not in COMMANDS)
    yield from ((name, "JSON Schema") for name in _schemas())


def _install(output: Output, text: str) -> None:
    """Write the manual page below the person's own share folder; raises `UsageError` `unwritable`."""
    from gitledger.errors import UsageError

    home = Path(output.environ.get("HOME") or Path.home())
    share = Path(output.environ.get("XDG_DATA_HOME") or home / ".local/share")
    path = share / "man/man1/git-ledger.1"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError("unwritable", f"{path} can't be written: {error.strerror}", "git ledger help") from error
    output.message(
        f"git ledger: wrote {path}; `man` finds it where ~/.local/bin is on PATH, or by MANPATH={share}/man:"
    )


def _contexts(root: click.Context) -> dict[str, tuple[str, click.Context]]:
    from gitledger.cli.app import COMMANDS

    return {name: (line, _context(root, name)) for name, (_, line) in COMMANDS.items()}


def _context(root: click.Context, name: str) -> click.Context:
    """Return the context in which the help of a command reads as if it had been called."""
    assert isinstance(root.command, click.Group)  # noqa: S101 - narrows the type
    found = root.command.get_command(root, name)
    assert found is not None  # noqa: S101 - narrows the type: every name of COMMANDS is a command
    return found.context_class(found, info_name=name, parent=root)


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


def _root() -> Traversable:
    """Return the folder of the manual: the one packaged with us, or in a clone `docs/`."""
    packaged = files("gitledger") / "_docs"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "docs"


def _pages() -> Mapping[str, Traversable]:
    """Return the pages of the manual by name."""
    root = _root()
    folders = (root, root / "how-to", root / "reference")
    return {name: page for folder in folders if folder.is_dir() for name, page in _named(folder, ".md")}


def _schemas() -> Mapping[str, Traversable]:
    """Return the JSON Schemas by name, `schemas/plan`."""
    return {f"schemas/{name}": page for name, page in _named(_root() / "reference" / "schemas", ".json")}


def _named(folder: Traversable, ending: str) -> Iterator[tuple[str, Traversable]]:
    for page in sorted(folder.iterdir(), key=lambda item: item.name):
        if page.name.endswith(ending):
            yield page.name.removesuffix(ending), page


def _title(page: Traversable) -> str:
    first = page.read_text("utf-8").partition("\n")[0]
    return first.lstrip("# ").strip()
