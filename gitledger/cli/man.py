"""The manual page `git-ledger.1`, written from the commands themselves.

`git ledger --help` and `git help ledger` are git's: it runs `man git-ledger`. The page is checked in
(docs/reference/git-ledger.1) and lies in the wheel's share/man/man1.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from gitledger import __version__

__all__ = ["EVERYDAY", "VARIABLES", "man_page"]

VARIABLES = {
    "GITLEDGER_SIGNING_KEY": "The key that signs: a path, or the key itself. Never passed on to what is run.",
    "GITLEDGER_MODE": "local, ci or ci-gpu, where --mode is not given.",
    "GITLEDGER_OFFLINE": "Set and not 0: no forge is asked.",
    "GITLEDGER_SKIP": "Set and not 0: the hook does nothing.",
    "GITLEDGER_DOCTOR_MODEL": "What `doctor` executes, where no lane and no --model says.",
    "GITLEDGER_DOWNLOAD_DIR": "Where models lie.",
    "GITLEDGER_DEBUG": "Set: our own faults show their traceback.",
    "NO_COLOR": "Not empty: no colour.",
    "FORCE_COLOR": "Set and not 0: colour, terminal or not.",
}
"""The variables that people set, by name."""
EVERYDAY = (
    ("git ledger init", "once in a repository"),
    ("git ledger record --shard unit", "run a shard, leave its receipt"),
    ("git ledger plan", "what is fresh, what carries, what is stale"),
    ("git ledger run", "run what is stale, merge when all is covered"),
    ("git ledger verify --policy-from origin/main", "the verdict; exit status 0 or 1"),
)
_FILES = {
    ".gitledger/config.yaml": "Shards, coverage, policy, hooks and lanes.",
    ".gitledger/allowed_signers": "Who owns which key.",
    ".gitledger/revoked_keys": "Keys that count for nothing.",
    ".gitledger/durations.json": "What splits are cut by.",
    "refs/notes/gitledger/": "The ledger: records and bodies.",
}
_STATUSES = {
    "0": "Yes: done, passed, nothing to run.",
    "1": "No: the verdict failed, the merge is not green or was refused.",
    "2": "Usage or configuration: nothing was judged and nothing ran.",
    "3": "The ledger could not be written or published; nothing is lost.",
    "70": "Our own fault.",
    "77": "Skipped.",
    "99": "Inconclusive.",
    "130": "Interrupted.",
    "141": "Whoever read the output went away.",
}


def man_page(root: click.Context, contexts: dict[str, tuple[str, click.Context]]) -> str:
    """Return the page as troff: each command by name with its line of help and its context, in their order."""
    return "\n".join(_lines(root, contexts)) + "\n"


def _lines(root: click.Context, contexts: dict[str, tuple[str, click.Context]]) -> Iterator[str]:
    yield f'.TH GIT-LEDGER 1 "" "git-ledger {__version__}" "Git Manual"'
    yield from (".SH NAME", r"git-ledger \- signed test evidence that lives in the repository, as git notes")
    yield from (".SH SYNOPSIS", r"\fBgit ledger\fR [\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGUMENTS\fR]")
    yield ".SH DESCRIPTION"
    yield from _paragraphs(root.command.help or "", examples=False)
    yield from (".PP", r"\fBgit ledger help\fR is the manual: commands, how-to pages and reference, each by name.")
    yield from (".SH EXAMPLES", ".nf", *(_text(f"{line:46} {about}") for line, about in EVERYDAY), ".fi")
    yield ".SH OPTIONS"
    yield from _options(root.command.params)
    everywhere = {parameter.name for parameter in root.command.params}
    yield ".SH COMMANDS"
    for name, (line, context) in contexts.items():
        pieces = " ".join(context.command.collect_usage_pieces(context))
        yield from (
            f".SS {_text(name)}",
            f"{_text(line)}.",
            ".PP",
            rf"\fBgit ledger {_text(name)}\fR {_text(pieces)}",
        )
        yield from _paragraphs(context.command.help or "")
        yield from _options([item for item in context.command.params if item.name not in everywhere])
    yield from _listed("EXIT STATUS", _STATUSES)
    yield from _listed("ENVIRONMENT", VARIABLES)
    yield from _listed("FILES", _FILES)
    yield from (".SH SEE ALSO", r"\fBgit\-notes\fR(1), \fBssh\-keygen\fR(1)")


def _listed(title: str, rows: dict[str, str]) -> Iterator[str]:
    yield f".SH {title}"
    for name, meaning in rows.items():
        yield from (".TP", rf"\fB{_text(name)}\fR", _text(meaning))


def _paragraphs(text: str, *, examples: bool = True) -> Iterator[str]:
    r"""Yield a help text; what stands behind click's `\b` keeps its lines."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        is_kept = paragraph.startswith("\b\n")
        if is_kept and examples:
            yield from (".PP", ".RS 4", ".nf", *map(_text, paragraph.split("\n")[1:]), ".fi", ".RE")
        elif not is_kept:
            yield from (".PP", *map(_text, paragraph.split("\n")))


def _options(parameters: list[click.Parameter]) -> Iterator[str]:
    for option in parameters:
        if isinstance(option, click.Option):
            names = " / ".join(", ".join(group) for group in (option.opts, option.secondary_opts) if group)
            takes = "" if option.is_flag else f" {_value(option)}"
            yield from (".TP", rf"\fB{_text(names)}\fR{_text(takes)}", _text(option.help or ""))


def _value(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    return option.metavar or "N"


def _text(line: str) -> str:
    """Return a line as troff takes it: no control line, hyphens that can be copied, code in bold."""
    escaped = line.replace("\\", r"\e").replace("-", r"\-").replace("…", "...")
    escaped = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", escaped)
    return rf"\&{escaped}" if escaped[:1] in (".", "'") else escaped
