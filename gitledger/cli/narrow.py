"""Help for windows of any width: examples stay commands that can be copied, and what explains them goes below."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator

import click

__all__ = ["Formatter"]

LEAST = 30
"""Columns that help needs; click itself takes 50, which a narrower window breaks anywhere."""
NARROW = 60
LEAST_COLUMN = 20
"""Columns that explanations need to stand beside what they explain."""
_MAX = 80
_KEPT = "\b\n"
_EXAMPLE = re.compile(r"( *)(\S.*?)(?: {2,}(\S.*))?\Z")


class Formatter(click.HelpFormatter):
    """Writes help as click does, as wide as the window; lines that are kept as they are don't outgrow it."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        if width is None:
            width = max(min(shutil.get_terminal_size().columns, max_width or _MAX) - 2, LEAST)
        super().__init__(indent_increment, width, max_width)

    def write_text(self, text: str) -> None:
        """Write paragraphs; kept lines that are too long are broken where a person would."""
        width = self.width - self.current_indent
        super().write_text("\n\n".join(_fitted(paragraph, width) for paragraph in text.split("\n\n")))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names and their texts; in a narrow window long names stand above their texts."""
        super().write_dl(rows, col_max if self.width >= NARROW else min(col_max, self.width // 4), col_spacing)


def _fitted(paragraph: str, width: int) -> str:
    """Return a paragraph; where a kept line is too long, explanations fold in their column or go below."""
    lines = paragraph.split("\n")[1:]
    if not paragraph.startswith(_KEPT) or all(len(line) <= width for line in lines):
        return paragraph
    column = max((found.start(3) for line in lines if (found := _EXAMPLE.match(line)) and found[3]), default=width)
    lay = _folded if width - column >= LEAST_COLUMN else _stacked
    return _KEPT + "\n".join(part for line in lines for part in lay(line, width))


def _folded(line: str, width: int) -> Iterator[str]:
    """Yield a line with its explanation in the same column; one that has none is broken where it is too long."""
    found = _EXAMPLE.match(line)
    if len(line) <= width or found is None or not found[3]:
        yield from [line] if len(line) <= width else _stacked(line, width)
        return
    column = found.start(3)
    yield from textwrap.wrap(found[3], width, initial_indent=line[:column], subsequent_indent=" " * column)


def _stacked(line: str, width: int) -> Iterator[str]:
    """Yield a line with its explanation below it."""
    found = _EXAMPLE.match(line)
    if found is None:
        yield line
        return
    indent, head, remark = found.groups()
    below = f"{indent}    "
    if not head.startswith("git "):
        yield from textwrap.wrap(head, width, initial_indent=indent, subsequent_indent=below)
    else:  # a command that goes on behind a backslash can be copied
        parts = textwrap.wrap(
            head,
            max(width - 2, 1),
            initial_indent=indent,
            subsequent_indent=below,
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield from (part + (" \\" if place < len(parts) else "") for place, part in enumerate(parts, 1))
    if remark:
        yield from textwrap.wrap(remark, width, initial_indent=below, subsequent_indent=below)
