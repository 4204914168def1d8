"""`git ledger init --ci`: the gate's file where its CI looks for it, as it is handed out, and never written over."""

from __future__ import annotations

from pathlib import Path

import pytest

HOOKS = Path(__file__).parents[2] / "hooks"


@pytest.mark.parametrize(
    ("kind", "template", "place"),
    [
        ("github", "github/git-ledger.yml", ".github/workflows/git-ledger.yml"),
        ("gitlab", "gitlab/git-ledger.yml", ".gitlab/git-ledger.yml"),
        ("shell", "gate.sh", "ci/git-ledger-gate.sh"),
    ],
)
def test_the_file_is_laid_once_and_then_left_alone(project, kind, template, place):
    said = project.ledger("init", "--ci", kind).err
    path = project.path / place
    assert path.read_text() == (HOOKS / template).read_text()
    head = path.read_text().partition(
        "\nname:" if kind == "github" else "\nspec:" if kind == "gitlab" else "\nset -eu"
    )[0]
    key = "LEDGER_KEY" if kind != "gitlab" else "GITLEDGER_SIGNING_KEY"
    for need in (
        key,
        "policy.ci_key_fingerprints",
        "policy.allowed_signers",
        "allowed_signers: `git ledger init --key",
    ):
        assert need in head, need
    assert "git+https://HOST/OWNER/git-ledger@COMMIT" in head
    assert f"✓ ci: wrote {place}" in said
    assert f"`git add :/.gitledger :/{place} && git commit`" in said
    assert bool(path.stat().st_mode & 0o100) is (kind == "shell")
    path.write_text("mine")
    assert f"· ci: {place} is there" in project.ledger("init", "--ci", kind).err
    assert path.read_text() == "mine"


def test_a_place_that_can_not_be_written_is_named(project):
    (project.path / ".github").write_text("a file")
    done = project.ledger("init", "--ci", "github", expect=None)
    assert done.status == 3
    assert "[file-unwritable]" in done.err
    assert ".github/workflows/git-ledger.yml" in done.err
