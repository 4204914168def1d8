"""Every stable code with what it means and what to do: the packaged `codes.md`, read as values.

`codes.md` is the one source. `git ledger explain` prints its entries, `explain --all` the whole page, which is
`docs/reference/codes.md`. An entry is a heading (the code), a line of kinds in italics, paragraphs, and a last
paragraph that begins with `Do: `.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.resources import files
from itertools import groupby

from gitledger.dataclass import dataclass
from gitledger.report.text import paint

__all__ = ["KINDS", "Entry", "entry_text", "listing", "nearest_codes", "page", "read_codes"]

KINDS = ("plan reason", "finding", "receipt", "report", "ignored", "error")
"""What a code can be: why a shard is fresh or stale, a finding of a verdict, why a run was not green, why a recipe
of a lane did not pass, why a record counts for nothing, why a command could not do what it was asked."""
LEAST_GIST = 20
_INTRODUCTION = """\
# Codes

Every reason and every error of `git ledger` carries a stable word. `git ledger explain CODE` prints the entries of
this page, which `git ledger explain --all` writes.

| kind | where it is seen |
|---|---|
| plan reason | `plan`: why a shard is fresh, carryable or stale; a closed list |
| finding | `verify`, `merge`: one reason for or against a verdict |
| receipt | `record`, `show`: why a run is not green |
| report | `doctor`, `lanes`: why a recipe did not pass; a closed list |
| ignored | `verify`, `log`, `show`: why a record counts for nothing |
| error | stderr of any command, with the exit status it ends with |

The number that a finding carries as `rule` is that of the section here, in brackets.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One code. `statuses` are the exit statuses of errors that carry it; `chapter` names the section."""

    code: str
    kinds: tuple[str, ...]
    statuses: tuple[int, ...]
    chapter: str
    meaning: str
    remedy: str


def read_codes() -> Mapping[str, Entry]:
    """Return every entry by its code, in the order of the page; raises `ValueError` for an entry out of form."""
    found: dict[str, Entry] = {}
    for chapter in re.split(r"^## ", _source(), flags=re.M)[1:]:
        title, _, body = chapter.partition("\n")
        for text in re.split(r"^### ", body, flags=re.M)[1:]:
            entry = _entry(text, title.strip())
            if entry.code in found:
                raise ValueError(f"codes.md: {entry.code} stands there twice")
            found[entry.code] = entry
    return found


def _entry(text: str, chapter: str) -> Entry:
    code, kinds, *paragraphs = (part.strip() for part in text.strip().split("\n\n"))
    if len(paragraphs) < 2 or not paragraphs[-1].startswith("Do: "):
        raise ValueError(f"codes.md: {code}: expected a line of kinds, what it means, and `Do: …`")
    words = [word.strip() for part in kinds.strip("*").split(";") for word in part.split(",")]
    statuses = [int(number) for word in words for number in re.findall(r"\d+", word) if word.startswith("exit")]
    named = tuple(word for word in words if not word.startswith("exit"))
    if not named or set(named) - set(KINDS) or ("error" in named) != bool(statuses):
        raise ValueError(f"codes.md: {code}: {kinds} is no line of kinds")
    return Entry(
        code=code,
        kinds=named,
        statuses=tuple(statuses),
        chapter=chapter,
        meaning="\n\n".join(paragraphs[:-1]),
        remedy=paragraphs[-1].removeprefix("Do: "),
    )


def _source() -> str:
    return (files("gitledger.report") / "codes.md").read_text("utf-8")


def nearest_codes(word: str, codes: Mapping[str, Entry]) -> tuple[str, ...]:
    """Return the known codes that `word` may be a misspelling, or a part, of: at most five, the nearest first."""
    wanted = word.strip().strip("[]").lower().replace("_", "-")
    close = get_close_matches(wanted, codes, n=5, cutoff=0.6)
    parts = [code for code in codes if wanted and wanted in code.split("-")]
    return tuple(dict.fromkeys([*close, *parts]))[:5]


def entry_text(entry: Entry) -> str:
    """Return an entry for a terminal: Markdown's links reduced to their words."""
    exits = f", exit {' or '.join(map(str, entry.statuses))}" if entry.statuses else ""
    head = f"{entry.code}  ({', '.join(entry.kinds)}{exits})\n{_title(entry.chapter)}"
    return f"{head}\n\n{_plain(entry.meaning)}\n\nWhat to do: {_plain(entry.remedy)}\n"


def _title(chapter: str) -> str:
    """Return a heading without the numbers of rules in brackets, which say something beside a verdict alone."""
    return re.sub(r" \(sections? [^)]*\)\Z", "", chapter)


def _plain(text: str) -> str:
    return re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", text)


def listing(codes: Mapping[str, Entry], *, width: int, color: bool) -> str:
    """Return a line a code, by section: the code, the exit status of an error, and how its meaning begins.

    No line is wider than `width` columns, as far as codes allow. What is reported and blocks nothing is a `note`.
    """
    lines = textwrap.wrap(_HEAD, width)
    for chapter, entries in groupby(codes.values(), key=lambda entry: entry.chapter):
        lines += ["", paint(_title(chapter), "bold", color=color)]
        found = list(entries)
        column = max(len(entry.code) for entry in found)
        room = max(width - column - 9, LEAST_GIST)
        for entry in found:
            exits = ",".join(map(str, entry.statuses)) or ("note" if _NOTE.match(entry.meaning) else "")
            gist = textwrap.shorten(_first_sentence(entry.meaning), room, placeholder=" …").replace(", …", " …")
            lines.append(f"  {entry.code:{column}}  {exits:4} {gist}")
    return "\n".join(lines) + "\n"


_HEAD = (
    "`git ledger explain CODE` says what a code means and what to do. A number here is the exit status that an "
    "error with this code ends with."
)
_NOTE = re.compile(r"A note[^.]*\.\s+")


def _first_sentence(meaning: str) -> str:
    """Return the first sentence that says something, its end dropped."""
    text = " ".join(_plain(_NOTE.sub("", meaning, count=1)).split())
    return re.split(r"(?<=[.:;])\s", text, maxsplit=1)[0].rstrip(".:;")


def page() -> str:
    """Return the whole page in Markdown."""
    return _INTRODUCTION + _source()
