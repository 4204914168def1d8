"""Which entry of a matrix runs which script: each in exactly one.

Where step conditions decide that, a mistake fails nothing: a script left out runs nowhere, one that runs in two
entries undoes the split. So they are evaluated, for each entry, as GitHub does ("Evaluate expressions in
workflows"): comparisons of `matrix` values with literals, `&&`, `||`, `!` and brackets. What a condition with
anything else in it comes to can't be told here.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from gitledger.dataclass import dataclass
from gitledger.verdict.finding import Finding, blocking
from gitledger.workflows.check_workflow_calls import RULE, calls_of, place_of
from gitledger.workflows.check_workflow_document import Place
from gitledger.workflows.check_workflow_github import Job, Workflow, condition

__all__ = ["entry_faults", "holds", "matrix_entries"]

_SCRIPT = re.compile(
    r"\b(?:git[- ]ledger (?:record|run)|(?:npm|pnpm|yarn)(?: run| test|\b)(?! ci| install)|make|pytest|tox|nox"
    r"|ruff|mypy|cargo (?:test|build)|go (?:test|build)|ctest)\b"
)
_VALUE = re.compile(r"\$\{\{\s*matrix\.([\w.-]+)\s*\}\}")
_TOKEN = re.compile(r"\s*(?:(\|\||&&|==|!=|!|\(|\))|'((?:[^']|'')*)'|(matrix\.[\w.-]+)|(true|false|-?\d+))")
Entry = Mapping[str, str]


def entry_faults(flow: Workflow, shards: frozenset[str] | None) -> Iterator[Finding]:
    """Yield scripts that run in two entries, or in none; `shards` are those that the configuration declares."""
    runs: dict[str, list[str]] = {}
    is_open = False
    for job in flow.jobs.values():
        entries = matrix_entries(job)
        if entries is None:
            is_open = is_open or job.is_shard
            continue
        yield from _script_faults(job, entries)
        if job.is_shard:
            for entry in entries:
                for name in _shards_of(job, entry):
                    runs.setdefault(name, []).append(place_of(job.body.line, job.name))
                    is_open = is_open or name == ""
    for name, places in runs.items():
        if name and len(places) > 1:
            yield _twice(places[0], f"shard {name}", len(places))
    for name in sorted(shards or ()) if runs and not is_open else ():
        if name not in runs:
            yield _nowhere(place_of(flow.body.get("jobs").line, ""), f"shard {name}")


def matrix_entries(job: Job) -> list[Entry] | None:
    """Return the entries of a job's matrix, one without values where it has none; None for one made by a job."""
    matrix = job.body.get("strategy", "matrix")
    if not matrix.table:
        return None if matrix.text else [{}]
    if any("${{" in place.text for place in matrix.scalars()):
        return None
    axes = {name: axis for name, axis in matrix.table.items() if name not in ("include", "exclude")}
    entries: list[dict[str, str]] = []
    if axes:
        values = [[_flat(name, item) for item in axis.items] for name, axis in axes.items()]
        entries = [
            dict(itertools.chain(*(part.items() for part in parts))) for parts in itertools.product(*values)
        ]
    left_out = [_flat("", item) for item in matrix.get("exclude").items]
    entries = [entry for entry in entries if not any(cut.items() <= entry.items() for cut in left_out)]
    for item in matrix.get("include").items:
        added = _flat("", item)
        fits = [
            entry
            for entry in entries
            if all(entry.get(key, value) == value for key, value in added.items() if key in axes)
        ]
        if axes and fits and any(key in axes for key in added):
            for entry in fits:
                entry.update(added)
        else:
            entries.append(added)
    return list(entries)


def _flat(name: str, value: Place) -> dict[str, str]:
    """Return a value of a matrix with the names by which expressions reach it."""
    if not value.table:
        return {name: value.text}
    found: dict[str, str] = {}
    for key, inner in value.table.items():
        found |= _flat(f"{name}.{key}" if name else key, inner)
    return found


def _script_faults(job: Job, entries: list[Entry]) -> Iterator[Finding]:
    ran: dict[str, list[int]] = {}
    lines: dict[str, int] = {}
    for step in job.steps:
        asked = "matrix." in step.get("if").text
        runs_in = [
            number for number, entry in enumerate(entries) if holds(condition(step.get("if")), entry) is not False
        ]
        unclear = any(holds(condition(step.get("if")), entry) is None for entry in entries)
        if asked and not unclear and not runs_in:
            yield _nowhere(place_of(step.line, job.name), step.get("name").text or step.get("run").text)
        for line in step.get("run").commands():
            depends = asked or "matrix." in line.text
            if unclear or not depends or not _SCRIPT.search(line.text):
                continue
            for number in runs_in:
                text = _filled(line.text, entries[number])
                ran.setdefault(text, []).append(number)
                lines.setdefault(text, line.line)
    for text, numbers in ran.items():
        if len(numbers) > 1 and not any(call.command in ("record", "run") for call in calls_of(Place(0, text))):
            yield _twice(place_of(lines[text], job.name), text, len(numbers))


def _shards_of(job: Job, entry: Entry) -> Iterator[str]:
    """Yield the shards that an entry runs; "" where that is not spelled here."""
    for step in job.steps:
        if holds(condition(step.get("if")), entry) is False:
            continue
        for line in step.get("run").commands():
            for call in calls_of(Place(line.line, _filled(line.text, entry))):
                if call.command == "record":
                    yield _option(call.words, "--shard", "--variant")
                elif call.command == "run":
                    names = _names(call.words)
                    yield from names or [""]
        if step.get("uses") and any(call.command == "run" for call in job.step_calls(step)):
            yield from _filled(step.get("with", "shards").text, entry).split() or [""]


def _option(words: tuple[str, ...], shard: str, variant: str) -> str:
    given = dict(itertools.pairwise(words)) | dict(word.split("=", 1) for word in words if "=" in word)
    name, kind = given.get(shard, "").strip("\"'"), given.get(variant, "").strip("\"'")
    return "" if not name or "$" in name + kind else name + (f"@{kind}" if kind else "")


def _names(words: tuple[str, ...]) -> list[str]:
    """Return the shards among the words of `git ledger run`; "" for what isn't spelled there."""
    takes = {"--mode", "--key", "--policy-from", "-j", "--jobs", "--timeout", "--stall", "--retries", "--wait"}
    found = [
        word.strip("\"'")
        for before, word in zip(("", *words), words, strict=False)
        if not word.startswith("-") and before not in takes
    ]
    return [""] if any("$" in name for name in found) else found


def _filled(text: str, entry: Entry) -> str:
    return _VALUE.sub(lambda found: entry.get(found[1], ""), text)


def _twice(place: str, what: str, times: int) -> Finding:
    return blocking(
        "script-twice",
        RULE,
        place,
        expected="each script in exactly one entry",
        found=f"{what}: in {times}",
        remedy="run it in one, or let git ledger plan make the matrix",
    )


def _nowhere(place: str, what: str) -> Finding:
    return blocking(
        "script-nowhere",
        RULE,
        place,
        expected="each script in exactly one entry",
        found=f"{what}: in none",
        remedy="add an entry, or let git ledger plan make the matrix",
    )


# --- conditions ------------------------------------------------------------------------------------------------


def holds(text: str, entry: Entry) -> bool | None:
    """Return whether a condition holds for an entry, None where it asks for more than the matrix tells."""
    if not text:
        return True
    tokens, at = [], 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if not found:
            return None
        tokens.append(found.groups())
        at = found.end()
    try:
        parser = _Parser(tokens, entry)
        value = parser.either()
    except _UnclearError:
        return None
    return None if parser.left else bool(value)


class _UnclearError(Exception):
    """The text is no condition that can be told here."""


@dataclass(slots=True)
class _Parser:
    left: list[tuple[str | None, ...]]
    entry: Entry

    def either(self) -> str | bool:
        value = self.both()
        while self._next("||"):
            other = self.both()
            value = value or other
        return value

    def both(self) -> str | bool:
        value = self.comparison()
        while self._next("&&"):
            other = self.comparison()
            value = value and other
        return value

    def comparison(self) -> str | bool:
        value = self.one()
        for sign in ("==", "!="):
            if self._next(sign):
                same = _word(value).lower() == _word(self.one()).lower()  # GitHub compares without regard to case
                return same if sign == "==" else not same
        return value

    def one(self) -> str | bool:
        if self._next("!"):
            return not self.one()
        if self._next("("):
            value = self.either()
            if not self._next(")"):
                raise _UnclearError
            return value
        if not self.left or self.left[0][0] is not None:
            raise _UnclearError
        _, text, name, bare = self.left.pop(0)
        if text is not None:
            return text.replace("''", "'")
        if name is not None:
            return self.entry.get(name.removeprefix("matrix."), "")
        return bare == "true" if bare in ("true", "false") else str(bare)

    def _next(self, sign: str) -> bool:
        if self.left and self.left[0][0] == sign:
            self.left.pop(0)
            return True
        return False


def _word(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else value
