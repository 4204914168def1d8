"""An option that a command lacks is refused with what is near, or with what grants the wish elsewhere."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ["run", "--timeot", "3m"],
            "no option --timeot; did you mean --timeout? [usage]; try: git ledger help run\n",
        ),
        (
            ["sync", "--fetch"],
            "no option --fetch; did you mean --fetch-only? [usage]; try: git ledger help sync\n",
        ),
        (["--colour", "run"], "no option --colour; did you mean --no-color? [usage]; try: git ledger help\n"),
        (["export", "-o"], "Option '-o' requires an argument [usage]; try: git ledger help export\n"),
        (["run", "--frobnicate"], "no option --frobnicate [usage]; try: git ledger help run\n"),
        (["verify", "--allow-dirty"], "no option --allow-dirty [usage]; try: set policy.allow_dirty in "),
        (["plan", "--max-age-days", "3"], "no option --max-age-days [usage]; try: set policy.max_age_days in "),
    ],
)
def test_an_option_that_is_none_is_refused_with_what_is_near_or_elsewhere(project, args, said):
    assert said in project.ledger(*args, expect=2).err


@pytest.mark.parametrize("option", ["--dirty", "--force", "--allow-dirty"])
def test_who_would_run_beside_edits_is_sent_to_record_and_not_to_wait(project, option):
    """`--wait` is a word of similar letters, and waits for GPUs: no edit is committed by that."""
    said = project.ledger("run", option, expect=2).err
    assert "did you mean" not in said
    assert "try: git ledger record --shard NAME  # beside" in said
    project.repo.write("src/alpha.py", "def alpha():\n    return 1  # edited\n")
    done = project.ledger("record", "--shard", "alpha", "--json")
    assert project.receipt(done.document["record"])["repo"]["dirty"] is True
