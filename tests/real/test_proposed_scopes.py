"""Scopes that `git ledger scope` proposes for a package that nobody here wrote, tried with edits in and outside.

For each of three shards: record it under the widest scope, adopt what is proposed, then make twenty random edits of
files that the proposal leaves out and twenty of files that it holds, each on a commit of its own. The plan carries
the result past the first and not past the others; and past the first the shard's tests, run by plain pytest, must
end exactly as they did before.
"""

from __future__ import annotations

import json
import os
import random
import sys

import pytest

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

PACKAGE = "packaging==25.0"
SHARDS = {
    "binaries": ["tests/test_elffile.py", "tests/test_manylinux.py", "tests/test_musllinux.py"],
    "names": ["tests/test_metadata.py", "tests/test_licenses.py", "tests/test_utils.py"],
    "versions": ["tests/test_specifiers.py", "tests/test_structures.py"],
}
EDITS = 20
SEED = 20_261_129
IGNORED = b"__pycache__/\n"


def config(name: str, scope: list[str]) -> str:
    command = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *SHARDS[name]]
    policy = {"allow_carried": True, "require_observed_scope": True}
    shards = {name: {"paths": scope, "command": command}}
    return json.dumps({"version": 1, "repository": "packaging", "shards": shards, "policy": policy})


def edited(path: str, content: bytes, dice: random.Random) -> tuple[str, bytes | None]:
    """Return a kind of edit and what becomes of the file; None deletes it."""
    kinds = ["delete", "cut", "flip", "line"] + (["raise", "token"] if path.endswith(".py") else [])
    kind = dice.choice(kinds)
    lines = content.splitlines(keepends=True)
    match kind:
        case "cut":
            return kind, content[: dice.randrange(len(content) or 1)]
        case "flip" if content:
            at = dice.randrange(len(content))
            return kind, content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        case "line" if lines:
            del lines[dice.randrange(len(lines))]
            return kind, b"".join(lines)
        case "raise":
            return kind, b"raise RuntimeError('edited')\n" + content
        case "token":
            pairs = [(b" == ", b" != "), (b" and ", b" or "), (b"return ", b"return not "), (b"True", b"False")]
            here = [(old, new) for old, new in pairs if old in content]
            if here:
                old, new = dice.choice(here)
                places = content.count(old)
                parts = content.split(old)
                at = dice.randrange(places) + 1
                return kind, old.join(parts[:at]) + new + old.join(parts[at:])
    return "delete", None


def is_bound(path: str, scope: list[str]) -> bool:
    """Tell whether an edit of this file must make the shard stale: by its scope, or as pytest's configuration."""
    return path == "pyproject.toml" or any(path == one or path.startswith(f"{one}/") for one in scope)


def is_carried(project) -> bool:
    """Tell whether the one shard's result would be carried; where the configuration is broken, nothing is."""
    done = project.ledger("plan", "--json", expect=None)
    return done.status == 0 and done.document["shards"][0]["verdict"] == "carryable"


@pytest.mark.parametrize("name", SHARDS)
def test_no_edit_outside_a_proposed_scope_changes_an_outcome(
    make_project, unpack, site, plain_outcomes, name, capsys
):
    files = {**unpack(PACKAGE), ".gitignore": IGNORED}
    project = make_project(config(name, ["."]), files)
    extra = site("pretend")
    project.repo.env["PYTHONPATH"] = os.pathsep.join([str(project.path / "src"), str(extra)])
    assert project.record(name)["outcome"] == "passed"
    scope = project.ledger("scope", name, "--json").document["proposed"]["paths"]
    base = project.repo.commit({".gitledger/config.yaml": config(name, scope)}, "Adopt the proposed scope")
    assert project.record(name)["outcome"] == "passed"
    assert project.verify("--allow-skipped")[0] == "passed"  # not leaky under its own proposal

    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SHARDS[name]]
    before = plain_outcomes(command, project.path, project.repo.env)
    assert before[1] == 0
    dice = random.Random(f"{SEED} {name}")
    every = [path for path in project.repo.git("ls-files").splitlines() if not path.startswith(".gitledger/")]
    near = [path for path in every if path.startswith(("src/", "tests/"))]  # likelier to matter than the docs
    changed: dict[str, list[str]] = {"outside": [], "inside": []}
    for where in EDITS * ("outside", "inside"):
        wanted = [path for path in dice.choice([near, every]) if is_bound(path, scope) == (where == "inside")]
        path = dice.choice(wanted)
        content = (project.path / path).read_bytes()
        tries = (edited(path, content, dice) for _ in range(100))
        kind, after = next((kind, after) for kind, after in tries if after != content)
        target = project.path / path
        target.unlink() if after is None else target.write_bytes(after)
        project.repo.commit({}, f"{kind} {path}")
        assert is_carried(project) == (where == "outside"), path
        if plain_outcomes(command, project.path, project.repo.env) != before:
            changed[where].append(f"{kind} {path}")
        project.repo.git("reset", "-q", "--hard", base)
        project.repo.git("clean", "-qfd")
    assert changed["outside"] == []
    assert len(changed["inside"]) > 0
    with capsys.disabled():
        print(
            f"\n{name}: {scope}; {EDITS} edits outside changed no outcome, {len(changed['inside'])} of {EDITS} inside did"
        )
