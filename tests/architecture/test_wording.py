"""How messages are worded, held over all the code: numbers with their nouns, and hints that can be followed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gitledger
from gitledger.wording import counted, shortened, suggested

ROOT = Path(gitledger.__file__).parent
NOUNS = (
    "attempts|bodies|commits|days|durations|entries|errors|files|findings|ids|jobs|layers|lines|lists|notes|parts|"
    "processes|records|reports|reruns|rules|runs|shards|tests|words"
)
_PLURAL = re.compile(rf" (?:(?!of |as |in |the |to |and )[a-z]+ )?(?:{NOUNS})\b")
NO_NUMBERS = {"pid", "where", "report.model.requested", "job.name", "self._offline_max_age.days"}
"""What stands before a plural and counts nothing, and a number of days that is no one's to set."""
STAND_ALONE = {"suites/compare.py", "suites/cut.py"}
"""Copied into environments that lack this package: they word their plurals themselves."""


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        if "_docs" not in path.parts:
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text("utf-8"))


def is_bound(value: ast.expr) -> bool:
    """Tell whether a value is a constant of ours (`MAX_TESTS`), of which there are always several."""
    name = value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""
    return name.isupper()


def test_a_number_that_may_be_one_is_never_followed_by_a_bare_plural():
    """`1 records`, `1 shards`: `wording.counted` says it right."""
    found = []
    for path, tree in sources():
        for node in ast.walk(tree):
            if not isinstance(node, ast.JoinedStr) or path in STAND_ALONE:
                continue
            for before, after in zip(node.values, node.values[1:], strict=False):
                if not isinstance(before, ast.FormattedValue) or not isinstance(after, ast.Constant):
                    continue
                if _PLURAL.match(str(after.value)) and not is_bound(before.value):
                    if ast.unparse(before.value) in NO_NUMBERS:
                        continue
                    found.append(f"{path}:{node.lineno}: {{{ast.unparse(before.value)}}}{after.value}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("number", "text"), [(0, "0 bodies"), (1, "1 body"), (2, "2 bodies")])
def test_one_is_singular_and_none_is_plural(number, text):
    assert counted(number, "body", "bodies") == text
    assert counted(number, "record") == text.replace("bodies", "records").replace("body", "record")


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        ("", ""),
        ("git ledger sync", "; try: git ledger sync"),
        ("did you mean alpha?", "; did you mean alpha?"),
        ("known: alpha, beta", "; known: alpha, beta"),
        ("git init (or give -C DIR)", "; try: git init  # or give -C DIR"),
        ("GIT_DIR=x git fsck (it says (more) of it)", "; try: GIT_DIR=x git fsck  # it says (more) of it"),
        ("give an existing one (with -C)", "; try: give an existing one (with -C)"),
        ('rm "$(git rev-parse x)/y" && git init', '; try: rm "$(git rev-parse x)/y" && git init'),
    ],
)
def test_only_what_can_be_done_is_to_be_tried(hint, text):
    assert suggested(hint) == text


@pytest.mark.parametrize("before", [40, 85, 86, 90, 96, 97, 100])
def test_a_text_is_never_cut_within_the_first_twelve_digits_of_an_id(before):
    """`record 8e9…` is nothing that `show` takes."""
    record = "8e9f01234567" + "ab" * 26
    text = f"{'.' * (before - 1)} {record} and more, and more, and more, and more, and more, and more, and more"
    cut = shortened(text, 98)
    assert cut.endswith("…")
    assert len(cut) <= 98 + 12
    digits = cut.rpartition(" ")[2].rstrip("…")
    assert digits in ("", "." * 97) or len(digits) >= 12


# --- hints: what stands behind "try:" can be typed or done ----------------------------------------------------------

PROGRAMS = re.compile(r"(?:chmod|command|eval|git|kill|ls|mkdir|pip|rm|sbatch|sinfo|ssh-add|ssh-keygen)\b")
EDITS = re.compile(
    r"(?:add|ask|build|cd|check|commit|compare|correct|declare|end|free|give|hand|ignore|install|leave|let|list|look|lower|"
    r"make|mend|move|name|narrow|raise|record|retry|run|say|see|set|shorten|split|start|take|try|unlock|unset|upgrade|"
    r"update|use|wait|widen|write)\b"
)
"""Verbs by which a hint tells of an edit, or of what to do where no command does it."""
_OPTION = re.compile(r"-{1,2}[a-z]")
_VARIABLE = re.compile(r"[A-Z_]+=")
_YAML = re.compile(r"(- )?[a-z_]+: ")
"""A line to be written into a workflow; `check-workflow` says it as it stands there."""
_ASIDE = re.compile(r" \(.*\)$")
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"|`[^`]*`""")
_PROSE = re.compile(r"[,;:](?: |$)|…| (?:or|then|once|with|by) ")
"""What follows a command and is no part of it: who copies the line would hand it over as words."""
MAKERS = {"blocking": "remedy", "note": "remedy", "Finding": "remedy"}


def is_followable(hint: str, path: str) -> bool:
    """Tell whether a hint is a command, an option, a variable, an edit named as such, or an aside."""
    if suggested(hint) == f"; {hint}":
        return True
    if _OPTION.match(hint) or _VARIABLE.match(hint) or (_YAML.match(hint) and "/check_workflow" in path):
        return True
    return bool(PROGRAMS.match(hint) or EDITS.match(hint))


def is_whole(hint: str) -> bool:
    """Tell whether a hint that begins with a command or an option is no more than that, an aside at its end apart."""
    if not (PROGRAMS.match(hint) or _OPTION.match(hint)):
        return True
    return not _PROSE.search(_QUOTED.sub("Q", _ASIDE.sub("", hint)))


def hint_of(call: ast.Call) -> ast.expr | None:
    """Return the hint that a call hands over, None where it hands over none."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if name in MAKERS:
        return next((item.value for item in call.keywords if item.arg == MAKERS[name]), None)
    if not name.endswith("Error"):
        return None
    by_name = next((item.value for item in call.keywords if item.arg == "hint"), None)
    return by_name or (call.args[2] if len(call.args) == 3 else None)


def filled(part: ast.expr, names: dict[str, list[ast.expr]], depth: int) -> str:
    """Return what stands for a filled-in part.

    An edit where `mend_dirt` makes it; the text of a name that holds but one; else a plain `X`.
    """
    if "mend_dirt(" in ast.unparse(part):
        return "add"
    value = part.value if isinstance(part, ast.FormattedValue) else part
    known = names.get(value.id, []) if isinstance(value, ast.Name) else []
    texts = list(texts_of(known[0], names, depth + 1)) if len(known) == 1 and depth < 3 else []
    return texts[0] if len(texts) == 1 else "X"


def texts_of(value: ast.expr | None, names: dict[str, list[ast.expr]], depth: int = 0) -> Iterator[str]:
    """Yield what a hint may be; what it is filled in with is shown as `X`."""
    match value:
        case ast.Constant(value=str(text)) if text:
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else filled(part, names, depth) for part in parts
            )
        case ast.IfExp(body=one, orelse=other):
            yield from texts_of(one, names, depth)
            yield from texts_of(other, names, depth)
        case ast.Name(id=name) if depth < 3:
            for found in names.get(name, ()):
                yield from texts_of(found, names, depth + 1)
        case ast.Call(func=ast.Name(id=name)) if depth < 3:
            for found in names.get(f"{name}()", ()):
                yield from texts_of(found, names, depth + 1)
        case ast.Subscript(value=ast.Name(id=name)) | ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
            for found in names.get(name, ()):
                for item in found.values if isinstance(found, ast.Dict) else [found]:
                    yield from texts_of(item, names, depth + 1)


def test_what_stands_behind_try_can_be_typed_or_done():
    """`try: did you mean alpha?` is nothing to type, and neither is `try: the record is ignored`."""
    found, seen = [], 0
    for path, tree in sources():
        names: dict[str, list[ast.expr]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                names.setdefault(node.targets[0].id, []).append(node.value)
            if isinstance(node, ast.FunctionDef):
                said = [item.value for item in ast.walk(node) if isinstance(item, ast.Return) and item.value]
                names.setdefault(f"{node.name}()", []).extend(said)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                for text in texts_of(hint_of(node), names):
                    seen += 1
                    if not is_followable(text, path) or not is_whole(text):
                        found.append(f"{path}:{node.lineno}: {text}")
    assert not found, "\n".join(found)
    assert seen > 300, f"this test has lost sight of the hints: it found {seen}"


@pytest.mark.parametrize(
    ("hint", "whole"),
    [
        ("git ledger verify --accept-shards, by a maintainer", False),
        ("--accept-shards, once a maintainer has looked", False),
        ("git ledger record --shard add, without words of your own", False),
        ("git ledger gate or verify", False),
        ("git config user.name …", False),
        ("git ledger verify --policy-from origin/main --accept-shards (for a maintainer to say)", True),
        ("git add :/.gitledger && git commit", True),
        ('git config user.name "Your Name, of here"', True),
        ("commit the change, then git ledger run", True),
    ],
)
def test_a_command_that_a_hint_begins_with_stands_alone(hint, whole):
    assert is_whole(hint) == whole
