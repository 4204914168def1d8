"""Where a line of shell stands: as a command of its own, or inside of what earlier lines opened."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["assigns", "disguised", "is_open", "stops_running", "tolerant_set"]

_GOES_ON = re.compile(r"(?:\|\||&&|\||\|&)\s*\Z")
_SET = re.compile(r"(?:^|[;&|({]\s*|\b(?:then|do|else|builtin|command) )set ([^;&|]*)")
_OPTION = re.compile(r"(?P<sign>[-+])(?P<flags>[A-Za-z]+)\Z")
_COMMAND = r"(?:^|[;&|{(]\s*|\b(?:then|do|else|time|builtin|command) |! |\b\w+=\S* )"
_MASKED = re.compile(_COMMAND + r"(?:[\"'\\]|\w+[\"'\\])\S*")
_ENDING = re.compile(r"(?:exit|return|exec|trap|alias|eval|source|kill|enable|hash|set)\Z")


def is_open(lines: Iterable[str]) -> bool:
    """Tell whether something that lines of a script began is not ended by them.

    That is a quote, a backtick, a parenthesis, or a command that goes on behind `||`, `&&` or `|`: what stands on
    the next line is then a word or a part of something else, and may not be run at all.
    """
    quote, depth, code = "", 0, ""
    for line in lines:
        code = ""
        skip = False
        for position, char in enumerate(line):
            if skip:
                skip = False
            elif char == "\\" and quote != "'":
                skip = True
            elif quote:
                quote = "" if char == quote else quote
            elif char in "\"'`":
                quote = char
            elif char == "#" and (position == 0 or line[position - 1] in " ;"):
                break
            elif char == "(":
                depth += 1
            elif char == ")":
                depth = max(0, depth - 1)  # a pattern of `case` ends with one
            code += char
    return bool(quote or depth or _GOES_ON.search(code))


def tolerant_set(text: str) -> bool:
    """Tell whether a line's `set` lets failures pass (`+e`, `+o pipefail`), however it is spelled."""
    return any(sign == "+" and name in ("e", "errexit", "pipefail") for sign, name in _set_options(text))


def stops_running(text: str) -> bool:
    """Tell whether a line's `set` keeps later lines from being run (`-n`, `-t`), with a status of 0."""
    return any(sign == "-" and name in ("n", "t", "noexec", "onecmd") for sign, name in _set_options(text))


def _set_options(text: str) -> Iterable[tuple[str, str]]:
    """Yield the options of a line's `set`, one sign and one flag or name each."""
    for found in _SET.finditer(text):
        sign = ""
        for word in re.sub(r"[\"'\\]", "", found[1]).split():
            option = _OPTION.match(word)
            if option is None:
                yield sign, word
                sign = ""
                continue
            sign = option["sign"]
            yield from ((sign, flag) for flag in option["flags"])


def disguised(text: str) -> str | None:
    r"""Return a command that is spelled so as not to look like one that ends a script (`\exit`, `"exit"`)."""
    for found in _MASKED.finditer(text):
        word = re.sub(r"[\"'\\]", "", found[0].split()[-1])
        if _ENDING.match(word.lstrip(";&|{(!")):
            return found[0].strip()
    return None


def assigns(text: str, name: str) -> bool:
    """Tell whether a line may give a variable another value: it names it without asking for its value."""
    return re.search(rf"(?<![\w$.{{-]){name}\b(?!\.)", re.sub(r"\$\{\{.*?\}\}", "", text)) is not None
