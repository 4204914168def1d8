"""Days of people who use it, walked through in full by what they would type.

First adoption and the GPU lab are pages (test_docs_run.py), so is the migration (workflows/test_take_over.py).
"""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.days

CONFIG = """\
shards:
  unit: {split: 3, command: pytest -q tests}
  lint: {paths: [src], command: cat src/core/math.py, results: exit-status, coverage: none}
carry: {from: same-manifest}
policy:
  allowed_signers: [alice@example.org, ci@example.org]
  ci_key_fingerprints: ["PRINTED"]
  require_mode: ci
  allow_carried: true
"""
FILES = {f"tests/unit/test_{name}.py": f"def test_{name}():\n    assert True\n" for name in "abc"}
SHARDS = ("unit-1-of-3", "unit-2-of-3", "unit-3-of-3", "lint")


def test_three_way_sharded_ci_a_forks_pull_request_and_a_squash_merge(team, fingerprint_of_ci):
    person = team(CONFIG, FILES)
    config = person.folder / ".gitledger/config.yaml"
    config.write_text(config.read_text().replace("PRINTED", fingerprint_of_ci(person)))
    person.type("git commit -qam 'Let the runners sign' && GITLEDGER_SKIP=1 git push -q")
    root = person.folder.parent
    ci = {**person.env, "HOME": str(root / "ci")}
    stranger = {**person.env, "HOME": str(root / "stranger")}

    def in_ci(*lines: str, status: int = 0) -> str:
        """A fresh runner: nothing of the one before is left."""
        person.type("rm -rf runner && git clone -q server.git runner", where=root)
        for line in lines[:-1]:
            person.type(line, where=root / "runner", env=ci)
        person.type(lines[-1], where=root / "runner", env=ci, status=status)
        return person.last

    # the main branch: four jobs, each on a runner of its own, and a gate
    assert "never-recorded" in in_ci("git ledger sync --fetch-only", "git ledger gate --no-merge", status=1)
    for shard in SHARDS:
        in_ci(f"git ledger record --shard {shard} --mode ci", "git ledger sync origin")
    assert "verdict: passed" in in_ci("git ledger gate")

    # a stranger's fork: all green under a key of theirs, which the project never heard of
    person.type(
        "mkdir stranger && git clone -q --bare server.git fork.git && git clone -q fork.git theirs", where=root
    )
    for line in (
        "mkdir ~/.ssh && ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519 && git switch -qc faster",
        "echo '# faster' >>src/core/math.py && git commit -qam 'Make it faster'",
        "git ledger run; git push -q origin faster && git ledger sync origin",
    ):
        person.type(line, where=root / "theirs", env=stranger)
    ask = "git fetch -q ../fork.git faster && git checkout -q FETCH_HEAD"
    said = in_ci(ask, "git ledger gate --from ../fork.git --policy-from origin/main", status=1)
    assert "0 taken" in said
    assert "never-recorded" in said or "inputs-changed" in said

    # somebody who read it lets CI's own runners run it: the parts that hold what changed, and those alone
    plan = in_ci(ask, "git ledger sync --fetch-only", "git ledger plan --policy-from origin/main")
    assert plan.count("inputs-changed") + plan.count("never-recorded") == len(SHARDS)
    for shard in SHARDS:
        in_ci(ask, f"git ledger record --shard {shard} --mode ci", "git ledger sync origin")
    assert "verdict: passed" in in_ci(ask, "git ledger gate --policy-from origin/main")

    # squashed onto the main branch: another commit with the same tree, for which nothing has to run again
    person.type("git clone -q server.git forge && cd forge && git fetch -q ../fork.git faster", where=root)
    squash = "git merge -q --squash FETCH_HEAD >said && git commit -qm 'Make it faster (#1)' && git push -q"
    person.type(squash, where=root / "forge")
    keep = "git fetch -q ../fork.git faster:refs/remotes/pull/1"  # within reach, as the forge keeps a pull request's head
    said = in_ci(keep, "git ledger gate")
    assert "verdict: passed" in said
    assert "beyond-ancestry" in said
    assert "0 stale" in in_ci(keep, "git ledger sync --fetch-only", "git ledger plan")
