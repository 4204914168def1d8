"""Slurm's words: sparse lists of indices, and what its commands answer. tests/slurm has the real one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger.errors import MachineError
from gitledger.machine.slurm import Slurm, TaskState
from gitledger.machine.slurm_script import Batch, Place, array_list, task_script


@pytest.mark.parametrize(
    ("indices", "text"), [([2, 5, 7], "2,5,7"), ([0, 1, 2, 7], "0-2,7"), ([4], "4"), ([3, 2, 3], "2-3"), ([], "")]
)
def test_indices_are_drawn_together(indices, text):
    assert array_list(indices) == text


@given(st.sets(st.integers(0, 2000), max_size=200))
def test_a_list_names_exactly_its_indices(indices):
    found: set[int] = set()
    for part in filter(None, array_list(indices).split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    assert found == indices


def test_needs_are_rounded_up_and_percent_signs_of_a_path_are_no_pattern(tmp_path):
    place = Place(folder=tmp_path, spool=Path("/x/100% sure"), command=("git-ledger",), options=("--qos=low",))
    batch = Batch(name="n", tasks={3: "a"}, memory_bytes=(1 << 20) + 1, gpus=2, time_s=61.0)
    lines = task_script(batch, place).splitlines()

    assert {"#SBATCH --mem=2M", "#SBATCH --gres=gpu:2", "#SBATCH --time=4", "#SBATCH --qos=low"} <= set(lines)
    assert '#SBATCH --output="/x/100%% sure/logs/%A_%a.out"' in lines
    assert lines[-1].startswith("exec git-ledger run --spool '/x/100% sure'")


@pytest.fixture
def answers(tmp_path):
    """Stand-ins for Slurm's commands, each of which prints what the test says."""

    def make(**said: str) -> Slurm:
        for name, body in said.items():
            (tmp_path / name).write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{body}\n")
            (tmp_path / name).chmod(0o755)
        return Slurm(env={"PATH": str(tmp_path)})

    return make


def test_tasks_are_told_by_their_index_and_those_that_wait_together_too(answers):
    slurm = answers(
        scontrol="""cat <<'X'
JobId=12 ArrayJobId=12 ArrayTaskId=3,7-9%2 JobName=a b JobState=PENDING Reason=Resources Dependency=(null)
JobId=13 ArrayJobId=12 ArrayTaskId=0 JobName=a JobState=OUT_OF_MEMORY Reason=OutOfMemory
X"""
    )
    pending = TaskState("PENDING", "Resources")
    assert slurm.tasks("12") == {
        3: pending,
        7: pending,
        8: pending,
        9: pending,
        0: TaskState("OUT_OF_MEMORY", "OutOfMemory"),
    }


def test_a_job_that_slurm_has_forgotten_is_over_and_one_that_it_can_not_tell_of_is_not(answers):
    forgotten = answers(squeue="echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert forgotten.is_queued("1") is False
    silent = answers(squeue="echo 'Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(MachineError) as caught:
        silent.is_queued("1")
    assert caught.value.code == "slurm-refused"
    assert answers(squeue="echo 1_0").is_queued("1") is True
    assert answers(squeue=":").is_queued("1") is False


def test_a_submission_gives_an_id_or_an_error(answers):
    assert answers(sbatch="cat >/dev/null; echo '77;cluster'").submit("x") == "77"
    for body in ("cat >/dev/null; echo odd", "exit 1"):
        with pytest.raises(MachineError) as caught:
            answers(sbatch=body).submit("x")
        assert caught.value.code == "slurm-refused"
    with pytest.raises(MachineError) as caught:
        Slurm(env={"PATH": "/nowhere"}).submit("x")
    assert caught.value.code == "slurm-missing"


def test_the_limit_of_an_array_is_slurms_own(answers):
    assert answers(scontrol="echo 'MaxArraySize            = 8'").array_limit() == 8
    assert answers(scontrol="echo nothing").array_limit() == 1001
