"""`git ledger help`: the manual, in the terminal.

`git ledger --help` never reaches us: git takes it for `git help ledger` and looks for a man page.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from gitledger.cli.output import Output

_ALIASES = {"config": "configuration", "security-model": "security", "errors": "codes"}


@click.command("help", short_help="The manual: a command, or a page")
@click.argument("topic", required=False)
@click.pass_context
def command(ctx: click.Context, topic: str | None) -> int:
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
    if topic is None:
        listed = "\n".join(f"  {name:20} {_title(page)}" for name, page in pages.items())
        output.result(f"{root.get_help()}\n\nManual (git ledger help PAGE):\n{listed}")
        return 0
    if topic in COMMANDS and isinstance(root.command, click.Group):
        found = root.command.get_command(root, topic)
        assert found is not None  # noqa: S101 - narrows the type: every name of COMMANDS is a command
        output.result(found.get_help(click.Context(found, info_name=topic, parent=root)))
        return 0
    name = _ALIASES.get(topic, topic)
    if name not in pages:
        near = get_close_matches(topic, [*COMMANDS, *pages, *_ALIASES], n=1)
        raise UsageError("unknown-topic", f"no help on {topic!a}", f"git ledger help {near[0] if near else ''}")
    output.result(pages[name].read_text("utf-8"))
    return 0


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
