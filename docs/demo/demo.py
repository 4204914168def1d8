"""`make demo`: git ledger at work in a real repository with a real remote.

Every command is really run and its exit status checked: where something does not happen as the text says, the demo
stops and exits with 1. Everything lies in a temporary folder, its home included; nothing of yours is touched.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

CONFIG = """\
version: 1
repository: demo
shards:
  parser: {paths: [calc/parser.py, tests/parser], command: pytest -q tests/parser}
  solver: {paths: [calc/solver.py, tests/solver], command: pytest -q tests/solver}
  report: {paths: [calc/report.py, tests/report], command: pytest -q tests/report}
policy:
  allowed_signers: [alice@example.org]
  allow_carried: true
"""
FILES = {
    ".gitignore": "__pycache__/\n.pytest_cache/\n",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "calc/__init__.py": "",
    "calc/parser.py": "def parse(text):\n    return [float(word) for word in text.split()]\n",
    "calc/solver.py": "def mean(numbers):\n    return sum(numbers) / len(numbers)\n",
    "calc/report.py": "def line(name, value):\n    return f'{name}: {value:.2f}'\n",
    "tests/parser/test_parser.py": (
        "import pytest\nfrom calc.parser import parse\n\n"
        "@pytest.mark.parametrize('text, numbers', [('1 2', [1, 2]), ('', []), ('-0.5', [-0.5])])\n"
        "def test_parse(text, numbers):\n    assert parse(text) == numbers\n"
    ),
    "tests/solver/test_solver.py": (
        "from calc.solver import mean\n\ndef test_mean():\n    assert mean([1, 2, 6]) == 3\n\n"
        "def test_mean_of_one():\n    assert mean([4]) == 4\n"
    ),
    "tests/report/test_report.py": (
        "from calc.report import line\n\ndef test_line():\n    assert line('mean', 3) == 'mean: 3.00'\n"
    ),
}


class Stage:
    """A folder with a home of its own, where commands are shown, run, and held to their exit status."""

    def __init__(self, folder: Path, *, color: bool) -> None:
        self.folder = folder
        self.color = color
        self.cwd = folder
        home = folder / "home"
        home.mkdir()
        keep = {name: os.environ[name] for name in ("LANG", "TERM", "TMPDIR") if name in os.environ}
        self.env = keep | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if color:
            self.env["FORCE_COLOR"] = "1"

    def paint(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.color else text

    def title(self, text: str) -> None:
        print("\n" + self.paint(f"── {text} ", "1") + self.paint("─" * max(0, 76 - len(text)), "2"), flush=True)

    def say(self, text: str) -> None:
        print(self.paint(text, "2"), flush=True)

    def run(self, command: str, *, expect: int = 0, show: bool = True, **variables: str) -> str:
        if show:
            print(self.paint(f"\n$ {command}", "36"), flush=True)
        done = subprocess.run(
            shlex.split(command),
            cwd=self.cwd,
            env=self.env | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if show or done.returncode != expect:
            print("\n".join(f"  {line}" for line in done.stdout.rstrip().splitlines()), flush=True)
        if done.returncode != expect:
            print(self.paint(f"\nthis should have ended with {expect}, not {done.returncode}", "31"))
            sys.exit(1)
        if show and expect:
            self.say(f"  (exit status {expect}, as it should be)")
        return done.stdout

    def write(self, path: str, text: str) -> None:
        target = self.cwd / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def commit(self, message: str) -> None:
        self.run("git add -A", show=False)
        self.run(f"git commit -qm {shlex.quote(message)}", show=False)
        self.say(f"  committed: {message}")


def settle(stage: Stage) -> None:
    """Make Alice, a stranger, a bare remote and Alice's clone of it."""
    for who in ("alice", "mallory"):
        key = stage.folder / "home" / f"{who}_key"
        stage.run(f"ssh-keygen -q -t ed25519 -N '' -C {who} -f {key}", show=False)
    for key, value in {
        "user.name": "Alice",
        "user.email": "alice@example.org",
        "init.defaultBranch": "main",
        "advice.detachedHead": "false",
        "gitledger.signingKey": str(stage.folder / "home" / "alice_key"),
    }.items():
        stage.run(f"git config --global {key} {value}", show=False)
    stage.run("git init -q --bare server.git", show=False)
    stage.run("git clone -q server.git alice", show=False)
    stage.cwd = stage.folder / "alice"
    for path, text in FILES.items():
        stage.write(path, text)


def first_evidence(stage: Stage) -> None:
    stage.title("1. A project with three shards")
    stage.say("Alice has a small library, a remote, and an SSH key. One command sets the ledger up:")
    stage.run("git ledger init")
    stage.write(".gitledger/config.yaml", CONFIG)
    stage.say("\n.gitledger/config.yaml, once she has declared her shards:\n")
    print("\n".join(f"  {line}" for line in CONFIG.splitlines()))
    stage.commit("Set up the ledger")
    stage.title("2. Record each shard, sign what covers the commit, push")
    stage.run("git ledger record --shard parser")
    for shard in ("solver", "report"):
        stage.run(f"git ledger -q record --shard {shard}")
    stage.run("git ledger merge")
    stage.say("\nThe pre-push hook publishes the ledger in the same go:")
    stage.run("git push -q origin main")
    stage.run("git remote set-head origin main", show=False)


def change_one(stage: Stage) -> None:
    stage.title("3. One shard's source changes: two carry, one is stale")
    stage.write(
        "calc/solver.py", "def mean(numbers):\n    total = sum(numbers)\n    return total / len(numbers)\n"
    )
    stage.commit("Rework the solver")
    stage.run("git ledger plan")
    document = json.loads(stage.run("git ledger plan --json", show=False))
    if document["summary"] != {"carryable": 2, "fresh": 0, "stale": 1}:
        sys.exit("the plan is not what this demo tells")
    stage.say("\nSo only that one runs; the merge carries the other two:")
    stage.run("git ledger record --shard solver")
    stage.run("git ledger merge")
    stage.run("git push -q origin main")


def second_clone(stage: Stage) -> None:
    stage.title("4. Somebody else verifies, without a key and without running a test")
    stage.cwd = stage.folder
    stage.run("git clone -q server.git bob")
    stage.cwd = stage.folder / "bob"
    stage.run("git ledger sync --fetch-only")
    stage.run("git ledger verify --policy-from origin/main")
    stage.say("\nIt is all plain git; any other tool reads it too:")
    stage.run("git log -1 --format=%h --notes=refs/gitledger/remotes/origin/records", show=False)
    stage.run("git for-each-ref --format='%(refname)' refs/gitledger")


def attacks(stage: Stage) -> None:
    stage.title("5. Three ways to a green verdict that don't work")
    stage.say("a) The solver breaks, its failure is recorded, and the note is edited to say that it passed:")
    stage.write("calc/solver.py", "def mean(numbers):\n    return max(numbers)\n")
    stage.commit("Break the solver")
    stage.run("git ledger -q record --shard solver", expect=1)
    tamper(stage)
    stage.run("git ledger verify --policy-from origin/main", expect=1)

    stage.say("\nb) The solver is mended, but a stranger's key signs the receipt:")
    stage.run("git reset -q --hard origin/main", show=False)
    stage.write("calc/solver.py", "def mean(numbers):\n    return sum(numbers) / max(1, len(numbers))\n")
    stage.commit("Accept empty lists")
    mallory = str(stage.folder / "home" / "mallory_key")
    stage.run("git ledger -q record --shard solver", GITLEDGER_SIGNING_KEY=mallory)
    stage.run("git ledger verify --policy-from origin/main", expect=1)

    stage.say("\nc) The right key, but the tests passed only with an edit that was never committed:")
    stage.run("git reset -q --hard origin/main", show=False)
    stage.write("tests/solver/test_solver.py", "def test_nothing():\n    assert False\n")
    stage.commit("A test that fails")
    stage.write("tests/solver/test_solver.py", "def test_nothing():\n    pass\n")
    stage.run("git ledger -q record --shard solver")
    stage.run("git ledger verify --policy-from origin/main", expect=1)


def tamper(stage: Stage) -> None:
    """Turn the newest receipt's failure into a pass, with nothing but git."""
    notes = "git notes --ref=gitledger/records"
    line = stage.run(f"{notes} show HEAD", show=False).strip()
    envelope = json.loads(line)
    payload = json.loads(base64.b64decode(envelope["payload"]))
    predicate = payload["predicate"]
    counts = predicate["counts"]
    counts["passed"], counts["failed"] = counts["collected"], 0
    predicate.update(outcome="passed", reasons=[])
    predicate["session"]["exit_status"] = 0
    text = json.dumps(payload, separators=(",", ":"), sort_keys=True)
    envelope["payload"] = base64.b64encode(text.encode()).decode()
    forged = stage.folder / "forged"
    forged.write_text(json.dumps(envelope, separators=(",", ":"), sort_keys=True) + "\n")
    stage.run(f"{notes} add -f -F {forged} HEAD")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", metavar="DIR", help="work in this new folder and leave it there")
    keep = parser.parse_args().keep
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    with tempfile.TemporaryDirectory(prefix="git-ledger-demo-") as scratch:
        folder = Path(keep or scratch).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        stage = Stage(folder, color=color)
        settle(stage)
        first_evidence(stage)
        change_one(stage)
        second_clone(stage)
        attacks(stage)
        stage.title("That was it")
        print("Next: docs/tutorial.md does the same with your own repository, in ten minutes.")


if __name__ == "__main__":
    main()
