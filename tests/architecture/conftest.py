"""What the source says of itself: every stable code that it can emit, found without running it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gitledger import errors

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "gitledger"
CODE = re.compile(r"\A[a-z][a-z0-9]*(?:-[a-z0-9]+)*\Z")
EXIT = {
    name: kind.exit_status
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.LedgerError)
}
"""Exit status by the name of the error class."""
MAKERS = {"blocking", "note", "make", "Bar", "ResultFault", "NoteFault"}
"""What makes a finding, or becomes one: the first argument is its code."""
CLOSED_LISTS = {"REASONS", "_HINTS"}
"""Module-level sets and maps whose strings are codes."""
CODES_BY_POSITION = {"Ignored": 1, "Acceptance": 2, "show_error": 0, "rejected": 0}
"""Other calls that name a code, and where."""
PASSED_ON = {
    ("workflows/gather.py", "fault.code"),  # a NoteFault's, made in store/union.py
    ("workflows/lanes.py", "fault.code"),
    ("store/union.py", "fault.code"),
    ("store/union.py", "code"),  # out of the tuple above it, collected as such
    ("verdict/faults.py", "choice.reason"),  # of the closed list of section 6: Choice refuses any other
    ("verdict/verify.py", "choice.reason"),
    ("verdict/release.py", "code"),  # a key of its _HINTS
    ("trust/certificates.py", "error.code"),  # a DecodeError's own
    ("cli/app.py", "error.code"),
}
"""Where a code is passed on that was made elsewhere. Anything else must spell its code, so that it is found."""


@dataclass
class Found:
    """Every code with the places that emit it, and the exit statuses of the errors that carry it."""

    places: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    statuses: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    unclear: list[str] = field(default_factory=list)

    def add(self, code: str, place: str, status: int | None = None) -> None:
        self.places[code].add(place)
        if status is not None:
            self.statuses[code].add(status)


OTHERS = {"click", "pytest"}
"""Libraries with error classes of the same names."""


def _name(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def _constants(node: ast.AST | None) -> list[str] | None:
    """Return the strings that an expression can be, None where that can't be told by looking."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        body, other = _constants(node.body), _constants(node.orelse)
        return None if body is None or other is None else body + other
    if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
        head, colon, _ = str(node.values[0].value).partition(":")
        return [head] if colon else None
    return None


def _functions_with_code(trees: dict[str, ast.Module]) -> dict[str, list[tuple[str, int, ast.FunctionDef]]]:
    """Return functions that take a `code` to make an error of, by name, with its position among the arguments."""
    found: dict[str, list[tuple[str, int, ast.FunctionDef]]] = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name not in ("__init__", *MAKERS, *CODES_BY_POSITION):
                names = [arg.arg for arg in node.args.args if arg.arg != "self"]
                if "code" in names:
                    found[node.name].append((path, names.index("code"), node))
    return found


def _defaults(node: ast.FunctionDef) -> Iterator[str]:
    args = node.args.args
    for arg, default in zip(args[len(args) - len(node.args.defaults) :], node.args.defaults, strict=True):
        if arg.arg == "code":
            yield from _constants(default) or []


def _class_of(node: ast.FunctionDef) -> set[int]:
    """Return the exit statuses of the errors that a function makes of its `code`."""
    return {
        EXIT[_name(call)]
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and _name(call) in EXIT and call.args
        if isinstance(call.args[0], ast.Name) and call.args[0].id == "code"
    }


def _named_constants(tree: ast.Module) -> dict[str, list[str]]:
    """Return the local names that are given nothing but codes: `code = "a" if … else "b"`, `for code, x in (…)`."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _constants(node.value):
            found[node.targets[0].id] = _constants(node.value)
        if isinstance(node, ast.For) and isinstance(node.target, ast.Tuple) and isinstance(node.iter, ast.Tuple):
            for place, name in enumerate(node.target.elts):
                given = [_constants(getattr(row, "elts", [None] * 9)[place]) for row in node.iter.elts]
                if isinstance(name, ast.Name) and all(given):
                    found[name.id] = [code for codes in given for code in codes]
    return found


def _collect_call(call: ast.Call, path: str, takers: dict, named: dict, found: Found) -> None:
    name, at = _name(call), f"{path}:{call.lineno}"
    if name in EXIT or name in MAKERS:
        if isinstance(call.func, ast.Attribute) and (name not in EXIT or ast.unparse(call.func.value) in OTHERS):
            return
        codes = _constants(call.args[0]) if call.args else None
        if codes is None and call.args and isinstance(call.args[0], ast.Name):
            codes = named.get(call.args[0].id)
        for code in codes or []:
            found.add(code, at, EXIT.get(name))
        if codes is None and call.args:
            text = ast.unparse(call.args[0])
            is_parameter = any(path == where for items in takers.values() for where, _, _ in items)
            if (path, text) not in PASSED_ON and not (text == "code" and is_parameter):
                found.unclear.append(f"{at}: {name}({text}, …)")
    elif name in CODES_BY_POSITION:
        place = CODES_BY_POSITION[name]
        for code in (_constants(call.args[place]) if len(call.args) > place else None) or []:
            found.add(code, at)
    elif name in takers:
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        for where, place, function in takers[name]:
            if where != path and "fail" in name and not isinstance(call.func, ast.Attribute):
                continue
            value = given.get("code", call.args[place] if len(call.args) > place else None)
            for code in _constants(value) or []:
                for status in _class_of(function) or {None}:
                    found.add(code, at, status)
    elif name in ("append", "add") and ast.unparse(call.func).startswith("reasons."):
        for code in _constants(call.args[0]) or []:
            found.add(code, at)
    for keyword in call.keywords:
        if keyword.arg == "reason" and name in ("Rejected", "Choice", "replace", "_Judged"):
            for code in _constants(keyword.value) or []:
                found.add(code, at)


def _collect_lists(tree: ast.Module, path: str, found: Found) -> None:
    """Collect closed lists of codes; of a map, its keys."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "ReasonCode":
            for item in node.body:
                for code in _constants(getattr(item, "value", None)) or []:
                    found.add(code, f"{path}:{item.lineno}")
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id in CLOSED_LISTS for target in targets):
            for item in ast.walk(node.value):
                strings = item.keys if isinstance(item, ast.Dict) else getattr(item, "elts", [])
                for string in strings:
                    for code in _constants(string) or []:
                        found.add(code, f"{path}:{string.lineno}")


def _collect_checks(tree: ast.Module, path: str, found: Found) -> None:
    """Collect codes out of tuples `checks = (("code", …), …)`, and the faults of keys in acceptance."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "checks":
            for row in getattr(node.value, "elts", []):
                for code in _constants(getattr(row, "elts", [None])[0]) or []:
                    found.add(code, f"{path}:{row.lineno}")
    if path == "verdict/acceptance.py":
        for node in ast.walk(tree):
            words = [word for word in _constants(node) or [] if CODE.match(word) and "-" in word]
            for code in words if isinstance(node, ast.Constant) else []:
                found.add(code, f"{path}:{node.lineno}")


def collect(root: Path) -> Found:
    """Return every code that the modules below `root` can emit."""
    trees = {str(p.relative_to(root)): ast.parse(p.read_text("utf-8")) for p in sorted(root.rglob("*.py"))}
    takers = _functions_with_code(trees)
    found = Found()
    for items in takers.values():
        for path, _, function in items:
            for code in _defaults(function):
                for status in _class_of(function) or {None}:
                    found.add(code, f"{path}:{function.lineno}", status)
    for path, tree in trees.items():
        named = _named_constants(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                _collect_call(node, path, takers, named, found)
        _collect_lists(tree, path, found)
        _collect_checks(tree, path, found)
    for code in [code for code in found.places if not CODE.match(code)]:
        del found.places[code]
    return found


@pytest.fixture(scope="session")
def emitted() -> Found:
    """Every code that our own source can emit."""
    return collect(SOURCE)


@pytest.fixture(scope="session")
def collect_codes():
    """The collector itself, to be tried on other sources."""
    return collect
