"""Rows of lanes: as wide as the window, with what they have no room for below; and what is against a single report."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gitledger.config.schema import Config, LaneRun, PolicyConfig
from gitledger.records.capability_status import ReasonCode
from gitledger.report.lanes import lanes_text
from gitledger.trust.signers import Signers
from gitledger.verdict.alone import Terms, against_each


def named(world) -> None:
    """Give lane and model names as long as they get."""
    lane = world.lanes["gfx1151"]
    run = LaneRun(model="meta-models/Meta-Llama-3.1-70B-Instruct", layers=(0, 15), quantization="bfloat16")
    world.lanes = {"gfx1151": replace(lane, runs=(*lane.runs, run))}


@pytest.mark.parametrize("width", [80, 100])
def test_rows_fit_the_window_and_a_detail_that_is_cut_is_told_whole_below(world, passed, reasoned, width):
    named(world)
    report = reasoned(ReasonCode.FORWARD_FAILED)
    message = "the kernel of layer 7 wrote no number" + ", and no number" * 6
    why = f"{report.reason.code}: {message}"
    world.put(replace(report, reason=replace(report.reason, message=message)))
    release = world.judge()
    lines = lanes_text(release, policy="self", color=False, width=width).splitlines()
    rows = [line for line in lines if line.startswith("  gfx1151")]
    assert len(rows) == 2
    assert max(map(len, rows)) <= width
    assert "1-70B-Instruct  " in rows[1], "of a model's name the end tells most"
    assert f"  · gfx1151: m7b layers 0-15 bfloat16 by torch-eager: {why}" in lines
    whole = lanes_text(release, policy="self", color=False).splitlines()
    assert not any(line.startswith("  ·") for line in whole), "a pipe gets all in the row"
    assert whole[1].endswith(why)


def test_the_record_of_a_lane_is_broken_between_words(world, passed):
    world.put(passed)
    release = world.judge()
    whole = lanes_text(release, policy="self", color=False)
    narrow = lanes_text(release, policy="self", color=False, width=80)
    assert max(map(len, whole.splitlines())) > 80
    assert max(map(len, narrow.splitlines())) <= 80
    assert narrow.split() == whole.split()


def against(world, on: str = "head") -> list[tuple[str, ...]]:
    allowed = "\n".join(f"{name} {key}" for name, key in world.public().items())
    config = Config(version=1, repository="demo", policy=PolicyConfig(**world.policy), lanes=world.lanes)
    terms = Terms(config=config, signers=Signers.parse(allowed.encode()), now=world.now)
    return list(against_each(world.evidence(on), terms, world.committed_at).values())


def test_of_a_single_report_it_is_said_what_keeps_it_from_counting(world, passed):
    """As the release check has it: the lane's signers, dirt, dates, the machine, a revocation."""
    record = world.put(passed)
    assert against(world) == [()]
    world.now = passed.timing.finished_at - timedelta(minutes=1)
    assert against(world) == [("future",)]
    world.now = passed.timing.finished_at + timedelta(minutes=1)
    lane = world.lanes["gfx1151"]
    world.lanes = {"gfx1151": replace(lane, match={**lane.match, "os.name": "another"})}
    assert against(world) == [("mismatched",)]
    world.lanes = {"gfx1151": lane}
    world.revoke(record)
    assert against(world) == [("revoked",)]
    dirty = replace(passed, repo=replace(passed.repo, dirty=True, dirty_paths=("a.py",)))
    world.put(dirty)
    world.put(passed, key="alice")
    assert sorted(against(world)) == [("dirty",), ("revoked",), ("unknown-signer",)]
