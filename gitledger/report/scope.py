"""A proposed scope as text: lines for the configuration, and how the declared scope compares."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gitledger.report.text import escaped

__all__ = ["scope_text"]

MAX_NAMES = 10


def scope_text(document: Mapping[str, Any]) -> str:
    """Return the document of `scope --json` for people; the indented lines are YAML for the configuration."""
    name = document["name"] + (f"@{document['variant']}" if document["variant"] else "")
    records = document["records"]
    lines = [f"scope of {name}, from {len(records)} observed run{'s' if len(records) > 1 else ''}"]
    for key in ("paths", "extra_paths"):
        proposed = document["proposed"][key]
        if proposed:
            lines += [f"    {key}:", *(f"      - {_yaml(path)}" for path in proposed)]
    notes = {
        "read outside the declared scope": document["outside"],
        "declared, and nothing of it was read": document["unread"],
        "read once, and no longer there": document["vanished"],
    }
    lines += [f"{text}: {_some(paths)}" for text, paths in notes.items() if paths]
    if not document["roots_known"]:
        lines.append("what tests are collected from is not known: add the folders in which tests may appear")
    if not document["outside"] and not document["unread"]:
        lines.append("the declared scope binds all that was read")
    return "\n".join(lines) + "\n"


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_NAMES} more" if len(paths) > MAX_NAMES else ""
    return ", ".join(escaped(path) for path in paths[:MAX_NAMES]) + more


def _yaml(path: str) -> str:
    """Return a path as YAML reads it back: plain where that is plainly safe, else quoted as JSON quotes."""
    is_plain = all(char.isascii() and (char.isalnum() or char in "/._-") for char in path)
    return path if is_plain and path[:1].isalpha() else json.dumps(path)
