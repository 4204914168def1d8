"""A workflow file as values that know their lines: YAML, of which nothing but text, lists and maps is made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

import yaml

from gitledger.dataclass import dataclass
from gitledger.errors import UsageError

__all__ = ["MAX_FILE_BYTES", "MAX_VALUES", "NOTHING", "Place", "read_documents"]

MAX_FILE_BYTES = 1 << 20
MAX_VALUES = 50_000
"""Values of a file, aliases counted as often as they stand: a small file may spell a huge one."""
_HINT = "name a workflow of GitHub Actions (jobs:), or a pipeline of GitLab"
_WORDS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Place:
    """A value and the line that it begins on, counted from 1. Scalars are kept as they are spelled."""

    line: int
    text: str = ""
    items: tuple[Place, ...] = ()
    table: dict[str, Place] = field(default_factory=dict)
    in_block: bool = False
    """Whether the text is a block scalar, whose first line is the one below."""

    def get(self, *keys: str) -> Place:
        """Return the value under nested keys, `NOTHING` where there is none."""
        found = self
        for key in keys:
            found = found.table.get(key, NOTHING)
        return found

    def __bool__(self) -> bool:
        """Tell whether there is anything."""
        return bool(self.text or self.items or self.table)

    def names(self) -> tuple[str, ...]:
        """Return a list of words as it may be spelled: one scalar, a list, or the keys of a map."""
        if self.text:
            return (self.text,)
        return tuple(item.text or item.get("job").text for item in self.items) or tuple(self.table)

    def scalars(self) -> Iterator[Place]:
        """Yield every scalar below, this one included."""
        if self.text:
            yield self
        for item in (*self.items, *self.table.values()):
            yield from item.scalars()

    def commands(self) -> Iterator[Place]:
        """Yield the lines of a shell script, continued ones joined, without comments and blank lines."""
        for item in self.items:
            yield from item.commands()
        pending, start = "", 0
        for number, line in enumerate(self.text.split("\n")):
            if not pending:
                start = number
            pending += line.strip()
            if pending.endswith("\\"):
                pending = pending[:-1] + " "
                continue
            if pending and not pending.startswith("#"):
                yield Place(self.line + start + self.in_block, _WORDS.sub(" ", pending))
            pending = ""


NOTHING = Place(0)


def read_documents(content: bytes, *, name: str) -> tuple[Place, ...]:
    """Return the YAML documents of a file; raises `UsageError` `workflow-unreadable`."""
    if len(content) > MAX_FILE_BYTES:
        raise _unreadable(name, f"more than {MAX_FILE_BYTES} bytes")
    try:
        reader = _Reader(name)
        return tuple(map(reader.place, yaml.compose_all(content.decode("utf-8"), Loader=yaml.SafeLoader)))
    except UnicodeDecodeError as error:
        raise _unreadable(name, "not UTF-8") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise _unreadable(name, f"{where}{getattr(error, 'problem', None) or 'not YAML'}") from error
    except RecursionError as error:
        raise _unreadable(name, "nested too deep") from error


def _unreadable(name: str, why: str) -> UsageError:
    return UsageError("workflow-unreadable", f"{name}: {why}", _HINT)


class _Reader:
    """Turns nodes into places, and counts them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._left = MAX_VALUES

    def place(self, node: yaml.Node) -> Place:
        self._left -= 1
        if self._left < 0:
            raise _unreadable(self._name, f"more than {MAX_VALUES} values")
        line = node.start_mark.line + 1
        if isinstance(node, yaml.ScalarNode):
            text = "" if node.tag == "tag:yaml.org,2002:null" else node.value
            return Place(line, text, in_block=node.style in ("|", ">"))
        if isinstance(node, yaml.SequenceNode):
            items = tuple(self.place(item) for item in node.value)
            if node.tag == "!reference":  # GitLab's: to be kept for what it is, and not taken for a list of lines
                return Place(line, f"!reference [{', '.join(item.text for item in items)}]")
            return Place(line, items=items)
        merged: dict[str, Place] = {}
        own: dict[str, Place] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _unreadable(self._name, f"line {line}: a key that is no word")
            if key.value in own:
                raise _unreadable(self._name, f"line {key.start_mark.line + 1}: {key.value!a} stands there twice")
            found = self.place(value)
            if key.tag == "tag:yaml.org,2002:merge":
                for part in found.items or (found,):
                    merged |= part.table
            elif isinstance(value, yaml.ScalarNode):
                own[key.value] = found
            else:
                own[key.value] = Place(key.start_mark.line + 1, items=found.items, table=found.table)
        return Place(line, table=merged | own)
