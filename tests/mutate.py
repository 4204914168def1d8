"""Break one place of the code on purpose and see a test turn red, always in a temporary copy.

    python tests/mutate.py gitledger/verdict/bars.py "ended_at > now" "ended_at < now" tests/verdict/test_bars.py
    python tests/mutate.py --table tests/verdict/test_rules_table.py [WORD]

With `--table`, the file's `RULES` are tried one by one: each has `file`, `old`, `new` and `test` (a list of pytest
selections, relative to the table's folder). WORD picks the rules that hold it. Exits 0 when every mutant was
killed; 1 names those that survived; 2 says what could not be tried.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("gitledger", "tests", "hooks", "pyproject.toml", "README.md")
SCRIPTS = ("coverage", "git-ledger", "pytest")
TIMEOUT_S = 300
PASSED, FAILED = 0, 1
"""pytest's exit statuses (pytest.ExitCode): all passed, some failed. Anything else says nothing about a mutant."""


@dataclass(frozen=True)
class Mutation:
    """One change of one place, and the tests that should notice."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def copy_tree(target: Path) -> None:
    """Copy what the tests need into a folder of their own."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, target / name)


def make_python(folder: Path) -> Path:
    """Return an interpreter whose package, and whose `git-ledger`, is that of `folder`.

    Tests empty the environment of the commands that they start, so a variable would not reach the installed one.
    """
    home = folder / "venv"
    venv.create(home, symlinks=True)
    (site,) = home.glob("lib/python*/site-packages")
    installed = [path for path in sys.path if path.endswith("site-packages")]
    (site / "mutate.pth").write_text("".join(f"{path}\n" for path in [str(folder), *installed]))
    for point in entry_points(group="console_scripts"):
        if point.name in SCRIPTS:
            script = home / "bin" / point.name
            call = f"import sys\nfrom {point.module} import {point.attr}\nsys.exit({point.attr}())\n"
            script.write_text(f"#!{home / 'bin' / 'python'}\n{call}")
            script.chmod(0o755)
    return home / "bin" / "python"


def run_tests(folder: Path, tests: Sequence[str]) -> int:
    """Return pytest's exit status over `tests`, with the package of `folder`."""
    command = [
        "env",
        f"PYTHONPATH={folder}",
        str(folder / "venv" / "bin" / "python"),
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, timeout=TIMEOUT_S, check=False).returncode
    except subprocess.TimeoutExpired:
        return FAILED  # a mutant that hangs was noticed


def is_killed(folder: Path, mutation: Mutation) -> bool | str:
    """Return whether the tests turn red under the mutation, or why it could not be tried; restores the file."""
    path = folder / mutation.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        return f"the old text stands {text.count(mutation.old)} times in {mutation.file}"
    _write(path, text.replace(mutation.old, mutation.new))
    try:
        status = run_tests(folder, mutation.tests)
    finally:
        _write(path, text)
    return status == FAILED if status in (PASSED, FAILED) else f"pytest exited with {status}: {mutation.tests}"


def _write(path: Path, text: str) -> None:
    """Write a module and forget its bytecode: that goes by seconds and sizes, and mutants can be alike in both."""
    path.write_text(text, encoding="utf-8")
    shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)


def read_table(table: Path, word: str) -> list[Mutation]:
    """Return the mutations of a table of rules that hold `word`."""
    spec = importlib.util.spec_from_file_location("table", table)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{table} can't be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules["table"] = module
    spec.loader.exec_module(module)
    beside = table.resolve().relative_to(ROOT).parent
    return [
        Mutation(rule.file, rule.old, rule.new, tuple(str(beside / test) for test in rule.tests))
        for rule in module.RULES
        if word in repr(rule)
    ]


def say(line: str) -> None:
    """Write a line at once: trying takes minutes."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def try_all(mutations: Iterable[Mutation]) -> int:
    """Try every mutation in one temporary copy, print what came of each, and return the exit status."""
    survived = untried = 0
    with tempfile.TemporaryDirectory(prefix="mutate-") as name:
        folder = Path(name)
        copy_tree(folder)
        make_python(folder)
        found = list(mutations)
        every = sorted({test for mutation in found for test in mutation.tests})
        if not found or run_tests(folder, every) != PASSED:
            say("nothing to try, or the tests are red without any mutation")
            return 2
        for number, mutation in enumerate(found, start=1):
            killed = is_killed(folder, mutation)
            word = {True: "killed", False: "SURVIVED"}.get(killed, f"NOT TRIED: {killed}")  # type: ignore[call-overload]
            survived, untried = survived + (killed is False), untried + isinstance(killed, str)
            change = f"{mutation.old.strip()[:60]!r} -> {mutation.new.strip()[:60]!r}"
            say(f"{number}/{len(found)} {word}: {mutation.file}: {change}")
    say(f"{len(found)} mutations, {survived} survived, {untried} not tried")
    return 2 if untried else int(bool(survived))


def main() -> int:
    """Read the command line and try what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, help="a file with RULES")
    parser.add_argument("words", nargs="*", help="FILE OLD NEW TEST..., or a word that picks rules")
    given = parser.parse_args()
    if given.table:
        return try_all(read_table(given.table, given.words[0] if given.words else ""))
    if len(given.words) < 4:
        parser.error("expected FILE OLD NEW TEST...")
    file, old, new, *tests = given.words
    return try_all([Mutation(file, old, new, tuple(tests))])


if __name__ == "__main__":
    raise SystemExit(main())
