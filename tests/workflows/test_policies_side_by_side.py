"""Several policies judged in one process with one reading of the ledger: what one settled is none of the other's."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gitledger.workflows.judge import verify
from gitledger.workflows.known import Known
from gitledger.workflows.session import open_session

CONFIG = """\
version: 1
repository: demo
shards:
  lint: {paths: [src], command: "true COMMAND", results: exit-status}
policy: {allow_carried: true}
"""
OLD, NEW = (CONFIG.replace("COMMAND", word) for word in ("old", "new"))


@pytest.mark.parametrize("order", [("old", "new"), ("new", "old")])
def test_f10_a_shard_that_one_policy_pins_otherwise_is_redefined_for_that_one_alone(make_project, order):
    """A shard as it stands at a commit is kept for all judgements; that it is redefined is not the shard's own."""
    project = make_project(OLD, {"src/a": "1"})
    project.repo.git("branch", "old")
    project.repo.commit({".gitledger/config.yaml": NEW})
    project.repo.git("branch", "new")
    project.record("lint")
    project.repo.commit({"README": "no input of it"})
    at = datetime.now(UTC)
    env = dict(project.repo.env)
    session = open_session(project.path, environ=env, home=Path(env["HOME"]), now=lambda: at)
    known, head = Known.of(session), session.repo.resolve("HEAD")

    found = {ref: verify(session, head, policy_from=ref, known=known) for ref in order}

    (for_new,), (for_old,) = found["new"].union.choices, found["old"].union.choices
    assert (for_new.verdict, for_new.reason) == ("carryable", "unchanged")
    assert (for_old.verdict, for_old.reason) == ("stale", "carry-forbidden")
    assert found["new"].verdict.passed
    assert not found["old"].verdict.passed
