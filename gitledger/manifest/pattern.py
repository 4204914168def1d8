"""One declared path or gitignore-style glob, matched part by part so that walks descend only where they must.

A text without wildcards is the file or folder of that name, from the root. A text with wildcards means what git
means by it in a `.gitignore` at the root (wildmatch.c and dir.c, checked against `git check-ignore`): `*.py` at
any depth, `src/*.py` from the root, `**` any number of folders, a trailing `/` folders only, and what matches a
folder takes all of it. Names are matched as bytes, as git does. `./*.py` keeps to the root. What git would let
match nothing (an unclosed `[`) is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from functools import lru_cache
from typing import NoReturn

from gitledger.dataclass import dataclass
from gitledger.errors import ManifestError
from gitledger.records.decode import shown

__all__ = ["Pattern", "States", "canonical_text", "compile_pattern", "escape_path", "has_wildcard", "path_bytes"]

States = frozenset[int]
"""Indices of the parts that the next name of a path may match; empty: nothing below can match."""

MAX_STEPS = 10_000
"""Steps that one pattern remembers."""
_DRIVE = re.compile(r"\A[A-Za-z]:")
_SPECIAL = frozenset("*?[\\")
_CLASSES: dict[bytes, Callable[[int], bool]] = {
    b"alnum": lambda c: chr(c).isalnum(),
    b"alpha": lambda c: chr(c).isalpha(),
    b"blank": lambda c: c in b" \t",
    b"cntrl": lambda c: c < 32 or c == 127,
    b"digit": lambda c: chr(c).isdigit(),
    b"graph": lambda c: 32 < c < 127,
    b"lower": lambda c: chr(c).islower(),
    b"print": lambda c: 32 <= c < 127,
    b"punct": lambda c: 32 < c < 127 and not chr(c).isalnum(),
    b"space": lambda c: c in b" \t\n\v\f\r",
    b"upper": lambda c: chr(c).isupper(),
    b"xdigit": lambda c: c in b"0123456789abcdefABCDEF",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern. `parts` are literal names, wildcards of one name, and None for `**`."""

    text: str
    parts: tuple[bytes | re.Pattern[bytes] | None, ...]
    folder_only: bool
    _steps: dict[tuple[States, bytes], tuple[States, bool]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """Steps taken so far: trees repeat their names, and shards their patterns."""

    @property
    def path(self) -> str | None:
        """The one path that it stands for, None where wildcards may leave several."""
        names = [part for part in self.parts if isinstance(part, bytes)]
        return b"/".join(names).decode("utf-8", "surrogateescape") if len(names) == len(self.parts) else None

    @property
    def is_root(self) -> bool:
        """Tell whether it stands for the whole tree."""
        return not self.parts

    def start(self) -> States:
        """Return the states at the root."""
        return self._closure({0}) if self.parts else frozenset()

    def literals(self, states: States) -> tuple[str, ...] | None:
        """Return the only names that can match next, None where that takes looking."""
        names = []
        for state in states:
            part = self.parts[state]
            if not isinstance(part, bytes):
                return None
            names.append(part.decode("utf-8", "surrogateescape"))
        return tuple(sorted(names))

    def step(self, states: States, name: bytes) -> tuple[States, bool]:
        """Return the states below the entry `name`, and whether the entry itself is matched."""
        known = self._steps.get((states, name))
        if known is None:
            known = self._step(states, name)
            if len(self._steps) < MAX_STEPS:
                self._steps[states, name] = known
        return known

    def _step(self, states: States, name: bytes) -> tuple[States, bool]:
        reached: set[int] = set()
        for state in states:
            part = self.parts[state]
            if part is None:
                reached.add(state if state + 1 < len(self.parts) else state + 1)
            elif part == name if isinstance(part, bytes) else part.fullmatch(name):
                reached.add(state + 1)
        accepted = len(self.parts) in reached
        return self._closure(reached - {len(self.parts)}), accepted

    def _closure(self, states: set[int]) -> States:
        """Add what follows a `**` that stands for no folder at all; a trailing `**` stands for something."""
        pending = list(states)
        while pending:
            state = pending.pop()
            if self.parts[state] is None and state + 1 < len(self.parts) and state + 1 not in states:
                states.add(state + 1)
                pending.append(state + 1)
        return frozenset(states)


def path_bytes(text: str) -> bytes:
    """Return the bytes that git keeps for a path or name."""
    return text.encode() if text.isascii() else text.encode("utf-8", "surrogateescape")


def has_wildcard(text: str) -> bool:
    """Tell whether `text` holds a wildcard that no backslash takes the meaning from."""
    return any(char in "*?[" for char in re.sub(r"(?s)\\.", "", text))


def escape_path(path: str) -> str:
    """Return the pattern that means exactly the file or folder `path`."""
    escaped = "".join(f"\\{char}" if char in _SPECIAL else char for char in path)
    if escaped.startswith("!"):
        return "\\" + escaped
    return f"{escaped[0]}\\{escaped[1:]}" if _DRIVE.match(escaped) else escaped


@lru_cache(maxsize=4096)
def canonical_text(text: str) -> str:
    """Return the one spelling of patterns that differ in `./` and `//` only; never fails, checks nothing."""
    if text.startswith("/"):
        return text
    parts = [part for part in text.split("/") if part not in ("", ".")]
    body = "/".join(parts)
    if not body:
        return "."
    anchor = "./" if text.startswith("./") and len(parts) == 1 and has_wildcard(body) else ""
    return anchor + body + ("/" if text.endswith("/") else "")


@lru_cache(maxsize=4096)
def compile_pattern(text: str) -> Pattern:
    """Return the pattern that `text` spells.

    Raises `ManifestError`: `path-outside` (absolute, a drive, `..`), `pattern-negated` (`!…`), `pattern-invalid`.
    """
    text = canonical_text(text)
    _refuse(text)
    if text == ".":
        return Pattern(text, (), folder_only=False)
    body = text.removeprefix("./").removesuffix("/")
    names = body.split("/")
    if _SPECIAL.isdisjoint(body):
        return Pattern(text, tuple(map(path_bytes, names)), folder_only=text.endswith("/"))
    parts = [_part(text, path_bytes(name)) for name in names]
    if len(parts) == 1 and has_wildcard(body) and not text.startswith("./"):
        parts.insert(0, None)
    if len(names) == 1 and parts[-1] is None:
        parts[-1] = re.compile(rb"(?s).*")  # `**` alone is one name, as `*` is
    return Pattern(text, tuple(parts), folder_only=text.endswith("/"))


def _refuse(text: str) -> None:
    if "\0" in text or not text:
        _invalid(text, "is empty or holds NUL")
    if text.startswith("/") or _DRIVE.match(text) or ".." in text.split("/"):
        raise ManifestError(
            "path-outside",
            f"{shown(text)} leaves the repository",
            "declare paths relative to the repository root, without `..`",
        )
    if text.startswith("!"):
        raise ManifestError(
            "pattern-negated",
            f"{shown(text)} is a negation",
            "list it under excluded_paths, or write \\! for a name that begins so",
        )


def _invalid(text: str, why: str) -> NoReturn:
    raise ManifestError("pattern-invalid", f"pattern {shown(text)} {why}", "see `git help gitignore`")


def _part(text: str, name: bytes) -> bytes | re.Pattern[bytes] | None:
    if name == b"**":
        return None
    segments: list[list[bytes]] = [[]]  # between stars; of expressions for one byte each
    literal = bytearray()
    wild = False
    i = 0
    while i < len(name):
        char = name[i : i + 1]
        i += 1
        if char == b"\\":
            char = name[i : i + 1]
            i += 1
            if not char or (char.isalnum() and char.isascii()):
                _invalid(text, "ends a name in, or escapes a letter by, a backslash; folders are parted by `/`")
        elif char == b"*":
            if name[i : i + 1] == b"*":
                # Regular asterisks by git's manual; git itself disagrees behind a literal prefix (`a**/b`).
                _invalid(text, "holds `**` as a part of a name; it stands for folders alone")
            wild = True
            segments.append([])
            continue
        elif char in (b"?", b"["):
            wild = True
            expression, i = (b".", i) if char == b"?" else _class(text, name, i)
            segments[-1].append(expression)
            continue
        literal += char
        segments[-1].append(re.escape(char))
    return _expression(segments) if wild else bytes(literal)


def _expression(segments: list[list[bytes]]) -> re.Pattern[bytes]:
    """Join segments of fixed length by stars; atomic groups keep matching linear, as `fnmatch` does it."""
    first, *rest = (b"".join(segment) for segment in segments)
    if not rest:
        return re.compile(b"(?s)" + first)
    middle = b"".join(b"(?>.*?" + segment + b")" for segment in rest[:-1] if segment)
    return re.compile(b"(?s)" + first + middle + b".*" + rest[-1])


def _class(text: str, name: bytes, i: int) -> tuple[bytes, int]:
    """Return the expression of the bracket that opened before `i`, and the index behind it (wildmatch.c)."""
    negated = name[i : i + 1] in (b"!", b"^")
    i += negated
    members: set[int] = set()
    previous: int | None = None  # what a `-` would make a range from
    first = True
    while first or name[i : i + 1] != b"]":
        first = False
        escaped = name[i : i + 1] == b"\\"
        char, i = _member(text, name, i)
        named_end = _named_end(text, name, i) if char == 0x5B and not escaped else None
        if named_end is not None:
            members |= _named(text, name[i + 1 : named_end - 1])
            previous, i = None, named_end + 1
        elif char == 0x2D and not escaped and previous is not None and name[i : i + 1] not in (b"", b"]"):
            last, i = _member(text, name, i)
            members |= set(range(previous, last + 1))
            previous = None
        else:
            members.add(char)
            previous = char
    if negated:
        members = set(range(256)) - members
    if not members:
        return b"(?!)", i + 1
    return b"[" + b"".join(b"\\x%02x" % member for member in sorted(members)) + b"]", i + 1


def _named_end(text: str, name: bytes, i: int) -> int | None:
    """Return the index of the `]` that ends a `[:word:]` whose `:` stands at `i`, None where there is none."""
    if name[i : i + 1] != b":":
        return None
    end = name.find(b"]", i + 1)
    if end < 0:
        _invalid(text, "holds a `[` that is never closed")
    return end if end >= i + 2 and name[end - 1 : end] == b":" else None


def _member(text: str, name: bytes, i: int) -> tuple[int, int]:
    """Return the byte at `i`, unescaped, and the index behind it."""
    if name[i : i + 1] == b"\\":
        i += 1
    if i >= len(name):
        _invalid(text, "holds a `[` that is never closed")
    return name[i], i + 1


def _named(text: str, word: bytes) -> set[int]:
    if word not in _CLASSES:
        _invalid(text, f"names an unknown class of characters, {shown(word.decode('utf-8', 'replace'))}")
    return {c for c in range(128) if _CLASSES[word](c)}
