"""What was submitted is read back as it was, and what can't be read was not submitted by us."""

from __future__ import annotations

import pytest

from gitledger.records.ids import ShardKey
from gitledger.workflows.slurm_submission import Submission

COMMIT = "a" * 40


def test_it_is_read_back_and_the_newest_task_of_a_shard_counts(tmp_path):
    made = Submission.read(tmp_path, COMMIT)
    made.arrays["9"] = {0: "a", 1: "b"}
    made.arrays["10"] = {0: "a"}
    made.followers.append("11")
    made.write()

    again = Submission.read(tmp_path, COMMIT)

    assert (again.arrays, again.followers, again.names()) == (made.arrays, ["11"], {"a", "b"})
    assert again.task_of(ShardKey("a")) == ("10", 0)
    assert again.task_of(ShardKey("b")) == ("9", 1)
    assert again.task_of(ShardKey("c")) is None
    assert Submission.read(tmp_path, "b" * 40).arrays == {}, "of another commit"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"commit": 1}', f'{{"commit": "{COMMIT}", "arrays": {{"x": {{}}}}}}']
)
def test_what_can_not_be_read_is_nothing(tmp_path, text):
    (tmp_path / "state.json").write_text(text)
    found = Submission.read(tmp_path, COMMIT)
    assert (found.arrays, found.followers) == ({}, [])
